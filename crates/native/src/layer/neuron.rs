//! Functions of one value.

use super::build::*;
use super::{Layer, ParamKind};
use aneforge_mil::DType;
use aneforge_mil::op::family::{TABLE, map, same_as_x};
use aneforge_mil::op::{Case, MilOp, number};

const FUNCTIONS: &[&str] = &[
    "ReLU",
    "SigmoidHighPrecision",
    "GELU",
    "Tanh",
    "Sqrt",
    "Rsqrt",
    "Exp2",
    "Log2",
    "Inv",
    "Sin",
    "Cos",
    "Ceil",
    "Floor",
    "RoundNearest",
    "ELU",
    "LeakyReLU",
    "ClampedReLU",
];
const X3: aneforge_mil::op::Given = given(&[1, 1, 1, 3], &[-2.0, 0.5, 9.0]);

/// One function, applied element by element.
pub static NEURON: Layer = layer(
    MilOp {
        ports: &[
            x("x"),
            word("Type"),
            optional_half("EluAlpha"),
            optional_half("ReluSlope"),
            optional_half("ReluOffset"),
            optional_half("ReluMin"),
            optional_half("ReluMax"),
        ],
        constraints: &[
            FOUR,
            rule(
                "C2",
                "Type is ReLU, SigmoidHighPrecision, GELU, Tanh, Sqrt, Rsqrt, Exp2, Log2, Inv, Sin, Cos, Ceil, Floor, RoundNearest, ELU, \
                 LeakyReLU or ClampedReLU",
                |a| is_one_of(a, "Type", FUNCTIONS),
            ),
            rule(
                "C3",
                "EluAlpha stands beside ELU, ReluSlope and ReluOffset beside LeakyReLU, ReluMin and ReluMax beside ClampedReLU, and none \
                 elsewhere",
                |a| {
                    let own = [
                        ("ELU", "EluAlpha"),
                        ("LeakyReLU", "ReluSlope"),
                        ("LeakyReLU", "ReluOffset"),
                        ("ClampedReLU", "ReluMin"),
                        ("ClampedReLU", "ReluMax"),
                    ];
                    own.iter().all(|(function, port)| (a.text("Type") == Some(function)) == a.has(port))
                },
            ),
            rule("C4", "ReluOffset is 0: what others move is not published", |a| {
                a.number("ReluOffset").is_none_or(|offset| offset == 0.0)
            }),
            rule("C5", "ReluMin is at most ReluMax", |a| {
                a.number("ReluMin").is_none_or(|least| a.number("ReluMax").is_some_and(|most| least <= most))
            }),
        ],
        arithmetic: TABLE,
        domain: &[("x", 0.25, 2.0), ("ReluMin", -1.0, 0.0), ("ReluMax", 0.5, 1.0)],
        cases: &[
            Case::new("relu", &[("x", X3), ("Type", text("ReLU"))], &[(&[1, 1, 1, 3], &[0.0, 0.5, 9.0])], BY_HAND),
            Case::new(
                "clamped",
                &[
                    ("x", X3),
                    ("Type", text("ClampedReLU")),
                    ("ReluMin", number(DType::Fp16, &[0.0])),
                    ("ReluMax", number(DType::Fp16, &[6.0])),
                ],
                &[(&[1, 1, 1, 3], &[0.0, 0.5, 6.0])],
                BY_HAND,
            ),
            Case::new(
                "leaky",
                &[
                    ("x", X3),
                    ("Type", text("LeakyReLU")),
                    ("ReluSlope", number(DType::Fp16, &[0.125])),
                    ("ReluOffset", number(DType::Fp16, &[0.0])),
                ],
                &[(&[1, 1, 1, 3], &[-0.25, 0.5, 9.0])],
                BY_HAND,
            ),
            Case::new(
                "ties_round_to_even",
                &[("x", given(&[1, 1, 1, 4], &[0.5, 1.5, -0.5, 2.25])), ("Type", text("RoundNearest"))],
                &[(&[1, 1, 1, 4], &[0.0, 2.0, 0.0, 2.0])],
                "numpy.round",
            ),
            Case::new(
                "powers_of_two",
                &[("x", X3), ("Type", text("Exp2"))],
                &[(&[1, 1, 1, 3], &[0.25, std::f64::consts::SQRT_2, 512.0])],
                BY_HAND,
            ),
        ],
        ..unary("Neuron", "A function of each value.", same_as_x, |a| {
            let number = |port: &str| a.number(port).unwrap_or(0.0);
            let (alpha, slope, least, most) = (number("EluAlpha"), number("ReluSlope"), number("ReluMin"), number("ReluMax"));
            match a.text("Type").unwrap_or_default() {
                "SigmoidHighPrecision" => map(a, |x| 1.0 / (1.0 + (-x).exp())),
                "GELU" => map(a, |x| 0.5 * x * (1.0 + libm::erf(x / std::f64::consts::SQRT_2))),
                "Tanh" => map(a, f64::tanh),
                "Sqrt" => map(a, f64::sqrt),
                "Rsqrt" => map(a, |x| 1.0 / x.sqrt()),
                "Exp2" => map(a, f64::exp2),
                "Log2" => map(a, f64::log2),
                "Inv" => map(a, f64::recip),
                "Sin" => map(a, f64::sin),
                "Cos" => map(a, f64::cos),
                "Ceil" => map(a, f64::ceil),
                "Floor" => map(a, f64::floor),
                "RoundNearest" => map(a, f64::round_ties_even),
                "ELU" => map(a, |x| if x < 0.0 { alpha * x.exp_m1() } else { x }),
                "LeakyReLU" => map(a, |x| if x < 0.0 { slope * x } else { x }),
                "ClampedReLU" => map(a, |x| x.max(least).min(most)),
                _ => map(a, |x| x.max(0.0)),
            }
        })
    },
    &[
        param("Type", ParamKind::Word(FUNCTIONS)),
        param("EluAlpha", ParamKind::Half),
        param("ReluSlope", ParamKind::Half),
        param("ReluOffset", ParamKind::Half),
        param("ReluMin", ParamKind::Half),
        param("ReluMax", ParamKind::Half),
    ],
);
