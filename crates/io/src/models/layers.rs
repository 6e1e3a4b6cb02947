//! Layers that several families share, by the names of their weights.

use crate::{IoError, Loader};
use aneforge_core::{GraphError, Tensor};

/// `x W^T + b` with `name.weight` `[to, from]` and `name.bias` `[to]`.
pub(super) fn linear(loader: &mut Loader<'_>, x: &Tensor, name: &str, from: usize, to: usize) -> Result<Tensor, IoError> {
    let weight = x.graph().weight(loader.weight(&format!("{name}.weight"), &[to, from])?);
    let bias = x.graph().weight(loader.weight(&format!("{name}.bias"), &[to])?);
    Ok(x.linear(&weight, Some(&bias)))
}

/// Normalisation over the last axis with `name.weight` and `name.bias`, both `[width]`.
pub(super) fn layer_norm(loader: &mut Loader<'_>, x: &Tensor, name: &str, width: usize, epsilon: f64) -> Result<Tensor, IoError> {
    let gamma = x.graph().weight(loader.weight(&format!("{name}.weight"), &[width])?);
    let beta = x.graph().weight(loader.weight(&format!("{name}.bias"), &[width])?);
    Ok(x.layer_norm(-1, Some(&gamma), Some(&beta), epsilon))
}

/// Attention of several heads over already projected queries, keys and values, each `[batch, tokens, width]`; `mask` is added to
/// the scores and broadcasts to `[batch, heads, tokens, tokens]`. The heads stand side by side again in the result.
pub(super) fn attention(heads: usize, [query, key, value]: [&Tensor; 3], mask: Option<&Tensor>) -> Result<Tensor, GraphError> {
    let [batch, tokens, width] = query.shape()?[..] else { return Ok(query.clone()) };
    let [batch, tokens, width, heads] = [batch, tokens, width, heads].map(|extent| extent as i64);
    let split = |x: &Tensor| x.reshape(&[batch, tokens, heads, width / heads]).transpose(&[0, 2, 1, 3]);
    let mixed = aneforge_core::attention(&split(query), &split(key), &split(value), mask, None);
    Ok(mixed.transpose(&[0, 2, 1, 3]).reshape(&[batch, tokens, width]))
}
