//! Functions of one value, element by element.

use super::*;

/// A value for each sign, none near 0.
const SIGNED: Domain = domain(-2.0, 2.0, &[0.0]);
const POSITIVE: Domain = domain(0.1, 4.0, &[]);
const STEPS: Vjp = Vjp::None("it is constant between its jumps, so its derivative is zero or undefined; use it outside of losses");
const EPSILON: &[AttributeSpec] = &[float("epsilon", 0.0)];

/// Examples that every function of one value shares.
const SHAPES: &[Case] = &[
    Case::shape("on_a_matrix", &[drawn("x", &[3, 5])], &[], &[3, 5]),
    Case::shape("on_a_map", &[drawn("x", &[1, 2, 3, 4])], &[], &[1, 2, 3, 4]),
];

/// A function of one value with its derivative.
const fn unary(name: &'static str, summary: &'static str, vjp: fn(&mut Backward<'_>)) -> GraphOp {
    GraphOp { vjp: Vjp::Rule(vjp), cases: SHAPES, ..direct(name, summary) }
}

/// Hands back the gradient of `x`: that of the result times a factor.
fn times(b: &mut Backward<'_>, factor: impl FnOnce(&Tensor, &Tensor) -> Tensor) {
    let grad = b.grad().mul(&factor(&b.input("x"), &b.output()));
    b.give("x", grad);
}

/// Magnitude.
pub static ABS: GraphOp =
    GraphOp { domain: SIGNED, tolerance: 0.0, ..unary("abs", "The magnitude of x.", |b| times(b, |x, _| x.sign())) };
/// Sign.
pub static SIGN: GraphOp = GraphOp {
    vjp: STEPS,
    domain: SIGNED,
    tolerance: 0.0,
    cases: SHAPES,
    ..direct("sign", "-1, 0 or 1 as x is negative, zero or positive.")
};
/// Floor.
pub static FLOOR: GraphOp = GraphOp {
    vjp: STEPS,
    domain: STEP_DOMAIN,
    tolerance: 0.0,
    cases: SHAPES,
    ..direct("floor", "The largest integer not above x.")
};
/// Ceiling.
pub static CEIL: GraphOp = GraphOp {
    vjp: STEPS,
    domain: STEP_DOMAIN,
    tolerance: 0.0,
    cases: SHAPES,
    ..direct("ceil", "The smallest integer not below x.")
};
/// Nearest integer.
pub static ROUND: GraphOp = GraphOp {
    vjp: STEPS,
    domain: domain(-2.0, 2.0, &[-1.5, -0.5, 0.5, 1.5]),
    tolerance: 0.0,
    cases: SHAPES,
    ..direct("round", "The integer nearest to x; the engine rounds ties away from zero.")
};
const STEP_DOMAIN: Domain = domain(-2.0, 2.0, &[-2.0, -1.0, 0.0, 1.0, 2.0]);

/// Square.
pub static SQUARE: GraphOp = unary("square", "x times x.", |b| times(b, |x, _| x.scale(2.0)));
/// Square root.
pub static SQRT: GraphOp =
    GraphOp { domain: POSITIVE, ..unary("sqrt", "The square root of x.", |b| times(b, |_, y| y.inverse(0.0).scale(0.5))) };
/// Reciprocal square root.
pub static RSQRT: GraphOp = GraphOp {
    attributes: EPSILON,
    domain: POSITIVE,
    ..unary("rsqrt", "1 / sqrt(x + epsilon).", |b| times(b, |_, y| y.mul(y).mul(y).scale(-0.5)))
};
/// Reciprocal.
pub static INVERSE: GraphOp = GraphOp {
    attributes: EPSILON,
    domain: domain(0.25, 4.0, &[]),
    ..unary("inverse", "1 / (x + epsilon).", |b| times(b, |_, y| y.mul(y).neg()))
};
/// Natural logarithm.
pub static LOG: GraphOp = GraphOp {
    attributes: EPSILON,
    domain: POSITIVE,
    ..unary("log", "The natural logarithm of x + epsilon.", |b| {
        let epsilon = b.site().float("epsilon").unwrap_or(0.0);
        times(b, |x, _| x.inverse(epsilon));
    })
};
/// Exponential.
pub static EXP: GraphOp = unary("exp", "e to the power of x.", |b| times(b, |_, y| y.clone()));
/// Power of two.
pub static EXP2: GraphOp = unary("exp2", "2 to the power of x.", |b| times(b, |_, y| y.scale(std::f64::consts::LN_2)));
/// Error function.
pub static ERF: GraphOp = unary("erf", "The Gauss error function of x.", |b| {
    times(b, |x, _| x.square().neg().exp().scale(std::f64::consts::FRAC_2_SQRT_PI));
});
/// Hyperbolic tangent.
pub static TANH: GraphOp = unary("tanh", "The hyperbolic tangent of x.", |b| times(b, |_, y| 1.0 - y.mul(y)));
/// Sine.
pub static SIN: GraphOp = unary("sin", "The sine of x in radians.", |b| times(b, |x, _| x.cos()));
/// Cosine.
pub static COS: GraphOp = unary("cos", "The cosine of x in radians.", |b| times(b, |x, _| x.sin().neg()));
/// Inverse tangent.
pub static ATAN: GraphOp =
    unary("atan", "The angle in radians whose tangent is x.", |b| times(b, |x, _| x.square().adds(1.0).inverse(0.0)));
/// Clamp.
pub static CLIP: GraphOp = GraphOp {
    attributes: &[required_float("alpha"), required_float("beta")],
    domain: domain(-2.0, 2.0, &[-0.5, 1.0]),
    tolerance: 0.0,
    constraints: &[rule(
        "C1",
        "alpha, the lower end, is not above beta, the upper end: swap them",
        |s| s.float("alpha").zip(s.float("beta")).is_some_and(|(low, high)| low <= high),
        Case::refused(&[drawn("x", &[3])], &[("alpha", Default::Float(1.0)), ("beta", Default::Float(-1.0))]),
    )],
    cases: &[Case::values(
        "between_two_ends",
        &[given("x", &[4], &[-2.0, -0.25, 0.75, 3.0])],
        &[("alpha", Default::Float(-0.5)), ("beta", Default::Float(1.0))],
        (&[4], &[-0.5, -0.25, 0.75, 1.0]),
        "by hand",
    )],
    ..unary("clip", "x kept between alpha and beta.", |b| {
        let (low, high) = (b.site().float("alpha").unwrap_or(0.0), b.site().float("beta").unwrap_or(0.0));
        let x = b.input("x");
        let zero = x.constant_like(0.0);
        let below = x.less(&x.constant_like(high)).select(&b.grad(), &zero);
        let grad = x.greater(&x.constant_like(low)).select(&below, &zero);
        b.give("x", grad);
    })
};
/// The larger of x and a number.
pub static THRESHOLD: GraphOp = GraphOp {
    attributes: &[float("alpha", 0.0)],
    domain: SIGNED,
    tolerance: 0.0,
    ..unary("threshold", "The larger of x and alpha.", |b| {
        let alpha = b.site().float("alpha").unwrap_or(0.0);
        let x = b.input("x");
        let grad = x.greater(&x.constant_like(alpha)).select(&b.grad(), &x.constant_like(0.0));
        b.give("x", grad);
    })
};
/// Element type conversion.
pub static CAST: GraphOp = GraphOp {
    inputs: X_ANY,
    attributes: &[AttributeSpec {
        name: "dtype",
        kind: AttributeKind::Text(&["fp16", "fp32", "int32", "bool", "uint8", "int8", "uint16", "int16"]),
        default: Default::Required,
    }],
    tolerance: 0.0,
    cases: &[
        Case::values(
            "pixels",
            &[given("x", &[3], &[0.0, 7.0, 255.0]).of(DType::UInt8)],
            &[("dtype", Default::Text("fp16"))],
            (&[3], &[0.0, 7.0, 255.0]),
            "by hand",
        ),
        Case::shape("to_fp32", &[drawn("x", &[2, 3])], &[("dtype", Default::Text("fp32"))], &[2, 3]),
    ],
    ..unary("cast", "x converted to another element type.", |b| {
        let dtype = b.input("x").dtype();
        let grad = match dtype {
            Ok(dtype) => b.grad().cast(dtype),
            Err(_) => b.grad(),
        };
        b.give("x", grad);
    })
};

pub(super) const ALL: &[&GraphOp] = &[
    &ABS, &SIGN, &FLOOR, &CEIL, &ROUND, &SQUARE, &SQRT, &RSQRT, &INVERSE, &LOG, &EXP, &EXP2, &ERF, &TANH, &SIN, &COS, &ATAN, &CLIP,
    &THRESHOLD, &CAST,
];
