//! Pools.

use super::family::{COMPOSED, PICKS, REDUCED, base, integers, rule};
use super::general::result;
use super::window::{self, Axis};
use super::{
    ALL_FAMILIES, Arguments, BOOL, Case, Constraint, Default, FLOATS, MilOp, OpError, PortSpec, TEXT, constant, flag, given, ints,
    sample, tensor, text,
};
use crate::{Array, TensorType};

const PORTS: &[PortSpec] = &[
    tensor("x", FLOATS),
    integers("kernel_sizes", Default::Required),
    integers("strides", Default::Absent),
    constant("pad_type", TEXT, Default::Required),
    integers("pad", Default::Absent),
    constant("ceil_mode", BOOL, Default::Flag(false)),
];
const AVERAGE_PORTS: &[PortSpec] = &[
    tensor("x", FLOATS),
    integers("kernel_sizes", Default::Required),
    integers("strides", Default::Absent),
    constant("pad_type", TEXT, Default::Required),
    integers("pad", Default::Absent),
    constant("exclude_padding_from_average", BOOL, Default::Flag(false)),
    constant("ceil_mode", BOOL, Default::Flag(false)),
];

const RULES: &[Constraint] = &[
    rule("C1", "x has 3 to 5 axes [batch, channels, spatial...]: reshape x", |a| a.shape("x").len() >= 3),
    rule("C2", "kernel_sizes and strides have one positive integer per spatial axis, pad two that are not negative", |a| {
        window::well_formed(a, a.shape("x").len().saturating_sub(2))
    }),
    rule("C3", "pad_type is valid, custom, same or same_lower", window::pad_type_known),
    rule("C4", "the window fits into the padded input: shrink it or add padding", |a| axes(a).is_some()),
    rule("C5", "padding is smaller than the window, so that every window sees the input", |a| {
        axes(a).is_none_or(|axes| axes.iter().all(|axis| axis.before < axis.kernel && axis.after < axis.kernel))
    }),
    rule("C6", "ceil_mode goes with one or two spatial axes, equal padding on both sides, and not with pad_type same", |a| {
        let even = axes(a).is_none_or(|axes| axes.len() <= 2 && axes.iter().all(|axis| axis.before == axis.after));
        !a.flag("ceil_mode") || (even && matches!(a.text("pad_type"), Some("valid" | "custom")))
    }),
];

const RAMP: super::Given =
    given(&[1, 1, 4, 4], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0]);
const TWO: super::Given = ints(&[2], &[2.0, 2.0]);
const THREE: super::Given = ints(&[2], &[3.0, 3.0]);
const AROUND: super::Given = ints(&[4], &[1.0, 1.0, 1.0, 1.0]);

pub(super) const OPS: &[MilOp] = &[
    MilOp {
        ports: PORTS,
        constraints: RULES,
        arithmetic: PICKS,
        published_error: Some(0.0),
        tolerance: 0.0,
        cases: &[
            Case::new(
                "quarters_of_a_ramp",
                &[("x", RAMP), ("kernel_sizes", TWO), ("strides", TWO), ("pad_type", text("valid"))],
                &[(&[1, 1, 2, 2], &[6.0, 8.0, 14.0, 16.0])],
                "by hand",
            ),
            Case::new(
                "padding_never_wins",
                &[
                    ("x", given(&[1, 1, 1, 2], &[-3.0, -5.0])),
                    ("kernel_sizes", THREE),
                    ("pad_type", text("custom")),
                    ("pad", AROUND),
                ],
                &[(&[1, 1, 1, 2], &[-3.0, -3.0])],
                "by hand",
            ),
            Case::oracle(
                "ceil_mode_adds_a_column",
                &[
                    ("x", sample(&[1, 3, 6, 7], 1)),
                    ("kernel_sizes", THREE),
                    ("strides", TWO),
                    ("pad_type", text("custom")),
                    ("pad", AROUND),
                    ("ceil_mode", flag(true)),
                ],
            ),
            Case::oracle(
                "stem_of_a_residual_network",
                &[
                    ("x", sample(&[1, 4, 8, 8], 2)),
                    ("kernel_sizes", THREE),
                    ("strides", TWO),
                    ("pad_type", text("custom")),
                    ("pad", AROUND),
                ],
            ),
        ],
        ..base("max_pool", "The largest value under a sliding window.", infer, |a| {
            pool(a, |window, _| window.iter().copied().fold(f64::NEG_INFINITY, f64::max))
        })
    },
    MilOp {
        ports: AVERAGE_PORTS,
        constraints: RULES,
        arithmetic: REDUCED,
        cases: &[
            Case::new(
                "quarters_of_a_ramp",
                &[("x", RAMP), ("kernel_sizes", TWO), ("strides", TWO), ("pad_type", text("valid"))],
                &[(&[1, 1, 2, 2], &[3.5, 5.5, 11.5, 13.5])],
                "by hand",
            ),
            Case::new(
                "padding_counts_by_default",
                &[
                    ("x", given(&[1, 1, 1, 2], &[9.0, 18.0])),
                    ("kernel_sizes", THREE),
                    ("pad_type", text("custom")),
                    ("pad", AROUND),
                ],
                &[(&[1, 1, 1, 2], &[3.0, 3.0])],
                "by hand",
            ),
            Case::new(
                "padding_left_out_on_request",
                &[
                    ("x", given(&[1, 1, 1, 2], &[9.0, 18.0])),
                    ("kernel_sizes", THREE),
                    ("pad_type", text("custom")),
                    ("pad", AROUND),
                    ("exclude_padding_from_average", flag(true)),
                ],
                &[(&[1, 1, 1, 2], &[13.5, 13.5])],
                "by hand",
            ),
            Case::oracle(
                "ceil_mode_counts_what_padding_there_is",
                &[
                    ("x", sample(&[1, 2, 6, 7], 3)),
                    ("kernel_sizes", THREE),
                    ("strides", TWO),
                    ("pad_type", text("custom")),
                    ("pad", AROUND),
                    ("ceil_mode", flag(true)),
                ],
            ),
        ],
        support: ALL_FAMILIES.limited("windows of at most 29 on the M1, 31 from the M2 on"),
        ..base("avg_pool", "The mean under a sliding window.", infer, |a| {
            pool(a, |window, count| window.iter().sum::<f64>() / count)
        })
    },
    MilOp {
        ports: PORTS,
        constraints: RULES,
        arithmetic: COMPOSED,
        cases: &[Case::new(
            "root_of_the_sum_of_squares",
            &[
                ("x", given(&[1, 1, 1, 4], &[3.0, 4.0, 5.0, 12.0])),
                ("kernel_sizes", ints(&[2], &[1.0, 2.0])),
                ("strides", TWO),
                ("pad_type", text("valid")),
            ],
            &[(&[1, 1, 1, 2], &[5.0, 13.0])],
            "by hand",
        )],
        ..base("l2_pool", "The root of the sum of squares under a sliding window.", infer, |a| {
            pool(a, |window, _| window.iter().map(|x| x * x).sum::<f64>().sqrt())
        })
    },
];

fn axes(a: &Arguments<'_>) -> Option<Vec<Axis>> {
    let kernel: Option<Vec<_>> = a.ints("kernel_sizes")?.into_iter().map(|size| usize::try_from(size).ok()).collect();
    window::axes(a, a.shape("x").get(2..)?, &kernel?)
}

fn infer(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let x = a.ty("x")?;
    let mut shape = x.shape.get(..2).unwrap_or(&[0]).to_vec();
    shape.extend(axes(a).unwrap_or_default().iter().map(|axis| axis.output));
    result(a, x.dtype, shape)
}

/// `f` of the values under the window and of the number that an average divides by.
fn pool(a: &Arguments<'_>, f: impl Fn(&[f64], f64) -> f64) -> Result<Vec<Array>, OpError> {
    let x = a.array("x")?;
    let ty = infer(a)?.remove(0);
    let three = window::three(&axes(a).unwrap_or_default());
    let [depth, height, width] = three;
    let plane = depth.input * height.input * width.input;
    let exclude = a.flag("exclude_padding_from_average");
    let mut data = Vec::with_capacity(ty.count());
    let mut values = Vec::new();
    for plane in x.data.chunks_exact(plane) {
        for z in 0..depth.output {
            for y in 0..height.output {
                for column in 0..width.output {
                    values.clear();
                    let ranges = [seen(&depth, z), seen(&height, y), seen(&width, column)];
                    for deep in ranges[0].0..ranges[0].1 {
                        for down in ranges[1].0..ranges[1].1 {
                            let row = (deep * height.input + down) * width.input;
                            values.extend_from_slice(&plane[row + ranges[2].0..row + ranges[2].1]);
                        }
                    }
                    let padded = counted(&depth, z) * counted(&height, y) * counted(&width, column);
                    data.push(f(&values, if exclude { values.len() } else { padded } as f64));
                }
            }
        }
    }
    Ok(vec![Array { ty, data }])
}

/// Elements of the input that a window sees, as a half-open range.
fn seen(axis: &Axis, position: usize) -> (usize, usize) {
    let start = position * axis.stride;
    (start.saturating_sub(axis.before), (start + axis.kernel).saturating_sub(axis.before).min(axis.input))
}

/// Extent of a window, padding included, as far as the padded input goes.
fn counted(axis: &Axis, position: usize) -> usize {
    let start = position * axis.stride;
    (start + axis.kernel).min(axis.input + axis.before + axis.after) - start
}
