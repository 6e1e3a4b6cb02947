//! Slices and crops.

use super::family::{base, integers, rule, same_as_x};
use super::general::{computed, result};
use super::{
    ANY, Arguments, Arithmetic, BOOL, BRIDGED, Case, Constraint, Default, FLOATS, MilOp, Support, constant, given, ints, sample,
    tensor, values,
};
use crate::DType;

const BY_HAND: &str = "by hand";
/// The width-slice hazard.
const CROPS: Arithmetic = Arithmetic::Modelled(
    "moves bits; on A13 and A14 a slice that starts inside the last axis goes through a fixed-point copy that turns magnitudes \
     above 4094 into infinity (arXiv 2606.22283, chapters 3 and 12)",
);
/// No native form, and none needed.
const FOLDED: Support = BRIDGED.limited("a known offset folds into its neighbours");
const RAMP: super::Given = given(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);

const ONE_PER_AXIS: Constraint = rule("C1", "begin, end, stride and the masks have one element per axis of x", |a| {
    let fits = |port| a.ints(port).is_none_or(|list| list.len() == a.shape("x").len());
    ["begin", "end", "stride", "begin_mask", "end_mask", "squeeze_mask"].into_iter().all(fits)
});
const STEPS: Constraint = rule("C2", "no stride is 0", |a| a.ints("stride").is_none_or(|strides| !strides.contains(&0)));
const SOMETHING: Constraint =
    rule("C3", "the slice is not empty, and a squeezed axis has an element at begin", |a| indexed(a).is_some());

pub(super) const OPS: &[MilOp] = &[
    MilOp {
        ports: &[tensor("x", ANY), integers("begin", Default::Required), integers("size", Default::Required)],
        constraints: &[
            rule("C1", "begin and size have one integer per axis of x", |a| {
                let fits = |port| a.ints(port).is_some_and(|list| list.len() == a.shape("x").len());
                fits("begin") && fits("size")
            }),
            rule("C2", "the slice lies within x and is not empty; size -1 takes what is left", |a| sized(a).is_some()),
        ],
        arithmetic: CROPS,
        tolerance: 0.0,
        cases: &[
            Case::new(
                "inner_block",
                &[("x", RAMP), ("begin", ints(&[2], &[0.0, 1.0])), ("size", ints(&[2], &[2.0, 2.0]))],
                &[(&[2, 2], &[2.0, 3.0, 5.0, 6.0])],
                BY_HAND,
            ),
            Case::new(
                "from_the_end_to_the_end",
                &[("x", RAMP), ("begin", ints(&[2], &[-1.0, 1.0])), ("size", ints(&[2], &[1.0, -1.0]))],
                &[(&[1, 2], &[5.0, 6.0])],
                BY_HAND,
            ),
        ],
        ..base(
            "slice_by_size",
            "The block of x that starts at begin and is size large.",
            |a| {
                let sized = sized(a).unwrap_or_else(|| vec![(0, 0)]);
                result(a, a.ty("x")?.dtype, sized.iter().map(|&(_, size)| size).collect())
            },
            |a| {
                let x = a.array("x")?;
                let strides = x.strides();
                let sized = sized(a).unwrap_or_default();
                let offset = sized.iter().zip(&strides).map(|((begin, _), step)| begin * step).sum();
                let shape: Vec<_> = sized.iter().map(|&(_, size)| size).collect();
                Ok(vec![x.strided(offset, &shape, &strides.iter().map(|&step| step as isize).collect::<Vec<_>>())])
            },
        )
    },
    MilOp {
        ports: &[
            tensor("x", ANY),
            integers("begin", Default::Required),
            integers("end", Default::Required),
            integers("stride", Default::Absent),
            constant("begin_mask", BOOL, Default::Absent),
            constant("end_mask", BOOL, Default::Absent),
            constant("squeeze_mask", BOOL, Default::Absent),
        ],
        constraints: &[ONE_PER_AXIS, STEPS, SOMETHING],
        arithmetic: CROPS,
        support: FOLDED,
        tolerance: 0.0,
        cases: &[
            Case::new(
                "half_open_ranges",
                &[("x", RAMP), ("begin", ints(&[2], &[0.0, 1.0])), ("end", ints(&[2], &[1.0, 3.0]))],
                &[(&[1, 2], &[2.0, 3.0])],
                BY_HAND,
            ),
            Case::new(
                "backwards_with_masks",
                &[
                    ("x", RAMP),
                    ("begin", ints(&[2], &[0.0, 0.0])),
                    ("end", ints(&[2], &[0.0, 0.0])),
                    ("stride", ints(&[2], &[1.0, -2.0])),
                    ("begin_mask", values(DType::Bool, &[2], &[1.0, 1.0])),
                    ("end_mask", values(DType::Bool, &[2], &[1.0, 1.0])),
                ],
                &[(&[2, 2], &[3.0, 1.0, 6.0, 4.0])],
                BY_HAND,
            ),
            Case::new(
                "one_row_without_its_axis",
                &[
                    ("x", RAMP),
                    ("begin", ints(&[2], &[-1.0, 0.0])),
                    ("end", ints(&[2], &[0.0, 99.0])),
                    ("squeeze_mask", values(DType::Bool, &[2], &[1.0, 0.0])),
                ],
                &[(&[3], &[4.0, 5.0, 6.0])],
                BY_HAND,
            ),
        ],
        ..base(
            "slice_by_index",
            "x[begin:end:stride] per axis by Python's rules; masked ends are open, squeezed axes go.",
            |a| {
                let picks = indexed(a).unwrap_or_else(|| vec![Pick { first: 0, step: 1, count: 0, squeezed: false }]);
                result(a, a.ty("x")?.dtype, sliced(&picks))
            },
            |a| {
                let x = a.array("x")?;
                let picks = indexed(a).unwrap_or_default();
                let strides = x.strides();
                let offset = picks.iter().zip(&strides).map(|(pick, step)| pick.first * step).sum();
                let kept = || picks.iter().zip(&strides).filter(|(pick, _)| !pick.squeezed);
                let shape: Vec<_> = kept().map(|(pick, _)| pick.count).collect();
                let steps: Vec<_> = kept().map(|(pick, &step)| pick.step as isize * step as isize).collect();
                Ok(vec![x.strided(offset, &shape, &steps)])
            },
        )
    },
    MilOp {
        opset: "ios18",
        ports: &[
            tensor("x", ANY),
            tensor("update", ANY),
            integers("begin", Default::Required),
            integers("end", Default::Required),
            integers("stride", Default::Absent),
            constant("begin_mask", BOOL, Default::Absent),
            constant("end_mask", BOOL, Default::Absent),
            constant("squeeze_mask", BOOL, Default::Absent),
        ],
        constraints: &[
            ONE_PER_AXIS,
            STEPS,
            SOMETHING,
            rule("C4", "update has the element type of x and the shape of the slice, with at least one axis", |a| {
                let same = a.get("x").zip(a.get("update")).is_none_or(|(x, update)| x.ty.dtype == update.ty.dtype);
                same && !a.shape("update").is_empty() && sliced(&indexed(a).unwrap_or_default()) == a.shape("update")
            }),
        ],
        arithmetic: Arithmetic::Copy,
        tolerance: 0.0,
        cases: &[
            Case::new(
                "a_column_is_replaced",
                &[
                    ("x", RAMP),
                    ("update", given(&[2, 1], &[-1.0, -2.0])),
                    ("begin", ints(&[2], &[0.0, 1.0])),
                    ("end", ints(&[2], &[2.0, 2.0])),
                ],
                &[(&[2, 3], &[1.0, -1.0, 3.0, 4.0, -2.0, 6.0])],
                BY_HAND,
            ),
            Case::new(
                "backwards_into_a_row_without_its_axis",
                &[
                    ("x", RAMP),
                    ("update", given(&[2], &[10.0, 20.0])),
                    ("begin", ints(&[2], &[-1.0, 0.0])),
                    ("end", ints(&[2], &[0.0, 0.0])),
                    ("stride", ints(&[2], &[1.0, -2.0])),
                    ("begin_mask", values(DType::Bool, &[2], &[0.0, 1.0])),
                    ("end_mask", values(DType::Bool, &[2], &[0.0, 1.0])),
                    ("squeeze_mask", values(DType::Bool, &[2], &[1.0, 0.0])),
                ],
                &[(&[2, 3], &[1.0, 2.0, 3.0, 20.0, 5.0, 10.0])],
                BY_HAND,
            ),
            Case::oracle(
                "a_step_of_a_cache",
                &[
                    ("x", sample(&[1, 2, 6, 3], 1)),
                    ("update", sample(&[1, 2, 1, 3], 2)),
                    ("begin", ints(&[4], &[0.0, 0.0, 4.0, 0.0])),
                    ("end", ints(&[4], &[1.0, 2.0, 5.0, 3.0])),
                ],
            ),
        ],
        ..base("slice_update", "x with x[begin:end:stride] replaced by update.", same_as_x, |a| {
            let (mut x, update) = (a.array("x")?.clone(), a.array("update")?);
            let picks = indexed(a).unwrap_or_default();
            let strides = x.strides();
            for (place, &value) in update.data.iter().enumerate() {
                let (mut place, mut at) = (place, 0);
                for (pick, step) in picks.iter().zip(&strides).rev() {
                    let index = pick.first as i64 + (place % pick.count) as i64 * pick.step;
                    place /= pick.count;
                    at += index as usize * step;
                }
                x.data[at] = value;
            }
            Ok(vec![x])
        })
    },
    MilOp {
        ports: &[tensor("x", FLOATS), integers("crop_height", Default::Required), integers("crop_width", Default::Required)],
        constraints: &[
            rule("C1", "x has 3 to 5 axes: reshape x", |a| a.shape("x").len() >= 3),
            rule("C2", "crop_height and crop_width have two integers each that are not negative", |a| {
                ["crop_height", "crop_width"]
                    .iter()
                    .all(|port| a.ints(port).is_some_and(|cut| cut.len() == 2 && cut.iter().all(|&rows| rows >= 0)))
            }),
            rule("C3", "something is left", |a| cropped(a).iter().all(|&extent| extent > 0)),
        ],
        tolerance: 0.0,
        cases: &[Case::new(
            "a_border_goes",
            &[
                ("x", given(&[1, 2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])),
                ("crop_height", ints(&[2], &[1.0, 0.0])),
                ("crop_width", ints(&[2], &[1.0, 1.0])),
            ],
            &[(&[1, 1, 1], &[5.0])],
            BY_HAND,
        )],
        ..base(
            "crop",
            "x without rows at top and bottom and columns at left and right.",
            |a| computed(a, a.ty("x")?.dtype, cropped(a)),
            |a| {
                let x = a.array("x")?;
                let shape: Vec<_> = cropped(a).iter().map(|&extent| extent as usize).collect();
                let strides = x.strides();
                let rank = strides.len();
                let first = |port| a.ints(port).and_then(|cut| cut.first().copied()).unwrap_or(0) as usize;
                let offset = first("crop_height") * strides[rank - 2] + first("crop_width");
                Ok(vec![x.strided(offset, &shape, &strides.iter().map(|&step| step as isize).collect::<Vec<_>>())])
            },
        )
    },
];

/// Begin and size per axis of a legal `slice_by_size`.
fn sized(a: &Arguments<'_>) -> Option<Vec<(usize, usize)>> {
    let (begin, size) = (a.ints("begin")?, a.ints("size")?);
    let axis = |((&extent, &begin), &size): ((&usize, &i64), &i64)| {
        let begin = usize::try_from(if begin < 0 { i64::try_from(extent).ok()?.checked_add(begin)? } else { begin }).ok()?;
        let left = extent.checked_sub(begin)?;
        let size = if size == -1 { left } else { usize::try_from(size).ok()? };
        (size > 0 && size <= left).then_some((begin, size))
    };
    a.shape("x").iter().zip(&begin).zip(&size).map(axis).collect()
}

/// What a slice takes of one axis.
struct Pick {
    first: usize,
    step: i64,
    count: usize,
    squeezed: bool,
}

/// The shape of a slice.
fn sliced(picks: &[Pick]) -> Vec<usize> {
    picks.iter().filter(|pick| !pick.squeezed).map(|pick| pick.count).collect()
}

/// One pick per axis of a legal `slice_by_index`.
fn indexed(a: &Arguments<'_>) -> Option<Vec<Pick>> {
    let (begin, end) = (a.ints("begin")?, a.ints("end")?);
    let (stride, begin_mask, end_mask) = (a.ints("stride"), a.ints("begin_mask"), a.ints("end_mask"));
    let squeeze = a.ints("squeeze_mask");
    let set = |mask: &Option<Vec<i64>>, axis: usize| mask.as_ref().and_then(|mask| mask.get(axis)).is_some_and(|&bit| bit != 0);
    let one = |(axis, &extent): (usize, &usize)| {
        let extent = i64::try_from(extent).ok()?;
        let (begin, end) = (*begin.get(axis)?, *end.get(axis)?);
        let step = stride.as_ref().and_then(|stride| stride.get(axis).copied()).unwrap_or(1);
        let wrapped = |index: i64| if index < 0 { index.saturating_add(extent) } else { index };
        if set(&squeeze, axis) {
            let first = wrapped(if set(&begin_mask, axis) { 0 } else { begin });
            return (0..extent).contains(&first).then_some(Pick { first: first as usize, step: 1, count: 1, squeezed: true });
        }
        // Python: ends are wrapped once and then moved to the nearest place a step can start or stop at.
        let (low, high) = if step > 0 { (0, extent) } else { (-1, extent - 1) };
        let first = if set(&begin_mask, axis) { if step > 0 { low } else { high } } else { wrapped(begin).clamp(low, high) };
        let last = if set(&end_mask, axis) { if step > 0 { high } else { low } } else { wrapped(end).clamp(low, high) };
        let span = if step > 0 { last - first } else { first - last };
        let count = usize::try_from(span).ok()?.div_ceil(usize::try_from(step.unsigned_abs()).ok()?.max(1));
        (count > 0).then_some(Pick { first: first as usize, step, count, squeezed: false })
    };
    a.shape("x").iter().enumerate().map(one).collect()
}

fn cropped(a: &Arguments<'_>) -> Vec<i128> {
    let mut shape: Vec<_> = a.shape("x").iter().map(|&extent| extent as i128).collect();
    let rank = shape.len();
    for (from_end, port) in [(2, "crop_height"), (1, "crop_width")] {
        let cut: i128 = a.ints(port).unwrap_or_default().iter().map(|&rows| i128::from(rows)).sum();
        if let Some(extent) = rank.checked_sub(from_end).and_then(|axis| shape.get_mut(axis)) {
            *extent -= cut;
        }
    }
    shape
}
