//! Activations: functions of one value, some with parameters, and softmax.

use super::family::{COMPOSED, PICKS, ROUNDED_ONCE, around, attribute, axis, integers, legal_axis, map, required, rule, unary};
use super::{
    ALL_FAMILIES, Arguments, Case, Default, FLOATS, MilOp, OpError, PortSpec, TEXT, constant, float, given, int, sample, tensor,
    text, weight,
};
use crate::Array;

const ALPHA: &[PortSpec] = &[tensor("x", FLOATS), required("alpha")];
const ALPHA_BETA: &[PortSpec] = &[tensor("x", FLOATS), required("alpha"), required("beta")];
const X: &[f64] = &[-2.0, -0.5, 0.0, 0.25, 1.5, 3.0];

const BY_HAND: &str = "by hand";
const NUMPY: &str = "numpy 2.3.5, from the formula";

pub(super) const OPS: &[MilOp] = &[
    MilOp {
        arithmetic: PICKS,
        published_error: Some(0.0),
        tolerance: 0.0,
        cases: &[
            Case::new(
                "drops_negative_values",
                &[("x", given(&[2, 3], X))],
                &[(&[2, 3], &[0.0, 0.0, 0.0, 0.25, 1.5, 3.0])],
                BY_HAND,
            ),
            Case::oracle("on_a_map", &[("x", sample(&[1, 3, 4, 5], 1))]),
        ],
        ..unary("relu", "x where it is positive, else 0.", |a| map(a, |x| if x < 0.0 { 0.0 } else { x }))
    },
    MilOp {
        arithmetic: PICKS,
        published_error: Some(0.0),
        tolerance: 0.0,
        domain: &[("x", -4.0, 10.0)],
        cases: &[Case::new(
            "stops_at_six",
            &[("x", given(&[4], &[-1.0, 0.5, 6.0, 7.5]))],
            &[(&[4], &[0.0, 0.5, 6.0, 6.0])],
            BY_HAND,
        )],
        ..unary("relu6", "x kept between 0 and 6.", |a| map(a, |x| x.clamp(0.0, 6.0)))
    },
    MilOp {
        published_error: Some(3.8e-3),
        domain: &[("x", -6.0, 6.0)],
        cases: &[Case::new(
            "logistic_function",
            &[("x", given(&[6], X))],
            &[(&[6], &[0.11920292202211755, 0.3775406687981454, 0.5, 0.5621765008857981, 0.8175744761936437, 0.9525741268224334])],
            NUMPY,
        )],
        ..unary("sigmoid", "1 / (1 + exp(-x)).", |a| map(a, sigmoid))
    },
    MilOp {
        published_error: Some(1.0e-2),
        domain: &[("x", -6.0, 6.0)],
        cases: &[Case::new(
            "x_times_its_sigmoid",
            &[("x", given(&[6], X))],
            &[(&[6], &[-0.2384058440442351, -0.1887703343990727, 0.0, 0.14054412522144952, 1.2263617142904655, 2.8577223804673])],
            NUMPY,
        )],
        ..unary("silu", "x times sigmoid(x).", |a| map(a, |x| x * sigmoid(x)))
    },
    MilOp {
        ports: &[tensor("x", FLOATS), constant("mode", TEXT, Default::Text("EXACT"))],
        constraints: &[rule("C1", "mode is EXACT, TANH_APPROXIMATION or SIGMOID_APPROXIMATION", |a| {
            matches!(a.text("mode"), Some("EXACT" | "TANH_APPROXIMATION" | "SIGMOID_APPROXIMATION"))
        })],
        published_error: Some(2.4e-3),
        domain: &[("x", -6.0, 6.0)],
        cases: &[
            Case::new(
                "exact_by_default",
                &[("x", given(&[6], X))],
                &[(
                    &[6],
                    &[-0.04550026389635842, -0.15426876936299344, 0.0, 0.14967658142073093, 1.399789198096713, 2.99595030590511],
                )],
                NUMPY,
            ),
            Case::new(
                "tanh_approximation",
                &[("x", given(&[6], X)), ("mode", text("TANH_APPROXIMATION"))],
                &[(
                    &[6],
                    &[-0.04540230591222494, -0.15428599017485606, 0.0, 0.149675350701685, 1.3995715769802328, 2.996362607918227],
                )],
                NUMPY,
            ),
            Case::new(
                "sigmoid_approximation",
                &[("x", given(&[6], X)), ("mode", text("SIGMOID_APPROXIMATION"))],
                &[(
                    &[6],
                    &[-0.06434137685579186, -0.1496115633936199, 0.0, 0.1511996499001942, 1.3916621984470765, 2.981928690292214],
                )],
                NUMPY,
            ),
        ],
        ..unary("gelu", "x times the normal distribution's cumulative probability at x.", |a| {
            let f = match a.text("mode") {
                Some("TANH_APPROXIMATION") => {
                    |x: f64| 0.5 * x * (1.0 + (std::f64::consts::FRAC_2_PI.sqrt() * (x + 0.044715 * x * x * x)).tanh())
                }
                Some("SIGMOID_APPROXIMATION") => |x: f64| x * sigmoid(1.702 * x),
                _ => |x: f64| 0.5 * x * (1.0 + libm::erf(x * std::f64::consts::FRAC_1_SQRT_2)),
            };
            map(a, f)
        })
    },
    MilOp {
        published_error: Some(7.8e-4),
        domain: &[("x", -6.0, 10.0)],
        cases: &[Case::new(
            "smooth_relu",
            &[("x", given(&[6], X))],
            &[(
                &[6],
                &[
                    0.1269280110429725,
                    0.4740769841801067,
                    std::f64::consts::LN_2,
                    0.8259394198788436,
                    1.7014132779827524,
                    3.048587351573742,
                ],
            )],
            NUMPY,
        )],
        ..unary("softplus", "log(1 + exp(x)); the engine answers 0 from about 11.09 on.", |a| map(a, softplus))
    },
    MilOp {
        ports: &[tensor("x", FLOATS), weight("alpha", FLOATS), weight("beta", FLOATS)],
        constraints: &[
            rule("C1", "x has 3 to 5 axes, channels on axis 1", |a| a.shape("x").len() >= 3),
            rule("C2", "alpha and beta have shape [channels]", |a| per_channel(a, "alpha") && per_channel(a, "beta")),
        ],
        cases: &[Case::new(
            "parameters_per_channel",
            &[("x", given(&[1, 2, 1], &[0.0, 1.0])), ("alpha", given(&[2], &[2.0, 1.0])), ("beta", given(&[2], &[1.0, 0.0]))],
            &[(&[1, 2, 1], &[2.0 * std::f64::consts::LN_2, std::f64::consts::LN_2])],
            BY_HAND,
        )],
        ..unary("softplus_parametric", "alpha times log(1 + exp(beta x)), alpha and beta per channel.", |a| {
            let (alpha, beta) = (a.array("alpha")?, a.array("beta")?);
            by_channel(a, |x, channel| alpha.data[channel] * softplus(beta.data[channel] * x))
        })
    },
    MilOp {
        published_error: Some(7.6e-4),
        cases: &[Case::new("approaches_one", &[("x", given(&[3], &[-3.0, 0.0, 1.0]))], &[(&[3], &[-0.75, 0.0, 0.5])], BY_HAND)],
        ..unary("softsign", "x / (1 + abs(x)).", |a| map(a, |x| x / (1.0 + x.abs())))
    },
    MilOp {
        ports: ALPHA,
        published_error: Some(5.1e-3),
        cases: &[Case::new(
            "exponential_below_zero",
            &[("x", given(&[6], X)), ("alpha", float(&[0.5]))],
            &[(&[6], &[-0.43233235838169365, -0.1967346701436833, 0.0, 0.25, 1.5, 3.0])],
            NUMPY,
        )],
        ..unary("elu", "x where it is not negative, else alpha (exp(x) - 1).", |a| {
            let alpha = attribute(a, "alpha");
            map(a, |x| if x < 0.0 { alpha * x.exp_m1() } else { x })
        })
    },
    MilOp {
        ports: ALPHA,
        arithmetic: ROUNDED_ONCE,
        published_error: Some(1e-5),
        cases: &[Case::new(
            "slope_below_zero",
            &[("x", given(&[6], X)), ("alpha", float(&[0.25]))],
            &[(&[6], &[-0.5, -0.125, 0.0, 0.25, 1.5, 3.0])],
            BY_HAND,
        )],
        ..unary("leaky_relu", "x where it is not negative, else alpha x.", |a| {
            let alpha = attribute(a, "alpha");
            map(a, |x| if x < 0.0 { alpha * x } else { x })
        })
    },
    MilOp {
        ports: &[tensor("x", FLOATS), weight("alpha", FLOATS)],
        constraints: &[
            rule("C1", "x has 3 to 5 axes, channels on axis 1", |a| a.shape("x").len() >= 3),
            rule("C2", "alpha has shape [channels]", |a| per_channel(a, "alpha")),
        ],
        arithmetic: ROUNDED_ONCE,
        cases: &[Case::new(
            "slope_per_channel",
            &[("x", given(&[1, 2, 1, 2], &[-1.0, 2.0, -4.0, 3.0])), ("alpha", given(&[2], &[0.5, 0.25]))],
            &[(&[1, 2, 1, 2], &[-0.5, 2.0, -1.0, 3.0])],
            BY_HAND,
        )],
        support: ALL_FAMILIES.limited("three axes at least"),
        ..unary("prelu", "x where it is not negative, else alpha x with one alpha per channel.", |a| {
            let alpha = a.array("alpha")?;
            by_channel(a, |x, channel| if x < 0.0 { alpha.data[channel] * x } else { x })
        })
    },
    MilOp {
        ports: ALPHA_BETA,
        published_error: Some(1.7e-3),
        cases: &[Case::new(
            "scales_both_sides",
            &[("x", given(&[6], X)), ("alpha", float(&[2.0])), ("beta", float(&[0.5]))],
            &[(
                &[6],
                &[-1.5231883119115297, -0.48983732480741826, 0.0, 0.24870600354319242, 1.2702979047745746, 1.810296507289733],
            )],
            NUMPY,
        )],
        ..unary("scaled_tanh", "alpha tanh(beta x).", |a| {
            let (alpha, beta) = (attribute(a, "alpha"), attribute(a, "beta"));
            map(a, |x| alpha * (beta * x).tanh())
        })
    },
    MilOp {
        ports: ALPHA_BETA,
        arithmetic: ROUNDED_ONCE,
        published_error: Some(2.6e-4),
        cases: &[Case::new(
            "line_between_zero_and_one",
            &[("x", given(&[6], X)), ("alpha", float(&[0.25])), ("beta", float(&[0.5]))],
            &[(&[6], &[0.0, 0.375, 0.5, 0.5625, 0.875, 1.0])],
            BY_HAND,
        )],
        ..unary("sigmoid_hard", "alpha x + beta kept between 0 and 1.", |a| {
            let (alpha, beta) = (attribute(a, "alpha"), attribute(a, "beta"));
            map(a, |x| (alpha * x + beta).clamp(0.0, 1.0))
        })
    },
    MilOp {
        ports: ALPHA_BETA,
        arithmetic: ROUNDED_ONCE,
        published_error: Some(9e-5),
        cases: &[Case::new(
            "slope_below_and_ceiling",
            &[("x", given(&[6], X)), ("alpha", float(&[0.25])), ("beta", float(&[1.0]))],
            &[(&[6], &[-0.5, -0.125, 0.0, 0.25, 1.0, 1.0])],
            BY_HAND,
        )],
        ..unary("clamped_relu", "The smaller of beta and leaky_relu(x) with slope alpha.", |a| {
            let (alpha, beta) = (attribute(a, "alpha"), attribute(a, "beta"));
            map(a, |x| {
                let y = if x < 0.0 { alpha * x } else { x };
                if y > beta { beta } else { y }
            })
        })
    },
    MilOp {
        ports: ALPHA,
        arithmetic: PICKS,
        published_error: Some(0.0),
        tolerance: 0.0,
        cases: &[Case::new(
            "keeps_from_alpha_on",
            &[("x", given(&[6], X)), ("alpha", float(&[0.25]))],
            &[(&[6], &[0.0, 0.0, 0.0, 0.25, 1.5, 3.0])],
            BY_HAND,
        )],
        ..unary("thresholded_relu", "x where it is at least alpha, else 0.", |a| {
            let alpha = attribute(a, "alpha");
            map(a, |x| if x < alpha { 0.0 } else { x })
        })
    },
    MilOp {
        ports: ALPHA_BETA,
        arithmetic: ROUNDED_ONCE,
        published_error: Some(9e-5),
        cases: &[Case::new(
            "scale_and_offset",
            &[("x", given(&[6], X)), ("alpha", float(&[0.5])), ("beta", float(&[-1.0]))],
            &[(&[6], &[-2.0, -1.25, -1.0, -0.875, -0.25, 0.5])],
            BY_HAND,
        )],
        ..unary("linear_activation", "alpha x + beta.", |a| {
            let (alpha, beta) = (attribute(a, "alpha"), attribute(a, "beta"));
            map(a, |x| alpha * x + beta)
        })
    },
    MilOp {
        ports: &[tensor("x", FLOATS), integers("axis", Default::Int(-1))],
        constraints: &[rule("C1", "axis is an axis of x", |a| axis(a, "axis", a.shape("x").len()).is_some())],
        arithmetic: COMPOSED,
        cases: &[
            Case::new(
                "equal_values_share_evenly",
                &[("x", given(&[2, 4], &[1.0, 1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 3.0]))],
                &[(&[2, 4], &[0.25; 8])],
                BY_HAND,
            ),
            Case::new(
                "subtracts_the_maximum_first",
                &[("x", given(&[4], &[1000.0, 1.0, 2.0, 3.0])), ("axis", int(&[0.0]))],
                &[(&[4], &[1.0, 0.0, 0.0, 0.0])],
                "by hand; published for the engine in arXiv 2606.22283, chapter 3",
            ),
            Case::oracle("along_a_middle_axis", &[("x", sample(&[2, 5, 3], 3)), ("axis", int(&[1.0]))]),
        ],
        ..unary("softmax", "exp(x) divided by its sum along an axis.", softmax)
    },
];

/// The logistic function without overflow on either side.
pub(super) fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 { 1.0 / (1.0 + (-x).exp()) } else { x.exp() / (1.0 + x.exp()) }
}

fn softplus(x: f64) -> f64 {
    (-x.abs()).exp().ln_1p() + if x > 0.0 { x } else { 0.0 }
}

fn per_channel(a: &Arguments<'_>, port: &str) -> bool {
    a.shape(port).len() == 1 && a.shape(port).first() == a.shape("x").get(1)
}

fn by_channel(a: &Arguments<'_>, f: impl Fn(f64, usize) -> f64) -> Result<Vec<Array>, OpError> {
    let x = a.array("x")?;
    let (_, channels, inner) = around(&x.ty.shape, 1);
    let data = x.data.iter().enumerate().map(|(index, &x)| f(x, index / inner % channels)).collect();
    Ok(vec![Array { ty: x.ty.clone(), data }])
}

fn softmax(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let mut y = a.array("x")?.clone();
    let (outer, extent, inner) = around(&y.ty.shape, legal_axis(a, "axis", y.ty.rank()));
    for start in (0..outer).flat_map(|block| (0..inner).map(move |lane| block * extent * inner + lane)) {
        let at = |index: usize| start + index * inner;
        let largest = (0..extent).map(|index| y.data[at(index)]).fold(f64::NEG_INFINITY, f64::max);
        let mut sum = 0.0;
        for index in 0..extent {
            let e = (y.data[at(index)] - largest).exp();
            y.data[at(index)] = e;
            sum += e;
        }
        for index in 0..extent {
            y.data[at(index)] /= sum;
        }
    }
    Ok(vec![y])
}
