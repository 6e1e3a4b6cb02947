//! Hyperbolic functions and their inverses, which no engine has: exponentials, logarithms and square roots where those are well
//! conditioned, polynomials near zero where they would cancel.
//!
//! The bounds in the records' summaries hold for every fp16 input of the function's domain with every step rounded to fp16.

use super::steps::{Step, Steps};
use super::*;

/// sinh(t) = t + t^3 p(t^2) for t up to 1, relative error 3e-8 before rounding.
const SINE: &[f64] = &[0.1666674, 0.008329829, 0.0002039952];
/// asinh(t) = t + t^3 p(t^2) for t up to 1, relative error 9e-6 before rounding.
const ARC_SINE: &[f64] = &[-0.1662045, 0.07088486, -0.03078035, 0.007488795];
/// atanh(t) = t + t^3 p(t^2) for t up to 1/2, relative error 6e-6 before rounding.
const ARC_TANGENT: &[f64] = &[0.3340341, 0.186683, 0.219864];
/// acosh(1 + d) = sqrt(2 d) p(d) for d up to 1/2, relative error 7e-5 before rounding.
const ARC_COSINE: &[f64] = &[1.0, -0.08271831, 0.01525887];

const NUMPY: &str = "numpy 2.3.5";

const fn hyperbolic(name: &'static str, summary: &'static str, lower: LowerRule, vjp: fn(&mut Backward<'_>)) -> GraphOp {
    GraphOp { lower, vjp: Vjp::Rule(vjp), tolerance: 4e-3, ..direct(name, summary) }
}

/// Hands back the gradient of `x`: that of the result times a factor.
fn times(b: &mut Backward<'_>, factor: impl FnOnce(&Tensor) -> Tensor) {
    let grad = b.grad().mul(&factor(&b.input("x")));
    b.give("x", grad);
}

/// `e^m / 2` and `e^-m / 2`. The half exponential is squared, so that nothing overflows before the result does.
fn exponentials(steps: &mut Steps<'_>, magnitude: ValueId) -> Result<(ValueId, ValueId), GraphError> {
    let half = steps.two("mul", magnitude, 0.5)?;
    let root = steps.one("exp", half)?;
    let halved = steps.two("mul", root, 0.5)?;
    let grown = steps.two("mul", root, halved)?;
    let inverse = steps.bare("inverse", root)?;
    let halved = steps.two("mul", inverse, 0.5)?;
    Ok((grown, steps.two("mul", inverse, halved)?))
}

/// Hyperbolic sine.
pub static SINH: GraphOp = GraphOp {
    domain: domain(-3.0, 3.0, &[-1.0, 1.0]),
    cases: &[Case::values(
        "both_branches",
        &[given("x", &[4], &[0.0, -2.0, 0.5, 8.0])],
        &[],
        (&[4], &[0.0, -3.626860407847019, 0.5210953054937474, 1490.4788257895502]),
        NUMPY,
    )],
    ..hyperbolic(
        "sinh",
        "The hyperbolic sine of x; within 3e-3 of it, relative.",
        |l, s| {
            let x = s.value("x")?;
            let mut steps = Steps::new(l, x);
            let magnitude = steps.one("abs", x)?;
            let (grown, shrunk) = exponentials(&mut steps, magnitude)?;
            let far = steps.two("sub", grown, shrunk)?;
            let sign = steps.one("sign", x)?;
            let far = steps.two("mul", far, sign)?;
            let near = steps.odd(x, SINE)?;
            let small = steps.two("less", magnitude, 1.0)?;
            Ok(vec![steps.select(small, near, far)?])
        },
        |b| times(b, Tensor::cosh),
    )
};

/// Hyperbolic cosine.
pub static COSH: GraphOp = GraphOp {
    domain: domain(-3.0, 3.0, &[]),
    cases: &[Case::values(
        "even",
        &[given("x", &[4], &[0.0, -2.0, 2.0, 8.0])],
        &[],
        (&[4], &[1.0, 3.7621956910836314, 3.7621956910836314, 1490.479161252178]),
        NUMPY,
    )],
    ..hyperbolic(
        "cosh",
        "The hyperbolic cosine of x; within 3e-3 of it, relative.",
        |l, s| {
            let x = s.value("x")?;
            let mut steps = Steps::new(l, x);
            let magnitude = steps.one("abs", x)?;
            let (grown, shrunk) = exponentials(&mut steps, magnitude)?;
            Ok(vec![steps.two("add", grown, shrunk)?])
        },
        |b| times(b, Tensor::sinh),
    )
};

/// `log(m) + log(1 + w)`, which does not overflow where `m (1 + w)` would.
fn log_of_product(steps: &mut Steps<'_>, m: ValueId, w: ValueId) -> Step {
    let first = steps.bare("log", m)?;
    let sum = steps.two("add", w, 1.0)?;
    let second = steps.bare("log", sum)?;
    steps.two("add", first, second)
}

/// Inverse hyperbolic sine.
pub static ASINH: GraphOp = GraphOp {
    domain: domain(-3.0, 3.0, &[-1.0, 1.0]),
    cases: &[Case::values(
        "both_branches",
        &[given("x", &[4], &[0.0, -0.5, 2.0, 60000.0])],
        &[],
        (&[4], &[0.0, -0.48121182505960347, 1.4436354751788103, 11.695247021833657]),
        NUMPY,
    )],
    ..hyperbolic(
        "asinh",
        "The value whose hyperbolic sine is x; within 3e-3 of it, relative.",
        |l, s| {
            let x = s.value("x")?;
            let mut steps = Steps::new(l, x);
            let magnitude = steps.one("abs", x)?;
            // At least 1, so that the branch that is not chosen stays finite too.
            let large = steps.two("maximum", magnitude, 1.0)?;
            let inverse = steps.bare("inverse", large)?;
            let square = steps.two("mul", inverse, inverse)?;
            let sum = steps.two("add", square, 1.0)?;
            let root = steps.one("sqrt", sum)?;
            let far = log_of_product(&mut steps, large, root)?;
            let sign = steps.one("sign", x)?;
            let far = steps.two("mul", far, sign)?;
            let near = steps.odd(x, ARC_SINE)?;
            let small = steps.two("less", magnitude, 1.0)?;
            Ok(vec![steps.select(small, near, far)?])
        },
        |b| times(b, |x| x.square().adds(1.0).rsqrt(0.0)),
    )
};

/// Inverse hyperbolic cosine.
pub static ACOSH: GraphOp = GraphOp {
    domain: domain(1.2, 4.0, &[1.5]),
    cases: &[Case::values(
        "both_branches",
        &[given("x", &[4], &[1.0, 1.25, 2.0, 60000.0])],
        &[],
        (&[4], &[0.0, std::f64::consts::LN_2, 1.3169578969248166, 11.69524702176422]),
        NUMPY,
    )],
    ..hyperbolic(
        "acosh",
        "The value, not negative, whose hyperbolic cosine is x, for x from 1 on; within 3e-3 of it, relative.",
        |l, s| {
            let x = s.value("x")?;
            let mut steps = Steps::new(l, x);
            let above = steps.two("sub", x, 1.0)?;
            let double = steps.two("mul", above, 2.0)?;
            let root = steps.one("sqrt", double)?;
            let bend = steps.polynomial(above, ARC_COSINE)?;
            let near = steps.two("mul", root, bend)?;
            // sqrt(x^2 - 1) / x without the square, which overflows from 256 on.
            let inverse = steps.bare("inverse", x)?;
            let square = steps.two("mul", inverse, inverse)?;
            let rest = steps.two("sub", 1.0, square)?;
            let ratio = steps.one("sqrt", rest)?;
            let far = log_of_product(&mut steps, x, ratio)?;
            let small = steps.two("less", above, 0.5)?;
            Ok(vec![steps.select(small, near, far)?])
        },
        |b| times(b, |x| x.adds(-1.0).mul(&x.adds(1.0)).rsqrt(0.0)),
    )
};

/// Inverse hyperbolic tangent.
pub static ATANH: GraphOp = GraphOp {
    domain: domain(-0.9, 0.9, &[-0.5, 0.5]),
    cases: &[Case::values(
        "both_branches",
        &[given("x", &[4], &[0.0, -0.25, 0.75, -0.9375])],
        &[],
        (&[4], &[0.0, -0.25541281188299536, 0.9729550745276566, -1.716993602242573]),
        NUMPY,
    )],
    ..hyperbolic(
        "atanh",
        "The value whose hyperbolic tangent is x, for x between -1 and 1; within 3e-3 of it, relative.",
        |l, s| {
            let x = s.value("x")?;
            let mut steps = Steps::new(l, x);
            let magnitude = steps.one("abs", x)?;
            let (above, below) = (steps.two("add", x, 1.0)?, steps.two("sub", 1.0, x)?);
            let (above, below) = (steps.bare("log", above)?, steps.bare("log", below)?);
            let difference = steps.two("sub", above, below)?;
            let far = steps.two("mul", difference, 0.5)?;
            let near = steps.odd(x, ARC_TANGENT)?;
            let small = steps.two("less", magnitude, 0.5)?;
            Ok(vec![steps.select(small, near, far)?])
        },
        |b| times(b, |x| (1.0 - x).mul(&x.adds(1.0)).inverse(0.0)),
    )
};

pub(super) const ALL: &[&GraphOp] = &[&SINH, &COSH, &ASINH, &ACOSH, &ATANH];
