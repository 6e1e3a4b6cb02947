//! Operators that change shapes and take parts.

use super::normalization::wide;
use super::*;

/// A record for operators that move any kind of element.
pub(super) const fn moving(name: &'static str, summary: &'static str, vjp: fn(&mut Backward<'_>)) -> GraphOp {
    GraphOp { inputs: X_ANY, tolerance: 0.0, vjp: Vjp::Rule(vjp), ..direct(name, summary) }
}

/// The gradient keeps its elements and takes x's shape.
fn reshape_back(b: &mut Backward<'_>) {
    let grad = b.grad().reshape(&wide(b.site().shape("x")));
    b.give("x", grad);
}

/// The shape with an extent of -1 computed from the others; `None` where the elements do not fit.
pub(crate) fn resolve_shape(from: &[usize], to: &[i64]) -> Option<Vec<i64>> {
    let count = i64::try_from(from.iter().product::<usize>()).ok()?;
    let known = to.iter().filter(|&&extent| extent != -1).try_fold(1i64, |product, &extent| product.checked_mul(extent))?;
    let open = to.iter().filter(|&&extent| extent == -1).count();
    if to.iter().any(|&extent| extent < -1 || extent == 0) || open > 1 || (open == 0 && known != count) {
        return None;
    }
    (count % known == 0).then(|| to.iter().map(|&extent| if extent == -1 { count / known } else { extent }).collect())
}

/// New shape.
pub static RESHAPE: GraphOp = GraphOp {
    attributes: &[ints("shape", Default::Required)],
    constraints: &[rule(
        "C1",
        "shape holds as many elements as x; one extent may be -1 and is computed, the others are positive",
        |s| resolve_shape(s.shape("x"), s.ints("shape")).is_some(),
        Case::refused(&[drawn("x", &[2, 3])], &[("shape", Default::Ints(&[4, -1]))]),
    )],
    lower: |l, s| {
        let shape = resolve_shape(s.shape("x"), s.ints("shape")).unwrap_or_default();
        l.ops("reshape", &[("x", s.value("x")?.into()), ("shape", shape.into())])
    },
    cases: &[Case::values(
        "rows_into_columns",
        &[given("x", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])],
        &[("shape", Default::Ints(&[3, -1]))],
        (&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        "by hand",
    )],
    ..moving("reshape", "The elements of x in the same order under another shape.", reshape_back)
};
/// Axes in another order.
pub static TRANSPOSE: GraphOp = GraphOp {
    attributes: &[ints("perm", Default::Required)],
    constraints: &[rule(
        "C1",
        "perm names every axis of x once",
        |s| s.axes("perm", s.rank("x")).is_some_and(|perm| perm.len() == s.rank("x")),
        Case::refused(&[drawn("x", &[2, 3])], &[("perm", Default::Ints(&[0, 0]))]),
    )],
    lower: |l, s| {
        let perm = s.axes("perm", s.rank("x")).unwrap_or_default();
        l.ops("transpose", &[("x", s.value("x")?.into()), ("perm", perm.into())])
    },
    cases: &[
        Case::values(
            "rows_become_columns",
            &[given("x", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])],
            &[("perm", Default::Ints(&[1, 0]))],
            (&[3, 2], &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]),
            "by hand",
        ),
        Case::shape("heads_forward", &[drawn("x", &[1, 5, 2, 3])], &[("perm", Default::Ints(&[0, 2, 1, 3]))], &[1, 2, 5, 3]),
    ],
    ..moving("transpose", "The axes of x in the order of perm.", |b| {
        let s = b.site();
        let perm = s.axes("perm", s.rank("x")).unwrap_or_default();
        let mut inverse = vec![0; perm.len()];
        perm.iter().enumerate().for_each(|(to, &from)| inverse[from] = to as i64);
        let grad = b.grad().transpose(&inverse);
        b.give("x", grad);
    })
};
/// Axes of extent 1 removed.
pub static SQUEEZE: GraphOp = GraphOp {
    attributes: &[ints("axes", Default::Required)],
    constraints: &[rule(
        "C1",
        "axes are distinct axes of x with extent 1",
        |s| s.axes("axes", s.rank("x")).is_some_and(|axes| !axes.is_empty() && axes.iter().all(|&axis| s.shape("x")[axis] == 1)),
        Case::refused(&[drawn("x", &[2, 3])], &[("axes", Default::Ints(&[0]))]),
    )],
    cases: &[Case::shape("two_axes", &[drawn("x", &[1, 3, 1])], &[("axes", Default::Ints(&[0, -1]))], &[3])],
    ..moving("squeeze", "x without some axes of extent 1.", reshape_back)
};
/// Axes of extent 1 added.
pub static EXPAND_DIMS: GraphOp = GraphOp {
    attributes: &[ints("axes", Default::Required)],
    constraints: &[rule(
        "C1",
        "axes are distinct axes of the result, which has at most 5",
        |s| {
            let rank = s.rank("x") + s.ints("axes").len();
            rank <= 5 && s.axes("axes", rank).is_some_and(|axes| !axes.is_empty())
        },
        Case::refused(&[drawn("x", &[2, 3])], &[("axes", Default::Ints(&[3]))]),
    )],
    lower: |l, s| {
        let axes = s.axes("axes", s.rank("x") + s.ints("axes").len()).unwrap_or_default();
        l.ops("expand_dims", &[("x", s.value("x")?.into()), ("axes", axes.into())])
    },
    cases: &[Case::shape("around", &[drawn("x", &[2, 3])], &[("axes", Default::Ints(&[0, -1]))], &[1, 2, 3, 1])],
    ..moving("expand_dims", "x with axes of extent 1 added where axes of the result say.", reshape_back)
};
/// Two axes of all.
pub static FLATTEN2D: GraphOp = GraphOp {
    attributes: &[int("axis", Default::Int(1))],
    constraints: &[rule(
        "C1",
        "axis is an axis of x",
        |s| s.axis("axis", s.rank("x")).is_some(),
        Case::refused(&[drawn("x", &[2, 3])], &[("axis", Default::Int(2))]),
    )],
    cases: &[Case::shape("from_the_second_axis", &[drawn("x", &[2, 3, 4])], &[], &[2, 12])],
    ..moving("flatten2d", "x with the axes before axis merged into one and the others into another.", reshape_back)
};
/// A block.
pub static SLICE_BY_SIZE: GraphOp = GraphOp {
    attributes: &[ints("begin", Default::Required), ints("size", Default::Required)],
    constraints: &[
        rule(
            "C1",
            "begin and size have one entry per axis of x",
            |s| s.ints("begin").len() == s.rank("x") && s.ints("size").len() == s.rank("x"),
            Case::refused(&[drawn("x", &[2, 3])], &[("begin", Default::Ints(&[0])), ("size", Default::Ints(&[1]))]),
        ),
        rule(
            "C2",
            "begin is not negative, size at least 1, and begin plus size at most the extent of x",
            |s| {
                s.shape("x").iter().zip(s.ints("begin")).zip(s.ints("size")).all(|((&extent, &begin), &size)| {
                    begin >= 0 && size >= 1 && begin.checked_add(size).is_some_and(|end| end <= extent as i64)
                })
            },
            Case::refused(&[drawn("x", &[2, 3])], &[("begin", Default::Ints(&[0, 2])), ("size", Default::Ints(&[2, 2]))]),
        ),
    ],
    cases: &[Case::values(
        "right_column",
        &[given("x", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])],
        &[("begin", Default::Ints(&[0, 2])), ("size", Default::Ints(&[2, 1]))],
        (&[2, 1], &[3.0, 6.0]),
        "by hand",
    )],
    ..moving("slice_by_size", "The block of x that starts at begin and has shape size.", |b| {
        let s = b.site();
        let pads: Vec<i64> = s
            .shape("x")
            .iter()
            .zip(s.ints("begin").iter().zip(s.ints("size")))
            .flat_map(|(&extent, (&begin, &size))| [begin, extent as i64 - begin - size])
            .collect();
        let grad = b.grad().pad(&pads, 0.0);
        b.give("x", grad);
    })
};
/// Tensors one after the other.
pub static CONCAT: GraphOp = GraphOp {
    inputs: &[variadic("values", ANY)],
    attributes: &[int("axis", Default::Int(0))],
    constraints: &[
        rule(
            "C1",
            "axis is an axis of the values",
            |s| s.axis("axis", s.rank("values")).is_some(),
            Case::refused(&[drawn("values", &[2, 3])], &[("axis", Default::Int(2))]),
        ),
        rule(
            "C2",
            "values have the same element type and the same shape but for axis",
            |s| {
                let axis = s.axis("axis", s.rank("values")).unwrap_or(0);
                s.all("values").iter().all(|ty| {
                    let same = ty.shape.iter().zip(s.shape("values")).enumerate().all(|(at, (a, b))| at == axis || a == b);
                    ty.dtype == s.dtype("values") && ty.rank() == s.rank("values") && same
                })
            },
            Case::refused(&[drawn("values", &[2, 3]), drawn("values", &[3, 4])], &[]),
        ),
    ],
    lower: |l, s| {
        let axis = s.axis("axis", s.rank("values")).unwrap_or(0) as i64;
        l.ops("concat", &[("values", s.values_at("values").into()), ("axis", axis.into()), ("interleave", false.into())])
    },
    cases: &[Case::values(
        "columns_side_by_side",
        &[given("values", &[2, 1], &[1.0, 4.0]), given("values", &[2, 2], &[2.0, 3.0, 5.0, 6.0])],
        &[("axis", Default::Int(-1))],
        (&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        "by hand",
    )],
    ..moving("concat", "values one after the other along axis.", |b| {
        let s = b.site();
        let axis = s.axis("axis", s.rank("values")).unwrap_or(0);
        let shapes: Vec<Vec<usize>> = s.all("values").iter().map(|ty| ty.shape.clone()).collect();
        let mut begin = vec![0i64; shapes[0].len()];
        for (index, shape) in shapes.iter().enumerate() {
            let grad = b.grad().slice_by_size(&begin, &wide(shape));
            b.give_at("values", index, grad);
            begin[axis] += shape[axis] as i64;
        }
    })
};
/// Tensors along a new axis.
pub static STACK: GraphOp = GraphOp {
    inputs: &[variadic("values", ANY)],
    attributes: &[int("axis", Default::Int(0))],
    constraints: &[
        rule(
            "C1",
            "axis is an axis of the result, which has at most 5",
            |s| s.rank("values") < 5 && s.axis("axis", s.rank("values") + 1).is_some(),
            Case::refused(&[drawn("values", &[2, 3])], &[("axis", Default::Int(3))]),
        ),
        rule(
            "C2",
            "values have the same element type and the same shape",
            |s| s.all("values").iter().all(|ty| *ty == s.all("values")[0]),
            Case::refused(&[drawn("values", &[2, 3]), drawn("values", &[2, 4])], &[]),
        ),
    ],
    lower: |l, s| {
        let axis = s.axis("axis", s.rank("values") + 1).unwrap_or(0) as i64;
        l.ops("stack", &[("values", s.values_at("values").into()), ("axis", axis.into())])
    },
    cases: &[Case::values(
        "rows_become_columns",
        &[given("values", &[2], &[1.0, 2.0]), given("values", &[2], &[3.0, 4.0])],
        &[("axis", Default::Int(1))],
        (&[2, 2], &[1.0, 3.0, 2.0, 4.0]),
        "by hand",
    )],
    ..moving("stack", "values along a new axis.", |b| {
        let s = b.site();
        let axis = s.axis("axis", s.rank("values") + 1).unwrap_or(0);
        let shape = wide(s.shape("values"));
        let mut size = shape.clone();
        size.insert(axis, 1);
        for index in 0..s.all("values").len() {
            let mut begin = vec![0; size.len()];
            begin[axis] = index as i64;
            let grad = b.grad().slice_by_size(&begin, &size).reshape(&shape);
            b.give_at("values", index, grad);
        }
    })
};
/// Equal parts.
pub static SPLIT: GraphOp = GraphOp {
    attributes: &[int("num_splits", Default::Required), int("axis", Default::Int(0))],
    constraints: &[
        rule(
            "C1",
            "axis is an axis of x",
            |s| s.axis("axis", s.rank("x")).is_some(),
            Case::refused(&[drawn("x", &[2, 3])], &[("num_splits", Default::Int(1)), ("axis", Default::Int(2))]),
        ),
        rule(
            "C2",
            "num_splits divides the extent of x at axis; use slice_by_size for unequal parts",
            |s| {
                let extent = s.axis("axis", s.rank("x")).map_or(0, |axis| s.shape("x")[axis]);
                s.size("num_splits").is_some_and(|parts| parts > 0 && extent.is_multiple_of(parts))
            },
            Case::refused(&[drawn("x", &[4, 3])], &[("num_splits", Default::Int(3))]),
        ),
    ],
    cases: &[Case::values(
        "first_of_two_halves",
        &[given("x", &[2, 4], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])],
        &[("num_splits", Default::Int(2)), ("axis", Default::Int(1))],
        (&[2, 2], &[1.0, 2.0, 5.0, 6.0]),
        "by hand",
    )],
    ..moving("split", "x cut into num_splits equal parts along axis.", |b| {
        let (parts, axis) = (b.site().size("num_splits").unwrap_or(1), b.site().int("axis"));
        let grads: Vec<Tensor> = (0..parts).map(|part| b.grad_of(part)).collect();
        b.give("x", crate::concat(&grads, axis));
    })
};
/// Repetition.
pub static TILE: GraphOp = GraphOp {
    attributes: &[ints("reps", Default::Required)],
    constraints: &[rule(
        "C1",
        "reps has one positive integer per axis of x",
        |s| s.ints("reps").len() == s.rank("x") && s.ints("reps").iter().all(|&reps| reps >= 1),
        Case::refused(&[drawn("x", &[2, 3])], &[("reps", Default::Ints(&[2]))]),
    )],
    lower: |l, s| {
        let reps: Vec<usize> = s.ints("reps").iter().map(|&count| usize::try_from(count).unwrap_or(1)).collect();
        Ok(vec![l.repeated(s.value("x")?, &reps)?])
    },
    cases: &[Case::values(
        "twice_and_thrice",
        &[given("x", &[1, 2], &[1.0, 2.0])],
        &[("reps", Default::Ints(&[2, 3]))],
        (&[2, 6], &[1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0]),
        "by hand",
    )],
    ..moving("tile", "x repeated along each axis.", |b| {
        let s = b.site();
        let (shape, reps) = (s.shape("x"), s.ints("reps"));
        let mut grad = b.grad();
        let mut extents: Vec<usize> = shape.iter().zip(reps).map(|(&extent, &reps)| extent * reps as usize).collect();
        // One axis at a time, so that the rank never passes four.
        for (axis, &reps) in reps.iter().enumerate().filter(|(_, reps)| **reps > 1) {
            let outer: usize = extents[..axis].iter().product();
            let inner: usize = extents[axis + 1..].iter().product();
            extents[axis] = shape[axis];
            grad =
                grad.reshape(&[outer as i64, reps, shape[axis] as i64, inner as i64]).reduce_sum(1, false).reshape(&wide(&extents));
        }
        b.give("x", grad);
    })
};
/// Reversal.
pub static REVERSE: GraphOp = GraphOp {
    attributes: &[ints("axes", Default::Required)],
    constraints: &[rule(
        "C1",
        "axes are distinct axes of x, at least one",
        |s| s.axes("axes", s.rank("x")).is_some_and(|axes| !axes.is_empty()),
        Case::refused(&[drawn("x", &[2, 3])], &[("axes", Default::Ints(&[1, 1]))]),
    )],
    cases: &[Case::values(
        "columns_backwards",
        &[given("x", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])],
        &[("axes", Default::Ints(&[-1]))],
        (&[2, 3], &[3.0, 2.0, 1.0, 6.0, 5.0, 4.0]),
        "by hand",
    )],
    ..moving("reverse", "x backwards along axes.", |b| {
        let grad = b.grad().reverse(b.site().ints("axes").to_vec());
        b.give("x", grad);
    })
};
pub(super) const ALL: &[&GraphOp] =
    &[&RESHAPE, &TRANSPOSE, &SQUEEZE, &EXPAND_DIMS, &FLATTEN2D, &SLICE_BY_SIZE, &CONCAT, &STACK, &SPLIT, &TILE, &REVERSE];
