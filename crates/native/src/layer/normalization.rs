//! Normalisations.

use super::build::*;
use super::{Layer, ParamKind};
use aneforge_mil::op::family::COMPOSED;
use aneforge_mil::op::{Arguments, Case, MilOp, OpError, int, number, values};
use aneforge_mil::{Array, DType};

const SIDES: &[&str] = &["Width", "Height"];

/// Values of a line moved to the interval from 0 to 1.
pub static MIN_MAX_NORMALIZATION: Layer = layer(
    MilOp {
        ports: &[x("x"), word("Dimension"), half("Epsilon")],
        constraints: &[
            FOUR,
            rule("C2", "Dimension is Width or Height: transpose x for channels", |a| is_one_of(a, "Dimension", SIDES)),
            rule("C3", "Epsilon is not negative", |a| a.number("Epsilon").is_some_and(|epsilon| epsilon >= 0.0)),
        ],
        arithmetic: LAYER,
        domain: &[("Epsilon", 0.01, 1.0)],
        cases: &[Case::new(
            "epsilon_is_added_to_the_span",
            &[
                ("x", given(&[1, 1, 1, 3], &[0.0, 1.0, 3.0])),
                ("Dimension", text("Width")),
                ("Epsilon", number(DType::Fp16, &[1.0])),
            ],
            &[(&[1, 1, 1, 3], &[0.0, 0.25, 0.75])],
            BY_HAND,
        )],
        ..unary(
            "MinMaxNormalization",
            "(x - least) / (greatest - least + Epsilon) along an axis.",
            aneforge_mil::op::family::same_as_x,
            |a| {
                let epsilon = a.number("Epsilon").unwrap_or(0.0);
                let line = |line: &[f64]| {
                    let least = line.iter().copied().fold(f64::INFINITY, f64::min);
                    let span = line.iter().copied().fold(f64::NEG_INFINITY, f64::max) - least + epsilon;
                    // Nothing over nothing is indeterminate, which the engine stores as zero.
                    line.iter().map(|value| if span == 0.0 { 0.0 } else { (value - least) / span }).collect()
                };
                Ok(vec![lines(a.array("x")?, named_axis(a, "Dimension").unwrap_or(3), line)])
            },
        )
    },
    &[param("Dimension", ParamKind::Word(SIDES)), param("Epsilon", ParamKind::Half)],
);

/// Division by a power of the energy of all channels.
pub static LOCAL_RESPONSE_NORMALIZATION: Layer = layer(
    MilOp {
        ports: &[
            x("x"),
            word("Type"),
            ints("KernelWidth"),
            ints("KernelHeight"),
            ints("KernelChannel"),
            half("Alpha"),
            real("Beta"),
            real("K"),
        ],
        constraints: &[
            FOUR,
            rule("C2", "Type is Channel, with a KernelWidth and KernelHeight of 1", |a| {
                is_one_of(a, "Type", &["Channel"]) && size(a, "KernelWidth") == 1 && size(a, "KernelHeight") == 1
            }),
            rule("C3", "KernelChannel is the number of channels: only that many are normalised", |a| {
                size(a, "KernelChannel") == extents(a, "x")[1]
            }),
            rule("C4", "there are at most 15 channels: code generation refuses 16 on M1 (arXiv 2606.22283, chapter 26)", |a| {
                extents(a, "x")[1] <= 15
            }),
            rule("C5", "K is positive and Alpha not negative", |a| {
                a.number("K").is_some_and(|k| k > 0.0) && a.number("Alpha").is_some_and(|alpha| alpha >= 0.0)
            }),
        ],
        arithmetic: COMPOSED,
        domain: &[("Alpha", 0.1, 2.0), ("Beta", 0.1, 1.0), ("K", 0.5, 2.0)],
        cases: &[Case::new(
            "the_energy_of_all_channels_counts",
            &[
                ("x", given(&[1, 3, 1, 1], &[1.0, 2.0, 2.0])),
                ("Type", text("Channel")),
                ("KernelWidth", int(&[1.0])),
                ("KernelHeight", int(&[1.0])),
                ("KernelChannel", int(&[3.0])),
                ("Alpha", number(DType::Fp16, &[1.0])),
                ("Beta", values(DType::Fp32, &[], &[0.5])),
                ("K", values(DType::Fp32, &[], &[1.0])),
            ],
            &[(&[1, 3, 1, 1], &[0.5, 1.0, 1.0])],
            BY_HAND,
        )],
        ..unary(
            "LocalResponseNormalization",
            "x / (K + Alpha / KernelChannel * sum of squares over channels)^Beta.",
            aneforge_mil::op::family::same_as_x,
            |a| {
                let number = |port| a.number(port).unwrap_or(0.0);
                let (alpha, beta, k) = (number("Alpha") / number("KernelChannel"), number("Beta"), number("K"));
                let line = |line: &[f64]| {
                    let energy: f64 = line.iter().map(|value| value * value).sum();
                    line.iter().map(|value| value / (k + alpha * energy).powf(beta)).collect()
                };
                Ok(vec![lines(a.array("x")?, 1, line)])
            },
        )
    },
    &[
        param("Type", ParamKind::Word(&["Channel"])),
        param("KernelWidth", ParamKind::Int),
        param("KernelHeight", ParamKind::Int),
        param("KernelChannel", ParamKind::Int),
        param("Alpha", ParamKind::Half),
        param("Beta", ParamKind::Real),
        param("K", ParamKind::Real),
    ],
);

const AXES: &[&str] = &["Width", "Height", "Channel"];

/// Shares along an axis.
pub static SOFTMAX: Layer = layer(
    MilOp {
        ports: &[x("x"), word("Dimension")],
        constraints: &[FOUR, rule("C2", "Dimension is Width, Height or Channel", |a| is_one_of(a, "Dimension", AXES))],
        arithmetic: COMPOSED,
        cases: &[Case::new(
            "equal_values_share_equally",
            &[("x", given(&[1, 1, 1, 4], &[1.0; 4])), ("Dimension", text("Width"))],
            &[(&[1, 1, 1, 4], &[0.25; 4])],
            BY_HAND,
        )],
        ..unary("Softmax", "Exponentials along an axis over their sum.", aneforge_mil::op::family::same_as_x, softmax)
    },
    &[param("Dimension", ParamKind::Word(AXES))],
);

fn softmax(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let line = |line: &[f64]| {
        let largest = line.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let shares: Vec<f64> = line.iter().map(|value| (value - largest).exp()).collect();
        let total: f64 = shares.iter().sum();
        shares.iter().map(|share| share / total).collect()
    };
    Ok(vec![lines(a.array("x")?, named_axis(a, "Dimension").unwrap_or(3), line)])
}
