//! Whole quotients and remainders.

use super::steps::Steps;
use super::*;

const QUOTIENTS: &[Sample] =
    &[given("x", &[6], &[7.0, -7.0, 7.0, -7.0, 9.0, 0.5]), given("y", &[6], &[2.0, 2.0, -2.0, -2.0, 4.0, 0.75])];

/// Whole quotient.
pub static FLOOR_DIV: GraphOp = GraphOp {
    vjp: Vjp::None("it is constant between its jumps, so its derivative is zero or undefined; use real_div for a slope"),
    domain: domain(0.5, 4.0, &[]),
    // A quotient that rounds across an integer moves the result by one.
    tolerance: 0.2,
    cases: &[Case::values(
        "rounds_towards_minus_infinity",
        QUOTIENTS,
        &[],
        (&[6], &[3.0, -4.0, -4.0, 3.0, 2.0, 0.0]),
        "Python's // operator",
    )],
    ..binary::pair("floor_div", "The largest integer not above x divided by y.", |_| {})
};

/// Remainder.
pub static MOD: GraphOp = GraphOp {
    domain: domain(0.5, 4.0, &[]),
    tolerance: 4e-3,
    lower: |l, s| {
        let (x, y) = (s.value("x")?, s.value("y")?);
        let mut steps = Steps::new(l, x);
        let quotient = steps.two("floor_div", x, y)?;
        let product = steps.two("mul", quotient, y)?;
        let rest = steps.two("sub", x, product)?;
        // Measured in the direction of y. A quotient that was rounded across an integer leaves the rest one step off.
        let (sign, size) = (steps.one("sign", y)?, steps.one("abs", y)?);
        let rest = steps.two("mul", rest, sign)?;
        let raised = steps.two("add", rest, size)?;
        let below = steps.two("less", rest, 0.0)?;
        let rest = steps.select(below, raised, rest)?;
        let lowered = steps.two("sub", rest, size)?;
        let above = steps.two("greater_equal", rest, size)?;
        let rest = steps.select(above, lowered, rest)?;
        Ok(vec![steps.two("mul", rest, sign)?])
    },
    cases: &[
        Case::values("takes_the_sign_of_y", QUOTIENTS, &[], (&[6], &[1.0, 1.0, -1.0, -1.0, 1.0, 0.5]), "Python's % operator"),
        Case::shape("row_against_matrix", &[drawn("x", &[2, 3]), drawn("y", &[3])], &[], &[2, 3]),
    ],
    ..binary::pair(
        "mod",
        "x - y floor(x / y): exact where y floor(x / y) is an fp16 number, as whole numbers up to 2048 are, else off by the \
         rounding of that product.",
        |b| {
            let (x, y, grad) = (b.input("x"), b.input("y"), b.grad());
            if b.wants("y") {
                b.give_broadcast("y", grad.mul(&x.floor_div(&y)).neg());
            }
            b.give_broadcast("x", grad);
        },
    )
};

pub(super) const ALL: &[&GraphOp] = &[&FLOOR_DIV, &MOD];
