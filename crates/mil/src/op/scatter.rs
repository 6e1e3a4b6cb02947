//! Writing into copies of tensors at places that index tensors name.

use super::family::{around, axis, base, integers, legal_axis, rule};
use super::general::result;
use super::{
    Arguments, Arithmetic, BOOL, Case, Constraint, Default, INTS, MilOp, NOWHERE, NUMBERS, OpError, PortSpec, TEXT, constant,
    given, int, sample, tensor, text, values,
};
use crate::{Array, DType, TensorType};

const BY_HAND: &str = "by hand";
const DATA: super::Given = given(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
const MODES: &[&str] = &["update", "add", "sub", "mul", "div", "max", "min"];

const AXIS: Constraint = rule("C1", "axis is an axis of data", |a| axis(a, "axis", a.shape("data").len()).is_some());
const SAME_DTYPE: Constraint = rule("C3", "data and updates have the same element type: cast one of them", same_dtype);
const MODE: Constraint = rule("C4", "mode is update, add, sub, mul, div, max or min", mode_known);
const IN_RANGE: Constraint = rule("C5", "indices that are known lie between minus the extent of the axis and below it", |a| {
    let extent = a.shape("data").get(legal_axis(a, "axis", a.shape("data").len())).copied().unwrap_or(0);
    known(a).is_none_or(|indices| indices.iter().all(|&index| inside(index, extent).is_some()))
});

fn same_dtype(a: &Arguments<'_>) -> bool {
    a.get("data").zip(a.get("updates")).is_none_or(|(data, updates)| data.ty.dtype == updates.ty.dtype)
}

fn mode_known(a: &Arguments<'_>) -> bool {
    a.text("mode").is_some_and(|mode| MODES.contains(&mode))
}

/// What the scatters along one axis take.
const ALONG_AN_AXIS: &[PortSpec] = &[
    tensor("data", NUMBERS),
    tensor("indices", INTS),
    tensor("updates", NUMBERS),
    integers("axis", Default::Int(0)),
    constant("mode", TEXT, Default::Text("add")),
    constant("validate_indices", BOOL, Default::Flag(false)),
];

/// A scatter; what they share.
const fn scatters(name: &'static str, summary: &'static str, meaning: fn(&Arguments<'_>) -> Result<Vec<Array>, OpError>) -> MilOp {
    MilOp {
        arithmetic: Arithmetic::Unknown,
        support: NOWHERE,
        domain: &[("indices", 0.0, 1.0), ("updates", 0.5, 2.0)],
        ..base(name, summary, same_as_data, meaning)
    }
}

pub(super) const OPS: &[MilOp] = &[
    MilOp {
        ports: ALONG_AN_AXIS,
        constraints: &[
            AXIS,
            rule("C2", "updates have the shape of data with the shape of the vector indices in place of the axis", |a| {
                let (data, indices) = (a.shape("data"), a.shape("indices"));
                let axis = legal_axis(a, "axis", data.len());
                let parts = [data.get(..axis), Some(indices), data.get(axis + 1..)];
                indices.len() == 1 && parts.map(Option::unwrap_or_default).concat() == a.shape("updates")
            }),
            SAME_DTYPE,
            MODE,
            IN_RANGE,
        ],
        cases: &[
            Case::new(
                "rows_are_added",
                &[
                    ("data", DATA),
                    ("indices", values(DType::Int32, &[2], &[1.0, 0.0])),
                    ("updates", given(&[2, 3], &[5.0, 6.0, 7.0, 8.0, 9.0, 10.0])),
                ],
                &[(&[2, 3], &[9.0, 11.0, 13.0, 9.0, 11.0, 13.0])],
                "coremltools 9.0, documentation of scatter",
            ),
            Case::new(
                "the_last_of_several_stays",
                &[
                    ("data", DATA),
                    ("indices", values(DType::Int32, &[2], &[2.0, -1.0])),
                    ("updates", given(&[2, 2], &[7.0, 8.0, 9.0, 10.0])),
                    ("axis", int(&[1.0])),
                    ("mode", text("update")),
                ],
                &[(&[2, 3], &[1.0, 2.0, 8.0, 4.0, 5.0, 10.0])],
                BY_HAND,
            ),
            Case::oracle(
                "columns_divided",
                &[
                    ("data", sample(&[2, 5, 3], 1)),
                    ("indices", values(DType::Int32, &[2], &[4.0, 1.0])),
                    ("updates", sample(&[2, 2, 3], 2)),
                    ("axis", int(&[-2.0])),
                    ("mode", text("div")),
                ],
            ),
        ],
        ..scatters(
            "scatter",
            "data with slices along an axis replaced by updates or combined with them one after the other; slices that indices \
             outside of the axis name are left out.",
            |a| {
                let (data, indices) = (a.array("data")?, a.array("indices")?);
                let (outer, extent, inner) = around(&data.ty.shape, legal_axis(a, "axis", data.ty.rank()));
                let count = indices.data.len();
                write(
                    a,
                    (0..outer * count).map(|slice| {
                        let place = inside(indices.data[slice % count], extent)?;
                        Some((slice / count * extent + place) * inner)
                    }),
                    inner,
                )
            },
        )
    },
    MilOp {
        ports: ALONG_AN_AXIS,
        constraints: &[
            AXIS,
            rule("C2", "updates have the shape of indices, and indices that of data but for the axis", |a| {
                let (data, indices) = (a.shape("data"), a.shape("indices"));
                let axis = legal_axis(a, "axis", data.len());
                let same = |(index, (x, other)): (usize, (&usize, &usize))| x == other || index == axis;
                indices == a.shape("updates") && data.len() == indices.len() && data.iter().zip(indices).enumerate().all(same)
            }),
            SAME_DTYPE,
            MODE,
            IN_RANGE,
        ],
        cases: &[
            Case::new(
                "one_element_per_row",
                &[
                    ("data", DATA),
                    ("indices", values(DType::Int32, &[2, 1], &[2.0, 0.0])),
                    ("updates", given(&[2, 1], &[-3.0, 8.0])),
                    ("axis", int(&[1.0])),
                    ("mode", text("update")),
                ],
                &[(&[2, 3], &[1.0, 2.0, -3.0, 8.0, 5.0, 6.0])],
                BY_HAND,
            ),
            Case::oracle(
                "largest_stays",
                &[
                    ("data", sample(&[3, 2], 1)),
                    ("indices", values(DType::Int32, &[4, 2], &[0.0, 1.0, 2.0, 1.0, 0.0, 0.0, 2.0, 2.0])),
                    ("updates", sample(&[4, 2], 2)),
                    ("mode", text("max")),
                ],
            ),
        ],
        ..scatters(
            "scatter_along_axis",
            "data with the elements whose place along an axis indices name replaced by updates or combined with them in order; \
             indices outside of the axis are left out.",
            |a| {
                let (data, indices) = (a.array("data")?, a.array("indices")?);
                let axis = legal_axis(a, "axis", data.ty.rank());
                let (_, extent, inner) = around(&data.ty.shape, axis);
                let rows = indices.ty.shape.get(axis).copied().unwrap_or(1);
                write(
                    a,
                    indices.data.iter().enumerate().map(|(place, &index)| {
                        let block = place / (rows * inner);
                        Some((block * extent + inside(index, extent)?) * inner + place % inner)
                    }),
                    1,
                )
            },
        )
    },
    MilOp {
        ports: &[
            tensor("data", NUMBERS),
            tensor("indices", INTS),
            tensor("updates", NUMBERS),
            constant("mode", TEXT, Default::Text("add")),
            constant("validate_indices", BOOL, Default::Flag(false)),
        ],
        constraints: &[
            rule("C1", "the last axis of indices has at most as many elements as data has axes", |a| {
                a.shape("indices").last().is_some_and(|&depth| depth <= a.shape("data").len())
            }),
            rule("C2", "updates have the shape of indices without its last axis, then that of a slice of data", |a| {
                let Some((&depth, lead)) = a.shape("indices").split_last() else { return false };
                [lead, a.shape("data").get(depth..).unwrap_or_default()].concat() == a.shape("updates")
            }),
            SAME_DTYPE,
            MODE,
            rule("C5", "indices that are known lie between minus the extent of their axis and below it", |a| {
                let depth = a.shape("indices").last().copied().unwrap_or(1).max(1);
                let extent = |index: usize| a.shape("data").get(index % depth).copied().unwrap_or(0);
                known(a).is_none_or(|all| all.iter().enumerate().all(|(index, &value)| inside(value, extent(index)).is_some()))
            }),
        ],
        cases: &[
            Case::new(
                "elements_by_their_coordinates",
                &[
                    ("data", DATA),
                    ("indices", values(DType::Int32, &[2, 2], &[1.0, 0.0, 0.0, -1.0])),
                    ("updates", given(&[2], &[10.0, 20.0])),
                ],
                &[(&[2, 3], &[1.0, 2.0, 23.0, 14.0, 5.0, 6.0])],
                BY_HAND,
            ),
            Case::oracle(
                "slices_multiplied",
                &[
                    ("data", sample(&[3, 2, 4], 1)),
                    ("indices", values(DType::Int32, &[2, 1, 2], &[2.0, 0.0, 0.0, 1.0])),
                    ("updates", sample(&[2, 1, 4], 2)),
                    ("mode", text("mul")),
                ],
            ),
        ],
        ..scatters(
            "scatter_nd",
            "data with the slices whose leading coordinates the last axis of indices names replaced by updates or combined with \
             them in order; coordinates outside of data are left out.",
            |a| {
                let (data, indices) = (a.array("data")?, a.array("indices")?);
                let depth = indices.ty.shape.last().copied().unwrap_or(1).max(1);
                let strides = data.strides();
                let slice = data.ty.shape.iter().skip(depth).product();
                let offset = |coordinates: &[f64]| {
                    let mut axes = coordinates.iter().zip(&data.ty.shape).zip(&strides);
                    axes.try_fold(0, |at, ((&index, &extent), &step)| Some(at + inside(index, extent)? * step))
                };
                write(a, indices.data.chunks(depth).map(offset), slice)
            },
        )
    },
];

fn same_as_data(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let data = a.ty("data")?;
    result(a, data.dtype, data.shape.clone())
}

/// The indices, where they are known before the program runs.
fn known<'a>(a: &Arguments<'a>) -> Option<&'a [f64]> {
    a.get("indices").and_then(|indices| indices.value.as_ref()).map(|indices| indices.data.as_slice())
}

/// An index counted from either end; `None` outside.
fn inside(index: f64, extent: usize) -> Option<usize> {
    let index = if index < 0.0 { index + extent as f64 } else { index };
    (index >= 0.0 && index < extent as f64).then_some(index as usize)
}

/// Combines the slices of `updates`, each `slice` elements long, with data at the given offsets.
fn write(a: &Arguments<'_>, offsets: impl Iterator<Item = Option<usize>>, slice: usize) -> Result<Vec<Array>, OpError> {
    let (mut data, updates) = (a.array("data")?.clone(), a.array("updates")?);
    let combine: fn(f64, f64) -> f64 = match a.text("mode") {
        Some("update") => |_, update| update,
        Some("sub") => |value, update| value - update,
        Some("mul") => |value, update| value * update,
        Some("div") => |value, update| value / update,
        Some("max") => f64::max,
        Some("min") => f64::min,
        _ => |value, update| value + update,
    };
    for (offset, updates) in offsets.zip(updates.data.chunks(slice.max(1))) {
        let Some(offset) = offset else { continue };
        data.data[offset..].iter_mut().zip(updates).for_each(|(value, &update)| *value = combine(*value, update));
    }
    Ok(vec![data])
}
