//! Slices with steps, and writing into slices.

use super::*;

const ATTRIBUTES: &[AttributeSpec] =
    &[ints("begin", Default::Required), ints("end", Default::Absent), ints("stride", Default::Absent)];

/// What is taken along one axis, with a step that is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// First place.
    begin: usize,
    /// Places taken, at least one.
    count: usize,
    /// Distance between them.
    step: i64,
}

impl Run {
    /// Python's `begin:end:step`; an `end` that is absent is open. `None` where nothing is taken or the step is 0.
    pub(crate) fn resolved(extent: usize, begin: Option<i64>, end: Option<i64>, step: i64) -> Option<Self> {
        let extent = i64::try_from(extent).ok()?;
        let front = |place: i64| if place < 0 { place.saturating_add(extent) } else { place };
        let (low, high) = if step > 0 { (0, extent) } else { (-1, extent - 1) };
        let first = if step > 0 { 0 } else { extent - 1 };
        let open = if step > 0 { extent } else { -1 };
        let begin = begin.map_or(first, front).clamp(low, high);
        let end = end.map_or(open, front).clamp(low, high);
        let distance = if step > 0 { end - begin } else { begin - end };
        if step == 0 || distance <= 0 {
            return None;
        }
        let count = (distance - 1) / step.checked_abs()? + 1;
        Some(Self { begin: usize::try_from(begin).ok()?, count: usize::try_from(count).ok()?, step })
    }

    fn is_whole(&self, extent: usize) -> bool {
        self.begin == 0 && self.count == extent && self.step == 1
    }

    fn size(&self) -> usize {
        self.step.unsigned_abs() as usize
    }

    /// The places in an axis that has been reversed where the step is negative, with a positive step.
    fn forward(&self, extent: usize) -> usize {
        if self.step < 0 { extent - 1 - self.begin } else { self.begin }
    }

    fn places(&self) -> impl Iterator<Item = usize> + use<> {
        let (begin, step) = (self.begin as i64, self.step);
        (0..self.count as i64).map(move |index| (begin + index * step) as usize)
    }
}

/// The runs of a use along the axes of a shape.
fn runs(s: &Site<'_>, shape: &[usize]) -> Option<Vec<Run>> {
    let begin = s.ints("begin");
    let given = |name: &str| !matches!(s.attribute(name), Attribute::Absent);
    let fits = |name: &str| !given(name) || s.ints(name).len() == shape.len();
    if begin.len() != shape.len() || !fits("end") || !fits("stride") {
        return None;
    }
    let run = |(axis, &extent): (usize, &usize)| {
        let end = s.ints("end").get(axis).copied().filter(|&end| end != i64::MAX && end != i64::MIN);
        Run::resolved(extent, Some(begin[axis]), end, s.ints("stride").get(axis).copied().unwrap_or(1))
    };
    shape.iter().enumerate().map(run).collect()
}

fn fixed_size(l: &mut Lowering, x: ValueId, begin: &[usize], size: &[usize]) -> Result<ValueId, GraphError> {
    l.op("slice_by_size", &[("x", x.into()), ("begin", begin.into()), ("size", size.into())])
}

/// One axis of a slice. The axis is never the last one while it is cut, since A13 and A14 cut that one through a narrow format.
fn take_run(l: &mut Lowering, x: ValueId, axis: usize, run: Run) -> Result<ValueId, GraphError> {
    let mut shape = l.shape(x).to_vec();
    let extent = shape[axis];
    if run.is_whole(extent) {
        return Ok(x);
    }
    let (outer, inner): (usize, usize) = (shape[..axis].iter().product(), shape[axis + 1..].iter().product());
    let x = if run.step < 0 { l.op("reverse", &[("x", x.into()), ("axes", vec![axis as i64].into())])? } else { x };
    let mut rows = l.reshaped(x, &[outer, extent, inner])?;
    let (begin, step) = (run.forward(extent), if run.count == 1 { 1 } else { run.size() });
    let needed = run.count * step;
    if step == 1 {
        rows = fixed_size(l, rows, &[0, begin, 0], &[outer, run.count, inner])?;
    } else if l.ty(rows).dtype.is_float() || begin + needed <= extent {
        rows = zeros_around(l, rows, 1, 0, (begin + needed).saturating_sub(extent))?;
        rows = every(l, rows, begin, step, run.count)?;
    } else {
        // Only floats can be padded: the last place is taken by itself.
        let front = every(l, rows, begin, step, run.count - 1)?;
        let last = fixed_size(l, rows, &[0, begin + (run.count - 1) * step, 0], &[outer, 1, inner])?;
        rows = l.op("concat", &[("values", vec![front, last].into()), ("axis", 1i64.into()), ("interleave", false.into())])?;
    }
    shape[axis] = run.count;
    l.reshaped(rows, &shape)
}

/// Every `step`th row of `[outer, rows, inner]` from `begin` on: the first of each group of rows.
fn every(l: &mut Lowering, rows: ValueId, begin: usize, step: usize, count: usize) -> Result<ValueId, GraphError> {
    let &[outer, extent, inner] = l.shape(rows) else { return Ok(rows) };
    let rows = if begin == 0 && count * step == extent {
        rows
    } else {
        fixed_size(l, rows, &[0, begin, 0], &[outer, count * step, inner])?
    };
    let groups = l.reshaped(rows, &[outer, count, step, inner])?;
    let first = fixed_size(l, groups, &[0, 0, 0, 0], &[outer, count, 1, inner])?;
    l.reshaped(first, &[outer, count, inner])
}

/// The reverse of [`take_run`]: the elements back at their places, zeros between them.
fn spread_run(l: &mut Lowering, part: ValueId, axis: usize, extent: usize, run: Run) -> Result<ValueId, GraphError> {
    let mut shape = l.shape(part).to_vec();
    if run.is_whole(extent) {
        return Ok(part);
    }
    let (outer, inner): (usize, usize) = (shape[..axis].iter().product(), shape[axis + 1..].iter().product());
    let step = if run.count == 1 { 1 } else { run.size() };
    let length = run.count * step;
    let mut rows = l.reshaped(part, &[outer, run.count, 1, inner])?;
    if step > 1 {
        rows = zeros_around(l, rows, 2, 0, step - 1)?;
    }
    rows = l.reshaped(rows, &[outer, length, inner])?;
    let begin = run.forward(extent);
    if begin + length > extent {
        rows = fixed_size(l, rows, &[0, 0, 0], &[outer, extent - begin, inner])?;
    }
    rows = zeros_around(l, rows, 1, begin, extent.saturating_sub(begin + length))?;
    shape[axis] = extent;
    let full = l.reshaped(rows, &shape)?;
    if run.step < 0 { l.op("reverse", &[("x", full.into()), ("axes", vec![axis as i64].into())]) } else { Ok(full) }
}

fn zeros_around(l: &mut Lowering, x: ValueId, axis: usize, before: usize, after: usize) -> Result<ValueId, GraphError> {
    if before + after == 0 {
        return Ok(x);
    }
    let mut pad = vec![0; 2 * l.shape(x).len()];
    (pad[2 * axis], pad[2 * axis + 1]) = (before, after);
    l.op("pad", &[("x", x.into()), ("pad", pad.into()), ("mode", "constant".into())])
}

/// Spreads a part over zeros of a shape.
fn spread(l: &mut Lowering, mut part: ValueId, shape: &[usize], runs: &[Run]) -> Result<ValueId, GraphError> {
    for (axis, &run) in runs.iter().enumerate() {
        part = spread_run(l, part, axis, shape[axis], run)?;
    }
    Ok(part)
}

const RUNS: &str = "begin, and end and stride where they are given, have one entry per axis of x, no stride is 0, and every axis \
                    keeps something; bounds count as in Python, an end of the largest or smallest integer is open";

/// Slice with steps.
pub static SLICE_BY_INDEX: GraphOp = GraphOp {
    inputs: X_ANY,
    attributes: ATTRIBUTES,
    constraints: &[rule(
        "C1",
        RUNS,
        |s| runs(s, s.shape("x")).is_some(),
        Case::refused(&[drawn("x", &[2, 3])], &[("begin", Default::Ints(&[0, 2])), ("end", Default::Ints(&[2, 1]))]),
    )],
    tolerance: 0.0,
    lower: |l, s| {
        let mut x = s.value("x")?;
        for (axis, run) in runs(s, s.shape("x")).unwrap_or_default().into_iter().enumerate() {
            x = take_run(l, x, axis, run)?;
        }
        Ok(vec![x])
    },
    cases: &[
        Case::values(
            "every_other_backwards",
            &[given("x", &[2, 5], &[0.0, 1.0, 2.0, 3.0, 4.0, 10.0, 11.0, 12.0, 13.0, 14.0])],
            &[
                ("begin", Default::Ints(&[0, -1])),
                ("end", Default::Ints(&[i64::MAX, i64::MIN])),
                ("stride", Default::Ints(&[1, -2])),
            ],
            (&[2, 3], &[4.0, 2.0, 0.0, 14.0, 12.0, 10.0]),
            "numpy: x[:, ::-2]",
        ),
        Case::values(
            "integers_every_third",
            &[given("x", &[5], &[0.0, 1.0, 2.0, 3.0, 4.0]).of(DType::Int32)],
            &[("begin", Default::Ints(&[1])), ("stride", Default::Ints(&[3]))],
            (&[2], &[1.0, 4.0]),
            "numpy: x[1::3]",
        ),
        Case::shape(
            "steps_on_every_axis",
            &[drawn("x", &[5, 6, 7])],
            &[("begin", Default::Ints(&[1, 0, 5])), ("end", Default::Ints(&[4, 6, 0])), ("stride", Default::Ints(&[2, 3, -2]))],
            &[2, 2, 3],
        ),
        Case::shape("bounds_past_the_ends", &[drawn("x", &[3, 4])], &[("begin", Default::Ints(&[-9, 1]))], &[3, 3]),
    ],
    vjp: Vjp::Rule(|b| {
        let s = b.site();
        let grad = b.grad().slice_spread(s.shape("x"), s.ints("begin"), s.ints("end"), s.ints("stride"));
        b.give("x", grad);
    }),
    ..direct("slice_by_index", "x[begin:end:stride] on each axis, as in Python.")
};

/// Writing into a slice.
pub static SLICE_UPDATE: GraphOp = GraphOp {
    inputs: &[input("x", FLOATS), input("update", FLOATS)],
    attributes: ATTRIBUTES,
    constraints: &[
        rule(
            "C1",
            RUNS,
            |s| runs(s, s.shape("x")).is_some(),
            Case::refused(&[drawn("x", &[2, 3]), drawn("update", &[2, 3])], &[("begin", Default::Ints(&[0]))]),
        ),
        rule(
            "C2",
            "update has the element type of x and the shape of the slice",
            |s| {
                let counts: Vec<usize> = runs(s, s.shape("x")).unwrap_or_default().iter().map(|run| run.count).collect();
                s.shape("update") == counts && s.dtype("update") == s.dtype("x")
            },
            Case::refused(&[drawn("x", &[2, 3]), drawn("update", &[2, 3])], &[("begin", Default::Ints(&[0, 1]))]),
        ),
    ],
    tolerance: 0.0,
    lower: lower_update,
    cases: &[
        Case::values(
            "a_column",
            &[given("x", &[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), given("update", &[2, 1], &[10.0, 20.0])],
            &[("begin", Default::Ints(&[0, 1])), ("end", Default::Ints(&[2, 2]))],
            (&[2, 3], &[0.0, 10.0, 2.0, 3.0, 20.0, 5.0]),
            "by hand",
        ),
        Case::values(
            "every_other_place_backwards",
            &[given("x", &[5], &[0.0; 5]), given("update", &[3], &[1.0, 2.0, 3.0])],
            &[("begin", Default::Ints(&[4])), ("end", Default::Ints(&[i64::MIN])), ("stride", Default::Ints(&[-2]))],
            (&[5], &[3.0, 0.0, 2.0, 0.0, 1.0]),
            "numpy: x[4::-2] = update",
        ),
        Case::shape(
            "a_block",
            &[drawn("x", &[4, 5]), drawn("update", &[2, 2])],
            &[("begin", Default::Ints(&[1, 2])), ("end", Default::Ints(&[3, 4]))],
            &[4, 5],
        ),
    ],
    vjp: Vjp::Rule(|b| {
        let grad = b.grad();
        if b.wants("update") {
            let s = b.site();
            let part = grad.slice_by_index(s.ints("begin"), s.ints("end"), s.ints("stride"));
            b.give("update", part);
        }
        if b.wants("x") {
            let s = b.site();
            let nothing = b.input("update").constant_like(0.0).broadcast_to(s.shape("update"));
            let kept = grad.slice_update(&nothing, s.ints("begin"), s.ints("end"), s.ints("stride"));
            b.give("x", kept);
        }
    }),
    ..direct("slice_update", "x with x[begin:end:stride] replaced by update, as in Python.")
};

/// The update spread over the shape of x by zeros, chosen where the slice lies.
fn lower_update(l: &mut Lowering, s: &Site<'_>) -> Result<Vec<ValueId>, GraphError> {
    let shape = s.shape("x").to_vec();
    let runs = runs(s, &shape).unwrap_or_default();
    let part = spread(l, s.value("update")?, &shape, &runs)?;
    // Axes that are taken whole need no extent in the mask.
    let narrow: Vec<usize> = shape.iter().zip(&runs).map(|(&extent, run)| if run.is_whole(extent) { 1 } else { extent }).collect();
    let mut mask = vec![1.0; narrow.iter().product()];
    for (axis, run) in runs.iter().enumerate().filter(|(axis, _)| narrow[*axis] > 1) {
        let mut taken = vec![false; narrow[axis]];
        run.places().for_each(|place| taken[place] = true);
        let inner: usize = narrow[axis + 1..].iter().product();
        mask.iter_mut().enumerate().filter(|(at, _)| !taken[at / inner % narrow[axis]]).for_each(|(_, flag)| *flag = 0.0);
    }
    let mask = l.constant("mask", TensorType::new(DType::Bool, narrow), &mask)?;
    l.ops("select", &[("cond", mask.into()), ("a", part.into()), ("b", s.value("x")?.into())])
}

fn spread_shape(s: &Site<'_>) -> Vec<usize> {
    s.ints("shape").iter().map(|&extent| usize::try_from(extent).unwrap_or(0)).collect()
}

/// A slice spread over zeros.
pub static SLICE_SPREAD: GraphOp = GraphOp {
    attributes: &[
        ints("shape", Default::Required),
        ints("begin", Default::Required),
        ints("end", Default::Absent),
        ints("stride", Default::Absent),
    ],
    constraints: &[rule(
        "C1",
        "x has the shape of the slice begin:end:stride of a tensor of the given shape, whose extents are positive",
        |s| {
            let fits = s.ints("shape").iter().all(|extent| (1..1 << 32).contains(extent));
            let runs = if fits { runs(s, &spread_shape(s)) } else { None };
            runs.is_some_and(|runs| s.rank("x") == runs.len() && s.shape("x").iter().zip(&runs).all(|(&x, run)| x == run.count))
        },
        Case::refused(&[drawn("x", &[2])], &[("shape", Default::Ints(&[4])), ("begin", Default::Ints(&[3]))]),
    )],
    tolerance: 0.0,
    lower: |l, s| {
        let shape = spread_shape(s);
        let runs = runs(s, &shape).unwrap_or_default();
        Ok(vec![spread(l, s.value("x")?, &shape, &runs)?])
    },
    cases: &[Case::values(
        "every_other_place_backwards",
        &[given("x", &[2], &[1.0, 2.0])],
        &[
            ("shape", Default::Ints(&[5])),
            ("begin", Default::Ints(&[3])),
            ("end", Default::Ints(&[i64::MIN])),
            ("stride", Default::Ints(&[-2])),
        ],
        (&[5], &[0.0, 2.0, 0.0, 1.0, 0.0]),
        "numpy: zeros(5)[3::-2] = x",
    )],
    vjp: Vjp::Rule(|b| {
        let s = b.site();
        let grad = b.grad().slice_by_index(s.ints("begin"), s.ints("end"), s.ints("stride"));
        b.give("x", grad);
    }),
    ..direct("slice_spread", "Zeros of a shape with x at the slice begin:end:stride, as in Python.")
};

pub(super) const ALL: &[&GraphOp] = &[&SLICE_BY_INDEX, &SLICE_UPDATE, &SLICE_SPREAD];
