//! Look-ups.

use super::*;

/// Look-up along an axis.
pub static GATHER: GraphOp = GraphOp {
    inputs: &[input("x", ANY), input("indices", INDICES)],
    attributes: &[int("axis", Default::Int(0))],
    constraints: &[
        rule(
            "C1",
            "axis is an axis of x",
            |s| s.axis("axis", s.rank("x")).is_some(),
            Case::refused(&[drawn("x", &[2, 3]), given("indices", &[1], &[0.0]).of(DType::Int32)], &[("axis", Default::Int(2))]),
        ),
        rule(
            "C2",
            "the result has at most 5 axes: those of x without axis, and those of indices; reshape one of them",
            |s| s.rank("x") + s.rank("indices") <= 6,
            Case::refused(&[drawn("x", &[2, 1, 1, 1]), given("indices", &[1, 1, 1], &[0.0]).of(DType::Int32)], &[]),
        ),
    ],
    tolerance: 0.0,
    cases: &[
        Case::values(
            "rows_of_a_table",
            &[
                given("x", &[3, 2], &[0.0, 1.0, 10.0, 11.0, 20.0, 21.0]),
                given("indices", &[2, 2], &[2.0, 0.0, 1.0, 2.0]).of(DType::Int32),
            ],
            &[],
            (&[2, 2, 2], &[20.0, 21.0, 0.0, 1.0, 10.0, 11.0, 20.0, 21.0]),
            "by hand",
        ),
        Case::values(
            "columns",
            &[
                given("x", &[2, 3], &[0.0, 1.0, 2.0, 10.0, 11.0, 12.0]),
                given("indices", &[2], &[2.0, 0.0]).of(DType::Int32).fixed(),
            ],
            &[("axis", Default::Int(1))],
            (&[2, 2], &[2.0, 0.0, 12.0, 10.0]),
            "by hand",
        ),
    ],
    vjp: Vjp::Rule(|b| {
        if b.wants("x") {
            let grad = gather_gradient(b);
            b.give("x", grad);
        }
    }),
    ..direct("gather", "The slices of x along axis that indices name, in their order.")
};

/// Adds each slice of the gradient where it came from: a product with the matrix that is 1 where an index names a slice.
fn gather_gradient(b: &Backward<'_>) -> Tensor {
    let s = b.site();
    let (shape, count) = (s.shape("x"), s.shape("indices").iter().product::<usize>());
    let axis = s.axis("axis", shape.len()).unwrap_or(0);
    let outer: usize = shape[..axis].iter().product();
    let inner: usize = shape[axis + 1..].iter().product();
    let hit = one_hot(&b.input("indices").reshape(&[1, count as i64]), shape[axis], &[shape[axis], 1], &b.grad());
    let grad = b.grad().reshape(&[outer as i64, count as i64, inner as i64]);
    let all: Vec<i64> = shape.iter().map(|&extent| extent as i64).collect();
    hit.matmul(&grad).reshape(&all)
}

/// 1 where a place of an axis of extent `extent`, laid out as `shape`, is the one that an index names from either end, else 0, in
/// the element type of `like`.
pub(super) fn one_hot(indices: &Tensor, extent: usize, shape: &[usize], like: &Tensor) -> Tensor {
    let Ok(dtype) = indices.dtype() else { return indices.clone() };
    let hit = |offset: f64| {
        let places: Vec<f64> = (0..extent).map(|place| place as f64 - offset).collect();
        let places = indices.graph().values(dtype, shape, &places);
        indices.equal(&places).select(&like.constant_like(1.0), &like.constant_like(0.0))
    };
    let signed = matches!(dtype, DType::Int32 | DType::Int16);
    if signed { hit(0.0).add(&hit(extent as f64)) } else { hit(0.0) }
}

pub(super) const ALL: &[&GraphOp] = &[&GATHER];
