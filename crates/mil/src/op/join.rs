//! Joining tensors and taking them apart: concat, stack, split.

use super::family::{around, axis, base, integers, legal_axis, rule};
use super::general::{computed, result};
use super::{
    ANY, Argument, Arguments, BOOL, Case, Constraint, Default, MilOp, OpError, PortSpec, constant, flag, given, int, ints, tensor,
    variadic,
};
use crate::{Array, DType, TensorType};

const BY_HAND: &str = "by hand";

const SAME_DTYPE: Constraint = rule("C1", "values is not empty and all have the same element type", |a| {
    let values = a.all("values");
    values.first().is_some_and(|first| values.iter().all(|value| value.ty.dtype == first.ty.dtype))
});

const PAIR: [(&str, super::Given); 2] = [("values", given(&[1, 2], &[1.0, 2.0])), ("values", given(&[1, 2], &[3.0, 4.0]))];

pub(super) const OPS: &[MilOp] = &[
    MilOp {
        ports: &[variadic("values", ANY), integers("axis", Default::Required), constant("interleave", BOOL, Default::Flag(false))],
        constraints: &[
            SAME_DTYPE,
            rule("C2", "axis is an axis of the values", |a| axis(a, "axis", first_shape(a).len()).is_some()),
            rule("C3", "values agree in every axis but the joined one; interleaved ones agree in all", |a| {
                let (first, joined) = (first_shape(a), axis(a, "axis", first_shape(a).len()));
                let agree = |shape: &[usize]| {
                    let same =
                        |(index, (x, y)): (usize, (&usize, &usize))| x == y || (Some(index) == joined && !a.flag("interleave"));
                    shape.len() == first.len() && shape.iter().zip(first).enumerate().all(same)
                };
                a.all("values").iter().all(|value| agree(&value.ty.shape))
            }),
        ],
        tolerance: 0.0,
        cases: &[
            Case::new("side_by_side", &[PAIR[0], PAIR[1], ("axis", int(&[-1.0]))], &[(&[1, 4], &[1.0, 2.0, 3.0, 4.0])], BY_HAND),
            Case::new(
                "of_different_length",
                &[
                    ("values", given(&[2, 1], &[1.0, 2.0])),
                    ("values", given(&[2, 2], &[3.0, 4.0, 5.0, 6.0])),
                    ("axis", int(&[1.0])),
                ],
                &[(&[2, 3], &[1.0, 3.0, 4.0, 2.0, 5.0, 6.0])],
                BY_HAND,
            ),
            Case::new(
                "interleaved",
                &[PAIR[0], PAIR[1], ("axis", int(&[1.0])), ("interleave", flag(true))],
                &[(&[1, 4], &[1.0, 3.0, 2.0, 4.0])],
                BY_HAND,
            ),
        ],
        ..base(
            "concat",
            "Values one after the other along an axis, or taking turns when interleaved.",
            |a| {
                let mut shape: Vec<_> = first_shape(a).iter().map(|&extent| extent as i128).collect();
                let joined = legal_axis(a, "axis", shape.len());
                if let Some(extent) = shape.get_mut(joined) {
                    *extent = a.all("values").iter().map(|value| value.ty.shape.get(joined).copied().unwrap_or(0) as i128).sum();
                }
                computed(a, first_dtype(a), shape)
            },
            |a| {
                let joined = legal_axis(a, "axis", first_shape(a).len());
                let mut shape = first_shape(a).to_vec();
                shape[joined] = a.all("values").iter().map(|value| value.ty.shape[joined]).sum();
                // Interleaving is joining pieces of one element each.
                let pieces = if a.flag("interleave") { first_shape(a)[joined] } else { 1 };
                interlace(a, joined, pieces, shape)
            },
        )
    },
    MilOp {
        ports: &[variadic("values", ANY), integers("axis", Default::Required)],
        constraints: &[
            SAME_DTYPE,
            rule("C2", "axis is an axis of the result", |a| axis(a, "axis", first_shape(a).len() + 1).is_some()),
            rule("C3", "values have the same shape", |a| a.all("values").iter().all(|value| value.ty.shape == first_shape(a))),
        ],
        tolerance: 0.0,
        cases: &[
            Case::new("on_top", &[PAIR[0], PAIR[1], ("axis", int(&[0.0]))], &[(&[2, 1, 2], &[1.0, 2.0, 3.0, 4.0])], BY_HAND),
            Case::new(
                "as_the_last_axis",
                &[PAIR[0], PAIR[1], ("axis", int(&[-1.0]))],
                &[(&[1, 2, 2], &[1.0, 3.0, 2.0, 4.0])],
                BY_HAND,
            ),
        ],
        ..base(
            "stack",
            "Values side by side along a new axis.",
            |a| result(a, first_dtype(a), stacked(a)),
            |a| {
                let place = legal_axis(a, "axis", first_shape(a).len() + 1);
                interlace(a, place, 1, stacked(a))
            },
        )
    },
    MilOp {
        ports: SPLIT_PORTS,
        constraints: &[
            rule("C1", "axis is an axis of x", |a| axis(a, "axis", a.shape("x").len()).is_some()),
            rule("C2", "num_splits, at most 4096, divides the axis, or split_sizes are positive and add up to it", |a| {
                sizes(a).is_some()
            }),
        ],
        tolerance: 0.0,
        cases: &[
            Case::new(
                "even_parts",
                &[
                    ("x", given(&[2, 4], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])),
                    ("num_splits", int(&[2.0])),
                    ("axis", int(&[1.0])),
                ],
                &[(&[2, 2], &[1.0, 2.0, 5.0, 6.0]), (&[2, 2], &[3.0, 4.0, 7.0, 8.0])],
                BY_HAND,
            ),
            Case::new(
                "uneven_parts",
                &[("x", given(&[3], &[1.0, 2.0, 3.0])), ("split_sizes", ints(&[2], &[1.0, 2.0])), ("axis", int(&[-1.0]))],
                &[(&[1], &[1.0]), (&[2], &[2.0, 3.0])],
                BY_HAND,
            ),
        ],
        ..base("split", "x cut along an axis into equal parts or parts of given sizes.", infer_split, split)
    },
];

/// Most results of one split; far beyond what any compiler was seen to take.
const MAX_PARTS: usize = 4096;

const SPLIT_PORTS: &[PortSpec] = &[
    tensor("x", ANY),
    integers("num_splits", Default::Absent),
    integers("split_sizes", Default::Absent),
    integers("axis", Default::Required),
];

fn first_shape<'a>(a: &Arguments<'a>) -> &'a [usize] {
    a.shape("values")
}

fn first_dtype(a: &Arguments<'_>) -> DType {
    a.get("values").map_or(DType::Fp16, |value| value.ty.dtype)
}

fn stacked(a: &Arguments<'_>) -> Vec<usize> {
    let mut shape = first_shape(a).to_vec();
    shape.insert(legal_axis(a, "axis", shape.len() + 1), a.all("values").len());
    shape
}

/// Values joined along an axis, each taken in `pieces` pieces that take turns.
fn interlace(a: &Arguments<'_>, axis: usize, pieces: usize, shape: Vec<usize>) -> Result<Vec<Array>, OpError> {
    let part = |value: &Argument| value.value.as_ref().map(|array| array.data.clone()).ok_or_else(|| a.missing("values"));
    let parts: Vec<_> = a.all("values").iter().map(part).collect::<Result<_, _>>()?;
    let turns = first_shape(a).iter().take(axis).product::<usize>() * pieces;
    let mut data = Vec::with_capacity(shape.iter().product());
    for turn in 0..turns {
        for part in &parts {
            let piece = part.len() / turns;
            data.extend_from_slice(&part[turn * piece..(turn + 1) * piece]);
        }
    }
    Ok(vec![Array::new(first_dtype(a), shape, data)])
}

/// Extents of the parts of a legal split.
fn sizes(a: &Arguments<'_>) -> Option<Vec<usize>> {
    let extent = a.shape("x")[axis(a, "axis", a.shape("x").len())?];
    let parts = if a.has("num_splits") { Some(usize::try_from(a.int("num_splits")?).ok()?) } else { None };
    match (a.ints("split_sizes"), parts) {
        (Some(sizes), _) => {
            let sizes: Vec<_> = sizes.into_iter().map(usize::try_from).collect::<Result<_, _>>().ok()?;
            let total = sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size))?;
            (total == extent && !sizes.contains(&0) && parts.is_none_or(|parts| parts == sizes.len())).then_some(sizes)
        }
        (None, Some(parts)) => {
            ((1..=MAX_PARTS).contains(&parts) && extent.is_multiple_of(parts)).then(|| vec![extent / parts; parts])
        }
        (None, None) => None,
    }
}

fn infer_split(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let x = a.ty("x")?;
    let cut = legal_axis(a, "axis", x.rank());
    let mut types = Vec::new();
    for size in sizes(a).unwrap_or_default() {
        let mut shape = x.shape.clone();
        shape[cut] = size;
        types.extend(result(a, x.dtype, shape)?);
    }
    Ok(types)
}

fn split(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let x = a.array("x")?;
    let (outer, extent, inner) = around(&x.ty.shape, legal_axis(a, "axis", x.ty.rank()));
    let mut from = 0;
    let mut parts = Vec::new();
    for ty in infer_split(a)? {
        let width = ty.count() / outer;
        let rows = (0..outer).flat_map(|row| &x.data[row * extent * inner + from..][..width]);
        parts.push(Array { data: rows.copied().collect(), ty });
        from += width;
    }
    Ok(parts)
}
