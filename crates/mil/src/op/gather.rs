//! Picking by index tensors.

use super::family::{around, axis, base, integers, legal_axis, rule};
use super::general::result;
use super::{
    ANY, Arguments, BOOL, Case, Constraint, Default, INTS, MilOp, OpError, constant, given, int, native_from, sample, tensor,
    values,
};
use crate::{Array, DType, TensorType};

const BY_HAND: &str = "by hand";
const X: super::Given = given(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
const IN_RANGE: Constraint = rule("C3", "indices that are known lie between minus the extent of the axis and below it", |a| {
    let extent = a.shape("x").get(legal_axis(a, "axis", a.shape("x").len())).copied().unwrap_or(0) as f64;
    let Some(indices) = a.get("indices").and_then(|indices| indices.value.as_ref()) else { return true };
    indices.data.iter().all(|&index| index >= -extent && index < extent)
});

pub(super) const OPS: &[MilOp] = &[
    MilOp {
        ports: &[
            tensor("x", ANY),
            tensor("indices", INTS),
            integers("axis", Default::Int(0)),
            integers("batch_dims", Default::Int(0)),
            constant("validate_indices", BOOL, Default::Flag(false)),
        ],
        constraints: &[
            rule("C1", "axis is an axis of x, and x has axes: gather from a vector at least", |a| {
                axis(a, "axis", a.shape("x").len()).is_some()
            }),
            rule("C2", "x and indices agree in the first batch_dims axes, which lie before axis", |a| {
                let batch = a.int("batch_dims").and_then(|batch| usize::try_from(batch).ok());
                batch.is_some_and(|batch| {
                    let (x, indices) = (a.shape("x"), a.shape("indices"));
                    batch <= legal_axis(a, "axis", x.len()) && batch <= indices.len() && x[..batch] == indices[..batch]
                })
            }),
            IN_RANGE,
        ],
        domain: &[("indices", 0.0, 1.0)],
        tolerance: 0.0,
        cases: &[
            Case::new(
                "rows_in_another_order",
                &[("x", X), ("indices", values(DType::Int32, &[2], &[2.0, -3.0]))],
                &[(&[2, 2], &[5.0, 6.0, 1.0, 2.0])],
                BY_HAND,
            ),
            Case::new(
                "index_shape_replaces_the_axis",
                &[("x", X), ("indices", values(DType::Int32, &[1, 3], &[1.0, 0.0, 1.0])), ("axis", int(&[1.0]))],
                &[(&[3, 1, 3], &[2.0, 1.0, 2.0, 4.0, 3.0, 4.0, 6.0, 5.0, 6.0])],
                BY_HAND,
            ),
            Case::new(
                "one_row_by_scalar",
                &[("x", X), ("indices", values(DType::Int32, &[], &[1.0]))],
                &[(&[2], &[3.0, 4.0])],
                BY_HAND,
            ),
            Case::new(
                "indices_per_batch",
                &[
                    ("x", given(&[2, 2], &[1.0, 2.0, 3.0, 4.0])),
                    ("indices", values(DType::Int32, &[2, 1], &[1.0, 0.0])),
                    ("axis", int(&[1.0])),
                    ("batch_dims", int(&[1.0])),
                ],
                &[(&[2, 1], &[2.0, 3.0])],
                BY_HAND,
            ),
            Case::oracle(
                "embedding_rows",
                &[("x", sample(&[7, 3], 1)), ("indices", values(DType::Int32, &[2, 4], &[0.0, 6.0, 3.0, 3.0, 1.0, 2.0, 5.0, 4.0]))],
            ),
        ],
        ..base(
            "gather",
            "The slices of x along an axis that indices name; indices outside name the nearest slice.",
            infer_gather,
            gather,
        )
    },
    MilOp {
        ports: &[
            tensor("x", ANY),
            tensor("indices", INTS),
            integers("axis", Default::Int(0)),
            constant("validate_indices", BOOL, Default::Flag(false)),
        ],
        constraints: &[
            rule("C1", "axis is an axis of x", |a| axis(a, "axis", a.shape("x").len()).is_some()),
            rule("C2", "indices have the shape of x but for the axis", |a| {
                let (x, indices) = (a.shape("x"), a.shape("indices"));
                let axis = legal_axis(a, "axis", x.len());
                let same = |(index, (x, other)): (usize, (&usize, &usize))| x == other || index == axis;
                x.len() == indices.len() && x.iter().zip(indices).enumerate().all(same)
            }),
            IN_RANGE,
        ],
        domain: &[("indices", 0.0, 1.0)],
        tolerance: 0.0,
        cases: &[Case::new(
            "one_element_per_row",
            &[("x", X), ("indices", values(DType::Int32, &[3, 1], &[1.0, 0.0, -1.0])), ("axis", int(&[1.0]))],
            &[(&[3, 1], &[2.0, 3.0, 6.0])],
            BY_HAND,
        )],
        ..base(
            "gather_along_axis",
            "The elements of x whose place along an axis indices name.",
            |a| result(a, a.ty("x")?.dtype, a.ty("indices")?.shape.clone()),
            |a| {
                let (x, indices) = (a.array("x")?, a.array("indices")?);
                let axis = legal_axis(a, "axis", x.ty.rank());
                let (_, extent, inner) = around(&x.ty.shape, axis);
                let rows = indices.ty.shape.get(axis).copied().unwrap_or(1);
                let element = |(place, &index): (usize, &f64)| {
                    let block = place / (rows * inner);
                    x.data[(block * extent + within(index, extent)) * inner + place % inner]
                };
                let data = indices.data.iter().enumerate().map(element).collect();
                Ok(vec![Array { ty: infer_like(x, &indices.ty), data }])
            },
        )
    },
    MilOp {
        ports: &[
            tensor("x", ANY),
            tensor("indices", INTS),
            integers("batch_dims", Default::Int(0)),
            constant("validate_indices", BOOL, Default::Flag(false)),
        ],
        constraints: &[
            rule("C1", "x and indices agree in the first batch_dims axes, and indices have one axis more than that", |a| {
                let batch = a.int("batch_dims").and_then(|batch| usize::try_from(batch).ok());
                let (x, indices) = (a.shape("x"), a.shape("indices"));
                batch.is_some_and(|batch| batch < indices.len() && x.get(..batch) == indices.get(..batch))
            }),
            rule("C2", "the last axis of indices has at most as many elements as x has axes behind the batch", |a| {
                a.shape("indices").last().is_some_and(|&depth| depth <= a.shape("x").len() - coordinate_batch(a))
            }),
            rule("C3", "indices that are known lie between minus the extent of their axis and below it", |a| {
                let batch = coordinate_batch(a);
                let depth = a.shape("indices").last().copied().unwrap_or(1).max(1);
                let extent = |place: usize| a.shape("x").get(batch + place % depth).copied().unwrap_or(0) as f64;
                let known = a.get("indices").and_then(|indices| indices.value.as_ref());
                let within = |(place, &index): (usize, &f64)| index >= -extent(place) && index < extent(place);
                known.is_none_or(|indices| indices.data.iter().enumerate().all(within))
            }),
        ],
        support: native_from(14),
        domain: &[("indices", 0.0, 1.0)],
        tolerance: 0.0,
        cases: &[
            Case::new(
                "elements_by_their_coordinates",
                &[("x", X), ("indices", values(DType::Int32, &[2, 2], &[2.0, 0.0, 0.0, -1.0]))],
                &[(&[2], &[5.0, 2.0])],
                BY_HAND,
            ),
            Case::new(
                "slices_by_leading_coordinates",
                &[("x", X), ("indices", values(DType::Int32, &[1, 1], &[1.0]))],
                &[(&[1, 2], &[3.0, 4.0])],
                BY_HAND,
            ),
            Case::new(
                "one_element_per_batch",
                &[
                    ("x", given(&[2, 2], &[1.0, 2.0, 3.0, 4.0])),
                    ("indices", values(DType::Int32, &[2, 1], &[1.0, 0.0])),
                    ("batch_dims", int(&[1.0])),
                ],
                &[(&[2], &[2.0, 3.0])],
                BY_HAND,
            ),
            Case::oracle(
                "many_slices",
                &[
                    ("x", sample(&[3, 4, 2], 1)),
                    ("indices", values(DType::Int32, &[2, 3, 2], &[0.0, 3.0, 2.0, 1.0, 1.0, 2.0, 2.0, 3.0, 0.0, 0.0, 1.0, 0.0])),
                ],
            ),
        ],
        ..base(
            "gather_nd",
            "The slices of x whose leading coordinates the last axis of indices names; coordinates outside name the nearest slice.",
            infer_gather_nd,
            gather_nd,
        )
    },
];

/// Batch axes of a `gather_nd`, never more than `x` has axes.
fn coordinate_batch(a: &Arguments<'_>) -> usize {
    a.int("batch_dims").and_then(|batch| usize::try_from(batch).ok()).unwrap_or(0).min(a.shape("x").len())
}

fn infer_gather_nd(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let (x, indices) = (a.ty("x")?, a.ty("indices")?);
    let (depth, lead) = indices.shape.split_last().map_or((0, [].as_slice()), |(&depth, lead)| (depth, lead));
    let rest = x.shape.get(coordinate_batch(a) + depth..).unwrap_or_default();
    result(a, x.dtype, [lead, rest].concat())
}

fn gather_nd(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let (x, indices) = (a.array("x")?, a.array("indices")?);
    let ty = infer_gather_nd(a)?.remove(0);
    let batch = coordinate_batch(a);
    let depth = indices.ty.shape.last().copied().unwrap_or(1);
    let strides = x.strides();
    let slice: usize = x.ty.shape.iter().skip(batch + depth).product();
    let block: usize = x.ty.shape.iter().skip(batch).product();
    let per_batch = indices.ty.shape[batch..indices.ty.rank() - 1].iter().product::<usize>();
    let mut data = Vec::with_capacity(ty.count());
    for (place, coordinates) in indices.data.chunks(depth).enumerate() {
        let axes = coordinates.iter().zip(&x.ty.shape[batch..]).zip(&strides[batch..]);
        let inner: usize = axes.map(|((&index, &extent), &step)| within(index, extent) * step).sum();
        data.extend_from_slice(&x.data[place / per_batch * block + inner..][..slice]);
    }
    Ok(vec![Array { ty, data }])
}

fn infer_like(x: &Array, shape: &TensorType) -> TensorType {
    TensorType::new(x.ty.dtype, shape.shape.clone())
}

/// An index counted from either end, moved to the nearest one that exists.
fn within(index: f64, extent: usize) -> usize {
    let last = extent as f64 - 1.0;
    let index = if index < 0.0 { index + extent as f64 } else { index };
    index.clamp(0.0, last.max(0.0)) as usize
}

fn batch_dims(a: &Arguments<'_>) -> usize {
    let most = legal_axis(a, "axis", a.shape("x").len()).min(a.shape("indices").len());
    a.int("batch_dims").and_then(|batch| usize::try_from(batch).ok()).unwrap_or(0).min(most)
}

fn infer_gather(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let (x, indices) = (a.ty("x")?, a.ty("indices")?);
    let axis = legal_axis(a, "axis", x.rank());
    let mut shape = x.shape.get(..axis).unwrap_or(&[]).to_vec();
    shape.extend_from_slice(&indices.shape[batch_dims(a)..]);
    shape.extend_from_slice(x.shape.get(axis + 1..).unwrap_or(&[]));
    result(a, x.dtype, shape)
}

fn gather(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let (x, indices) = (a.array("x")?, a.array("indices")?);
    let ty = infer_gather(a)?.remove(0);
    let (outer, extent, inner) = around(&x.ty.shape, legal_axis(a, "axis", x.ty.rank()));
    let batches: usize = indices.ty.shape[..batch_dims(a)].iter().product();
    let per_batch = indices.data.len() / batches;
    let mut data = Vec::with_capacity(ty.count());
    for block in 0..outer {
        let batch = block / (outer / batches);
        for &index in &indices.data[batch * per_batch..][..per_batch] {
            data.extend_from_slice(&x.data[(block * extent + within(index, extent)) * inner..][..inner]);
        }
    }
    Ok(vec![Array { ty, data }])
}
