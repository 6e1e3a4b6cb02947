//! Places of extremes, the largest few, and sorting, many rows at once.

use super::*;
use aneforge_native::layer;

const ROWS: Sample = given("x", &[2, 6], &[3.0, 1.0, 2.0, 1.5, -1.0, 0.0, 0.0, -5.0, 7.0, 6.0, 2.0, 9.0]);
const FIVE: Sample = drawn("x", &[1, 1, 1, 1, 2]);
const EXACT: &str = "indices come out as fp16, which is exact up to 2048: the axis has at most 2048 places";
const CHOICE: Vjp = Vjp::None("a place has no derivative");

/// Place of the largest value.
pub static ARGMAX: GraphOp = GraphOp {
    attributes: &[int("axis", Default::Int(-1)), flag("smallest", false)],
    constraints: &[
        rule("C1", AXES, |s| fits(s, "x"), Case::refused(&[FIVE], &[])),
        rule(
            "C2",
            "axis is an axis of x, and not the batch, the first of four: transpose x",
            |s| s.axis("axis", s.rank("x")).is_some_and(|axis| dimension(s.rank("x"), axis).is_some()),
            Case::refused(&[drawn("x", &[2, 1, 1, 3])], &[("axis", Default::Int(0))]),
        ),
        rule(
            "C3",
            EXACT,
            |s| s.axis("axis", s.rank("x")).is_some_and(|axis| s.shape("x")[axis] <= layer::LARGEST_INDEX),
            Case::refused(&[drawn("x", &[1, 2049])], &[]),
        ),
    ],
    vjp: CHOICE,
    tolerance: 0.0,
    cases: &[
        Case::values("rows", &[ROWS], &[], (&[2, 1], &[0.0, 5.0]), "numpy.argmax"),
        Case::values("columns", &[ROWS], &[("axis", Default::Int(0))], (&[1, 6], &[0.0, 0.0, 1.0, 1.0, 1.0, 1.0]), "numpy.argmax"),
        Case::values("smallest", &[ROWS], &[("smallest", Default::Flag(true))], (&[2, 1], &[4.0, 1.0]), "numpy.argmin"),
        Case::shape("channels_of_images", &[drawn("x", &[2, 5, 2, 3])], &[("axis", Default::Int(1))], &[2, 1, 2, 3]),
    ],
    ..native("argmax", "The place of the largest or smallest value along an axis, which stays with extent 1.", |l, s| {
        let rank = s.rank("x");
        let axis = s.axis("axis", rank).unwrap_or(0);
        let x = four(l, s.value("x")?)?;
        let kind = if s.flag("smallest") { "Min" } else { "Max" };
        let arguments = [("x", x.into()), ("Type", word(kind)), ("Dimension", word(dimension(rank, axis).unwrap_or("Width")))];
        let found = super::layer(l, &layer::GLOBAL_ARG_MIN_MAX, &arguments)?;
        let mut shape = s.shape("x").to_vec();
        shape[axis] = 1;
        Ok(vec![l.reshaped(found, &shape)?])
    })
};

fn last(s: &Site<'_>) -> usize {
    s.shape("x").last().copied().unwrap_or(0)
}

fn exact(s: &Site<'_>) -> bool {
    !s.flag("indices") || last(s) <= layer::LARGEST_INDEX
}

/// The rows of `x` in the height of one image.
fn rows(l: &mut Lowering, s: &Site<'_>) -> Result<ValueId, GraphError> {
    let shape = s.shape("x");
    let count = shape.iter().rev().skip(1).product();
    l.reshaped(s.value("x")?, &[1, 1, count, last(s)])
}

/// Rows back in the shape of `x`, except for the last axis.
fn unrowed(l: &mut Lowering, s: &Site<'_>, value: ValueId, extent: usize) -> Result<ValueId, GraphError> {
    let mut shape = s.shape("x").to_vec();
    if let Some(last) = shape.last_mut() {
        *last = extent;
    }
    l.reshaped(value, &shape)
}

/// Parameters of both layers for rows that are sorted by themselves.
fn by_row(s: &Site<'_>, x: ValueId) -> Vec<(&'static str, Arg)> {
    let mut arguments = vec![
        ("x", x.into()),
        ("SortDimension", word("Width")),
        ("VectorDimension", word("Channel")),
        ("SortIndices", vec![0i64].into()),
    ];
    if s.flag("indices") {
        arguments.push(("Indices", true.into()));
    }
    arguments
}

/// Gives each value's gradient to the place it came from, which the same layer tells; places themselves have none. The axis may have
/// 2048 places, as for the layer that tells them.
fn to_places(b: &mut Backward<'_>, places: impl Fn(&Tensor) -> Tensor) {
    if !b.site().flag("indices") {
        let (x, shape) = (b.input("x"), b.site().shape("x").to_vec());
        let grad = super::super::pick::scatter_along(&b.grad(), &places(&x), &shape, shape.len() - 1);
        b.give("x", grad);
    }
}

/// The largest few of each row.
pub static TOPK: GraphOp = GraphOp {
    attributes: &[int("k", Default::Required), flag("largest", true), flag("indices", false)],
    constraints: &[
        rule("C1", AXES, |s| fits(s, "x"), Case::refused(&[FIVE], &[("k", Default::Int(1))])),
        rule(
            "C2",
            "k is at least 1 and at most the extent of the last axis",
            |s| s.size("k").is_some_and(|k| (1..=last(s)).contains(&k)),
            Case::refused(&[ROWS], &[("k", Default::Int(7))]),
        ),
        rule(
            "C3",
            EXACT,
            exact,
            Case::refused(&[drawn("x", &[1, 2049])], &[("k", Default::Int(1)), ("indices", Default::Flag(true))]),
        ),
    ],
    vjp: Vjp::Rule(|b| {
        let s = b.site();
        let (k, largest) = (s.size("k").unwrap_or(1), s.flag("largest"));
        to_places(b, |x| x.topk_indices(k, largest));
    }),
    tolerance: 0.0,
    cases: &[
        Case::values("two", &[ROWS], &[("k", Default::Int(2))], (&[2, 2], &[3.0, 2.0, 9.0, 7.0]), "numpy.sort"),
        Case::values(
            "three_through_five",
            &[ROWS],
            &[("k", Default::Int(3)), ("largest", Default::Flag(false))],
            (&[2, 3], &[-1.0, 0.0, 1.0, -5.0, 0.0, 2.0]),
            "numpy.sort",
        ),
        Case::values(
            "places",
            &[ROWS],
            &[("k", Default::Int(2)), ("indices", Default::Flag(true))],
            (&[2, 2], &[0.0, 2.0, 5.0, 2.0]),
            "numpy.argsort",
        ),
        Case::values(
            "all_four",
            &[given("x", &[4], &[2.0, 4.0, 1.0, 3.0])],
            &[("k", Default::Int(4))],
            (&[4], &[4.0, 3.0, 2.0, 1.0]),
            "numpy.sort",
        ),
    ],
    ..native("topk", "The k largest or smallest values of each row along the last axis, in order; or their places.", |l, s| {
        let (k, width, x) = (s.size("k").unwrap_or(1), last(s), rows(l, s)?);
        let mut arguments = by_row(s, x);
        // Code generation refuses 3 and 4: five are asked for, or all are sorted, and the first ones kept.
        let asked = if matches!(k, 3 | 4) { 5 } else { k };
        let ranked = if asked <= width {
            arguments.extend([("Type", word(if s.flag("largest") { "Max" } else { "Min" })), ("K", int_arg(asked))]);
            super::layer(l, &layer::TOP_K, &arguments)?
        } else {
            arguments.push(("Direction", word(if s.flag("largest") { "Descending" } else { "Ascending" })));
            super::layer(l, &layer::SORT, &arguments)?
        };
        let kept = match l.shape(ranked).last() {
            Some(&made) if made != k => {
                let view = [("x", ranked.into()), ("Dimension", word("Width")), ("Offset", int_arg(0)), ("Size", int_arg(k))];
                super::layer(l, &layer::INPUT_VIEW, &view)?
            }
            _ => ranked,
        };
        Ok(vec![unrowed(l, s, kept, k)?])
    })
};

/// Rows in order.
pub static SORT: GraphOp = GraphOp {
    attributes: &[flag("descending", false), flag("indices", false)],
    constraints: &[
        rule("C1", AXES, |s| fits(s, "x"), Case::refused(&[FIVE], &[])),
        rule("C2", EXACT, exact, Case::refused(&[drawn("x", &[1, 2049])], &[("indices", Default::Flag(true))])),
    ],
    vjp: Vjp::Rule(|b| {
        let descending = b.site().flag("descending");
        to_places(b, |x| x.sort_indices(descending));
    }),
    tolerance: 0.0,
    cases: &[
        Case::values(
            "rows",
            &[ROWS],
            &[],
            (&[2, 6], &[-1.0, 0.0, 1.0, 1.5, 2.0, 3.0, -5.0, 0.0, 2.0, 6.0, 7.0, 9.0]),
            "numpy.sort",
        ),
        Case::values(
            "places",
            &[ROWS],
            &[("descending", Default::Flag(true)), ("indices", Default::Flag(true))],
            (&[2, 6], &[0.0, 2.0, 3.0, 1.0, 5.0, 4.0, 5.0, 2.0, 3.0, 4.0, 0.0, 1.0]),
            "numpy.argsort",
        ),
        Case::shape("any_axes_in_front", &[drawn("x", &[2, 3, 2, 5])], &[], &[2, 3, 2, 5]),
    ],
    ..native("sort", "The values of each row along the last axis in order; or their places.", |l, s| {
        let x = rows(l, s)?;
        let mut arguments = by_row(s, x);
        arguments.push(("Direction", word(if s.flag("descending") { "Descending" } else { "Ascending" })));
        let sorted = super::layer(l, &layer::SORT, &arguments)?;
        Ok(vec![unrowed(l, s, sorted, last(s))?])
    })
};
