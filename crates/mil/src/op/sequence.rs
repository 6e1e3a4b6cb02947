//! Windows, partial reversals and shapes taken from other tensors.

use super::family::{around, axis, base, integers, legal_axis, rule, same_as_x};
use super::general::{computed, result};
use super::{
    ANY, Arguments, BOOL, Case, Default, INTS, MilOp, NOWHERE, OpError, constants, flag, given, int, sample, tensor, values,
    variadic,
};
use crate::{Array, DType, TensorType};

const BY_HAND: &str = "by hand";

pub(super) const OPS: &[MilOp] = &[
    MilOp {
        opset: "ios16",
        ports: &[
            tensor("x", ANY),
            variadic("ref_tensors", ANY),
            constants("begins", INTS),
            constants("ends", INTS),
            constants("end_masks", BOOL),
        ],
        constraints: &[
            rule("C1", "begins, ends and end_masks hold one scalar per tensor of ref_tensors", |a| {
                let count = a.all("ref_tensors").len();
                ["begins", "ends", "end_masks"]
                    .iter()
                    .all(|port| a.all(port).len() == count && a.all(port).iter().all(|one| one.ty.shape.is_empty()))
            }),
            rule("C2", "the shape put together has as many elements as x", |a| {
                let count = |shape: Vec<usize>| TensorType::new(DType::Fp16, shape).checked_count();
                taken_shape(a).and_then(count) == TensorType::new(DType::Fp16, a.shape("x")).checked_count()
            }),
        ],
        tolerance: 0.0,
        cases: &[
            Case::new(
                "front_of_one_and_back_of_another",
                &[
                    ("x", given(&[6], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])),
                    ("ref_tensors", given(&[2, 7], &[0.0; 14])),
                    ("ref_tensors", given(&[5, 1, 3], &[0.0; 15])),
                    ("begins", int(&[0.0])),
                    ("begins", int(&[1.0])),
                    ("ends", int(&[-1.0])),
                    ("ends", int(&[0.0])),
                    ("end_masks", flag(false)),
                    ("end_masks", flag(true)),
                ],
                &[(&[2, 1, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])],
                BY_HAND,
            ),
            Case::oracle(
                "shape_of_another",
                &[
                    ("x", sample(&[2, 3], 1)),
                    ("ref_tensors", sample(&[3, 2], 2)),
                    ("begins", int(&[0.0])),
                    ("ends", int(&[0.0])),
                    ("end_masks", flag(true)),
                ],
            ),
        ],
        ..base(
            "reshape_like",
            "The values of x in their order, in a shape put together from parts of the shapes of other tensors.",
            |a| result(a, a.ty("x")?.dtype, taken_shape(a).unwrap_or_else(|| vec![0])),
            |a| Ok(vec![a.array("x")?.clone().reshaped(taken_shape(a).unwrap_or_default())]),
        )
    },
    MilOp {
        ports: &[
            tensor("x", ANY),
            tensor("lengths", INTS),
            integers("seq_axis", Default::Int(0)),
            integers("batch_axis", Default::Int(0)),
        ],
        constraints: &[
            rule("C1", "seq_axis and batch_axis are two axes of x", |a| {
                let [sequence, batch] = ["seq_axis", "batch_axis"].map(|port| axis(a, port, a.shape("x").len()));
                sequence.is_some() && batch.is_some() && sequence != batch
            }),
            rule("C2", "lengths has one element per element of the batch axis", |a| {
                let batch = legal_axis(a, "batch_axis", a.shape("x").len());
                a.shape("lengths").len() == 1 && a.shape("lengths").first() == a.shape("x").get(batch)
            }),
            rule("C3", "lengths that are known lie between 0 and the extent of the sequence axis", |a| {
                let extent = a.shape("x").get(legal_axis(a, "seq_axis", a.shape("x").len())).copied().unwrap_or(0) as f64;
                let known = a.get("lengths").and_then(|lengths| lengths.value.as_ref());
                known.is_none_or(|lengths| lengths.data.iter().all(|&length| (0.0..=extent).contains(&length)))
            }),
        ],
        support: NOWHERE,
        domain: &[("lengths", 0.0, 1.0)],
        tolerance: 0.0,
        cases: &[
            Case::new(
                "two_of_three_and_none",
                &[
                    ("x", given(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])),
                    ("lengths", values(DType::Int32, &[2], &[2.0, 0.0])),
                    ("seq_axis", int(&[1.0])),
                ],
                &[(&[2, 3], &[2.0, 1.0, 3.0, 4.0, 5.0, 6.0])],
                BY_HAND,
            ),
            Case::oracle(
                "batch_in_the_middle",
                &[
                    ("x", sample(&[4, 3, 2], 1)),
                    ("lengths", values(DType::Int32, &[3], &[4.0, 1.0, 3.0])),
                    ("batch_axis", int(&[1.0])),
                ],
            ),
        ],
        ..base(
            "reverse_sequence",
            "x with the first lengths[i] elements along the sequence axis backwards in element i of the batch axis.",
            same_as_x,
            reverse_sequence,
        )
    },
    MilOp {
        ports: &[
            tensor("x", ANY),
            integers("axis", Default::Required),
            integers("size", Default::Required),
            integers("stride", Default::Int(1)),
        ],
        constraints: &[
            rule("C1", "axis is an axis of x", |a| axis(a, "axis", a.shape("x").len()).is_some()),
            rule("C2", "stride is positive and size between 1 and the extent of the axis", |a| windows(a).is_some()),
        ],
        support: NOWHERE,
        tolerance: 0.0,
        cases: &[
            Case::new(
                "pairs_of_neighbours",
                &[("x", given(&[4], &[1.0, 2.0, 3.0, 4.0])), ("axis", int(&[0.0])), ("size", int(&[2.0]))],
                &[(&[3, 2], &[1.0, 2.0, 2.0, 3.0, 3.0, 4.0])],
                BY_HAND,
            ),
            Case::oracle(
                "every_second_window_of_rows",
                &[("x", sample(&[2, 7, 3], 1)), ("axis", int(&[-2.0])), ("size", int(&[3.0])), ("stride", int(&[2.0]))],
            ),
        ],
        ..base(
            "sliding_windows",
            "All windows of x along an axis, stride apart: the axis counts windows, a new one behind it the elements of a window.",
            infer_windows,
            |a| {
                let x = a.array("x")?;
                let ty = infer_windows(a)?.remove(0);
                let axis = legal_axis(a, "axis", x.ty.rank());
                let mut steps: Vec<_> = x.strides().into_iter().map(|step| step as isize).collect();
                let step = steps[axis];
                steps[axis] *= a.int("stride").unwrap_or(1) as isize;
                steps.insert(axis + 1, step);
                Ok(vec![x.strided(0, &ty.shape, &steps)])
            },
        )
    },
];

/// The shape that a legal `reshape_like` asks for.
fn taken_shape(a: &Arguments<'_>) -> Option<Vec<usize>> {
    let number = |port, index: usize| a.all(port).get(index)?.value.as_ref()?.data.first().copied();
    let mut shape = Vec::new();
    for (index, reference) in a.all("ref_tensors").iter().enumerate() {
        let extents = &reference.ty.shape;
        // Python's slices: ends count from the back where they are negative and are moved into the range.
        let end = |at: f64| if at < 0.0 { at + extents.len() as f64 } else { at }.clamp(0.0, extents.len() as f64) as usize;
        let first = end(number("begins", index)?);
        let last = if number("end_masks", index)? != 0.0 { extents.len() } else { end(number("ends", index)?) };
        shape.extend_from_slice(extents.get(first..last).unwrap_or_default());
    }
    Some(shape)
}

fn reverse_sequence(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let (x, lengths) = (a.array("x")?, a.array("lengths")?);
    let rank = x.ty.rank();
    let (_, extent, inner) = around(&x.ty.shape, legal_axis(a, "seq_axis", rank));
    let (_, batch, batch_inner) = around(&x.ty.shape, legal_axis(a, "batch_axis", rank));
    let element = |place: usize| {
        let at = place / inner % extent;
        let length = lengths.data[place / batch_inner % batch].clamp(0.0, extent as f64) as usize;
        let from = if at < length { length - 1 - at } else { at };
        x.data[place - at * inner + from * inner]
    };
    let data = (0..x.data.len()).map(element).collect();
    Ok(vec![Array { ty: x.ty.clone(), data }])
}

/// Number and size of windows of a legal `sliding_windows`.
fn windows(a: &Arguments<'_>) -> Option<(i128, i128)> {
    let extent = *a.shape("x").get(axis(a, "axis", a.shape("x").len())?)? as i128;
    let (size, stride) = (i128::from(a.int("size")?), i128::from(a.int("stride")?));
    (stride > 0 && size > 0 && size <= extent).then(|| ((extent - size) / stride + 1, size))
}

fn infer_windows(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let x = a.ty("x")?;
    let axis = legal_axis(a, "axis", x.rank());
    let mut shape: Vec<_> = x.shape.iter().map(|&extent| extent as i128).collect();
    let (count, size) = windows(a).unwrap_or((0, 0));
    if let Some(extent) = shape.get_mut(axis) {
        *extent = count;
        shape.insert(axis + 1, size);
    }
    computed(a, x.dtype, shape)
}
