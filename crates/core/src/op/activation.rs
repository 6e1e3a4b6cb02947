//! Activations, and softmax.

use super::*;

const KINK: Domain = domain(-2.0, 2.0, &[0.0]);
const ALPHA_BETA: [AttributeSpec; 2] = [float("alpha", 1.0), float("beta", 1.0)];
const SHAPES: &[Case] = &[
    Case::shape("on_a_matrix", &[drawn("x", &[3, 5])], &[], &[3, 5]),
    Case::shape("on_a_map", &[drawn("x", &[1, 2, 3, 4])], &[], &[1, 2, 3, 4]),
];

const fn activation(name: &'static str, summary: &'static str, vjp: fn(&mut Backward<'_>)) -> GraphOp {
    GraphOp { vjp: Vjp::Rule(vjp), cases: SHAPES, ..direct(name, summary) }
}

/// A number attribute of the use.
fn number(b: &Backward<'_>, name: &str) -> f64 {
    b.site().float(name).unwrap_or(0.0)
}

/// Hands back the gradient of `x` where a condition on it holds, and `otherwise` times it elsewhere.
fn gated(b: &mut Backward<'_>, condition: impl FnOnce(&Tensor) -> Tensor, otherwise: impl FnOnce(&Tensor, &Tensor) -> Tensor) {
    let (x, grad) = (b.input("x"), b.grad());
    let result = condition(&x).select(&grad, &otherwise(&x, &grad));
    b.give("x", result);
}

fn zero(x: &Tensor, _: &Tensor) -> Tensor {
    x.constant_like(0.0)
}

/// Rectifier.
pub static RELU: GraphOp = GraphOp {
    domain: KINK,
    tolerance: 0.0,
    ..activation("relu", "x where it is positive, else 0.", |b| gated(b, |x| x.greater(&x.constant_like(0.0)), zero))
};
/// Rectifier with a ceiling.
pub static RELU6: GraphOp = GraphOp {
    domain: domain(-2.0, 8.0, &[0.0, 6.0]),
    tolerance: 0.0,
    ..activation("relu6", "x kept between 0 and 6.", |b| {
        let (x, grad) = (b.input("x"), b.grad());
        let zero = x.constant_like(0.0);
        let below = x.less(&x.constant_like(6.0)).select(&grad, &zero);
        let grad = x.greater(&zero).select(&below, &zero);
        b.give("x", grad);
    })
};
/// Logistic function.
pub static SIGMOID: GraphOp = activation("sigmoid", "1 / (1 + exp(-x)).", |b| {
    let y = b.output();
    let grad = b.grad().mul(&y.mul(&(1.0 - &y)));
    b.give("x", grad);
});
/// Sigmoid-weighted x.
pub static SILU: GraphOp = activation("silu", "x times sigmoid(x).", |b| {
    let (x, s) = (b.input("x"), b.input("x").sigmoid());
    let slope = s.mul(&(x.mul(&(1.0 - &s)).adds(1.0)));
    let grad = b.grad().mul(&slope);
    b.give("x", grad);
});
/// Gaussian error linear unit.
pub static GELU: GraphOp = GraphOp {
    attributes: &[word("mode", &["EXACT", "TANH_APPROXIMATION", "SIGMOID_APPROXIMATION"], "EXACT")],
    cases: &[
        Case::shape("exact", &[drawn("x", &[3, 5])], &[], &[3, 5]),
        Case::shape("tanh", &[drawn("x", &[3, 5])], &[("mode", Default::Text("TANH_APPROXIMATION"))], &[3, 5]),
        Case::shape("sigmoid", &[drawn("x", &[3, 5])], &[("mode", Default::Text("SIGMOID_APPROXIMATION"))], &[3, 5]),
    ],
    ..activation("gelu", "x times the normal distribution's cumulative probability at x.", |b| {
        let x = b.input("x");
        let slope = match b.site().text("mode") {
            "TANH_APPROXIMATION" => {
                // With u = sqrt(2/pi) (x + 0.044715 x^3): (1 + tanh u) / 2 + x (1 - tanh^2 u) u' / 2.
                let root = (2.0 / std::f64::consts::PI).sqrt();
                let t = x.mul(&x.square().scale(0.044715 * root).adds(root)).tanh();
                let inner = x.square().scale(3.0 * 0.044715 * root).adds(root);
                t.adds(1.0).add(&x.mul(&(1.0 - &t.square())).mul(&inner)).scale(0.5)
            }
            "SIGMOID_APPROXIMATION" => {
                let s = x.scale(1.702).sigmoid();
                s.mul(&x.scale(1.702).mul(&(1.0 - &s)).adds(1.0))
            }
            _ => {
                // Cumulative probability plus x times the density.
                let cumulative = x.scale(std::f64::consts::FRAC_1_SQRT_2).erf().adds(1.0).scale(0.5);
                let density = x.square().scale(-0.5).exp().scale(1.0 / (2.0 * std::f64::consts::PI).sqrt());
                cumulative.add(&x.mul(&density))
            }
        };
        let grad = b.grad().mul(&slope);
        b.give("x", grad);
    })
};
/// Smooth rectifier.
pub static SOFTPLUS: GraphOp = activation("softplus", "log(1 + exp(x)).", |b| {
    let grad = b.grad().mul(&b.input("x").sigmoid());
    b.give("x", grad);
});
/// Smooth rectifier with parameters per channel.
pub static SOFTPLUS_PARAMETRIC: GraphOp = GraphOp {
    inputs: &[input("x", FLOATS), weight("alpha", FLOATS), weight("beta", FLOATS)],
    constraints: &[
        rule(
            "C1",
            "x has 3 to 5 axes, channels on axis 1: reshape it",
            |s| s.rank("x") >= 3,
            Case::refused(&[drawn("x", &[2, 3]), drawn("alpha", &[3]).fixed(), drawn("beta", &[3]).fixed()], &[]),
        ),
        rule(
            "C2",
            "alpha and beta have shape [channels]",
            |s| [s.shape("alpha"), s.shape("beta")].iter().all(|shape| *shape == &s.shape("x")[1..2]),
            Case::refused(&[drawn("x", &[1, 3, 2]), drawn("alpha", &[3]).fixed(), drawn("beta", &[2]).fixed()], &[]),
        ),
    ],
    cases: &[Case::values(
        "parameters_per_channel",
        &[
            given("x", &[1, 2, 2], &[0.0, 1.0, 0.0, -1.0]),
            given("alpha", &[2], &[2.0, 1.0]).fixed(),
            given("beta", &[2], &[1.0, 2.0]).fixed(),
        ],
        &[],
        (&[1, 2, 2], &[2.0 * std::f64::consts::LN_2, 2.626523373626998, std::f64::consts::LN_2, 0.1269280110429726]),
        "numpy 2.3.5",
    )],
    ..activation("softplus_parametric", "alpha times log(1 + exp(beta x)), alpha and beta per channel.", |b| {
        let x = b.input("x");
        let mut shape = vec![1i64; x.rank().unwrap_or(3)];
        shape[1] = -1;
        let [alpha, beta] = ["alpha", "beta"].map(|name| b.input(name).reshape(&shape));
        let axes: Vec<i64> = (0..shape.len() as i64).filter(|&axis| axis != 1).collect();
        let (grad, inner) = (b.grad(), x.mul(&beta));
        let slope = grad.mul(&inner.sigmoid()).mul(&alpha);
        if b.wants("alpha") {
            b.give("alpha", grad.mul(&inner.softplus()).reduce_sum(axes.clone(), false));
        }
        if b.wants("beta") {
            b.give("beta", slope.mul(&x).reduce_sum(axes, false));
        }
        b.give("x", slope.mul(&beta));
    })
};
/// Softsign.
pub static SOFTSIGN: GraphOp = activation("softsign", "x / (1 + abs(x)).", |b| {
    let grad = b.grad().mul(&b.input("x").abs().adds(1.0).square().inverse(0.0));
    b.give("x", grad);
});
/// Exponential linear unit.
pub static ELU: GraphOp = GraphOp {
    attributes: &[float("alpha", 1.0)],
    domain: KINK,
    ..activation("elu", "x where it is not negative, else alpha (exp(x) - 1).", |b| {
        let alpha = number(b, "alpha");
        gated(b, |x| x.greater_equal(&x.constant_like(0.0)), |x, grad| x.exp().scale(alpha).mul(grad));
    })
};
/// Rectifier with a slope below zero.
pub static LEAKY_RELU: GraphOp = GraphOp {
    attributes: &[float("alpha", 0.01)],
    domain: KINK,
    ..activation("leaky_relu", "x where it is not negative, else alpha x.", |b| {
        let alpha = number(b, "alpha");
        gated(b, |x| x.greater_equal(&x.constant_like(0.0)), |_, grad| grad.scale(alpha));
    })
};
/// Rectifier with a slope per channel.
pub static PRELU: GraphOp = GraphOp {
    inputs: &[input("x", FLOATS), weight("alpha", FLOATS)],
    constraints: &[
        rule(
            "C1",
            "x has 3 to 5 axes, channels on axis 1: reshape it",
            |s| s.rank("x") >= 3,
            Case::refused(&[drawn("x", &[2, 3]), drawn("alpha", &[3]).fixed()], &[]),
        ),
        rule(
            "C2",
            "alpha has shape [channels]",
            |s| s.rank("alpha") == 1 && s.shape("alpha").first() == s.shape("x").get(1),
            Case::refused(&[drawn("x", &[1, 3, 2]), drawn("alpha", &[2]).fixed()], &[]),
        ),
    ],
    domain: KINK,
    cases: &[Case::values(
        "slope_per_channel",
        &[given("x", &[1, 2, 2], &[-1.0, 2.0, -4.0, 3.0]), given("alpha", &[2], &[0.5, 0.25]).fixed()],
        &[],
        (&[1, 2, 2], &[-0.5, 2.0, -1.0, 3.0]),
        "by hand",
    )],
    ..activation("prelu", "x where it is not negative, else alpha x with one alpha per channel.", |b| {
        let (x, grad, alpha) = (b.input("x"), b.grad(), b.input("alpha"));
        let mut per_channel = vec![1i64; x.rank().unwrap_or(3)];
        per_channel[1] = -1;
        let positive = x.greater_equal(&x.constant_like(0.0));
        if b.wants("alpha") {
            let slopes = positive.select(&x.constant_like(0.0), &grad.mul(&x));
            let axes: Vec<i64> = (0..per_channel.len() as i64).filter(|&axis| axis != 1).collect();
            b.give("alpha", slopes.reduce_sum(axes, false));
        }
        let below = grad.mul(&alpha.reshape(&per_channel));
        b.give("x", positive.select(&grad, &below));
    })
};
/// Scaled hyperbolic tangent.
pub static SCALED_TANH: GraphOp = GraphOp {
    attributes: &ALPHA_BETA,
    ..activation("scaled_tanh", "alpha tanh(beta x).", |b| {
        let (alpha, beta) = (number(b, "alpha"), number(b, "beta"));
        let slope = (1.0 - b.input("x").scale(beta).tanh().square()).scale(alpha * beta);
        let grad = b.grad().mul(&slope);
        b.give("x", grad);
    })
};
/// Piecewise linear sigmoid.
pub static SIGMOID_HARD: GraphOp = GraphOp {
    attributes: &[float("alpha", 0.2), float("beta", 0.5)],
    domain: domain(-4.0, 4.0, &[-2.5, 2.5]),
    ..activation("sigmoid_hard", "alpha x + beta kept between 0 and 1.", |b| {
        let (alpha, beta) = (number(b, "alpha"), number(b, "beta"));
        let (line, grad) = (b.input("x").scale(alpha).adds(beta), b.grad().scale(alpha));
        let zero = line.constant_like(0.0);
        let below = line.less(&line.constant_like(1.0)).select(&grad, &zero);
        let grad = line.greater(&zero).select(&below, &zero);
        b.give("x", grad);
    })
};
/// Leaky rectifier with a ceiling.
pub static CLAMPED_RELU: GraphOp = GraphOp {
    attributes: &[float("alpha", 0.0), float("beta", 6.0)],
    domain: domain(-2.0, 8.0, &[0.0, 6.0]),
    ..activation("clamped_relu", "The smaller of beta and leaky_relu(x) with slope alpha.", |b| {
        let (alpha, beta) = (number(b, "alpha"), number(b, "beta"));
        let (x, grad) = (b.input("x"), b.grad());
        let zero = x.constant_like(0.0);
        let leaky = x.greater_equal(&zero).select(&grad, &grad.scale(alpha));
        let grad = b.output().less(&x.constant_like(beta)).select(&leaky, &zero);
        b.give("x", grad);
    })
};
/// Rectifier that starts at a threshold.
pub static THRESHOLDED_RELU: GraphOp = GraphOp {
    attributes: &[float("alpha", 1.0)],
    domain: domain(-2.0, 3.0, &[1.0]),
    tolerance: 0.0,
    ..activation("thresholded_relu", "x where it is at least alpha, else 0.", |b| {
        let alpha = number(b, "alpha");
        gated(b, |x| x.greater_equal(&x.constant_like(alpha)), zero);
    })
};
/// A line.
pub static LINEAR_ACTIVATION: GraphOp = GraphOp {
    attributes: &[float("alpha", 1.0), float("beta", 0.0)],
    ..activation("linear_activation", "alpha x + beta.", |b| {
        let grad = b.grad().scale(number(b, "alpha"));
        b.give("x", grad);
    })
};
/// Softmax.
pub static SOFTMAX: GraphOp = GraphOp {
    attributes: &[int("axis", Default::Int(-1))],
    constraints: &[rule(
        "C1",
        "axis is an axis of x",
        |s| s.axis("axis", s.rank("x")).is_some(),
        Case::refused(&[drawn("x", &[2, 3])], &[("axis", Default::Int(2))]),
    )],
    cases: &[
        Case::values(
            "equal_values_share_evenly",
            &[given("x", &[2, 4], &[1.0, 1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 3.0])],
            &[],
            (&[2, 4], &[0.25; 8]),
            "by hand",
        ),
        Case::shape("along_a_middle_axis", &[drawn("x", &[2, 5, 3])], &[("axis", Default::Int(1))], &[2, 5, 3]),
    ],
    ..activation("softmax", "exp(x) divided by its sum along an axis.", |b| {
        let (y, grad, axis) = (b.output(), b.grad(), b.site().int("axis"));
        let mean = grad.mul(&y).reduce_sum(axis, true);
        b.give("x", grad.sub(&mean).mul(&y));
    })
};

pub(super) const ALL: &[&GraphOp] = &[
    &RELU,
    &RELU6,
    &SIGMOID,
    &SILU,
    &GELU,
    &SOFTPLUS,
    &SOFTPLUS_PARAMETRIC,
    &SOFTSIGN,
    &ELU,
    &LEAKY_RELU,
    &PRELU,
    &SCALED_TANH,
    &SIGMOID_HARD,
    &CLAMPED_RELU,
    &THRESHOLDED_RELU,
    &LINEAR_ACTIVATION,
    &SOFTMAX,
];
