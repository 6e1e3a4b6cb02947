//! Reductions over axes.

use super::*;

pub(super) const ATTRIBUTES: &[AttributeSpec] = &[ints("axes", Default::Required), flag("keep_dims", true)];
pub(super) const RULES: &[Constraint] = &[rule(
    "C1",
    "axes are distinct axes of x, at least one",
    |s| s.axes("axes", s.rank("x")).is_some_and(|axes| !axes.is_empty()),
    Case::refused(&[drawn("x", &[2, 3])], &[("axes", Default::Ints(&[2]))]),
)];
pub(super) const CASES: &[Case] = &[
    Case::shape("last_axis_kept", &[drawn("x", &[2, 3, 4])], &[("axes", Default::Ints(&[-1]))], &[2, 3, 1]),
    Case::shape(
        "outer_axes_dropped",
        &[drawn("x", &[2, 3, 4])],
        &[("axes", Default::Ints(&[0, 2])), ("keep_dims", Default::Flag(false))],
        &[3],
    ),
    Case::shape(
        "everything",
        &[drawn("x", &[2, 3])],
        &[("axes", Default::Ints(&[0, 1])), ("keep_dims", Default::Flag(false))],
        &[],
    ),
];

const fn reduce(name: &'static str, summary: &'static str, vjp: fn(&mut Backward<'_>)) -> GraphOp {
    GraphOp { attributes: ATTRIBUTES, constraints: RULES, vjp: Vjp::Rule(vjp), cases: CASES, ..direct(name, summary) }
}

/// A tensor of the result's shape with the reduced axes put back as extents of 1.
pub(super) fn kept(b: &Backward<'_>, tensor: &Tensor) -> Tensor {
    let s = b.site();
    let axes = s.axes("axes", s.rank("x")).unwrap_or_default();
    let shape: Vec<i64> =
        s.shape("x").iter().enumerate().map(|(axis, &extent)| if axes.contains(&axis) { 1 } else { extent as i64 }).collect();
    tensor.reshape(&shape)
}

/// Gradient and result with the reduced axes put back.
fn kept_pair(b: &Backward<'_>) -> (Tensor, Tensor) {
    (kept(b, &b.grad()), kept(b, &b.output()))
}

/// The gradient goes to the elements equal to the result; ties share it evenly.
fn to_extremes(b: &mut Backward<'_>) {
    let x = b.input("x");
    let (grad, y) = kept_pair(b);
    let (hit, zero) = (x.equal(&y), x.constant_like(0.0));
    let axes = b.site().ints("axes").to_vec();
    let ties = hit.select(&x.constant_like(1.0), &zero).reduce_sum(axes, true);
    b.give("x", hit.select(&grad.real_div(&ties), &zero));
}

/// Mean.
pub static REDUCE_MEAN: GraphOp = reduce("reduce_mean", "The mean over axes.", |b| {
    let s = b.site();
    let axes = s.axes("axes", s.rank("x")).unwrap_or_default();
    let count: usize = axes.iter().map(|&axis| s.shape("x")[axis]).product();
    let grad = kept(b, &b.grad()).scale(1.0 / count as f64).broadcast_to(s.shape("x"));
    b.give("x", grad);
});
/// Sum.
pub static REDUCE_SUM: GraphOp = reduce("reduce_sum", "The sum over axes.", |b| {
    let grad = kept(b, &b.grad()).broadcast_to(b.site().shape("x"));
    b.give("x", grad);
});
/// Largest value.
pub static REDUCE_MAX: GraphOp = GraphOp { tolerance: 0.0, ..reduce("reduce_max", "The largest value over axes.", to_extremes) };
/// Smallest value.
pub static REDUCE_MIN: GraphOp = GraphOp { tolerance: 0.0, ..reduce("reduce_min", "The smallest value over axes.", to_extremes) };
/// Sum of magnitudes.
pub static REDUCE_L1_NORM: GraphOp = GraphOp {
    domain: domain(-2.0, 2.0, &[0.0]),
    ..reduce("reduce_l1_norm", "The sum of magnitudes over axes.", |b| {
        let grad = kept(b, &b.grad()).mul(&b.input("x").sign());
        b.give("x", grad);
    })
};
/// Euclidean length.
pub static REDUCE_L2_NORM: GraphOp = reduce("reduce_l2_norm", "The root of the sum of squares over axes.", |b| {
    let (grad, y) = kept_pair(b);
    // A vector of zeros has length 0 and, by convention, gradient 0.
    let grad = b.input("x").mul(&grad.real_div(&y.threshold(2f64.powi(-14))));
    b.give("x", grad);
});
/// Sum of squares.
pub static REDUCE_SUM_SQUARE: GraphOp = reduce("reduce_sum_square", "The sum of squares over axes.", |b| {
    let grad = b.input("x").scale(2.0).mul(&kept(b, &b.grad()));
    b.give("x", grad);
});
/// Logarithm of a sum.
pub static REDUCE_LOG_SUM: GraphOp = GraphOp {
    domain: domain(0.25, 2.0, &[]),
    ..reduce("reduce_log_sum", "The natural logarithm of the sum over axes.", |b| {
        let (grad, y) = kept_pair(b);
        let grad = grad.mul(&y.neg().exp()).broadcast_to(b.site().shape("x"));
        b.give("x", grad);
    })
};
/// Logarithm of a sum of exponentials.
pub static REDUCE_LOG_SUM_EXP: GraphOp = reduce("reduce_log_sum_exp", "The logarithm of the sum of exponentials over axes.", |b| {
    let (grad, y) = kept_pair(b);
    let grad = b.input("x").sub(&y).exp().mul(&grad);
    b.give("x", grad);
});

pub(super) const ALL: &[&GraphOp] = &[
    &REDUCE_MEAN,
    &REDUCE_SUM,
    &REDUCE_MAX,
    &REDUCE_MIN,
    &REDUCE_L1_NORM,
    &REDUCE_L2_NORM,
    &REDUCE_SUM_SQUARE,
    &REDUCE_LOG_SUM,
    &REDUCE_LOG_SUM_EXP,
];
