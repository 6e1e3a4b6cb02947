//! Compressed weights of which only the elements that are not zero are kept, and casts of constants.

use super::constexpr::{ENTRIES, EXPANDS, INDICES, MASK, OFFSET_LIKE_SCALE, look_up, spread};
use super::family::{base, integers, rule};
use super::general::result;
use super::{
    Arguments, Arithmetic, BRIDGED, Case, Constraint, Default, FLOATS, MilOp, NOWHERE, OpError, QUANTISED, TEXT, constant, given,
    int, native_from, optional_weight, sample, text, values, weight,
};
use crate::{Array, DType, TensorType};

const EXAMPLE: &str = "coremltools 9.0, documentation of the operator";
/// The mask of both examples there.
const BITS: super::Given =
    values(DType::UInt1, &[4, 4], &[1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0]);
const BIT_VALUES: &[f64] = &[1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0];

/// A mask of ones, of any extent.
const EVERYTHING: &[(&str, super::Given)] = &[
    ("data_mask", values(DType::UInt1, &[1, 3], &[1.0; 3])),
    ("nonzero_data", values(DType::Int8, &[3], &[7.0, -8.0, 100.0])),
    ("scale", sample(&[1, 1], 2)),
];

pub(super) const OPS: &[MilOp] = &[
    MilOp {
        opset: "ios18",
        ports: &[
            weight("indices_mask", MASK),
            weight("indices_nonzero_data", INDICES),
            weight("lut", ENTRIES),
            integers("vector_axis", Default::Absent),
        ],
        constraints: &[
            rule("C1", "indices_nonzero_data is a vector with one value per one of indices_mask", |a| {
                counted(a, "indices_mask", "indices_nonzero_data")
            }),
            rule("C2", "lut has two axes more than indices_mask, and its group extents divide those of indices_mask", |a| {
                let (mask, lut) = (a.shape("indices_mask"), a.shape("lut"));
                let divides = mask.iter().zip(lut).all(|(&extent, &groups)| groups > 0 && extent % groups == 0);
                !mask.is_empty() && lut.len() == mask.len() + 2 && divides
            }),
            rule("C3", "a table has two to the number of index bits entries", |a| {
                let entries = a.shape("lut").iter().rev().nth(1).copied();
                a.get("indices_nonzero_data").is_some_and(|indices| entries == Some(1 << indices.ty.dtype.bits()))
            }),
            rule("C4", "vector_axis is an axis of indices_mask, and given where entries hold several values", |a| {
                match a.int("vector_axis") {
                    Some(axis) => a.axis(axis, a.shape("indices_mask").len()).is_some(),
                    None => a.shape("lut").last() == Some(&1),
                }
            }),
        ],
        support: BRIDGED,
        domain: &[("indices_mask", 0.6, 1.0), ("indices_nonzero_data", 0.0, 1.0)],
        tolerance: 0.0,
        cases: &[
            Case::new(
                "one_value_per_entry",
                &[
                    ("indices_mask", BITS),
                    ("indices_nonzero_data", values(DType::UInt1, &[9], &[0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0])),
                    ("lut", given(&[1, 1, 2, 1], &[2.0, 3.0])),
                ],
                &[(&[4, 4], BIT_VALUES), (&[9], &[2.0, 3.0, 3.0, 2.0, 3.0, 3.0, 2.0, 2.0, 3.0])],
                EXAMPLE,
            ),
            Case::new(
                "entries_of_two_values",
                &[
                    ("indices_mask", values(DType::UInt1, &[1, 2], &[1.0, 0.0])),
                    ("indices_nonzero_data", values(DType::UInt1, &[1], &[1.0])),
                    ("lut", given(&[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0])),
                    ("vector_axis", int(&[0.0])),
                ],
                &[(&[2, 2], &[1.0, 0.0, 1.0, 0.0]), (&[2], &[3.0, 4.0])],
                "by hand",
            ),
            Case::oracle(
                "sixty_four_entries",
                &[
                    ("indices_mask", values(DType::UInt1, &[1, 3], &[1.0; 3])),
                    ("indices_nonzero_data", values(DType::UInt6, &[3], &[63.0, 0.0, 7.0])),
                    ("lut", sample(&[1, 1, 64, 1], 1)),
                ],
            ),
        ],
        ..base(
            "constexpr_lut_to_sparse",
            "The mask and the entries of tables picked by indices, both where the mask is 1; entries of several values widen an axis.",
            infer_lut_to_sparse,
            lut_to_sparse,
        )
    },
    MilOp {
        opset: "ios18",
        ports: &[
            weight("data_mask", MASK),
            weight("nonzero_data", QUANTISED),
            weight("scale", FLOATS),
            optional_weight("offset", QUANTISED),
        ],
        constraints: &[
            rule("C1", "nonzero_data is a vector with one value per one of data_mask", |a| counted(a, "data_mask", "nonzero_data")),
            rule(
                "C2",
                "data_mask and scale have the same number of axes, at least one, and the extents of scale divide those of data_mask",
                |a| {
                    let (mask, scale) = (a.shape("data_mask"), a.shape("scale"));
                    let divides = mask.iter().zip(scale).all(|(&extent, &blocks)| blocks > 0 && extent % blocks == 0);
                    !mask.is_empty() && mask.len() == scale.len() && divides
                },
            ),
            OFFSET_LIKE_SCALE,
            rule("C4", "offset has the element type of nonzero_data or is a float", |a| {
                let dtype = |port| a.get(port).map(|value| value.ty.dtype);
                dtype("offset").is_none_or(|offset| offset.is_float() || Some(offset) == dtype("nonzero_data"))
            }),
        ],
        arithmetic: EXPANDS,
        support: native_from(15),
        domain: &[("data_mask", 0.6, 1.0), ("nonzero_data", -100.0, 100.0), ("scale", 0.01, 0.02)],
        cases: &[
            Case::oracle("nothing_left_out", EVERYTHING),
            Case::new(
                "scale_and_offset_per_column",
                &[
                    ("data_mask", BITS),
                    ("nonzero_data", values(DType::Int8, &[9], &[10.0, 11.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])),
                    ("scale", given(&[1, 4], &[0.5, 0.25, 0.125, 2.0])),
                    ("offset", values(DType::Int8, &[1, 4], &[1.0, 2.0, 3.0, 4.0])),
                ],
                &[(&[4, 4], BIT_VALUES), (&[9], &[4.5, 2.25, 1.0, 0.5, 0.25, 0.375, 6.0, 3.5, 1.75])],
                "by hand, after the example of coremltools 9.0",
            ),
        ],
        ..base(
            "constexpr_sparse_blockwise_shift_scale",
            "The mask and scale (data - offset) where it is 1, scale and offset constant on blocks of the whole tensor.",
            |a| {
                let mut types = result(a, DType::UInt1, a.ty("data_mask")?.shape.clone())?;
                types.extend(result(a, a.ty("scale")?.dtype, a.ty("nonzero_data")?.shape.clone())?);
                Ok(types)
            },
            |a| {
                let (mask, data, scale) = (a.array("data_mask")?, a.array("nonzero_data")?, a.array("scale")?);
                let scales = spread(scale, &mask.ty);
                let offsets = if a.has("offset") { spread(a.array("offset")?, &mask.ty) } else { vec![0.0; mask.data.len()] };
                let expand = |(place, q): (usize, &f64)| (q - offsets[place]) * scales[place];
                let expanded = ones(mask).zip(&data.data).map(expand).collect();
                Ok(vec![mask.clone(), Array::new(scale.ty.dtype, data.ty.shape.clone(), expanded)])
            },
        )
    },
    MilOp {
        opset: "ios16",
        ports: &[weight("source_val", HALVES), constant("output_dtype", TEXT, Default::Required)],
        constraints: &[CAST],
        arithmetic: Arithmetic::Copy,
        support: NOWHERE,
        tolerance: 0.0,
        cases: &[Case::new(
            "halves_become_singles",
            &[("source_val", given(&[2], &[0.5, -65504.0])), ("output_dtype", text("fp32"))],
            &[(&[2], &[0.5, -65504.0])],
            "by hand",
        )],
        ..base(
            "constexpr_cast",
            "A constant of fp16 in fp32.",
            |a| result(a, DType::Fp32, a.ty("source_val")?.shape.clone()),
            |a| {
                let source = a.array("source_val")?;
                Ok(vec![Array::new(DType::Fp32, source.ty.shape.clone(), source.data.clone())])
            },
        )
    },
];

const HALVES: &[DType] = &[DType::Fp16];
const CAST: Constraint = rule("C1", "output_dtype is fp32, the only one there is", |a| a.text("output_dtype") == Some("fp32"));

/// Whether a vector holds one value per one of a mask, as far as the mask is known.
fn counted(a: &Arguments<'_>, mask: &'static str, data: &'static str) -> bool {
    let known = a.get(mask).and_then(|mask| mask.value.as_ref());
    let [count] = *a.shape(data) else { return false };
    known.is_none_or(|mask| mask.data.iter().filter(|&&bit| bit != 0.0).count() == count)
}

/// Places where a mask is 1.
fn ones(mask: &Array) -> impl Iterator<Item = usize> + '_ {
    mask.data.iter().enumerate().filter(|(_, bit)| **bit != 0.0).map(|(place, _)| place)
}

/// Values per entry of the tables, and the axis that they widen.
fn widening(a: &Arguments<'_>) -> Option<(usize, usize)> {
    let axis = a.axis(a.int("vector_axis")?, a.shape("indices_mask").len())?;
    Some((axis, a.shape("lut").last().copied()?))
}

fn infer_lut_to_sparse(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let mut mask = a.ty("indices_mask")?.shape.clone();
    let mut values = a.ty("indices_nonzero_data")?.shape.clone();
    if let Some((axis, width)) = widening(a) {
        mask[axis] = mask[axis].saturating_mul(width);
        values.iter_mut().for_each(|extent| *extent = extent.saturating_mul(width));
    }
    let mut types = result(a, DType::UInt1, mask)?;
    types.extend(result(a, a.ty("lut")?.dtype, values)?);
    Ok(types)
}

fn lut_to_sparse(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let (mask, indices, lut) = (a.array("indices_mask")?, a.array("indices_nonzero_data")?, a.array("lut")?);
    let mut dense = Array { ty: TensorType::new(indices.ty.dtype, mask.ty.shape.clone()), data: vec![0.0; mask.data.len()] };
    ones(mask).zip(&indices.data).for_each(|(place, &index)| dense.data[place] = index);
    let widening = widening(a);
    let mut widened = mask.clone();
    if let Some((axis, width)) = widening {
        // Every element of the axis is seen as [element, values of its entry] with a step of 0 along the values.
        let mut shape = mask.ty.shape.clone();
        let mut steps: Vec<_> = mask.strides().into_iter().map(|step| step as isize).collect();
        shape.insert(axis + 1, width);
        steps.insert(axis + 1, 0);
        let mut joined = mask.ty.shape.clone();
        joined[axis] *= width;
        widened = mask.strided(0, &shape, &steps).reshaped(joined);
    }
    let full = look_up(&dense, lut, widening.map(|(axis, _)| axis));
    let picked: Vec<_> = ones(&widened).map(|place| full.data[place]).collect();
    Ok(vec![widened, Array::new(lut.ty.dtype, [picked.len()], picked)])
}
