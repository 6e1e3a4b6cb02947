//! Functions of one value that are not called activations.

use super::family::{PICKS, ROUNDED_ONCE, attribute, map, or, required, rule, unary};
use super::{Arithmetic, Case, FLOATS, MilOp, NOWHERE, PortSpec, float, gated_before, given, tensor};

const WITH_ALPHA: &[PortSpec] = &[tensor("x", FLOATS), required("alpha")];
const X: &[f64] = &[-2.0, -0.5, 0.0, 0.25, 1.5, 3.0];
const POSITIVE: &[f64] = &[0.25, 0.5, 1.0, 2.0, 4.0, 9.0];
const UNIT: &[f64] = &[-1.0, -0.5, 0.0, 0.25, 0.5, 1.0];
/// Ties, and a value whose fp16 neighbours are whole numbers.
const STEPS: &[f64] = &[-1.5, -0.25, 0.0, 0.5, 2.5, 2047.0];

const BY_HAND: &str = "by hand";
const NUMPY: &str = "numpy 2.3.5";

const ADDS_EPSILON: &str = "exact function of x + epsilon";

pub(super) const OPS: &[MilOp] = &[
    MilOp {
        arithmetic: PICKS,
        published_error: Some(0.0),
        tolerance: 0.0,
        cases: &[Case::new("drops_the_sign", &[("x", given(&[2, 3], X))], &[(&[2, 3], &[2.0, 0.5, 0.0, 0.25, 1.5, 3.0])], BY_HAND)],
        ..unary("abs", "The magnitude of x.", |a| map(a, f64::abs))
    },
    MilOp {
        arithmetic: PICKS,
        published_error: Some(0.0),
        tolerance: 0.0,
        cases: &[Case::new("zero_has_sign_zero", &[("x", given(&[6], X))], &[(&[6], &[-1.0, -1.0, 0.0, 1.0, 1.0, 1.0])], BY_HAND)],
        ..unary("sign", "-1, 0 or 1 as x is negative, zero or positive.", |a| map(a, sign))
    },
    MilOp {
        arithmetic: PICKS,
        published_error: Some(0.0),
        tolerance: 0.0,
        cases: &[Case::new("rounds_down", &[("x", given(&[6], STEPS))], &[(&[6], &[-2.0, -1.0, 0.0, 0.0, 2.0, 2047.0])], BY_HAND)],
        ..unary("floor", "The largest integer that is not above x.", |a| map(a, f64::floor))
    },
    MilOp {
        arithmetic: PICKS,
        published_error: Some(0.0),
        tolerance: 0.0,
        cases: &[Case::new("rounds_up", &[("x", given(&[6], STEPS))], &[(&[6], &[-1.0, 0.0, 0.0, 1.0, 3.0, 2047.0])], BY_HAND)],
        ..unary("ceil", "The smallest integer that is not below x.", |a| map(a, f64::ceil))
    },
    MilOp {
        arithmetic: Arithmetic::Modelled(
            "ties away from zero, and 0.5 is added in fp16, so that odd integers from 1024 up move: ANEForge 0.4.0, MIT",
        ),
        published_error: Some(0.0),
        tolerance: 0.0,
        cases: &[Case::new("ties_to_even", &[("x", given(&[6], STEPS))], &[(&[6], &[-2.0, 0.0, 0.0, 0.0, 2.0, 2047.0])], BY_HAND)],
        ..unary("round", "The integer nearest to x, the even one of two; the engine rounds ties away from zero.", |a| {
            map(a, f64::round_ties_even)
        })
    },
    MilOp {
        arithmetic: ROUNDED_ONCE,
        published_error: Some(8e-5),
        cases: &[Case::new("squares", &[("x", given(&[6], X))], &[(&[6], &[4.0, 0.25, 0.0, 0.0625, 2.25, 9.0])], BY_HAND)],
        ..unary("square", "x times x.", |a| map(a, |x| x * x))
    },
    MilOp {
        domain: &[("x", 0.01, 4.0)],
        published_error: Some(4.3e-4),
        cases: &[Case::new(
            "perfect_squares",
            &[("x", given(&[6], &[0.0, 0.25, 1.0, 4.0, 2.25, 9.0]))],
            &[(&[6], &[0.0, 0.5, 1.0, 2.0, 1.5, 3.0])],
            BY_HAND,
        )],
        ..unary("sqrt", "The square root of x.", |a| map(a, f64::sqrt))
    },
    MilOp {
        ports: &[tensor("x", FLOATS), or("epsilon", 1e-12)],
        domain: &[("x", 0.1, 4.0)],
        published_error: Some(1.0e-3),
        cases: &[
            Case::new(
                "perfect_squares",
                &[("x", given(&[3], &[0.25, 1.0, 4.0])), ("epsilon", float(&[0.0]))],
                &[(&[3], &[2.0, 1.0, 0.5])],
                BY_HAND,
            ),
            Case::new(
                ADDS_EPSILON_NAME,
                &[("x", given(&[2], &[0.0, 2.0])), ("epsilon", float(&[0.25]))],
                &[(&[2], &[2.0, 2.0 / 3.0])],
                ADDS_EPSILON,
            ),
        ],
        ..unary("rsqrt", "1 / sqrt(x + epsilon).", |a| {
            let epsilon = attribute(a, "epsilon");
            map(a, |x| 1.0 / (x + epsilon).sqrt())
        })
    },
    MilOp {
        ports: &[tensor("x", FLOATS), or("epsilon", 1e-4)],
        domain: &[("x", 0.1, 4.0)],
        published_error: Some(2.8e-4),
        cases: &[
            Case::new(
                "powers_of_two",
                &[("x", given(&[3], &[0.25, -1.0, 4.0])), ("epsilon", float(&[0.0]))],
                &[(&[3], &[4.0, -1.0, 0.25])],
                BY_HAND,
            ),
            Case::new(
                ADDS_EPSILON_NAME,
                &[("x", given(&[2], &[0.0, 0.75])), ("epsilon", float(&[0.25]))],
                &[(&[2], &[4.0, 1.0])],
                ADDS_EPSILON,
            ),
        ],
        ..unary("inverse", "1 / (x + epsilon).", |a| {
            let epsilon = attribute(a, "epsilon");
            map(a, |x| 1.0 / (x + epsilon))
        })
    },
    MilOp {
        ports: &[tensor("x", FLOATS), or("epsilon", 1e-45)],
        domain: &[("x", 0.1, 4.0)],
        published_error: Some(8.0e-4),
        cases: &[
            Case::new(
                "natural_logarithm",
                &[("x", given(&[6], POSITIVE)), ("epsilon", float(&[0.0]))],
                &[(
                    &[6],
                    &[
                        -1.3862943611198906,
                        -std::f64::consts::LN_2,
                        0.0,
                        std::f64::consts::LN_2,
                        1.3862943611198906,
                        2.1972245773362196,
                    ],
                )],
                NUMPY,
            ),
            Case::new(
                ADDS_EPSILON_NAME,
                &[("x", given(&[2], &[0.75, 1.75])), ("epsilon", float(&[0.25]))],
                &[(&[2], &[0.0, std::f64::consts::LN_2])],
                ADDS_EPSILON,
            ),
        ],
        ..unary("log", "The natural logarithm of x + epsilon.", |a| {
            let epsilon = attribute(a, "epsilon");
            map(a, |x| (x + epsilon).ln())
        })
    },
    MilOp {
        published_error: Some(4.7e-4),
        cases: &[Case::new(
            "powers_of_e",
            &[("x", given(&[6], X))],
            &[(&[6], &[0.1353352832366127, 0.6065306597126334, 1.0, 1.2840254166877414, 4.4816890703380645, 20.085536923187668])],
            NUMPY,
        )],
        ..unary("exp", "e to the power of x.", |a| map(a, f64::exp))
    },
    MilOp {
        published_error: Some(4.8e-4),
        cases: &[Case::new(
            "powers_of_two",
            &[("x", given(&[5], &[-3.0, -1.0, 0.0, 0.5, 4.0]))],
            &[(&[5], &[0.125, 0.5, 1.0, std::f64::consts::SQRT_2, 16.0])],
            BY_HAND,
        )],
        ..unary("exp2", "2 to the power of x.", |a| map(a, f64::exp2))
    },
    MilOp {
        published_error: Some(7.0e-4),
        cases: &[Case::new(
            "error_function",
            &[("x", given(&[6], X))],
            &[(&[6], &[-0.9953222650189527, -0.5204998778130465, 0.0, 0.2763263901682369, 0.9661051464753108, 0.9999779095030014])],
            "CPython math.erf",
        )],
        ..unary("erf", "The Gauss error function of x.", |a| map(a, libm::erf))
    },
    MilOp {
        published_error: Some(1.3e-3),
        cases: &[Case::new(
            "hyperbolic_tangent",
            &[("x", given(&[6], X))],
            &[(
                &[6],
                &[-0.9640275800758169, -0.46211715726000973, 0.0, 0.24491866240370913, 0.9051482536448664, 0.9950547536867305],
            )],
            NUMPY,
        )],
        ..unary("tanh", "The hyperbolic tangent of x.", |a| map(a, f64::tanh))
    },
    MilOp {
        support: gated_before(15),
        published_error: Some(5.0e-4),
        cases: &[Case::new(
            "sine",
            &[("x", given(&[6], X))],
            &[(&[6], &[-0.9092974268256817, -0.479425538604203, 0.0, 0.24740395925452294, 0.9974949866040544, 0.1411200080598672])],
            NUMPY,
        )],
        ..unary("sin", "The sine of x in radians.", |a| map(a, f64::sin))
    },
    MilOp {
        support: gated_before(15),
        published_error: Some(5.6e-4),
        cases: &[Case::new(
            "cosine",
            &[("x", given(&[6], X))],
            &[(&[6], &[-0.4161468365471424, 0.8775825618903728, 1.0, 0.9689124217106447, 0.0707372016677029, -0.9899924966004454])],
            NUMPY,
        )],
        ..unary("cos", "The cosine of x in radians.", |a| map(a, f64::cos))
    },
    MilOp {
        published_error: Some(1.9e-2),
        cases: &[Case::new(
            "arc_tangent",
            &[("x", given(&[6], X))],
            &[(&[6], &[-1.1071487177940904, -0.4636476090008061, 0.0, 0.24497866312686414, 0.982793723247329, 1.2490457723982544])],
            NUMPY,
        )],
        ..unary("atan", "The angle in radians whose tangent is x.", |a| map(a, f64::atan))
    },
    MilOp {
        arithmetic: Arithmetic::Unknown,
        support: NOWHERE,
        domain: &[("x", -1.0, 1.0)],
        cases: &[Case::new("tangent", &[("x", given(&[2], &[0.0, 0.5]))], &[(&[2], &[0.0, 0.5463024898437905])], NUMPY)],
        ..unary("tan", "The tangent of x in radians.", |a| map(a, f64::tan))
    },
    MilOp {
        arithmetic: Arithmetic::Unknown,
        support: NOWHERE,
        domain: &[("x", -1.0, 1.0)],
        cases: &[Case::new(
            "arc_sine",
            &[("x", given(&[6], UNIT))],
            &[(
                &[6],
                &[
                    -std::f64::consts::FRAC_PI_2,
                    -std::f64::consts::FRAC_PI_6,
                    0.0,
                    0.25268025514207865,
                    std::f64::consts::FRAC_PI_6,
                    std::f64::consts::FRAC_PI_2,
                ],
            )],
            "by hand; 0.25 from numpy 2.3.5",
        )],
        ..unary("asin", "The angle in radians whose sine is x.", |a| map(a, f64::asin))
    },
    MilOp {
        arithmetic: Arithmetic::Unknown,
        support: NOWHERE,
        domain: &[("x", -1.0, 1.0)],
        cases: &[Case::new(
            "arc_cosine",
            &[("x", given(&[3], &[-1.0, 0.5, 1.0]))],
            &[(&[3], &[std::f64::consts::PI, std::f64::consts::FRAC_PI_3, 0.0])],
            BY_HAND,
        )],
        ..unary("acos", "The angle in radians whose cosine is x.", |a| map(a, f64::acos))
    },
    MilOp {
        arithmetic: Arithmetic::Unknown,
        support: NOWHERE,
        cases: &[Case::new(
            "half_of_a_difference",
            &[("x", given(&[2], &[0.0, -2.0]))],
            &[(&[2], &[0.0, -3.626860407847019])],
            NUMPY,
        )],
        ..unary("sinh", "The hyperbolic sine of x.", |a| map(a, f64::sinh))
    },
    MilOp {
        arithmetic: Arithmetic::Unknown,
        support: NOWHERE,
        cases: &[Case::new("half_of_a_sum", &[("x", given(&[2], &[0.0, -2.0]))], &[(&[2], &[1.0, 3.7621956910836314])], NUMPY)],
        ..unary("cosh", "The hyperbolic cosine of x.", |a| map(a, f64::cosh))
    },
    MilOp {
        ports: &[tensor("x", FLOATS), or("epsilon", 1e-45)],
        arithmetic: Arithmetic::Unknown,
        support: NOWHERE,
        domain: &[("x", -0.9, 0.9)],
        cases: &[Case::new(
            "half_logarithm_of_a_ratio",
            &[("x", given(&[3], &[-0.5, 0.0, 0.75]))],
            &[(&[3], &[-0.5493061443340548, 0.0, 0.9729550745276566])],
            NUMPY,
        )],
        ..unary("atanh", "The value whose hyperbolic tangent is x.", |a| map(a, f64::atanh))
    },
    MilOp {
        arithmetic: Arithmetic::Unknown,
        support: NOWHERE,
        cases: &[Case::new(
            "inverse_of_the_hyperbolic_sine",
            &[("x", given(&[3], &[-2.0, 0.0, 0.75]))],
            &[(&[3], &[-1.4436354751788103, 0.0, std::f64::consts::LN_2])],
            "by hand; -2 from numpy 2.3.5",
        )],
        ..unary("asinh", "The value whose hyperbolic sine is x.", |a| map(a, f64::asinh))
    },
    MilOp {
        arithmetic: Arithmetic::Unknown,
        support: NOWHERE,
        domain: &[("x", 1.0, 4.0)],
        cases: &[Case::new(
            "inverse_of_the_hyperbolic_cosine",
            &[("x", given(&[3], &[1.0, 1.25, 3.0]))],
            &[(&[3], &[0.0, std::f64::consts::LN_2, 1.762747174039086])],
            "by hand; 3 from numpy 2.3.5",
        )],
        ..unary("acosh", "The value whose hyperbolic cosine is x.", |a| map(a, f64::acosh))
    },
    MilOp {
        ports: &[tensor("x", FLOATS), required("alpha"), required("beta")],
        constraints: &[rule("C1", "alpha, the lower end, is not above beta, the upper end: swap them", |a| {
            match (a.number("alpha"), a.number("beta")) {
                (Some(low), Some(high)) => low <= high,
                _ => true,
            }
        })],
        arithmetic: PICKS,
        published_error: Some(0.0),
        tolerance: 0.0,
        cases: &[Case::new(
            "keeps_within_both_ends",
            &[("x", given(&[6], X)), ("alpha", float(&[-0.5])), ("beta", float(&[1.0]))],
            &[(&[6], &[-0.5, -0.5, 0.0, 0.25, 1.0, 1.0])],
            BY_HAND,
        )],
        ..unary("clip", "x kept between alpha and beta.", |a| {
            let (low, high) = (attribute(a, "alpha"), attribute(a, "beta"));
            map(a, |x| {
                if x < low {
                    low
                } else if x > high {
                    high
                } else {
                    x
                }
            })
        })
    },
    MilOp {
        ports: WITH_ALPHA,
        arithmetic: PICKS,
        published_error: Some(0.0),
        tolerance: 0.0,
        cases: &[Case::new(
            "raises_to_alpha",
            &[("x", given(&[6], X)), ("alpha", float(&[0.125]))],
            &[(&[6], &[0.125, 0.125, 0.125, 0.25, 1.5, 3.0])],
            BY_HAND,
        )],
        ..unary("threshold", "The larger of x and alpha.", |a| {
            let alpha = attribute(a, "alpha");
            map(a, |x| if x < alpha { alpha } else { x })
        })
    },
];

const ADDS_EPSILON_NAME: &str = "adds_epsilon";

fn sign(x: f64) -> f64 {
    if x > 0.0 {
        1.0
    } else if x < 0.0 {
        -1.0
    } else {
        x
    }
}
