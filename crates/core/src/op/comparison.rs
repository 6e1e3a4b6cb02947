//! Comparisons and what is done with them.

use super::*;

const PAIR: &[InputSpec] = &[input("x", ANY), input("y", ANY)];
const NO_SLOPE: Vjp = Vjp::None("a comparison has no slope; use select on its result, whose branches have one");

const CASES: &[Case] = &[Case::values(
    "row_against_matrix",
    &[given("x", &[2, 2], &[1.0, 2.0, 3.0, 4.0]), given("y", &[2], &[1.0, 3.0])],
    &[],
    (&[2, 2], &[0.0, 0.0, 1.0, 1.0]),
    "by hand",
)];

const RULES: &[Constraint] = &[
    rule(
        "C1",
        "x and y have the same element type: cast one of them",
        |s| s.dtype("x") == s.dtype("y"),
        Case::refused(&[drawn("x", &[3]), given("y", &[3], &[1.0, 2.0, 3.0]).of(DType::Int32)], &[]),
    ),
    rule(
        "C2",
        "x and y broadcast: seen from the last axis, extents are equal or one of them is 1",
        |s| broadcast_shape(s.shape("x"), s.shape("y")).is_some(),
        Case::refused(&[drawn("x", &[2, 3]), drawn("y", &[2, 4])], &[]),
    ),
];

const fn compare(name: &'static str, summary: &'static str) -> GraphOp {
    GraphOp { inputs: PAIR, constraints: RULES, vjp: NO_SLOPE, tolerance: 0.0, ..direct(name, summary) }
}

/// The same comparison on the values of [`CASES`].
macro_rules! answers {
    ($values:expr) => {
        &[Case { expected: Expected::Values { shape: &[2, 2], values: $values, source: "by hand" }, ..CASES[0] }]
    };
}

/// Greater.
pub static GREATER: GraphOp = GraphOp { cases: answers!(&[0.0, 0.0, 1.0, 1.0]), ..compare("greater", "True where x > y.") };
/// Greater or equal.
pub static GREATER_EQUAL: GraphOp =
    GraphOp { cases: answers!(&[1.0, 0.0, 1.0, 1.0]), ..compare("greater_equal", "True where x >= y.") };
/// Less.
pub static LESS: GraphOp = GraphOp { cases: answers!(&[0.0, 1.0, 0.0, 0.0]), ..compare("less", "True where x < y.") };
/// Less or equal.
pub static LESS_EQUAL: GraphOp = GraphOp { cases: answers!(&[1.0, 1.0, 0.0, 0.0]), ..compare("less_equal", "True where x <= y.") };
/// Equal.
pub static EQUAL: GraphOp = GraphOp { cases: answers!(&[1.0, 0.0, 0.0, 0.0]), ..compare("equal", "True where x = y.") };
/// Not equal.
pub static NOT_EQUAL: GraphOp =
    GraphOp { cases: answers!(&[0.0, 1.0, 1.0, 1.0]), ..compare("not_equal", "True where x differs from y.") };
/// Negation.
pub static LOGICAL_NOT: GraphOp = GraphOp {
    inputs: &[input("x", BOOL)],
    vjp: NO_SLOPE,
    tolerance: 0.0,
    cases: &[Case::values("flips", &[given("x", &[2], &[0.0, 1.0]).of(DType::Bool)], &[], (&[2], &[1.0, 0.0]), "by hand")],
    ..direct("logical_not", "True where x is false.")
};
/// Choice by a mask.
pub static SELECT: GraphOp = GraphOp {
    inputs: &[input("cond", BOOL), input("a", FLOATS), input("b", FLOATS)],
    constraints: &[
        rule(
            "C1",
            "a and b have the same element type: cast one of them",
            |s| s.dtype("a") == s.dtype("b"),
            Case::refused(&[given("cond", &[1], &[1.0]).of(DType::Bool), drawn("a", &[1]), drawn("b", &[1]).of(DType::Fp32)], &[]),
        ),
        rule(
            "C2",
            "cond, a and b broadcast: seen from the last axis, extents are equal or 1",
            |s| broadcast_shape(s.shape("a"), s.shape("b")).is_some_and(|shape| broadcast_shape(&shape, s.shape("cond")).is_some()),
            Case::refused(&[given("cond", &[2], &[1.0, 0.0]).of(DType::Bool), drawn("a", &[3]), drawn("b", &[3])], &[]),
        ),
    ],
    tolerance: 0.0,
    // MIL's result has the shape of a and b alone; where cond is larger, a is stretched to it.
    lower: |l, s| {
        let (condition, mut a, b) = (s.value("cond")?, s.value("a")?, s.value("b")?);
        let pair = broadcast_shape(s.shape("a"), s.shape("b")).unwrap_or_default();
        let full = broadcast_shape(&pair, s.shape("cond")).unwrap_or_default();
        if full != pair {
            a = l.broadcast(a, &full)?;
        }
        l.ops("select", &[("cond", condition.into()), ("a", a.into()), ("b", b.into())])
    },
    cases: &[
        Case::values(
            "mask_larger_than_both",
            &[given("cond", &[3], &[1.0, 0.0, 1.0]).of(DType::Bool), given("a", &[], &[2.0]).fixed(), given("b", &[1], &[-1.0])],
            &[],
            (&[3], &[2.0, -1.0, 2.0]),
            "by hand",
        ),
        Case::values(
            "mask_of_a_row",
            &[
                given("cond", &[2], &[1.0, 0.0]).of(DType::Bool),
                given("a", &[2, 2], &[1.0, 2.0, 3.0, 4.0]),
                given("b", &[], &[-1.0]),
            ],
            &[],
            (&[2, 2], &[1.0, -1.0, 3.0, -1.0]),
            "by hand",
        ),
    ],
    vjp: Vjp::Rule(|b| {
        let (condition, grad) = (b.input("cond"), b.grad());
        let zero = grad.constant_like(0.0);
        if b.wants("a") {
            b.give_broadcast("a", condition.select(&grad, &zero));
        }
        if b.wants("b") {
            b.give_broadcast("b", condition.select(&zero, &grad));
        }
    }),
    ..direct("select", "a where cond is true, else b.")
};

pub(super) const ALL: &[&GraphOp] = &[&GREATER, &GREATER_EQUAL, &LESS, &LESS_EQUAL, &EQUAL, &NOT_EQUAL, &LOGICAL_NOT, &SELECT];
