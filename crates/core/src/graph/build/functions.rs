//! Functions of several tensors, and attention.

use crate::graph::{Argument, Graph, Tensor};
use crate::op;

/// Tensors one after the other along an axis.
pub fn concat(tensors: &[Tensor], axis: i64) -> Tensor {
    match tensors.first() {
        Some(first) => first.graph().apply_one(&op::CONCAT, &[Argument::Many(tensors)], &[("axis", first.front(axis).into())]),
        None => Graph::new().apply_one(&op::CONCAT, &[Argument::Absent], &[]),
    }
}

/// Tensors of one shape along a new axis.
pub fn stack(tensors: &[Tensor], axis: i64) -> Tensor {
    let Some(first) = tensors.first() else { return Graph::new().apply_one(&op::STACK, &[Argument::Absent], &[]) };
    let rank = first.rank().unwrap_or(0) + 1;
    let front = op::resolve_axis(axis, rank).map_or(axis, |axis| axis as i64);
    first.graph().apply_one(&op::STACK, &[Argument::Many(tensors)], &[("axis", front.into())])
}

/// Scaled dot product attention: `softmax(scale q k^T + mask) v` over the last two axes.
///
/// `q` is `[..., queries, width]`, `k` and `v` are `[..., keys, width]`; `mask` is added to the scores and broadcasts against
/// `[..., queries, keys]`. The scale is `1 / sqrt(width)` where none is given; it is applied to the queries, which keeps the
/// scores inside fp16's range.
pub fn attention(q: &Tensor, k: &Tensor, v: &Tensor, mask: Option<&Tensor>, scale: Option<f64>) -> Tensor {
    let width = q.shape().ok().and_then(<[usize]>::last).copied().unwrap_or(1);
    let scale = scale.unwrap_or_else(|| (width as f64).sqrt().recip());
    let scores = q.muls(scale).matmul_with(k, false, true);
    let scores = match mask {
        Some(mask) => scores.add(mask),
        None => scores,
    };
    scores.softmax(-1).matmul(v)
}

/// Weights of [`mha`]: four dense layers `[out, in]` with their biases.
#[derive(Clone, Debug)]
pub struct Heads<'a> {
    /// Queries.
    pub query: (&'a Tensor, Option<&'a Tensor>),
    /// Keys.
    pub key: (&'a Tensor, Option<&'a Tensor>),
    /// Values.
    pub value: (&'a Tensor, Option<&'a Tensor>),
    /// Result.
    pub output: (&'a Tensor, Option<&'a Tensor>),
    /// Number of heads; divides the width of queries, keys and values.
    pub heads: usize,
}

/// Multi-head attention of `x` (`[batch, queries, width]` or `[queries, width]`) to `context`, which may be `x` itself. `mask`
/// broadcasts against `[batch, heads, queries, keys]`.
pub fn mha(x: &Tensor, context: &Tensor, weights: &Heads<'_>, mask: Option<&Tensor>) -> Tensor {
    let rank = x.rank().unwrap_or(3);
    let heads = weights.heads as i64;
    let project = |input: &Tensor, (weight, bias): (&Tensor, Option<&Tensor>)| {
        let y = input.linear(weight, bias);
        let Ok(shape) = y.shape() else { return y };
        let (batch, rows) = match *shape {
            [batch, rows, _] => (batch as i64, rows as i64),
            _ => (1, shape.first().map_or(1, |&rows| rows as i64)),
        };
        y.reshape(&[batch, rows, heads, -1]).transpose(&[0, 2, 1, 3])
    };
    let (q, k, v) = (project(x, weights.query), project(context, weights.key), project(context, weights.value));
    let mixed = attention(&q, &k, &v, mask, None).transpose(&[0, 2, 1, 3]);
    let rows = mixed.shape().map(|shape| [shape[0] as i64, shape[1] as i64]).unwrap_or([1, 1]);
    let joined = if rank == 2 { mixed.reshape(&[rows[1], -1]) } else { mixed.reshape(&[rows[0], rows[1], -1]) };
    joined.linear(weights.output.0, weights.output.1)
}

/// Attention of `x` (`[queries, width]`) to a `context` of another width (`[keys, context width]`), with a batch axis before both
/// where there is one: [`mha`] without a mask, whose key and value layers take the context's width.
pub fn cross_attention(x: &Tensor, context: &Tensor, weights: &Heads<'_>) -> Tensor {
    mha(x, context, weights, None)
}

/// Gated linear unit with a Gaussian gate: `value * gelu(gate)`, both halves of one dense layer with `weight` `[2 inner, width]` and
/// `bias` `[2 inner]`; the value is the first half.
pub fn geglu(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
    let halves = x.linear(weight, bias).split(2, -1);
    match halves.as_slice() {
        [value, gate] => value.mul(&gate.gelu("EXACT")),
        _ => x.clone(),
    }
}
