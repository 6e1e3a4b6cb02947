//! Masks combined. No engine has operators for that: masks become 0 and 1, and a comparison makes a mask of the result. Exact.

use super::*;

const PAIR: &[InputSpec] = &[input("x", BOOL), input("y", BOOL)];
const TRUTH: &[Sample] =
    &[given("x", &[4], &[0.0, 0.0, 1.0, 1.0]).of(DType::Bool), given("y", &[4], &[0.0, 1.0, 0.0, 1.0]).of(DType::Bool)];
const RULES: &[Constraint] = &[rule(
    "C1",
    "x and y broadcast: seen from the last axis, extents are equal or one of them is 1",
    |s| broadcast_shape(s.shape("x"), s.shape("y")).is_some(),
    Case::refused(&[given("x", &[2], &[0.0, 1.0]).of(DType::Bool), given("y", &[3], &[0.0, 1.0, 1.0]).of(DType::Bool)], &[]),
)];

const fn logical(name: &'static str, summary: &'static str, lower: LowerRule) -> GraphOp {
    GraphOp {
        inputs: PAIR,
        constraints: RULES,
        lower,
        vjp: Vjp::None("a mask has no slope; use select on it, whose branches have one"),
        tolerance: 0.0,
        ..direct(name, summary)
    }
}

/// Both masks as 0 and 1.
fn numbers(l: &mut Lowering, s: &Site<'_>) -> Result<(ValueId, ValueId), GraphError> {
    let mut number = |input| l.op("cast", &[("x", s.value(input)?.into()), ("dtype", "fp16".into())]);
    Ok((number("x")?, number("y")?))
}

/// True where the larger or smaller of both masks is.
fn lower_pick(l: &mut Lowering, s: &Site<'_>, pick: &str) -> Result<Vec<ValueId>, GraphError> {
    let (x, y) = numbers(l, s)?;
    let picked = l.op(pick, &[("x", x.into()), ("y", y.into())])?;
    l.ops("greater", &[("x", picked.into()), ("y", Arg::Float(DType::Fp16, 0.0))])
}

/// Conjunction.
pub static LOGICAL_AND: GraphOp = GraphOp {
    cases: &[Case::values("truth_table", TRUTH, &[], (&[4], &[0.0, 0.0, 0.0, 1.0]), "by hand")],
    ..logical("logical_and", "True where x and y are.", |l, s| lower_pick(l, s, "minimum"))
};
/// Disjunction.
pub static LOGICAL_OR: GraphOp = GraphOp {
    cases: &[Case::values("truth_table", TRUTH, &[], (&[4], &[0.0, 1.0, 1.0, 1.0]), "by hand")],
    ..logical("logical_or", "True where x or y is, or both.", |l, s| lower_pick(l, s, "maximum"))
};
/// Exclusive disjunction.
pub static LOGICAL_XOR: GraphOp = GraphOp {
    cases: &[Case::values("truth_table", TRUTH, &[], (&[4], &[0.0, 1.0, 1.0, 0.0]), "by hand")],
    ..logical("logical_xor", "True where exactly one of x and y is.", |l, s| {
        let (x, y) = numbers(l, s)?;
        l.ops("not_equal", &[("x", x.into()), ("y", y.into())])
    })
};

pub(super) const ALL: &[&GraphOp] = &[&LOGICAL_AND, &LOGICAL_OR, &LOGICAL_XOR];
