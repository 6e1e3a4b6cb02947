//! Weights that the engine keeps compressed: what they expand to.

use super::family::{around, base, integers, rule};
use super::general::result;
use super::{
    ALL_FAMILIES, Arguments, Arithmetic, BRIDGED, Case, Constraint, Default, FLOATS, MilOp, OpError, PortSpec, QUANTISED, given,
    int, native_from, optional_weight, values, weight,
};
use crate::{Array, DType, TensorType};

const BYTES: &[DType] = &[DType::Int8, DType::UInt8];
pub(super) const INDICES: &[DType] = &[DType::UInt1, DType::UInt2, DType::UInt3, DType::UInt4, DType::UInt6, DType::UInt8];
pub(super) const ENTRIES: &[DType] = &[DType::Fp16, DType::Fp32, DType::Int8, DType::UInt8];
pub(super) const MASK: &[DType] = &[DType::UInt1];
const BY_HAND: &str = "by hand";

pub(super) const EXPANDS: Arithmetic =
    Arithmetic::Modelled("expanded to fp16 before the product, rounded to nearest even by the compiler");
const EXACT: Arithmetic = Arithmetic::Exact("entries are fp16 already; 4-bit tables reproduce arXiv 2606.17090's published errors");
const SOURCE: &str = "ANE guide, arXiv 2606.22283, chapters 3 and 26";

pub(super) const OFFSET_LIKE_SCALE: Constraint =
    rule("C3", "offset has the shape of scale", |a| !a.has("offset") || a.shape("offset") == a.shape("scale"));

pub(super) const OPS: &[MilOp] = &[
    MilOp {
        opset: "ios16",
        ports: &[
            weight("quantized_data", BYTES),
            weight("zero_point", BYTES),
            weight("scale", FLOATS),
            integers("axis", Default::Required),
        ],
        constraints: &[
            rule("C1", "axis is an axis of quantized_data", |a| {
                a.int("axis").is_some_and(|axis| a.axis(axis, a.shape("quantized_data").len()).is_some())
            }),
            rule("C2", "scale and zero_point are scalars or vectors as long as that axis", |a| {
                let data = a.shape("quantized_data");
                let extent = a.int("axis").and_then(|axis| a.axis(axis, data.len())).map(|axis| data[axis]);
                ["scale", "zero_point"].iter().all(|port| match *a.shape(port) {
                    [] => true,
                    [length] => Some(length) == extent,
                    _ => false,
                })
            }),
            rule("C3", "zero_point has the element type of quantized_data", |a| {
                a.get("zero_point").map(|value| value.ty.dtype) == a.get("quantized_data").map(|value| value.ty.dtype)
            }),
        ],
        arithmetic: EXPANDS,
        support: BRIDGED.limited("folded to fp16; chapter 26 of the guide has it streamed from A14 on"),
        domain: &[("quantized_data", -100.0, 100.0), ("scale", 0.01, 0.02), ("zero_point", 0.0, 0.4)],
        cases: &[Case::new(
            "scale_per_row",
            &[
                ("quantized_data", values(DType::Int8, &[2, 2], &[4.0, -8.0, 127.0, 1.0])),
                ("zero_point", values(DType::Int8, &[], &[0.0])),
                ("scale", given(&[2], &[0.5, 2.0])),
                ("axis", int(&[0.0])),
            ],
            &[(&[2, 2], &[2.0, -4.0, 254.0, 2.0])],
            BY_HAND,
        )],
        ..base(
            "constexpr_affine_dequantize",
            "scale (quantized_data - zero_point) along an axis.",
            |a| result(a, a.ty("scale")?.dtype, a.ty("quantized_data")?.shape.clone()),
            |a| {
                let (data, zero, scale) = (a.array("quantized_data")?, a.array("zero_point")?, a.array("scale")?);
                let axis = a.int("axis").and_then(|axis| a.axis(axis, data.ty.rank())).unwrap_or(0);
                let (_, extent, inner) = around(&data.ty.shape, axis);
                let pick = |array: &Array, index: usize| array.data[if array.data.len() == 1 { 0 } else { index / inner % extent }];
                let element = |(index, q): (usize, &f64)| pick(scale, index) * (q - pick(zero, index));
                let expanded = data.data.iter().enumerate().map(element).collect();
                Ok(vec![Array::new(scale.ty.dtype, data.ty.shape.clone(), expanded)])
            },
        )
    },
    MilOp {
        opset: "ios18",
        ports: &[weight("indices", INDICES), weight("lut", ENTRIES), integers("vector_axis", Default::Absent)],
        constraints: &[
            rule("C1", "lut has two axes more than indices: one table per group, its entries, the values of an entry", |a| {
                !a.shape("indices").is_empty() && a.shape("lut").len() == a.shape("indices").len() + 2
            }),
            rule("C2", "the group extents of lut divide the extents of indices", |a| {
                a.shape("indices").iter().zip(a.shape("lut")).all(|(&extent, &groups)| groups > 0 && extent % groups == 0)
            }),
            rule("C3", "a table has two to the number of index bits entries", |a| {
                let entries = a.shape("lut").iter().rev().nth(1).copied();
                a.get("indices").is_some_and(|indices| entries == Some(1 << indices.ty.dtype.bits()))
            }),
            rule("C4", "vector_axis is an axis of indices, and given where entries hold several values", |a| {
                match a.int("vector_axis") {
                    Some(axis) => a.axis(axis, a.shape("indices").len()).is_some(),
                    None => a.shape("lut").last() == Some(&1),
                }
            }),
        ],
        arithmetic: EXACT,
        support: ALL_FAMILIES.told_by(SOURCE),
        domain: &[("indices", 0.0, 1.0)],
        tolerance: 0.0,
        cases: &[
            Case::new(
                "one_table_per_tensor",
                &[
                    ("indices", values(DType::UInt2, &[2, 3], &[2.0, 3.0, 3.0, 0.0, 1.0, 0.0])),
                    ("lut", given(&[1, 1, 4, 1], &[1.0, 5.0, 9.0, 13.0])),
                ],
                &[(&[2, 3], &[9.0, 13.0, 13.0, 1.0, 5.0, 1.0])],
                BY_HAND,
            ),
            Case::new(
                "one_table_per_group_of_rows",
                &[
                    ("indices", values(DType::UInt1, &[4, 1], &[0.0, 1.0, 0.0, 1.0])),
                    ("lut", given(&[2, 1, 2, 1], &[1.0, 2.0, 30.0, 40.0])),
                ],
                &[(&[4, 1], &[1.0, 2.0, 30.0, 40.0])],
                BY_HAND,
            ),
            Case::new(
                "entries_of_two_values",
                &[
                    ("indices", values(DType::UInt1, &[2, 2], &[0.0, 1.0, 1.0, 0.0])),
                    ("lut", given(&[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0])),
                    ("vector_axis", int(&[0.0])),
                ],
                &[(&[4, 2], &[1.0, 3.0, 2.0, 4.0, 3.0, 1.0, 4.0, 2.0])],
                BY_HAND,
            ),
        ],
        ..base("constexpr_lut_to_dense", "Entries of tables picked by indices.", infer_lut, lut)
    },
    MilOp {
        opset: "ios18",
        ports: &[weight("nonzero_data", ENTRIES), weight("mask", MASK)],
        constraints: &[
            rule("C1", "nonzero_data is a vector", |a| a.shape("nonzero_data").len() == 1),
            rule("C2", "the mask has as many ones as nonzero_data has values", |a| {
                let mask = a.get("mask").and_then(|mask| mask.value.as_ref());
                mask.is_none_or(|mask| {
                    mask.data.iter().filter(|&&bit| bit != 0.0).count() == a.shape("nonzero_data").iter().product()
                })
            }),
        ],
        arithmetic: Arithmetic::Copy,
        support: ALL_FAMILIES.told_by(SOURCE),
        tolerance: 0.0,
        cases: &[Case::new(
            "values_go_where_the_mask_is_set",
            &[
                ("nonzero_data", given(&[3], &[1.0, 2.0, 3.0])),
                ("mask", values(DType::UInt1, &[2, 3], &[0.0, 1.0, 0.0, 1.0, 1.0, 0.0])),
            ],
            &[(&[2, 3], &[0.0, 1.0, 0.0, 2.0, 3.0, 0.0])],
            BY_HAND,
        )],
        ..base(
            "constexpr_sparse_to_dense",
            "Values in row-major order where the mask is 1, zeros elsewhere.",
            |a| result(a, a.ty("nonzero_data")?.dtype, a.ty("mask")?.shape.clone()),
            |a| {
                let (values, mask) = (a.array("nonzero_data")?, a.array("mask")?);
                let mut next = values.data.iter().copied();
                let data = mask.data.iter().map(|&bit| if bit == 0.0 { 0.0 } else { next.next().unwrap_or(0.0) }).collect();
                Ok(vec![Array::new(values.ty.dtype, mask.ty.shape.clone(), data)])
            },
        )
    },
    MilOp {
        opset: "ios18",
        ports: BLOCKWISE,
        constraints: &[
            rule("C1", "data and scale have the same number of axes, at least one: reshape scale", |a| {
                !a.shape("data").is_empty() && a.shape("data").len() == a.shape("scale").len()
            }),
            rule("C2", "the extents of scale divide those of data", |a| {
                a.shape("data").iter().zip(a.shape("scale")).all(|(&extent, &blocks)| blocks > 0 && extent % blocks == 0)
            }),
            OFFSET_LIKE_SCALE,
            rule("C4", "offset has the element type of data or is a float", |a| {
                let dtype = |port| a.get(port).map(|value| value.ty.dtype);
                dtype("offset").is_none_or(|offset| offset.is_float() || Some(offset) == dtype("data"))
            }),
        ],
        arithmetic: EXPANDS,
        support: native_from(15)
            .told_by("folded to fp16 below A15, streamed from A15 on: arXiv 2606.22283, appendix A and chapter 26"),
        domain: &[("data", -100.0, 100.0), ("scale", 0.01, 0.02)],
        cases: &[
            Case::new(
                "two_blocks_per_row",
                &[("data", values(DType::Int8, &[1, 4], &[1.0, 2.0, 3.0, 4.0])), ("scale", given(&[1, 2], &[0.5, 10.0]))],
                &[(&[1, 4], &[0.5, 1.0, 30.0, 40.0])],
                BY_HAND,
            ),
            Case::new(
                "offsets_come_off_first",
                &[
                    ("data", values(DType::UInt4, &[2, 1], &[15.0, 8.0])),
                    ("scale", given(&[1, 1], &[0.5])),
                    ("offset", values(DType::UInt4, &[1, 1], &[8.0])),
                ],
                &[(&[2, 1], &[3.5, 0.0])],
                BY_HAND,
            ),
        ],
        ..base(
            "constexpr_blockwise_shift_scale",
            "scale (data - offset), scale and offset constant on blocks.",
            |a| result(a, a.ty("scale")?.dtype, a.ty("data")?.shape.clone()),
            |a| {
                let (data, scale) = (a.array("data")?, a.array("scale")?);
                let scales = spread(scale, &data.ty);
                let mut expanded: Vec<_> = data.data.iter().zip(scales).map(|(q, scale)| q * scale).collect();
                if a.has("offset") {
                    let offsets = spread(a.array("offset")?, &data.ty);
                    let shifted = data.data.iter().zip(offsets).zip(spread(scale, &data.ty));
                    expanded = shifted.map(|((q, offset), scale)| (q - offset) * scale).collect();
                }
                Ok(vec![Array::new(scale.ty.dtype, data.ty.shape.clone(), expanded)])
            },
        )
    },
];

const BLOCKWISE: &[PortSpec] = &[weight("data", QUANTISED), weight("scale", FLOATS), optional_weight("offset", QUANTISED)];

fn infer_lut(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let mut shape = a.ty("indices")?.shape.clone();
    let values = a.ty("lut")?.shape.last().copied().unwrap_or(1);
    if let Some(axis) = a.int("vector_axis").and_then(|axis| a.axis(axis, shape.len())) {
        shape[axis] = shape[axis].saturating_mul(values);
    }
    result(a, a.ty("lut")?.dtype, shape)
}

fn lut(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let (indices, lut) = (a.array("indices")?, a.array("lut")?);
    let vector_axis = a.int("vector_axis").and_then(|axis| a.axis(axis, indices.ty.rank()));
    Ok(vec![look_up(indices, lut, vector_axis)])
}

/// The entries of tables that indices pick; entries of several values widen `vector_axis`.
pub(super) fn look_up(indices: &Array, lut: &Array, vector_axis: Option<usize>) -> Array {
    let rank = indices.ty.rank();
    let (entries, width) = (lut.ty.shape[rank], lut.ty.shape[rank + 1]);
    let mut ty = TensorType::new(lut.ty.dtype, indices.ty.shape.clone());
    if let Some(axis) = vector_axis {
        ty.shape[axis] *= width;
    }
    let (lut_steps, index_steps) = (lut.strides(), indices.strides());
    let element = |mut place: usize| {
        let (mut table, mut index, mut part) = (0, 0, 0);
        for axis in (0..rank).rev() {
            let mut at = place % ty.shape[axis];
            place /= ty.shape[axis];
            if Some(axis) == vector_axis {
                part = at % width;
                at /= width;
            }
            index += at * index_steps[axis];
            let block = indices.ty.shape[axis] / lut.ty.shape[axis];
            table += at / block * lut_steps[axis];
        }
        let entry = (indices.data[index].max(0.0) as usize).min(entries - 1);
        lut.data[table + entry * width + part]
    };
    let data = (0..ty.count()).map(element).collect();
    Array { ty, data }
}

/// The value of a block for every element of a tensor of the larger type.
pub(super) fn spread(blocks: &Array, full: &TensorType) -> Vec<f64> {
    let steps = blocks.strides();
    let element = |mut place: usize| {
        let mut at = 0;
        for axis in (0..full.rank()).rev() {
            let extent = full.shape[axis];
            at += place % extent / (extent / blocks.ty.shape[axis]) * steps[axis];
            place /= extent;
        }
        blocks.data[at]
    };
    (0..full.count()).map(element).collect()
}
