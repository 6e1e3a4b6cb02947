//! Resizing of the last two axes.

use super::family::{base, integers, rule};
use super::general::computed;
use super::sampling::{SAMPLING_MODES, aligned, place};
use super::{
    Arguments, Arithmetic, BOOL, Case, Constraint, Default, FLOATS, MilOp, NUMBERS, OpError, PortSpec, TEXT, constant, flag, given,
    int, ints, native_from, number, sample, tensor, text,
};
use crate::{Array, DType, TensorType};

const FACTORS: &[DType] = &[DType::Int32, DType::Fp32, DType::Fp16];
const DOWN: PortSpec = constant("scale_factor_height", FACTORS, Default::Int(1));
const ACROSS: PortSpec = constant("scale_factor_width", FACTORS, Default::Int(1));
const BY_HAND: &str = "by hand";
const BLENDS: Arithmetic =
    Arithmetic::Modelled("exact blend of four values rounded once; the chips use three different strategies");
const SQUARE: super::Given = given(&[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0]);
const PAIR: super::Given = given(&[1, 1, 2], &[0.0, 10.0]);

const RANK: Constraint = rule("C1", "x has 3 to 5 axes, the last two are resized: reshape x", |a| a.shape("x").len() >= 3);
const POSITIVE: Constraint = rule("C2", "scale factors are finite and leave at least one row and column", |a| {
    ["scale_factor_height", "scale_factor_width"].iter().zip([2, 1]).all(|(port, from_end)| {
        let extent = a.shape("x").len().checked_sub(from_end).map_or(0, |axis| a.shape("x")[axis]);
        a.number(port).is_some_and(|factor| factor.is_finite() && (factor * extent as f64).floor() >= 1.0)
    })
});
const TARGETS: Constraint = rule("C2", "target sizes are positive", |a| {
    ["target_size_height", "target_size_width"].iter().all(|port| a.int(port).is_some_and(|size| size > 0))
});

pub(super) const OPS: &[MilOp] = &[
    MilOp {
        ports: &[tensor("x", FLOATS), DOWN, ACROSS],
        constraints: &[RANK, POSITIVE],
        support: native_from(14),
        tolerance: 0.0,
        cases: &[
            Case::new(
                "every_pixel_twice_across",
                &[("x", SQUARE), ("scale_factor_width", int(&[2.0]))],
                &[(&[1, 1, 2, 4], &[1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0])],
                BY_HAND,
            ),
            Case::oracle(
                "both_axes",
                &[("x", sample(&[2, 3, 2, 3], 1)), ("scale_factor_height", int(&[2.0])), ("scale_factor_width", int(&[3.0]))],
            ),
        ],
        ..base("upsample_nearest_neighbor", "x enlarged by repeating rows and columns.", infer_scaled, |a| {
            let factors = [scale(a, "scale_factor_height"), scale(a, "scale_factor_width")];
            nearest(a, infer_scaled(a)?.remove(0), |axis, place, _, _| place as f64 / factors[axis])
        })
    },
    MilOp {
        ports: &[
            tensor("x", FLOATS),
            DOWN,
            ACROSS,
            constant("align_corners", BOOL, Default::Flag(true)),
            constant("half_pixel_centers", BOOL, Default::Absent),
        ],
        constraints: &[
            RANK,
            POSITIVE,
            rule("C3", "align_corners and half_pixel_centers are not both set", |a| {
                !(a.flag("align_corners") && a.flag("half_pixel_centers"))
            }),
        ],
        arithmetic: BLENDS,
        support: native_from(14),
        cases: &[
            Case::new(
                "corners_stay",
                &[("x", given(&[1, 1, 2], &[0.0, 9.0])), ("scale_factor_width", number(DType::Fp32, &[2.0]))],
                &[(&[1, 1, 4], &[0.0, 3.0, 6.0, 9.0])],
                BY_HAND,
            ),
            Case::new(
                "centres_of_pixels",
                &[("x", PAIR), ("scale_factor_width", number(DType::Fp32, &[2.0])), ("align_corners", flag(false))],
                &[(&[1, 1, 4], &[0.0, 2.5, 7.5, 10.0])],
                BY_HAND,
            ),
            Case::oracle(
                "both_axes",
                &[
                    ("x", sample(&[1, 2, 3, 4], 1)),
                    ("scale_factor_height", number(DType::Fp32, &[2.0])),
                    ("scale_factor_width", number(DType::Fp32, &[3.0])),
                    ("align_corners", flag(false)),
                ],
            ),
        ],
        ..base("upsample_bilinear", "x enlarged by blending neighbours.", infer_scaled, |a| {
            let factors = [scale(a, "scale_factor_height"), scale(a, "scale_factor_width")];
            let corners = a.flag("align_corners");
            let centres = if a.has("half_pixel_centers") { a.flag("half_pixel_centers") } else { !corners };
            bilinear(a, infer_scaled(a)?.remove(0), |axis, place, from, to| match (corners, centres) {
                (true, _) => aligned(place, from as f64, to),
                (false, true) => (place as f64 + 0.5) / factors[axis] - 0.5,
                (false, false) => place as f64 / factors[axis],
            })
        })
    },
    MilOp {
        ports: &[
            tensor("x", FLOATS),
            integers("target_size_height", Default::Required),
            integers("target_size_width", Default::Required),
        ],
        constraints: &[RANK, TARGETS],
        support: native_from(14),
        tolerance: 0.0,
        cases: &[Case::new(
            "floor_of_the_scaled_place",
            &[("x", given(&[1, 1, 3], &[1.0, 2.0, 3.0])), ("target_size_height", int(&[1.0])), ("target_size_width", int(&[5.0]))],
            &[(&[1, 1, 5], &[1.0, 1.0, 2.0, 2.0, 3.0])],
            BY_HAND,
        )],
        ..base("resize_nearest_neighbor", "x at another size, each pixel from the one before its place.", infer_target, |a| {
            nearest(a, infer_target(a)?.remove(0), |_, place, from, to| (place * from) as f64 / to as f64)
        })
    },
    MilOp {
        ports: &[
            tensor("x", FLOATS),
            integers("target_size_height", Default::Int(1)),
            integers("target_size_width", Default::Int(1)),
            constant("sampling_mode", TEXT, Default::Text("DEFAULT")),
        ],
        constraints: &[
            RANK,
            TARGETS,
            rule("C3", "sampling_mode is DEFAULT, STRICT_ALIGN_CORNERS, ALIGN_CORNERS, OFFSET_CORNERS or UNALIGN_CORNERS", |a| {
                a.text("sampling_mode").is_some_and(|mode| SAMPLING_MODES.contains(&mode))
            }),
        ],
        arithmetic: BLENDS,
        support: native_from(14),
        cases: &[
            Case::new(
                "asymmetric_by_default",
                &[("x", PAIR), ("target_size_width", int(&[5.0]))],
                &[(&[1, 1, 5], &[0.0, 4.0, 8.0, 10.0, 10.0])],
                "coremltools 9.0, documentation of resize_bilinear",
            ),
            Case::new(
                "aligned_corners",
                &[("x", PAIR), ("target_size_width", int(&[5.0])), ("sampling_mode", text("STRICT_ALIGN_CORNERS"))],
                &[(&[1, 1, 5], &[0.0, 2.5, 5.0, 7.5, 10.0])],
                "coremltools 9.0, documentation of resize_bilinear",
            ),
            Case::new(
                "offset_corners",
                &[("x", PAIR), ("target_size_width", int(&[5.0])), ("sampling_mode", text("OFFSET_CORNERS"))],
                &[(&[1, 1, 5], &[1.0, 3.0, 5.0, 7.0, 9.0])],
                "coremltools 9.0, documentation of resize_bilinear",
            ),
            Case::new(
                "unaligned_corners",
                &[("x", PAIR), ("target_size_width", int(&[5.0])), ("sampling_mode", text("UNALIGN_CORNERS"))],
                &[(&[1, 1, 5], &[0.0, 1.0, 5.0, 9.0, 10.0])],
                "coremltools 9.0, documentation of resize_bilinear",
            ),
        ],
        ..base("resize_bilinear", "x at another size by blending neighbours.", infer_target, |a| {
            let mode = a.text("sampling_mode");
            bilinear(a, infer_target(a)?.remove(0), |_, index, from, to| place(mode, index, from as f64, to))
        })
    },
    MilOp {
        opset: "ios17",
        ports: &[
            tensor("x", NUMBERS),
            integers("shape", Default::Required),
            integers("resized_dims", Default::Required),
            constant("interpolation_mode", TEXT, Default::Text("LINEAR")),
            constant("sampling_mode", TEXT, Default::Text("DEFAULT")),
        ],
        constraints: &[
            rule("C1", "shape is a vector of at most as many integers as x has axes, positive, or 0 to keep an extent", |a| {
                let fits = |shape: Vec<i64>| shape.len() <= a.shape("x").len() && shape.iter().all(|&extent| extent >= 0);
                a.shape("shape").len() == 1 && a.ints("shape").is_some_and(fits)
            }),
            rule(
                "C2",
                "resized_dims is 1 or 2 and not more than shape has integers: resize further axes one after the other",
                |a| {
                    let given = a.ints("shape").map_or(0, |shape| shape.len() as i64);
                    a.int("resized_dims").is_some_and(|resized| (1..=2).contains(&resized) && resized <= given)
                },
            ),
            rule("C3", "interpolation_mode is LINEAR or NEAREST_NEIGHBOR", |a| {
                matches!(a.text("interpolation_mode"), Some("LINEAR" | "NEAREST_NEIGHBOR"))
            }),
            rule("C4", "sampling_mode is DEFAULT, STRICT_ALIGN_CORNERS, ALIGN_CORNERS, OFFSET_CORNERS or UNALIGN_CORNERS", |a| {
                a.text("sampling_mode").is_some_and(|mode| SAMPLING_MODES.contains(&mode))
            }),
        ],
        arithmetic: BLENDS,
        support: native_from(14),
        cases: &[
            Case::new(
                "one_axis_aligned",
                &[
                    ("x", PAIR),
                    ("shape", ints(&[1], &[5.0])),
                    ("resized_dims", number(DType::UInt32, &[1.0])),
                    ("sampling_mode", text("ALIGN_CORNERS")),
                ],
                &[(&[1, 1, 5], &[0.0, 2.5, 5.0, 7.5, 10.0])],
                BY_HAND,
            ),
            Case::new(
                "zero_keeps_an_extent",
                &[
                    ("x", SQUARE),
                    ("shape", ints(&[3], &[7.0, 4.0, 0.0])),
                    ("resized_dims", number(DType::UInt32, &[2.0])),
                    ("interpolation_mode", text("NEAREST_NEIGHBOR")),
                ],
                &[(&[1, 1, 4, 2], &[1.0, 2.0, 1.0, 2.0, 3.0, 4.0, 3.0, 4.0])],
                BY_HAND,
            ),
        ],
        ..base(
            "resize",
            "x with its last axes at another size, by blending neighbours or taking the one before.",
            infer_resize,
            |a| {
                let mode = a.text("sampling_mode");
                // A vector is a plane of one row.
                let ty = infer_resize(a)?.remove(0);
                match a.text("interpolation_mode") {
                    Some("NEAREST_NEIGHBOR") => nearest(a, ty, |_, index, from, to| place(mode, index, from as f64, to)),
                    _ => bilinear(a, ty, |_, index, from, to| place(mode, index, from as f64, to)),
                }
            },
        )
    },
];

fn scale(a: &Arguments<'_>, port: &str) -> f64 {
    a.number(port).unwrap_or(1.0)
}

fn resized(a: &Arguments<'_>, height: impl Fn(usize) -> i128, width: impl Fn(usize) -> i128) -> Result<Vec<TensorType>, OpError> {
    let x = a.ty("x")?;
    let mut shape: Vec<_> = x.shape.iter().map(|&extent| extent as i128).collect();
    if let [.., rows, columns] = shape.as_mut_slice() {
        (*rows, *columns) = (height(*rows as usize), width(*columns as usize));
    }
    computed(a, x.dtype, shape)
}

fn infer_scaled(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let by = |port, extent| (scale(a, port) * extent as f64).floor() as i128;
    resized(a, |rows| by("scale_factor_height", rows), |columns| by("scale_factor_width", columns))
}

fn infer_target(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let to = |port| a.int(port).unwrap_or(0).into();
    resized(a, |_| to("target_size_height"), |_| to("target_size_width"))
}

fn infer_resize(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let x = a.ty("x")?;
    let wanted = a.ints("shape").unwrap_or_default();
    let resized = a.int("resized_dims").and_then(|resized| usize::try_from(resized).ok()).unwrap_or(0);
    let mut shape: Vec<_> = x.shape.iter().map(|&extent| extent as i128).collect();
    for (extent, &wanted) in shape.iter_mut().rev().zip(wanted.iter().rev()).take(resized).filter(|(_, wanted)| **wanted != 0) {
        *extent = wanted.into();
    }
    computed(a, x.dtype, shape)
}

/// Extents of the last two axes; a vector is one row.
fn plane(ty: &TensorType) -> [usize; 2] {
    match *ty.shape {
        [.., rows, columns] => [rows, columns],
        [columns] => [1, columns],
        [] => [1, 1],
    }
}

/// Values at the floor of a place, kept within the plane. `place(axis, index, from, to)` gives it.
fn nearest(a: &Arguments<'_>, ty: TensorType, place: impl Fn(usize, usize, usize, usize) -> f64) -> Result<Vec<Array>, OpError> {
    let x = a.array("x")?;
    let (from, to) = (plane(&x.ty), plane(&ty));
    let at = |axis: usize, index: usize| (place(axis, index, from[axis], to[axis]).max(0.0) as usize).min(from[axis] - 1);
    let mut data = Vec::with_capacity(ty.count());
    for plane in x.data.chunks(from[0] * from[1]) {
        for row in 0..to[0] {
            let row = at(0, row) * from[1];
            data.extend((0..to[1]).map(|column| plane[row + at(1, column)]));
        }
    }
    Ok(vec![Array { ty, data }])
}

/// Values blended from the four around a place that is kept within the plane.
fn bilinear(a: &Arguments<'_>, ty: TensorType, place: impl Fn(usize, usize, usize, usize) -> f64) -> Result<Vec<Array>, OpError> {
    let x = a.array("x")?;
    let (from, to) = (plane(&x.ty), plane(&ty));
    let between = |axis: usize, index: usize| {
        let last = (from[axis] - 1) as f64;
        let at = place(axis, index, from[axis], to[axis]).clamp(0.0, last);
        let low = at.floor();
        (low as usize, (low + 1.0).min(last) as usize, at - low)
    };
    let mut data = Vec::with_capacity(ty.count());
    for plane in x.data.chunks(from[0] * from[1]) {
        for row in 0..to[0] {
            let (above, below, down) = between(0, row);
            for column in 0..to[1] {
                let (left, right, across) = between(1, column);
                let blend = |row: usize| plane[row * from[1] + left] * (1.0 - across) + plane[row * from[1] + right] * across;
                data.push(blend(above) * (1.0 - down) + blend(below) * down);
            }
        }
    }
    Ok(vec![Array { ty, data }])
}
