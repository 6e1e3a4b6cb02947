//! Shape changes that keep every value: reshape and its relatives, transpose, reverse, tile, pad.

use super::family::{axes, base, integers, or, rule, same_as_x};
use super::general::{computed, result};
use super::{
    ALL_FAMILIES, ANY, Arguments, Arithmetic, Case, Constraint, Default, FLOATS, MilOp, OpError, TEXT, constant, float, given, int,
    ints, sample, tensor, text,
};
use crate::{Array, TensorType};

const BY_HAND: &str = "by hand";
const RAMP: super::Given = given(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
const RAMP_VALUES: &[f64] = &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

/// An operator that only moves values.
const fn moves(
    name: &'static str,
    summary: &'static str,
    infer: fn(&Arguments<'_>) -> Result<Vec<TensorType>, OpError>,
    meaning: fn(&Arguments<'_>) -> Result<Vec<Array>, OpError>,
) -> MilOp {
    MilOp { arithmetic: Arithmetic::Copy, tolerance: 0.0, ..base(name, summary, infer, meaning) }
}

const AXES_OF_X: Constraint = rule("C1", "axes are distinct axes of x", |a| axes(a, "axes", a.shape("x").len()).is_some());

pub(super) const OPS: &[MilOp] = &[
    MilOp {
        ports: &[tensor("x", ANY)],
        cases: &[Case::new("same_again", &[("x", RAMP)], &[(&[2, 3], RAMP_VALUES)], BY_HAND)],
        ..moves("identity", "x.", same_as_x, |a| Ok(vec![a.array("x")?.clone()]))
    },
    MilOp {
        ports: &[tensor("x", ANY), integers("shape", Default::Required)],
        constraints: &[
            rule("C1", "shape holds extents, at most one -1 for what is left, and 0 only where it is as long as x has axes", |a| {
                let Some(shape) = a.ints("shape") else { return false };
                let free = shape.iter().filter(|&&extent| extent == -1).count();
                let copied = shape.contains(&0);
                free <= 1 && shape.iter().all(|&extent| extent >= -1) && (!copied || shape.len() == a.shape("x").len())
            }),
            rule("C2", "the new shape has as many elements as x", |a| new_shape(a).is_some()),
        ],
        cases: &[
            Case::new("rows_to_columns", &[("x", RAMP), ("shape", ints(&[2], &[3.0, 2.0]))], &[(&[3, 2], RAMP_VALUES)], BY_HAND),
            Case::new(
                "what_is_left",
                &[("x", RAMP), ("shape", ints(&[3], &[1.0, -1.0, 2.0]))],
                &[(&[1, 3, 2], RAMP_VALUES)],
                BY_HAND,
            ),
            Case::new(
                "zero_copies_the_extent",
                &[("x", RAMP), ("shape", ints(&[2], &[0.0, -1.0]))],
                &[(&[2, 3], RAMP_VALUES)],
                BY_HAND,
            ),
            Case::new("to_a_scalar", &[("x", given(&[1, 1], &[7.0])), ("shape", ints(&[0], &[]))], &[(&[], &[7.0])], BY_HAND),
        ],
        ..moves(
            "reshape",
            "The values of x in their order under another shape.",
            |a| result(a, a.ty("x")?.dtype, new_shape(a).unwrap_or_else(|| vec![0])),
            |a| Ok(vec![a.array("x")?.clone().reshaped(new_shape(a).unwrap_or_default())]),
        )
    },
    MilOp {
        ports: &[tensor("x", ANY), integers("perm", Default::Required)],
        constraints: &[rule("C1", "perm names every axis of x once", |a| {
            a.has("perm") && axes(a, "perm", a.shape("x").len()).is_some_and(|perm| perm.len() == a.shape("x").len())
        })],
        cases: &[
            Case::new(
                "matrix",
                &[("x", RAMP), ("perm", ints(&[2], &[1.0, 0.0]))],
                &[(&[3, 2], &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0])],
                BY_HAND,
            ),
            Case::oracle("split_heads", &[("x", sample(&[1, 5, 2, 3], 1)), ("perm", ints(&[4], &[0.0, 2.0, 1.0, -1.0]))]),
        ],
        ..moves(
            "transpose",
            "The axes of x in another order.",
            |a| {
                let x = a.ty("x")?;
                let perm = axes(a, "perm", x.rank()).unwrap_or_default();
                result(a, x.dtype, perm.iter().map(|&axis| x.shape[axis]).collect())
            },
            |a| {
                let x = a.array("x")?;
                Ok(vec![x.transposed(&axes(a, "perm", x.ty.rank()).unwrap_or_default())])
            },
        )
    },
    MilOp {
        ports: &[tensor("x", ANY), integers("axes", Default::Absent)],
        constraints: &[
            AXES_OF_X,
            rule("C2", "the named axes have extent 1: use reshape for others", |a| {
                let named = axes(a, "axes", a.shape("x").len()).unwrap_or_default();
                !a.has("axes") || named.iter().all(|&axis| a.shape("x")[axis] == 1)
            }),
        ],
        cases: &[
            Case::new("every_axis_of_one", &[("x", given(&[1, 2, 1], &[1.0, 2.0]))], &[(&[2], &[1.0, 2.0])], BY_HAND),
            Case::new(
                "named_axis",
                &[("x", given(&[1, 2, 1], &[1.0, 2.0])), ("axes", ints(&[1], &[-1.0]))],
                &[(&[1, 2], &[1.0, 2.0])],
                BY_HAND,
            ),
        ],
        ..moves(
            "squeeze",
            "x without its axes of extent 1, or without those of them that axes names.",
            |a| result(a, a.ty("x")?.dtype, squeezed(a)),
            |a| Ok(vec![a.array("x")?.clone().reshaped(squeezed(a))]),
        )
    },
    MilOp {
        ports: &[tensor("x", ANY), integers("axes", Default::Required)],
        constraints: &[rule("C1", "axes are distinct axes of the result", |a| {
            let rank = a.shape("x").len() + a.ints("axes").map_or(0, |axes| axes.len());
            a.has("axes") && axes(a, "axes", rank).is_some()
        })],
        cases: &[
            Case::new(
                "in_front_and_at_the_end",
                &[("x", given(&[2], &[1.0, 2.0])), ("axes", ints(&[2], &[-1.0, 0.0]))],
                &[(&[1, 2, 1], &[1.0, 2.0])],
                BY_HAND,
            ),
            Case::new("of_a_scalar", &[("x", given(&[], &[5.0])), ("axes", ints(&[1], &[0.0]))], &[(&[1], &[5.0])], BY_HAND),
        ],
        ..moves(
            "expand_dims",
            "x with new axes of extent 1 where axes names places in the result.",
            |a| result(a, a.ty("x")?.dtype, expanded(a)),
            |a| Ok(vec![a.array("x")?.clone().reshaped(expanded(a))]),
        )
    },
    MilOp {
        ports: &[tensor("x", ANY), integers("axis", Default::Int(1))],
        constraints: &[rule("C1", "axis is between minus the number of axes of x and that number", |a| {
            let rank = a.shape("x").len() as i64;
            a.int("axis").is_some_and(|axis| (-rank..=rank).contains(&axis))
        })],
        cases: &[
            Case::new("keeps_the_batch", &[("x", given(&[1, 2, 3], RAMP_VALUES))], &[(&[1, 6], RAMP_VALUES)], BY_HAND),
            Case::new(
                "splits_elsewhere",
                &[("x", given(&[1, 2, 3], RAMP_VALUES)), ("axis", int(&[-1.0]))],
                &[(&[2, 3], RAMP_VALUES)],
                BY_HAND,
            ),
        ],
        ..moves(
            "flatten2d",
            "x as a matrix: the axes before axis and those from it on.",
            |a| result(a, a.ty("x")?.dtype, flattened(a)),
            |a| Ok(vec![a.array("x")?.clone().reshaped(flattened(a))]),
        )
    },
    MilOp {
        ports: &[tensor("x", ANY), integers("axes", Default::Absent)],
        constraints: &[AXES_OF_X],
        cases: &[
            Case::new("every_axis", &[("x", RAMP)], &[(&[2, 3], &[6.0, 5.0, 4.0, 3.0, 2.0, 1.0])], BY_HAND),
            Case::new(
                "within_rows",
                &[("x", RAMP), ("axes", ints(&[1], &[-1.0]))],
                &[(&[2, 3], &[3.0, 2.0, 1.0, 6.0, 5.0, 4.0])],
                BY_HAND,
            ),
        ],
        ..moves("reverse", "x backwards along axes, all of them by default.", same_as_x, reverse)
    },
    MilOp {
        ports: &[tensor("x", ANY), integers("reps", Default::Required)],
        constraints: &[rule("C1", "reps has one positive integer per axis of x", |a| {
            a.ints("reps").is_some_and(|reps| reps.len() == a.shape("x").len() && reps.iter().all(|&times| times > 0))
        })],
        cases: &[
            Case::new(
                "twice_to_the_right",
                &[("x", given(&[2, 1], &[1.0, 2.0])), ("reps", ints(&[2], &[1.0, 2.0]))],
                &[(&[2, 2], &[1.0, 1.0, 2.0, 2.0])],
                BY_HAND,
            ),
            Case::new(
                "rows_again",
                &[("x", given(&[1, 2], &[1.0, 2.0])), ("reps", ints(&[2], &[3.0, 1.0]))],
                &[(&[3, 2], &[1.0, 2.0, 1.0, 2.0, 1.0, 2.0])],
                BY_HAND,
            ),
        ],
        support: ALL_FAMILIES.limited("factors 2, 3, 4 and 8"),
        ..moves("tile", "x repeated along every axis.", infer_tile, tile)
    },
    MilOp {
        ports: &[
            tensor("x", FLOATS),
            integers("pad", Default::Required),
            constant("mode", TEXT, Default::Text("constant")),
            or("constant_val", 0.0),
        ],
        constraints: &[
            rule("C1", "pad has two integers that are not negative per padded axis, the last axes of x", |a| {
                a.ints("pad").is_some_and(|pad| {
                    pad.len() % 2 == 0 && pad.len() / 2 <= a.shape("x").len() && pad.iter().all(|&extra| extra >= 0)
                })
            }),
            rule("C2", "mode is constant, reflect or replicate", |a| {
                matches!(a.text("mode"), Some("constant" | "reflect" | "replicate"))
            }),
            rule("C3", "reflect pads less than the axis is long, replicate at most that", |a| {
                let slack = match a.text("mode") {
                    Some("reflect") => 1,
                    Some("replicate") => 0,
                    _ => return true,
                };
                padding(a).iter().zip(a.shape("x")).all(|(&(before, after), &extent)| before.max(after) + slack <= extent as i128)
            }),
        ],
        cases: &[
            Case::new(
                "a_value_around",
                &[("x", given(&[1, 2], &[1.0, 2.0])), ("pad", ints(&[4], &[1.0, 0.0, 0.0, 2.0])), ("constant_val", float(&[9.0]))],
                &[(&[2, 4], &[9.0, 9.0, 9.0, 9.0, 1.0, 2.0, 9.0, 9.0])],
                BY_HAND,
            ),
            Case::new(
                "mirrored_without_the_edge",
                &[("x", given(&[1, 3], &[1.0, 2.0, 3.0])), ("pad", ints(&[2], &[2.0, 1.0])), ("mode", text("reflect"))],
                &[(&[1, 6], &[3.0, 2.0, 1.0, 2.0, 3.0, 2.0])],
                BY_HAND,
            ),
            Case::new(
                "the_edge_again",
                &[("x", given(&[1, 2], &[1.0, 2.0])), ("pad", ints(&[2], &[1.0, 2.0])), ("mode", text("replicate"))],
                &[(&[1, 5], &[1.0, 1.0, 2.0, 2.0, 2.0])],
                BY_HAND,
            ),
        ],
        support: ALL_FAMILIES.limited("constant padding; reflecting and symmetric padding is software on the M1"),
        ..moves("pad", "x with a border on its last axes.", infer_pad, pad)
    },
];

fn new_shape(a: &Arguments<'_>) -> Option<Vec<usize>> {
    let (x, wanted) = (a.shape("x"), a.ints("shape")?);
    let count = x.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent))?;
    let mut shape = Vec::with_capacity(wanted.len());
    for (axis, &extent) in wanted.iter().enumerate() {
        shape.push(match extent {
            -1 => 1,
            0 => *x.get(axis)?,
            _ => usize::try_from(extent).ok()?,
        });
    }
    let known = shape.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent))?;
    if let Some(free) = wanted.iter().position(|&extent| extent == -1) {
        shape[free] = count.checked_div(known)?;
        return (shape[free].checked_mul(known)? == count).then_some(shape);
    }
    (known == count).then_some(shape)
}

fn squeezed(a: &Arguments<'_>) -> Vec<usize> {
    let x = a.shape("x");
    let named = axes(a, "axes", x.len()).unwrap_or_default();
    x.iter().enumerate().filter(|(axis, extent)| **extent != 1 || !named.contains(axis)).map(|(_, &extent)| extent).collect()
}

fn expanded(a: &Arguments<'_>) -> Vec<usize> {
    let x = a.shape("x");
    let rank = x.len() + a.ints("axes").map_or(0, |axes| axes.len());
    let new = axes(a, "axes", rank).unwrap_or_default();
    let mut old = x.iter().copied();
    (0..rank).map(|axis| if new.contains(&axis) { 1 } else { old.next().unwrap_or(1) }).collect()
}

fn flattened(a: &Arguments<'_>) -> Vec<usize> {
    let x = a.shape("x");
    let axis = a.int("axis").unwrap_or(1);
    let axis = usize::try_from(if axis < 0 { axis + x.len() as i64 } else { axis }).unwrap_or(0).min(x.len());
    vec![x[..axis].iter().product(), x[axis..].iter().product()]
}

fn reverse(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let x = a.array("x")?;
    let backwards = axes(a, "axes", x.ty.rank()).unwrap_or_default();
    let mut offset = 0;
    let mut steps: Vec<_> = x.strides().into_iter().map(|step| step as isize).collect();
    for axis in backwards {
        offset += (x.ty.shape[axis] - 1) * steps[axis] as usize;
        steps[axis] = -steps[axis];
    }
    Ok(vec![x.strided(offset, &x.ty.shape, &steps)])
}

fn infer_tile(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let x = a.ty("x")?;
    let reps = a.ints("reps").unwrap_or_default();
    computed(a, x.dtype, x.shape.iter().zip(&reps).map(|(&extent, &times)| extent as i128 * i128::from(times)).collect())
}

fn tile(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let x = a.array("x")?;
    let reps = a.ints("reps").unwrap_or_default();
    let ty = infer_tile(a)?.remove(0);
    // Every axis is seen as [times, extent] with a step of 0 along times.
    let (mut shape, mut steps) = (Vec::new(), Vec::new());
    for ((&extent, step), &times) in x.ty.shape.iter().zip(x.strides()).zip(&reps) {
        shape.extend([times as usize, extent]);
        steps.extend([0, step as isize]);
    }
    Ok(vec![x.strided(0, &shape, &steps).reshaped(ty.shape)])
}

/// Elements before and after each axis of `x`.
fn padding(a: &Arguments<'_>) -> Vec<(i128, i128)> {
    let given = a.ints("pad").unwrap_or_default();
    let rank = a.shape("x").len();
    let first = rank.saturating_sub(given.len() / 2);
    let pair = |axis: usize| {
        let at = 2 * (axis - first);
        (i128::from(given[at]), i128::from(given[at + 1]))
    };
    (0..rank).map(|axis| if axis < first { (0, 0) } else { pair(axis) }).collect()
}

fn infer_pad(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let x = a.ty("x")?;
    computed(a, x.dtype, x.shape.iter().zip(padding(a)).map(|(&extent, (before, after))| extent as i128 + before + after).collect())
}

fn pad(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let x = a.array("x")?;
    let ty = infer_pad(a)?.remove(0);
    let (mode, value) = (a.text("mode"), a.number("constant_val").unwrap_or(0.0));
    let (padding, steps) = (padding(a), x.strides());
    // Where an index along one axis comes from; nowhere in the border of a constant.
    let source = |axis: usize, index: usize| {
        let extent = x.ty.shape[axis] as i128;
        let at = index as i128 - padding[axis].0;
        if (0..extent).contains(&at) {
            return Some(at as usize);
        }
        match mode {
            Some("reflect") => Some(if at < 0 { -at } else { 2 * (extent - 1) - at } as usize),
            Some("replicate") => Some(at.clamp(0, extent - 1) as usize),
            _ => None,
        }
    };
    let element = |mut index: usize| {
        let mut from = Some(0);
        for axis in (0..ty.shape.len()).rev() {
            let place = source(axis, index % ty.shape[axis]);
            from = from.zip(place).map(|(from, place)| from + place * steps[axis]);
            index /= ty.shape[axis];
        }
        from.map_or(value, |from| x.data[from])
    };
    let data = (0..ty.count()).map(element).collect();
    Ok(vec![Array { ty, data }])
}
