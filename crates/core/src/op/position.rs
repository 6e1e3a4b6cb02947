//! Where the largest and smallest values stand.

use super::*;

const ATTRIBUTES: &[AttributeSpec] =
    &[int("axis", Default::Int(-1)), flag("keep_dims", false), word("output_dtype", &["int32", "uint16", "fp16"], "int32")];
const NO_SLOPE: Vjp = Vjp::None("a position has no slope; use reduce_max or reduce_min, whose values have one");

const RULES: &[Constraint] = &[
    rule(
        "C1",
        "axis is an axis of x",
        |s| s.axis("axis", s.rank("x")).is_some(),
        Case::refused(&[drawn("x", &[2, 3])], &[("axis", Default::Int(2))]),
    ),
    rule(
        "C2",
        "positions fit output_dtype: at most 2048 of them in fp16, 65536 in uint16; use int32",
        |s| {
            let extent = s.axis("axis", s.rank("x")).map_or(0, |axis| s.shape("x")[axis]);
            match s.text("output_dtype") {
                "fp16" => extent <= 2048,
                "uint16" => extent <= 1 << 16,
                _ => true,
            }
        },
        Case::refused(&[drawn("x", &[2049])], &[("output_dtype", Default::Text("fp16"))]),
    ),
];

const fn position(name: &'static str, summary: &'static str, lower: LowerRule) -> GraphOp {
    GraphOp { attributes: ATTRIBUTES, constraints: RULES, lower, vjp: NO_SLOPE, tolerance: 0.0, ..direct(name, summary) }
}

/// Position of the largest value of `x`.
fn lower_position(l: &mut Lowering, s: &Site<'_>, x: ValueId) -> Result<Vec<ValueId>, GraphError> {
    let axis = s.axis("axis", s.rank("x")).unwrap_or(0);
    if s.text("output_dtype") == "fp16" {
        return first_hit(l, s, x, axis);
    }
    let mut arguments: Vec<(&str, Arg)> =
        vec![("x", x.into()), ("axis", (axis as i64).into()), ("keep_dims", s.flag("keep_dims").into())];
    if s.text("output_dtype") == "uint16" {
        arguments.push(("output_dtype", "uint16".into()));
    }
    l.ops("reduce_argmax", &arguments)
}

/// The smallest position at which the maximum stands, as an fp16 number: a chip hands back no integers.
fn first_hit(l: &mut Lowering, s: &Site<'_>, x: ValueId, axis: usize) -> Result<Vec<ValueId>, GraphError> {
    let (extent, rank, axes) = (s.shape("x")[axis], s.rank("x"), vec![axis as i64]);
    let largest = l.op("reduce_max", &[("x", x.into()), ("axes", axes.clone().into()), ("keep_dims", true.into())])?;
    let hit = l.op("equal", &[("x", x.into()), ("y", largest.into())])?;
    let mut shape = vec![1; rank];
    shape[axis] = extent;
    let candidates = candidates(l, hit, &shape, axis)?;
    l.ops("reduce_min", &[("x", candidates.into()), ("axes", axes.into()), ("keep_dims", s.flag("keep_dims").into())])
}

/// The place along `axis` where a mask is true, and the extent of the axis elsewhere: whole numbers up to 2048, which fp16 holds.
/// `line` is the shape of one line along the axis.
pub(super) fn candidates(l: &mut Lowering, hit: ValueId, line: &[usize], axis: usize) -> Result<ValueId, GraphError> {
    let extent = line[axis] as f64;
    let before_end: Vec<f64> = (0..line[axis]).map(|place| place as f64 - extent).collect();
    let before_end = l.constant("before_end", TensorType::new(DType::Fp16, line), &before_end)?;
    let hit = l.op("cast", &[("x", hit.into()), ("dtype", "fp16".into())])?;
    let chosen = l.op("mul", &[("x", hit.into()), ("y", before_end.into())])?;
    l.op("add", &[("x", chosen.into()), ("y", Arg::Float(DType::Fp16, extent))])
}

const TIES: &[Sample] = &[given("x", &[2, 4], &[1.0, 7.0, 7.0, -2.0, -3.0, 0.0, -3.0, 0.0])];

/// Position of the largest value.
pub static REDUCE_ARGMAX: GraphOp = GraphOp {
    cases: &[
        Case::values("first_of_equal_values", TIES, &[], (&[2], &[1.0, 1.0]), "numpy.argmax"),
        Case::values(
            "as_fp16_numbers",
            TIES,
            &[("output_dtype", Default::Text("fp16")), ("keep_dims", Default::Flag(true))],
            (&[2, 1], &[1.0, 1.0]),
            "numpy.argmax",
        ),
        Case::values("down_the_rows", TIES, &[("axis", Default::Int(0))], (&[4], &[0.0, 0.0, 0.0, 1.0]), "numpy.argmax"),
    ],
    ..position("reduce_argmax", "The position of the largest value along axis, the first one of several.", |l, s| {
        lower_position(l, s, s.value("x")?)
    })
};
/// Position of the smallest value.
pub static REDUCE_ARGMIN: GraphOp = GraphOp {
    cases: &[
        Case::values("first_of_equal_values", TIES, &[], (&[2], &[3.0, 0.0]), "numpy.argmin"),
        Case::values("as_fp16_numbers", TIES, &[("output_dtype", Default::Text("fp16"))], (&[2], &[3.0, 0.0]), "numpy.argmin"),
    ],
    // A13 and A14 have no reduce_argmin; the negated values are exact and serve every chip.
    ..position("reduce_argmin", "The position of the smallest value along axis, the first one of several.", |l, s| {
        let minus = Arg::Float(s.dtype("x"), -1.0);
        let negated = l.op("mul", &[("x", s.value("x")?.into()), ("y", minus)])?;
        lower_position(l, s, negated)
    })
};

pub(super) const ALL: &[&GraphOp] = &[&REDUCE_ARGMAX, &REDUCE_ARGMIN];
