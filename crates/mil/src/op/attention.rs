//! Scaled dot-product attention.

use super::broadcast::broadcast;
use super::family::{COMPOSED, base, rule};
use super::general::result;
use super::{Arguments, Case, FLOATS, MilOp, OpError, given, optional, sample, tensor, values};
use crate::{Array, DType, TensorType};

/// A mask is either added to the scores or says which of them count.
const MASKS: &[DType] = &[DType::Bool, DType::Fp16, DType::Fp32];

pub(super) const OPS: &[MilOp] = &[MilOp {
    opset: "ios18",
    ports: &[tensor("query", FLOATS), tensor("key", FLOATS), tensor("value", FLOATS), optional("attn_mask", MASKS)],
    constraints: &[
        rule("C1", "query, key and value have 3 to 5 axes [batch..., sequence, features], all as many", |a| {
            let rank = a.shape("query").len();
            rank >= 3 && a.shape("key").len() == rank && a.shape("value").len() == rank
        }),
        rule("C2", "query, key and value have the same element type: cast them", |a| {
            let dtype = |port| a.get(port).map(|argument| argument.ty.dtype);
            dtype("query") == dtype("key") && dtype("key") == dtype("value")
        }),
        rule("C3", "query, key and value have the same batch axes: tile or expand them", |a| {
            let batch = |port| a.shape(port).split_last_chunk::<2>().map(|(batch, _)| batch);
            batch("query") == batch("key") && batch("key") == batch("value")
        }),
        rule("C4", "query and key have the same number of features", |a| a.shape("query").last() == a.shape("key").last()),
        rule("C5", "key and value have the same sequence length", |a| {
            let length = |port| a.shape(port).iter().rev().nth(1).copied();
            length("key") == length("value")
        }),
        rule("C6", "attn_mask ends in the key's sequence length and broadcasts to [batch..., query length, key length]", |a| {
            let mask = a.shape("attn_mask");
            let scores = scores_shape(a);
            !a.has("attn_mask") || (mask.last() == scores.last() && broadcast(&[mask, &scores]).is_some_and(|both| both == scores))
        }),
    ],
    arithmetic: COMPOSED,
    cases: &[
        Case::new(
            "equal_scores_average_the_values",
            &[
                ("query", given(&[1, 1, 2], &[0.0, 0.0])),
                ("key", given(&[1, 2, 2], &[1.0, 2.0, 3.0, 4.0])),
                ("value", given(&[1, 2, 1], &[2.0, 6.0])),
            ],
            &[(&[1, 1, 1], &[4.0])],
            "by hand",
        ),
        Case::new(
            "masked_keys_do_not_count",
            &[
                ("query", given(&[1, 1, 1], &[1.0])),
                ("key", given(&[1, 2, 1], &[1.0, 5.0])),
                ("value", given(&[1, 2, 1], &[2.0, 6.0])),
                ("attn_mask", values(DType::Bool, &[1, 2], &[1.0, 0.0])),
            ],
            &[(&[1, 1, 1], &[2.0])],
            "by hand",
        ),
        Case::oracle(
            "heads_with_an_additive_mask",
            &[
                ("query", sample(&[1, 2, 3, 4], 1)),
                ("key", sample(&[1, 2, 5, 4], 2)),
                ("value", sample(&[1, 2, 5, 6], 3)),
                ("attn_mask", sample(&[1, 1, 3, 5], 4)),
            ],
        ),
    ],
    ..base(
        "scaled_dot_product_attention",
        "softmax(query key^T / sqrt(features) + mask) value over the last two axes.",
        infer,
        meaning,
    )
}];

fn scores_shape(a: &Arguments<'_>) -> Vec<usize> {
    let mut shape = a.shape("query").to_vec();
    if let (Some(last), Some(&keys)) = (shape.last_mut(), a.shape("key").iter().rev().nth(1)) {
        *last = keys;
    }
    shape
}

fn infer(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let query = a.ty("query")?;
    let mut shape = query.shape.clone();
    if let (Some(last), Some(&features)) = (shape.last_mut(), a.ty("value")?.shape.last()) {
        *last = features;
    }
    result(a, query.dtype, shape)
}

fn meaning(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let (query, key, value) = (a.array("query")?, a.array("key")?, a.array("value")?);
    let ty = infer(a)?.remove(0);
    let scores = scores_shape(a);
    let mask = if a.has("attn_mask") { Some(a.array("attn_mask")?.broadcast_to(&scores)) } else { None };
    let [keys, features] = *key.ty.shape.last_chunk::<2>().unwrap_or(&[1, 1]);
    let width = value.ty.shape.last().copied().unwrap_or(1);
    let queries = query.ty.shape.iter().rev().nth(1).copied().unwrap_or(1);
    let scale = (features as f64).sqrt();
    let mut data = vec![0.0; ty.count()];
    for (row, (q, out)) in query.data.chunks(features).zip(data.chunks_mut(width)).enumerate() {
        let batch = row / queries;
        let key = &key.data[batch * keys * features..][..keys * features];
        let value = &value.data[batch * keys * width..][..keys * width];
        let mut weights: Vec<f64> =
            key.chunks(features).map(|k| q.iter().zip(k).map(|(q, k)| q * k).sum::<f64>() / scale).collect();
        if let Some(mask) = &mask {
            for (score, &mask_value) in weights.iter_mut().zip(&mask.data[row * keys..]) {
                match mask.ty.dtype {
                    DType::Bool if mask_value == 0.0 => *score = f64::NEG_INFINITY,
                    DType::Bool => {}
                    _ => *score += mask_value,
                }
            }
        }
        let largest = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        weights.iter_mut().for_each(|score| *score = (*score - largest).exp());
        let sum: f64 = weights.iter().sum();
        for (weight, value) in weights.iter().zip(value.chunks(width)) {
            out.iter_mut().zip(value).for_each(|(out, value)| *out += weight / sum * value);
        }
    }
    Ok(vec![Array { ty, data }])
}
