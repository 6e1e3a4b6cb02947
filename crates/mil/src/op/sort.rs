//! Sorting along an axis: positions of sorted values, and the first few of them.

use super::family::{CHOOSES, around, axis, base, integers, legal_axis, rule};
use super::general::{computed, result};
use super::{
    Arguments, BOOL, Case, Constraint, Default, INTS, MilOp, NUMBERS, OpError, TEXT, constant, flag, gated_before, given, int,
    sample, tensor, text,
};
use crate::{Array, DType, TensorType};
use std::cmp::Ordering;

const BY_HAND: &str = "by hand";
const X: super::Given = given(&[2, 4], &[3.0, -1.0, 7.0, 0.5, 2.0, 8.0, -4.0, 6.0]);
const AXIS: Constraint = rule("C1", "axis is an axis of x", |a| axis(a, "axis", a.shape("x").len()).is_some());

pub(super) const OPS: &[MilOp] = &[
    MilOp {
        ports: &[
            tensor("x", NUMBERS),
            constant("k", INTS, Default::Int(1)),
            integers("axis", Default::Int(-1)),
            constant("ascending", BOOL, Default::Flag(false)),
            constant("sort", BOOL, Default::Flag(true)),
            constant("return_indices", BOOL, Default::Flag(true)),
            constant("output_indices_dtype", TEXT, Default::Text("int32")),
        ],
        constraints: &[
            AXIS,
            rule("C2", "k is between 1 and the extent of the axis, or -1 for all of it", |a| taken(a).is_some()),
            rule("C3", "output_indices_dtype is int32 or uint16, and stands only where indices are returned", |a| {
                let known = matches!(a.text("output_indices_dtype"), Some("int32" | "uint16"));
                known && (a.flag("return_indices") || !a.has("output_indices_dtype"))
            }),
        ],
        arithmetic: CHOOSES,
        support: gated_before(14),
        tolerance: 0.0,
        cases: &[
            Case::new(
                "two_largest_of_a_row",
                &[("x", X), ("k", int(&[2.0]))],
                &[(&[2, 2], &[7.0, 3.0, 8.0, 6.0]), (&[2, 2], &[2.0, 0.0, 1.0, 3.0])],
                BY_HAND,
            ),
            Case::new(
                "smallest_of_a_column_without_its_place",
                &[("x", X), ("axis", int(&[0.0])), ("ascending", flag(true)), ("return_indices", flag(false))],
                &[(&[1, 4], &[2.0, -1.0, -4.0, 0.5])],
                BY_HAND,
            ),
            Case::new(
                "equal_values_in_their_order",
                &[("x", given(&[4], &[5.0, 1.0, 5.0, 5.0])), ("k", int(&[4.0])), ("output_indices_dtype", text("uint16"))],
                &[(&[4], &[5.0, 5.0, 5.0, 1.0]), (&[4], &[0.0, 2.0, 3.0, 1.0])],
                BY_HAND,
            ),
            Case::oracle("over_channels", &[("x", sample(&[2, 5, 3, 4], 3)), ("k", int(&[1.0])), ("axis", int(&[1.0]))]),
        ],
        ..base(
            "topk",
            "The k largest values along an axis, or the smallest, in order, with their indices; the first of equal values comes first.",
            infer_topk,
            topk,
        )
    },
    MilOp {
        ports: &[tensor("x", NUMBERS), integers("axis", Default::Int(-1)), constant("ascending", BOOL, Default::Flag(false))],
        constraints: &[AXIS],
        arithmetic: CHOOSES,
        support: gated_before(14),
        tolerance: 0.0,
        cases: &[
            Case::new("largest_first", &[("x", X)], &[(&[2, 4], &[2.0, 0.0, 3.0, 1.0, 1.0, 3.0, 0.0, 2.0])], BY_HAND),
            Case::new(
                "smallest_first_down_the_columns",
                &[("x", X), ("axis", int(&[0.0])), ("ascending", flag(true))],
                &[(&[2, 4], &[1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0])],
                BY_HAND,
            ),
            Case::oracle("middle_axis", &[("x", sample(&[2, 7, 3], 5)), ("axis", int(&[1.0]))]),
        ],
        ..base(
            "argsort",
            "Indices that sort x along an axis, largest first unless ascending; the first of equal values comes first.",
            |a| result(a, DType::Int32, a.ty("x")?.shape.clone()),
            |a| {
                let x = a.array("x")?;
                let axis = legal_axis(a, "axis", x.ty.rank());
                let places = sorted(x, axis, a.flag("ascending"));
                Ok(vec![along(x, axis, DType::Int32, &places, x.ty.shape.get(axis).copied().unwrap_or(1), |_, place| place as f64)])
            },
        )
    },
];

/// How many values a legal `topk` takes of its axis.
fn taken(a: &Arguments<'_>) -> Option<usize> {
    let extent = *a.shape("x").get(axis(a, "axis", a.shape("x").len())?)?;
    match a.int("k")? {
        -1 => Some(extent),
        k => usize::try_from(k).ok().filter(|k| (1..=extent).contains(k)),
    }
}

fn index_dtype(a: &Arguments<'_>) -> DType {
    a.text("output_indices_dtype").and_then(DType::from_keyword).unwrap_or(DType::Int32)
}

fn infer_topk(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let x = a.ty("x")?;
    let axis = legal_axis(a, "axis", x.rank());
    let extent = |(index, &extent): (usize, &usize)| if index == axis { taken(a).unwrap_or(0) } else { extent } as i128;
    let shape: Vec<_> = x.shape.iter().enumerate().map(extent).collect();
    let mut types = computed(a, x.dtype, shape.clone())?;
    if a.flag("return_indices") {
        types.extend(computed(a, index_dtype(a), shape)?);
    }
    Ok(types)
}

fn topk(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let x = a.array("x")?;
    let axis = legal_axis(a, "axis", x.ty.rank());
    let places = sorted(x, axis, a.flag("ascending"));
    let count = taken(a).unwrap_or(1);
    let mut results = vec![along(x, axis, x.ty.dtype, &places, count, |value, _| value)];
    if a.flag("return_indices") {
        results.push(along(x, axis, index_dtype(a), &places, count, |_, place| place as f64));
    }
    Ok(results)
}

/// NaN comes last whichever way the order goes, and the zeros are equal.
fn compare(x: f64, y: f64, ascending: bool) -> Ordering {
    match (x.is_nan(), y.is_nan()) {
        (false, false) if ascending => x.partial_cmp(&y).unwrap_or(Ordering::Equal),
        (false, false) => y.partial_cmp(&x).unwrap_or(Ordering::Equal),
        (x, y) => x.cmp(&y),
    }
}

/// Places along the axis in sorted order, one list for every line of `x` along it, lines in row-major order of their starts.
fn sorted(x: &Array, axis: usize, ascending: bool) -> Vec<Vec<usize>> {
    let (outer, extent, inner) = around(&x.ty.shape, axis);
    let lines = (0..outer).flat_map(|block| (0..inner).map(move |lane| block * extent * inner + lane));
    let sort = |start: usize| {
        let mut places: Vec<_> = (0..extent).collect();
        places.sort_by(|&i, &j| compare(x.data[start + i * inner], x.data[start + j * inner], ascending));
        places
    };
    lines.map(sort).collect()
}

/// `pick(value, place)` of the first `count` places of every line, laid along the axis.
fn along(x: &Array, axis: usize, dtype: DType, places: &[Vec<usize>], count: usize, pick: impl Fn(f64, usize) -> f64) -> Array {
    let (outer, extent, inner) = around(&x.ty.shape, axis);
    let mut data = Vec::with_capacity(outer * count * inner);
    for block in 0..outer {
        let lines = &places[block * inner..][..inner];
        data.extend(
            (0..count)
                .flat_map(|rank| lines.iter().enumerate().map(move |(lane, line)| (lane, line[rank])))
                .map(|(lane, place)| pick(x.data[(block * extent + place) * inner + lane], place)),
        );
    }
    let mut shape = x.ty.shape.clone();
    if let Some(extent) = shape.get_mut(axis) {
        *extent = count;
    }
    Array::new(dtype, shape, data)
}
