//! Matrix products.

use super::*;

/// Batch axes of an operand of a product: all but the last two.
fn batch(shape: &[usize]) -> &[usize] {
    &shape[..shape.len().saturating_sub(2)]
}

/// Matrix product.
pub static MATMUL: GraphOp = GraphOp {
    aliases: &[
        ("bmm", "x.matmul(y): the axes before the last two are the batch and broadcast"),
        ("bmm_w", "x.matmul(weight) with a weight of the graph that has batch axes"),
    ],
    inputs: &[input("x", FLOATS), input("y", FLOATS)],
    attributes: &[flag("transpose_x", false), flag("transpose_y", false)],
    constraints: &[
        rule(
            "C1",
            "x and y have the same element type: cast one of them",
            |s| s.dtype("x") == s.dtype("y"),
            Case::refused(&[drawn("x", &[2, 3]), drawn("y", &[3, 2]).of(DType::Fp32)], &[]),
        ),
        rule(
            "C2",
            "x and y have at least two axes: use expand_dims on a vector",
            |s| s.rank("x") >= 2 && s.rank("y") >= 2,
            Case::refused(&[drawn("x", &[3]), drawn("y", &[3, 2])], &[]),
        ),
        rule(
            "C3",
            "the columns of x (rows with transpose_x) are as many as the rows of y (columns with transpose_y)",
            |s| {
                let (x, y) = (s.shape("x"), s.shape("y"));
                let inner_x = x[x.len() - if s.flag("transpose_x") { 2 } else { 1 }];
                inner_x == y[y.len() - if s.flag("transpose_y") { 1 } else { 2 }]
            },
            Case::refused(&[drawn("x", &[2, 3]), drawn("y", &[2, 3])], &[]),
        ),
        rule(
            "C4",
            "the axes before the last two broadcast: seen from the right, extents are equal or one of them is 1",
            |s| broadcast_shape(batch(s.shape("x")), batch(s.shape("y"))).is_some(),
            Case::refused(&[drawn("x", &[2, 2, 3]), drawn("y", &[3, 3, 2])], &[]),
        ),
    ],
    cases: &[
        Case::values(
            "two_by_three_times_three_by_two",
            &[given("x", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), given("y", &[3, 2], &[1.0, 0.0, 0.0, 1.0, 2.0, -1.0])],
            &[],
            (&[2, 2], &[7.0, -1.0, 16.0, -1.0]),
            "by hand",
        ),
        Case::shape("batches_broadcast", &[drawn("x", &[3, 1, 2, 4]), drawn("y", &[2, 4, 5])], &[], &[3, 2, 2, 5]),
        Case::shape("weight_on_the_right", &[drawn("x", &[2, 3, 4]), drawn("y", &[4, 5]).fixed()], &[], &[2, 3, 5]),
        Case::shape(
            "keys_transposed",
            &[drawn("x", &[1, 2, 3, 4]), drawn("y", &[1, 2, 5, 4])],
            &[("transpose_y", Default::Flag(true))],
            &[1, 2, 3, 5],
        ),
        Case::shape("gram", &[drawn("x", &[4, 3]), drawn("y", &[4, 2])], &[("transpose_x", Default::Flag(true))], &[3, 2]),
        Case::shape(
            "both_transposed",
            &[drawn("x", &[4, 3]), drawn("y", &[2, 4])],
            &[("transpose_x", Default::Flag(true)), ("transpose_y", Default::Flag(true))],
            &[3, 2],
        ),
    ],
    vjp: Vjp::Rule(|b| {
        let (x, y, grad) = (b.input("x"), b.input("y"), b.grad());
        let (tx, ty) = (b.site().flag("transpose_x"), b.site().flag("transpose_y"));
        if b.wants("x") {
            // d x = grad y^T, or its transpose where x was transposed.
            let gradient = if tx { y.matmul_with(&grad, ty, true) } else { grad.matmul_with(&y, false, !ty) };
            b.give_broadcast("x", gradient);
        }
        if b.wants("y") {
            let gradient = if ty { grad.matmul_with(&x, true, tx) } else { x.matmul_with(&grad, !tx, false) };
            b.give_broadcast("y", gradient);
        }
    }),
    ..direct("matmul", "Matrix product over the last two axes, the others broadcast.")
};

/// Dense layer.
pub static LINEAR: GraphOp = GraphOp {
    inputs: &[input("x", FLOATS), input("weight", FLOATS), optional("bias", FLOATS)],
    constraints: &[
        rule(
            "C1",
            "weight has shape [out, in] and the last axis of x has extent in: transpose the weight",
            |s| s.rank("weight") == 2 && s.rank("x") >= 1 && s.shape("weight").last() == s.shape("x").last(),
            Case::refused(&[drawn("x", &[2, 3]), drawn("weight", &[3, 4]).fixed()], &[]),
        ),
        rule(
            "C2",
            "bias has shape [out]",
            |s| !s.has("bias") || s.shape("bias") == &s.shape("weight")[..1],
            Case::refused(&[drawn("x", &[2, 3]), drawn("weight", &[4, 3]).fixed(), drawn("bias", &[3]).fixed()], &[]),
        ),
        rule(
            "C3",
            "x, weight and bias have the same element type: cast x or convert the weights",
            |s| s.dtype("weight") == s.dtype("x") && (!s.has("bias") || s.dtype("bias") == s.dtype("x")),
            Case::refused(&[drawn("x", &[2, 3]).of(DType::Fp32), drawn("weight", &[4, 3]).fixed()], &[]),
        ),
    ],
    lower: |l, s| {
        let (x, weight) = (s.value("x")?, s.value("weight")?);
        let matrix = if s.rank("x") == 1 {
            let row = [1, s.shape("x")[0]];
            l.reshaped(x, &row)?
        } else {
            x
        };
        let mut y = l.op(
            "matmul",
            &[("x", matrix.into()), ("y", weight.into()), ("transpose_x", false.into()), ("transpose_y", true.into())],
        )?;
        if s.has("bias") {
            let mut shape = vec![1; l.shape(y).len()];
            if let Some(last) = shape.last_mut() {
                *last = s.shape("bias")[0];
            }
            let bias = l.reshaped(s.value("bias")?, &shape)?;
            y = l.op("add", &[("x", y.into()), ("y", bias.into())])?;
        }
        if s.rank("x") == 1 {
            let vector = [s.shape("weight")[0]];
            y = l.reshaped(y, &vector)?;
        }
        Ok(vec![y])
    },
    cases: &[
        Case::values(
            "rows_of_weight_are_outputs",
            &[
                given("x", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
                given("weight", &[2, 3], &[1.0, 0.0, 2.0, 0.0, 1.0, -1.0]).fixed(),
                given("bias", &[2], &[0.5, 10.0]).fixed(),
            ],
            &[],
            (&[2, 2], &[7.5, 9.0, 16.5, 9.0]),
            "by hand",
        ),
        Case::shape("tokens_in_a_batch", &[drawn("x", &[2, 3, 4]), drawn("weight", &[5, 4]), drawn("bias", &[5])], &[], &[2, 3, 5]),
        Case::shape("vector", &[drawn("x", &[4]), drawn("weight", &[5, 4])], &[], &[5]),
    ],
    vjp: Vjp::Rule(|b| {
        let (x, weight, grad) = (b.input("x"), b.input("weight"), b.grad());
        let rows = |tensor: &Tensor| {
            let last = tensor.shape().ok().and_then(<[usize]>::last).map_or(1, |&last| last as i64);
            tensor.reshape(&[-1, last])
        };
        let shape: Vec<i64> = b.site().shape("x").iter().map(|&extent| extent as i64).collect();
        if b.wants("x") {
            b.give("x", rows(&grad).matmul(&weight).reshape(&shape));
        }
        if b.wants("weight") {
            b.give("weight", rows(&grad).matmul_with(&rows(&x), true, false));
        }
        if b.wants("bias") {
            b.give("bias", rows(&grad).reduce_sum(0, false));
        }
    }),
    ..direct("linear", "x times the transposed weight [out, in], plus bias.")
};

pub(super) const ALL: &[&GraphOp] = &[&MATMUL, &LINEAR];
