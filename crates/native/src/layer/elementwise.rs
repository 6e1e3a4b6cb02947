//! Arithmetic on pairs of values.

use super::build::*;
use super::{Layer, Param, ParamKind};
use aneforge_mil::op::family::{ROUNDED_ONCE, same_as_x};
use aneforge_mil::op::{Arguments, Case, Constraint, MilOp, OpError, PortSpec, number};
use aneforge_mil::{Array, DType};

const PAIRS: &[&str] = &["Add", "Mult", "Sub", "Min", "Max", "GreaterThan", "LessThan", "Equal", "NotEqual", "Abs"];
const X2: aneforge_mil::op::Given = given(&[1, 1, 1, 2], &[1.0, 5.0]);
const Z2: aneforge_mil::op::Given = given(&[1, 1, 1, 2], &[3.0, -1.0]);

const SAME: Constraint =
    rule("C3", "x and z have the same shape: broadcast one of them first", |a| !a.has("z") || a.shape("x") == a.shape("z"));

/// Arithmetic and comparisons.
pub static ELEMENT_WISE: Layer = Layer {
    bottoms: &[&["x"], &["x", "z"]],
    ..layer(
        MilOp {
            ports: &[x("x"), optional("z", HALF), word("Type")],
            constraints: &[
                FOUR,
                rule(
                    "C2",
                    "Type is Abs of one tensor, or Add, Mult, Sub, Min, Max, GreaterThan, LessThan, Equal or NotEqual of two",
                    |a| is_one_of(a, "Type", PAIRS) && (a.text("Type") == Some("Abs")) != a.has("z"),
                ),
                SAME,
            ],
            arithmetic: ROUNDED_ONCE,
            cases: &[
                Case::new("sums", &[("x", X2), ("z", Z2), ("Type", text("Add"))], &[(&[1, 1, 1, 2], &[4.0, 4.0])], BY_HAND),
                Case::new("differences", &[("x", X2), ("z", Z2), ("Type", text("Sub"))], &[(&[1, 1, 1, 2], &[-2.0, 6.0])], BY_HAND),
                Case::new(
                    "comparisons_give_one_or_zero",
                    &[("x", X2), ("z", Z2), ("Type", text("GreaterThan"))],
                    &[(&[1, 1, 1, 2], &[0.0, 1.0])],
                    BY_HAND,
                ),
                Case::new("magnitude", &[("x", Z2), ("Type", text("Abs"))], &[(&[1, 1, 1, 2], &[3.0, 1.0])], BY_HAND),
            ],
            ..unary("ElementWise", "Arithmetic or a comparison, element by element.", same_as_x, |a| {
                let kind = a.text("Type").unwrap_or_default();
                if kind == "Abs" {
                    return aneforge_mil::op::family::map(a, f64::abs);
                }
                pairs(a, |x, z| paired(kind, x, z))
            })
        },
        &[param("Type", ParamKind::Word(PAIRS))],
    )
};

fn pairs(a: &Arguments<'_>, f: impl Fn(f64, f64) -> f64) -> Result<Vec<Array>, OpError> {
    let (x, z) = (a.array("x")?, a.array("z")?);
    of(vec![x.ty.clone()], x.data.iter().zip(&z.data).map(|(&x, &z)| f(x, z)).collect())
}

fn paired(kind: &str, x: f64, z: f64) -> f64 {
    let truth = |holds: bool| f64::from(u8::from(holds));
    match kind {
        "Add" => x + z,
        "Mult" => x * z,
        "Sub" => x - z,
        "Min" => x.min(z),
        "Max" => x.max(z),
        "GreaterThan" => truth(x > z),
        "LessThan" => truth(x < z),
        "Equal" => truth(x == z),
        _ => truth(x != z),
    }
}

const SCALED: &[&str] = &["Add", "Mult", "Min", "Max"];

/// Arithmetic and a factor.
pub static SCALED_ELEMENT_WISE: Layer = Layer {
    bottoms: X_AND_Z,
    ..layer(
        MilOp {
            ports: &[x("x"), x("z"), word("Type"), half("Scale")],
            constraints: &[
                FOUR,
                rule("C2", "Type is Add, Mult, Min or Max; Sub is refused by the compiler: negate z", |a| {
                    is_one_of(a, "Type", SCALED)
                }),
                SAME,
                rule("C4", "Scale is 1 for Mult, which ignores it: scale one factor before", |a| {
                    a.text("Type") != Some("Mult") || a.number("Scale") == Some(1.0)
                }),
            ],
            arithmetic: LAYER,
            cases: &[Case::new(
                "the_sum_is_scaled",
                &[("x", X2), ("z", Z2), ("Type", text("Add")), ("Scale", number(DType::Fp16, &[0.5]))],
                &[(&[1, 1, 1, 2], &[2.0, 2.0])],
                BY_HAND,
            )],
            ..unary("ScaledElementWise", "Scale times the sum, product, smaller or larger of x and z.", same_as_x, |a| {
                let (kind, scale) = (a.text("Type").unwrap_or_default(), a.number("Scale").unwrap_or(1.0));
                pairs(a, |x, z| scale * paired(kind, x, z))
            })
        },
        &[param("Type", ParamKind::Word(SCALED)), param("Scale", ParamKind::Half)],
    )
};

const AFFINE: &[Param] = &[param("ScaleScalar", ParamKind::Half), param("BiasScalar", ParamKind::Half)];

/// A factor and a summand.
pub static GOC: Layer = layer(
    MilOp {
        ports: &[x("x"), optional_half("ScaleScalar"), optional_half("BiasScalar")],
        constraints: &[FOUR],
        arithmetic: ROUNDED_ONCE,
        cases: &[
            Case::new(
                "scale_then_bias",
                &[("x", X2), ("ScaleScalar", number(DType::Fp16, &[2.0])), ("BiasScalar", number(DType::Fp16, &[1.0]))],
                &[(&[1, 1, 1, 2], &[3.0, 11.0])],
                BY_HAND,
            ),
            Case::new(
                "bias_alone",
                &[("x", X2), ("BiasScalar", number(DType::Fp16, &[3.0]))],
                &[(&[1, 1, 1, 2], &[4.0, 8.0])],
                BY_HAND,
            ),
        ],
        ..unary("GOC", "x * ScaleScalar + BiasScalar; 1 and 0 where they are left out.", same_as_x, |a| {
            let (scale, bias) = (a.number("ScaleScalar").unwrap_or(1.0), a.number("BiasScalar").unwrap_or(0.0));
            aneforge_mil::op::family::map(a, |x| x * scale + bias)
        })
    },
    AFFINE,
);

const DYNAMIC: &[PortSpec] = &[x("x"), optional("scale", HALF), x("bias"), flag("BiasOnly"), optional_word("Type")];

/// A factor and a summand for each channel, both tensors.
pub static DYNAMIC_GOC: Layer = Layer {
    bottoms: &[&["x", "bias"], &["x", "scale", "bias"]],
    ..layer(
        MilOp {
            ports: DYNAMIC,
            constraints: &[
                FOUR,
                rule("C2", "BiasOnly stands where there is no scale, and only there", |a| a.flag("BiasOnly") != a.has("scale")),
                rule("C3", "scale and bias hold one number for each channel: [1, channels, 1, 1]", |a| {
                    let one = [1, extents(a, "x")[1], 1, 1];
                    extents(a, "bias") == one && (!a.has("scale") || extents(a, "scale") == one)
                }),
                rule("C4", "there are 1, 2, 3, 4 or 8 channels (the Python package aneforge 0.4.0)", |a| {
                    matches!(extents(a, "x")[1], 1 | 2 | 3 | 4 | 8)
                }),
                rule("C5", "Type is left out or TERNARY_DYNAMIC_GOC", |a| {
                    !a.has("Type") || is_one_of(a, "Type", &["TERNARY_DYNAMIC_GOC"])
                }),
            ],
            arithmetic: ROUNDED_ONCE,
            cases: &[
                Case::new(
                    "by_channel",
                    &[
                        ("x", given(&[1, 2, 1, 2], &[1.0, 2.0, 3.0, 4.0])),
                        ("scale", given(&[1, 2, 1, 1], &[2.0, 10.0])),
                        ("bias", given(&[1, 2, 1, 1], &[0.5, 1.0])),
                    ],
                    &[(&[1, 2, 1, 2], &[2.5, 4.5, 31.0, 41.0])],
                    BY_HAND,
                ),
                Case::new(
                    "bias_alone",
                    &[
                        ("x", given(&[1, 2, 1, 2], &[1.0, 2.0, 3.0, 4.0])),
                        ("bias", given(&[1, 2, 1, 1], &[0.5, 1.0])),
                        ("BiasOnly", aneforge_mil::op::flag(true)),
                    ],
                    &[(&[1, 2, 1, 2], &[1.5, 2.5, 4.0, 5.0])],
                    BY_HAND,
                ),
            ],
            ..unary("DynamicGOC", "x * scale + bias, channel by channel.", same_as_x, |a| {
                let (x, bias) = (a.array("x")?, a.array("bias")?);
                let scale = a.get("scale").and_then(|scale| scale.value.as_ref());
                let [_, channels, height, width] = extents(a, "x");
                let value = |(index, &x): (usize, &f64)| {
                    let channel = index / (height * width) % channels;
                    x * scale.map_or(1.0, |scale| scale.data[channel]) + bias.data[channel]
                };
                of(vec![x.ty.clone()], x.data.iter().enumerate().map(value).collect())
            })
        },
        &[param("BiasOnly", ParamKind::Flag), param("Type", ParamKind::Word(&["TERNARY_DYNAMIC_GOC"]))],
    )
};
