//! Tangent and the inverse functions of angles, which no engine has: written out with sine and cosine, or with polynomials fitted
//! to the exact functions at Chebyshev nodes.
//!
//! The bounds in the records' summaries hold for every fp16 input of the function's domain with every step rounded to fp16.

use super::steps::{Step, Steps};
use super::*;
use std::f64::consts::{FRAC_PI_2, PI};

/// asin(t) = t + t^3 p(t^2) for t up to 1/2, relative error 2e-6 before rounding.
const ARC_SINE: &[f64] = &[0.1668489, 0.07151906, 0.06497382];
/// atan(t) = t + t^3 p(t^2) for t up to 1, relative error 5e-6 before rounding.
const ARC_TANGENT: &[f64] = &[-0.3329886, 0.1955891, -0.1211095, 0.05733055, -0.01342218];

const NUMPY: &str = "numpy 2.3.5";
const UNIT: &[Sample] = &[given("x", &[6], &[-1.0, -0.75, 0.0, 0.25, 0.625, 1.0])];

const fn angle(name: &'static str, summary: &'static str, lower: LowerRule, vjp: fn(&mut Backward<'_>)) -> GraphOp {
    GraphOp { lower, vjp: Vjp::Rule(vjp), ..direct(name, summary) }
}

/// `1 / sqrt((1 - x)(1 + x))`, the slope of the inverse sine.
fn arc_slope(x: &Tensor) -> Tensor {
    (1.0 - x).mul(&x.adds(1.0)).rsqrt(0.0)
}

/// Tangent.
pub static TAN: GraphOp = GraphOp {
    domain: domain(-1.3, 1.3, &[]),
    tolerance: 5e-3,
    cases: &[Case::values(
        "some_angles",
        &[given("x", &[3], &[0.0, 0.5, -1.25])],
        &[],
        (&[3], &[0.0, 0.5463024898437905, -3.00956967]),
        NUMPY,
    )],
    ..angle(
        "tan",
        "The tangent of x in radians, as sin(x) / cos(x); its error is theirs, divided by cos(x).",
        |l, s| {
            let x = s.value("x")?;
            let mut steps = Steps::new(l, x);
            let (sine, cosine) = (steps.one("sin", x)?, steps.one("cos", x)?);
            Ok(vec![steps.two("real_div", sine, cosine)?])
        },
        |b| {
            let grad = b.grad().mul(&b.output().square().adds(1.0));
            b.give("x", grad);
        },
    )
};

/// Mask of `|x| > 1/2`, and asin of the smaller of `|x|` and `sqrt((1 - |x|) / 2)`, both at most 1/2.
fn half_angle(steps: &mut Steps<'_>, x: ValueId) -> Result<(ValueId, ValueId), GraphError> {
    let magnitude = steps.one("abs", x)?;
    let far = steps.two("greater", magnitude, 0.5)?;
    let rest = steps.two("sub", 1.0, magnitude)?;
    let half = steps.two("mul", rest, 0.5)?;
    let root = steps.one("sqrt", half)?;
    let t = steps.select(far, root, magnitude)?;
    Ok((far, steps.odd(t, ARC_SINE)?))
}

/// Inverse sine.
pub static ASIN: GraphOp = GraphOp {
    domain: domain(-0.9, 0.9, &[-0.5, 0.5]),
    cases: &[Case::values(
        "across_its_domain",
        UNIT,
        &[],
        (&[6], &[-FRAC_PI_2, -0.848062078981481, 0.0, 0.25268025514207865, 0.6751315329370317, FRAC_PI_2]),
        NUMPY,
    )],
    ..angle(
        "asin",
        "The angle in radians whose sine is x, for x from -1 to 1; within 3e-3 of it, relative.",
        |l, s| {
            let x = s.value("x")?;
            let mut steps = Steps::new(l, x);
            let (far, q) = half_angle(&mut steps, x)?;
            let double = steps.two("mul", q, 2.0)?;
            let folded = steps.two("sub", FRAC_PI_2, double)?;
            let size = steps.select(far, folded, q)?;
            let sign = steps.one("sign", x)?;
            Ok(vec![steps.two("mul", size, sign)?])
        },
        |b| {
            let grad = b.grad().mul(&arc_slope(&b.input("x")));
            b.give("x", grad);
        },
    )
};

/// Inverse cosine.
pub static ACOS: GraphOp = GraphOp {
    domain: domain(-0.9, 0.9, &[-0.5, 0.5]),
    cases: &[Case::values(
        "across_its_domain",
        UNIT,
        &[],
        (&[6], &[PI, 2.4188584057763776, FRAC_PI_2, 1.318116071652818, 0.8956647938578649, 0.0]),
        NUMPY,
    )],
    ..angle(
        "acos",
        "The angle in radians whose cosine is x, for x from -1 to 1; within 2e-3 of it, absolute.",
        |l, s| {
            let x = s.value("x")?;
            let mut steps = Steps::new(l, x);
            let (far, q) = half_angle(&mut steps, x)?;
            let sign = steps.one("sign", x)?;
            let signed = steps.two("mul", q, sign)?;
            let near = steps.two("sub", FRAC_PI_2, signed)?;
            let double = steps.two("mul", q, 2.0)?;
            let behind = steps.two("sub", PI, double)?;
            let ahead = steps.two("greater", x, 0.0)?;
            let end = steps.select(ahead, double, behind)?;
            Ok(vec![steps.select(far, end, near)?])
        },
        |b| {
            let grad = b.grad().mul(&arc_slope(&b.input("x"))).neg();
            b.give("x", grad);
        },
    )
};

/// The angle of a point, from the polynomial of the smaller coordinate over the larger one.
fn lower_atan2(steps: &mut Steps<'_>, y: ValueId, x: ValueId) -> Step {
    let (tall, wide) = (steps.one("abs", y)?, steps.one("abs", x)?);
    let larger = steps.two("maximum", tall, wide)?;
    // Both zero: the quotient is 0 instead of 0 / 0.
    let larger = steps.two("maximum", larger, normalization::SMALLEST_FP16)?;
    let smaller = steps.two("minimum", tall, wide)?;
    let ratio = steps.two("real_div", smaller, larger)?;
    let octant = steps.odd(ratio, ARC_TANGENT)?;
    let steep = steps.two("greater", tall, wide)?;
    let complement = steps.two("sub", FRAC_PI_2, octant)?;
    let quadrant = steps.select(steep, complement, octant)?;
    let left = steps.two("less", x, 0.0)?;
    let supplement = steps.two("sub", PI, quadrant)?;
    let upper = steps.select(left, supplement, quadrant)?;
    let below = steps.two("less", y, 0.0)?;
    let negated = steps.two("mul", upper, -1.0)?;
    steps.select(below, negated, upper)
}

/// Angle of a point.
pub static ATAN2: GraphOp = GraphOp {
    inputs: &[input("x", FLOATS), input("y", FLOATS)],
    constraints: binary::RULES,
    domain: domain(-2.0, 2.0, &[0.0]),
    cases: &[
        Case::values(
            "every_octant",
            &[
                given("x", &[9], &[1.0, 2.0, 1.0, -1.0, -2.0, -2.0, -1.0, 2.0, 0.0]),
                given("y", &[9], &[0.0, 1.0, 2.0, 2.0, 0.5, -0.5, -2.0, -1.0, 0.0]),
            ],
            &[],
            (
                &[9],
                &[
                    0.0,
                    0.4636476090008061,
                    1.1071487177940904,
                    2.0344439357957027,
                    2.896613990462929,
                    -2.896613990462929,
                    -2.0344439357957027,
                    -0.4636476090008061,
                    0.0,
                ],
            ),
            NUMPY,
        ),
        Case::shape("row_against_matrix", &[drawn("x", &[3]), drawn("y", &[2, 3])], &[], &[2, 3]),
    ],
    ..angle(
        "atan2",
        "The angle in radians of the point (x, y), from -pi to pi, 0 at the origin; within 3e-3 of it, absolute.",
        |l, s| {
            let (y, x) = (s.value("y")?, s.value("x")?);
            Ok(vec![lower_atan2(&mut Steps::new(l, y), y, x)?])
        },
        |b| {
            let (y, x) = (b.input("y"), b.input("x"));
            let share = b.grad().real_div(&x.square().add(&y.square()));
            b.give_broadcast("y", share.mul(&x));
            b.give_broadcast("x", share.mul(&y).neg());
        },
    )
};

pub(super) const ALL: &[&GraphOp] = &[&TAN, &ASIN, &ACOS, &ATAN2];
