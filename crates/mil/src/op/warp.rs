//! Images looked at in other places: affine transforms, free sampling, crops of boxes.

use super::family::{base, integers, or, rule};
use super::general::{computed, result};
use super::sampling::{SAMPLING_MODES, blend, mirrored, pixel, place};
use super::{
    Arguments, Arithmetic, BOOL, Case, Constraint, Default, FLOATS, MilOp, NUMBERS, OpError, PortSpec, TEXT, constant, flag, float,
    gated_before, given, int, number, optional, sample, tensor, text, values,
};
use crate::{Array, DType, TensorType};

const BY_HAND: &str = "by hand";
const BLENDS: Arithmetic = Arithmetic::Modelled("exact blend of four values rounded once; nothing is published");
const IMAGE: super::Given = given(&[1, 1, 2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
const ROW: super::Given = given(&[1, 1, 1, 3], &[1.0, 2.0, 3.0]);
const BOX_MODES: &[&str] = &["CORNERS_HEIGHT_FIRST", "CORNERS_WIDTH_FIRST", "CENTER_SIZE_HEIGHT_FIRST", "CENTER_SIZE_WIDTH_FIRST"];
/// Element types of boxes and of the numbers of their images.
const BOXES: &[DType] = &[DType::Fp16, DType::Fp32, DType::UInt16];
/// Float types, the one that Core ML takes first.
const SINGLES: &[DType] = &[DType::Fp32, DType::Fp16];
const BOX_INDICES: &[DType] = &[DType::Int32, DType::UInt16];

const RANK: Constraint = rule("C1", "x has shape [batch, channels, height, width]: reshape x", |a| a.shape("x").len() == 4);

const SAMPLING_MODE: PortSpec = constant("sampling_mode", TEXT, Default::Required);
const PADDING_MODE: PortSpec = constant("padding_mode", TEXT, Default::Required);
const PADDING_VALUE: PortSpec = constant("padding_value", FLOATS, Default::Required);
const COORDINATES_MODE: PortSpec = constant("coordinates_mode", TEXT, Default::Required);
const ALIGN_CORNERS: PortSpec = constant("align_corners", BOOL, Default::Required);

pub(super) const OPS: &[MilOp] = &[
    MilOp {
        ports: &[
            tensor("x", FLOATS),
            tensor("transform_matrix", FLOATS),
            integers("output_height", Default::Required),
            integers("output_width", Default::Required),
            SAMPLING_MODE,
            PADDING_MODE,
            PADDING_VALUE,
            COORDINATES_MODE,
            ALIGN_CORNERS,
        ],
        constraints: &[
            RANK,
            rule("C2", "transform_matrix has shape [batch, 6] or [1, 6]", |a| {
                let batch = a.shape("x").first().copied().unwrap_or(1);
                matches!(*a.shape("transform_matrix"), [rows, 6] if rows == 1 || rows == batch)
            }),
            rule("C3", "output_height and output_width are positive", |a| {
                ["output_height", "output_width"].iter().all(|port| a.int(port).is_some_and(|extent| extent > 0))
            }),
            rule(
                "C4",
                "sampling is bilinear, padding constant 0, coordinates normalized_minus_one_to_one with aligned corners",
                |a| {
                    a.text("sampling_mode") == Some("bilinear")
                        && a.text("padding_mode") == Some("constant")
                        && a.number("padding_value") == Some(0.0)
                        && a.text("coordinates_mode") == Some("normalized_minus_one_to_one")
                        && a.flag("align_corners")
                },
            ),
        ],
        arithmetic: BLENDS,
        support: gated_before(14),
        domain: &[("transform_matrix", -1.0, 1.0)],
        cases: &[
            Case::new(
                "half_a_pixel_to_the_right",
                &[
                    ("x", ROW),
                    ("transform_matrix", given(&[1, 6], &[1.0, 0.0, 0.5, 0.0, 1.0, 0.0])),
                    ("output_height", int(&[1.0])),
                    ("output_width", int(&[3.0])),
                    ("sampling_mode", text("bilinear")),
                    ("padding_mode", text("constant")),
                    ("padding_value", float(&[0.0])),
                    ("coordinates_mode", text("normalized_minus_one_to_one")),
                    ("align_corners", flag(true)),
                ],
                &[(&[1, 1, 1, 3], &[1.5, 2.5, 1.5])],
                BY_HAND,
            ),
            Case::oracle(
                "one_matrix_per_image",
                &[
                    ("x", sample(&[2, 3, 5, 4], 1)),
                    ("transform_matrix", sample(&[2, 6], 2)),
                    ("output_height", int(&[6.0])),
                    ("output_width", int(&[3.0])),
                    ("sampling_mode", text("bilinear")),
                    ("padding_mode", text("constant")),
                    ("padding_value", float(&[0.0])),
                    ("coordinates_mode", text("normalized_minus_one_to_one")),
                    ("align_corners", flag(true)),
                ],
            ),
        ],
        ..base(
            "affine",
            "x seen through the affine map [a0, a1, a2, b0, b1, b2] of output coordinates (x, y) to input coordinates.",
            infer_affine,
            affine,
        )
    },
    MilOp {
        ports: &[
            tensor("x", FLOATS),
            tensor("coordinates", NUMBERS),
            SAMPLING_MODE,
            PADDING_MODE,
            PADDING_VALUE,
            COORDINATES_MODE,
            ALIGN_CORNERS,
        ],
        constraints: &[
            RANK,
            rule(
                "C2",
                "coordinates have shape [batch, height, width, 2], (x, y) last",
                |a| matches!(*a.shape("coordinates"), [batch, _, _, 2] if a.shape("x").first() == Some(&batch)),
            ),
            rule("C3", "sampling_mode is bilinear or nearest", |a| matches!(a.text("sampling_mode"), Some("bilinear" | "nearest"))),
            rule("C4", "padding_mode is constant, border, reflection or symmetric", |a| {
                matches!(a.text("padding_mode"), Some("constant" | "border" | "reflection" | "symmetric"))
            }),
            rule("C5", "coordinates_mode is unnormalized, normalized_minus_one_to_one or normalized_zero_to_one", |a| {
                matches!(
                    a.text("coordinates_mode"),
                    Some("unnormalized" | "normalized_minus_one_to_one" | "normalized_zero_to_one")
                )
            }),
        ],
        arithmetic: BLENDS,
        support: gated_before(14),
        cases: &[
            Case::new(
                "between_two_pixels_and_outside",
                &[
                    ("x", ROW),
                    ("coordinates", given(&[1, 1, 3, 2], &[0.5, 0.0, 2.0, 0.0, 4.0, 0.0])),
                    ("sampling_mode", text("bilinear")),
                    ("padding_mode", text("constant")),
                    ("padding_value", float(&[9.0])),
                    ("coordinates_mode", text("unnormalized")),
                    ("align_corners", flag(true)),
                ],
                &[(&[1, 1, 1, 3], &[1.5, 3.0, 9.0])],
                BY_HAND,
            ),
            Case::new(
                "mirrored_with_the_edge",
                &[
                    ("x", ROW),
                    ("coordinates", given(&[1, 1, 3, 2], &[-1.0, 0.0, 3.0, 0.0, 5.0, 0.0])),
                    ("sampling_mode", text("nearest")),
                    ("padding_mode", text("symmetric")),
                    ("padding_value", float(&[0.0])),
                    ("coordinates_mode", text("unnormalized")),
                    ("align_corners", flag(true)),
                ],
                &[(&[1, 1, 1, 3], &[1.0, 3.0, 1.0])],
                "coremltools 9.0, documentation of resample",
            ),
            Case::oracle(
                "reflected_normalized",
                &[
                    ("x", sample(&[2, 3, 4, 5], 1)),
                    ("coordinates", sample(&[2, 3, 6, 2], 2)),
                    ("sampling_mode", text("bilinear")),
                    ("padding_mode", text("reflection")),
                    ("padding_value", float(&[0.0])),
                    ("coordinates_mode", text("normalized_minus_one_to_one")),
                    ("align_corners", flag(true)),
                ],
            ),
            Case::oracle(
                "edges_of_corner_pixels",
                &[
                    ("x", sample(&[1, 2, 4, 5], 3)),
                    ("coordinates", sample(&[1, 7, 2, 2], 4)),
                    ("sampling_mode", text("bilinear")),
                    ("padding_mode", text("border")),
                    ("padding_value", float(&[0.0])),
                    ("coordinates_mode", text("normalized_minus_one_to_one")),
                    ("align_corners", flag(false)),
                ],
            ),
        ],
        ..base(
            "resample",
            "x seen at the given places, (x, y) each.",
            |a| {
                let (x, at) = (a.shape("x"), a.shape("coordinates"));
                let extent = |shape: &[usize], axis: usize| shape.get(axis).copied().unwrap_or(0);
                result(a, a.ty("x")?.dtype, vec![extent(x, 0), extent(x, 1), extent(at, 1), extent(at, 2)])
            },
            resample,
        )
    },
    MilOp {
        opset: "ios17",
        ports: &[
            tensor("x", FLOATS),
            tensor("boxes", BOXES),
            optional("box_indices", BOX_INDICES),
            integers("target_height", Default::Int(1)),
            integers("target_width", Default::Int(1)),
            constant("normalized_coordinates", BOOL, Default::Flag(false)),
            constant("spatial_scale", SINGLES, Default::Float(1.0)),
            constant("box_coordinate_mode", TEXT, Default::Text("CORNERS_HEIGHT_FIRST")),
            constant("sampling_mode", TEXT, Default::Text("DEFAULT")),
            or("pad_value", 0.0),
        ],
        constraints: &[
            RANK,
            rule("C2", "boxes have shape [boxes, 4], and are floats where coordinates are normalized", |a| {
                let float = a.get("boxes").is_none_or(|boxes| boxes.ty.dtype.is_float());
                matches!(*a.shape("boxes"), [_, 4]) && (float || !a.flag("normalized_coordinates"))
            }),
            rule("C3", "box_indices name one image of x per box; without them there are at most as many boxes as images", |a| {
                let (images, boxes) = (a.shape("x").first().copied().unwrap_or(0), a.shape("boxes").first().copied().unwrap_or(0));
                let known = a.get("box_indices").and_then(|indices| indices.value.as_ref());
                let exist = known.is_none_or(|known| known.data.iter().all(|&index| index >= 0.0 && index < images as f64));
                if a.has("box_indices") { a.shape("box_indices") == [boxes] && exist } else { boxes <= images }
            }),
            rule("C4", "target_height and target_width are positive", |a| {
                ["target_height", "target_width"].iter().all(|port| a.int(port).is_some_and(|extent| extent > 0))
            }),
            rule("C5", "box_coordinate_mode is CORNERS_ or CENTER_SIZE_ followed by HEIGHT_FIRST or WIDTH_FIRST", |a| {
                a.text("box_coordinate_mode").is_some_and(|mode| BOX_MODES.contains(&mode))
            }),
            rule("C6", "sampling_mode is DEFAULT, STRICT_ALIGN_CORNERS, ALIGN_CORNERS, OFFSET_CORNERS or UNALIGN_CORNERS", |a| {
                a.text("sampling_mode").is_some_and(|mode| SAMPLING_MODES.contains(&mode))
            }),
        ],
        arithmetic: BLENDS,
        support: gated_before(14),
        domain: &[("boxes", 0.0, 1.0), ("box_indices", 0.0, 0.4)],
        cases: &[
            Case::new(
                "the_right_half_enlarged",
                &[
                    ("x", IMAGE),
                    ("boxes", given(&[1, 4], &[0.0, 1.0, 1.0, 2.0])),
                    ("target_height", int(&[2.0])),
                    ("target_width", int(&[3.0])),
                    ("sampling_mode", text("ALIGN_CORNERS")),
                ],
                &[(&[1, 1, 2, 3], &[2.0, 2.5, 3.0, 5.0, 5.5, 6.0])],
                BY_HAND,
            ),
            Case::new(
                "beyond_the_border_by_centre_and_size",
                &[
                    ("x", ROW),
                    ("boxes", given(&[1, 4], &[1.0, 0.0, 2.0, 0.0])),
                    ("box_indices", values(DType::Int32, &[1], &[0.0])),
                    ("target_width", int(&[3.0])),
                    ("normalized_coordinates", flag(true)),
                    ("spatial_scale", number(DType::Fp32, &[1.0])),
                    ("box_coordinate_mode", text("CENTER_SIZE_WIDTH_FIRST")),
                    ("sampling_mode", text("STRICT_ALIGN_CORNERS")),
                    ("pad_value", float(&[-1.0])),
                ],
                &[(&[1, 1, 1, 3], &[1.0, 3.0, -1.0])],
                BY_HAND,
            ),
        ],
        ..base(
            "crop_resize",
            "One box of an image of x per row of boxes, resized to the target by blending neighbours; pad_value stands outside.",
            infer_crop_resize,
            crop_resize,
        )
    },
];

/// The last two extents of an image.
fn plane(x: &TensorType) -> [usize; 2] {
    x.shape.last_chunk::<2>().copied().unwrap_or([1, 1])
}

fn infer_affine(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let x = a.ty("x")?;
    let lead = |axis: usize| x.shape.get(axis).copied().unwrap_or(0) as i128;
    let target = |port| i128::from(a.int(port).unwrap_or(0));
    computed(a, x.dtype, vec![lead(0), lead(1), target("output_height"), target("output_width")])
}

fn affine(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let (x, matrix) = (a.array("x")?, a.array("transform_matrix")?);
    let ty = infer_affine(a)?.remove(0);
    let ([rows, columns], [height, width]) = (plane(&x.ty), plane(&ty));
    // Corners are aligned: -1 is the first pixel's centre and 1 the last one's.
    let normal = |index: usize, extent: usize| if extent == 1 { 0.0 } else { 2.0 * index as f64 / (extent as f64 - 1.0) - 1.0 };
    let into = |at: f64, extent: usize| (at + 1.0) / 2.0 * (extent as f64 - 1.0);
    let mut data = Vec::with_capacity(ty.count());
    for (index, image) in x.data.chunks(rows * columns).enumerate() {
        let batch = if matrix.data.len() == 6 { 0 } else { index / ty.shape[1] };
        let m = &matrix.data[6 * batch..][..6];
        for row in 0..height {
            for column in 0..width {
                let (u, v) = (normal(column, width), normal(row, height));
                let (across, down) = (into(m[0] * u + m[1] * v + m[2], columns), into(m[3] * u + m[4] * v + m[5], rows));
                data.push(blend(image, [rows, columns], down, across, 0.0));
            }
        }
    }
    Ok(vec![Array { ty, data }])
}

fn resample(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let (x, at) = (a.array("x")?, a.array("coordinates")?);
    let (coordinates, padding, corners) = (a.text("coordinates_mode"), a.text("padding_mode"), a.flag("align_corners"));
    let nearest = a.text("sampling_mode") == Some("nearest");
    let outside = if padding == Some("constant") { a.number("padding_value").unwrap_or(0.0) } else { 0.0 };
    let place = |at: f64, extent: usize| {
        let extent = extent as f64;
        let unit = match coordinates {
            Some("normalized_minus_one_to_one") => Some((at + 1.0) / 2.0),
            Some("normalized_zero_to_one") => Some(at),
            _ => None,
        };
        let pixel = unit.map_or(at, |unit| if corners { unit * (extent - 1.0) } else { unit * extent - 0.5 });
        match padding {
            Some("border") => pixel.clamp(0.0, extent - 1.0),
            Some("reflection") => mirrored(pixel, 0.0, extent - 1.0),
            Some("symmetric") => mirrored(pixel, -0.5, extent - 0.5).clamp(0.0, extent - 1.0),
            _ => pixel,
        }
    };
    let size = plane(&x.ty);
    let (channels, places) = (x.ty.shape[1], at.ty.shape[1] * at.ty.shape[2]);
    let mut data = Vec::with_capacity(x.ty.shape[0] * channels * places);
    for (index, image) in x.data.chunks(size[0] * size[1]).enumerate() {
        data.extend(at.data[index / channels * places * 2..][..places * 2].chunks_exact(2).map(|pair| {
            let (across, down) = (place(pair[0], size[1]), place(pair[1], size[0]));
            match nearest {
                true => pixel(image, size, down.round_ties_even(), across.round_ties_even()).unwrap_or(outside),
                false => blend(image, size, down, across, outside),
            }
        }));
    }
    Ok(vec![Array::new(x.ty.dtype, [x.ty.shape[0], channels, at.ty.shape[1], at.ty.shape[2]], data)])
}

fn infer_crop_resize(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let extent = |port, axis: usize| a.shape(port).get(axis).copied().unwrap_or(0) as i128;
    let target = |port| i128::from(a.int(port).unwrap_or(0));
    computed(a, a.ty("x")?.dtype, vec![extent("boxes", 0), extent("x", 1), target("target_height"), target("target_width")])
}

fn crop_resize(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let (x, boxes) = (a.array("x")?, a.array("boxes")?);
    let indices = if a.has("box_indices") { Some(a.array("box_indices")?) } else { None };
    let ty = infer_crop_resize(a)?.remove(0);
    let (size, [height, width]) = (plane(&x.ty), plane(&ty));
    let (channels, area) = (ty.shape[1], size[0] * size[1]);
    let (mode, outside, scale) =
        (a.text("sampling_mode"), a.number("pad_value").unwrap_or(0.0), a.number("spatial_scale").unwrap_or(1.0));
    let box_mode = a.text("box_coordinate_mode").unwrap_or_default();
    let unit = |axis: usize| if a.flag("normalized_coordinates") { size[axis] as f64 - 1.0 } else { 1.0 } * scale;
    let mut data = Vec::with_capacity(ty.count());
    for (index, corners) in boxes.data.chunks_exact(4).enumerate() {
        let swap = usize::from(box_mode.ends_with("WIDTH_FIRST"));
        // First and last place of the box along an axis.
        let ends = |axis: usize| {
            let (first, second) = (corners[axis ^ swap] * unit(axis), corners[(axis ^ swap) + 2] * unit(axis));
            if box_mode.starts_with("CENTER") { (first - second / 2.0, first + second / 2.0) } else { (first, second) }
        };
        let (down, across) = (ends(0), ends(1));
        let at = |(first, last): (f64, f64), index, to| first + place(mode, index, last - first + 1.0, to);
        let image = indices.map_or(index as f64, |indices| indices.data[index]).max(0.0) as usize;
        let image = image.min(x.ty.shape[0] - 1);
        for channel in x.data[image * channels * area..][..channels * area].chunks(area) {
            for row in 0..height {
                for column in 0..width {
                    let (y, x) = (at(down, row, height), at(across, column, width));
                    let inside = y >= 0.0 && y <= size[0] as f64 - 1.0 && x >= 0.0 && x <= size[1] as f64 - 1.0;
                    data.push(if inside { blend(channel, size, y, x, outside) } else { outside });
                }
            }
        }
    }
    Ok(vec![Array { ty, data }])
}
