//! Scaled dot product attention as one operator.

use super::*;

/// Attention.
pub static SCALED_DOT_PRODUCT_ATTENTION: GraphOp = GraphOp {
    inputs: &[input("query", FLOATS), input("key", FLOATS), input("value", FLOATS), optional("attn_mask", MASKS)],
    constraints: &[
        rule(
            "C1",
            "query, key and value have 3 to 5 axes, as many, the same element type and the same axes before the last two: tile them",
            |s| {
                let rank = s.rank("query");
                let same = |name: &str| {
                    s.rank(name) == rank
                        && s.dtype(name) == s.dtype("query")
                        && s.shape(name)[..rank - 2] == s.shape("query")[..rank - 2]
                };
                rank >= 3 && same("key") && same("value")
            },
            Case::refused(&[drawn("query", &[1, 2, 3]), drawn("key", &[2, 2, 3]), drawn("value", &[2, 2, 3])], &[]),
        ),
        rule(
            "C2",
            "query is [..., queries, width], key [..., keys, width], value [..., keys, any width]",
            |s| {
                let rank = s.rank("query");
                s.shape("query")[rank - 1] == s.shape("key")[rank - 1] && s.shape("key")[rank - 2] == s.shape("value")[rank - 2]
            },
            Case::refused(&[drawn("query", &[1, 2, 3]), drawn("key", &[1, 2, 4]), drawn("value", &[1, 2, 3])], &[]),
        ),
        rule(
            "C3",
            "attn_mask ends in the number of keys and broadcasts to [..., queries, keys]",
            |s| {
                let scores = scores_shape(s);
                !s.has("attn_mask")
                    || (s.shape("attn_mask").last() == scores.last()
                        && broadcast_shape(s.shape("attn_mask"), &scores).is_some_and(|shape| shape == scores))
            },
            Case::refused(
                &[drawn("query", &[1, 2, 3]), drawn("key", &[1, 2, 3]), drawn("value", &[1, 2, 3]), drawn("attn_mask", &[2, 1])],
                &[],
            ),
        ),
    ],
    cases: &[
        Case::values(
            "equal_scores_average_the_values",
            &[
                given("query", &[1, 1, 2], &[0.0, 0.0]),
                given("key", &[1, 2, 2], &[1.0, 2.0, 3.0, 4.0]),
                given("value", &[1, 2, 1], &[2.0, 6.0]),
            ],
            &[],
            (&[1, 1, 1], &[4.0]),
            "by hand",
        ),
        Case::shape(
            "heads_with_an_additive_mask",
            &[
                drawn("query", &[1, 2, 3, 4]),
                drawn("key", &[1, 2, 5, 4]),
                drawn("value", &[1, 2, 5, 6]),
                drawn("attn_mask", &[1, 1, 3, 5]),
            ],
            &[],
            &[1, 2, 3, 6],
        ),
    ],
    tolerance: 5e-3,
    vjp: Vjp::Rule(|b| {
        let (q, k, v, grad) = (b.input("query"), b.input("key"), b.input("value"), b.grad());
        let scale = (b.site().shape("query").last().copied().unwrap_or(1) as f64).sqrt().recip();
        let mut scores = q.scale(scale).matmul_with(&k, false, true);
        if let Some(mask) = b.all("attn_mask").first() {
            scores = match mask.dtype() {
                Ok(DType::Bool) => mask.select(&scores, &scores.constant_like(-30000.0)),
                _ => scores.add(mask),
            };
        }
        let weights = scores.softmax(-1);
        let slope = grad.matmul_with(&v, false, true);
        let inner = weights.mul(&slope.sub(&slope.mul(&weights).reduce_sum(-1, true)));
        b.give("value", weights.matmul_with(&grad, true, false));
        b.give("query", inner.matmul(&k).scale(scale));
        b.give("key", inner.matmul_with(&q, true, false).scale(scale));
        if b.wants("attn_mask") {
            b.give_broadcast("attn_mask", inner);
        }
    }),
    ..direct(
        "scaled_dot_product_attention",
        "softmax(query key^T / sqrt(width) + attn_mask) value over the last two axes; a mask of bools says which keys count.",
    )
};

/// Added to the scores, or which of them count.
const MASKS: &[DType] = &[DType::Fp16, DType::Fp32, DType::Bool];

fn scores_shape(s: &Site<'_>) -> Vec<usize> {
    let mut shape = s.shape("query").to_vec();
    if let Some(last) = shape.last_mut() {
        *last = s.shape("key").iter().rev().nth(1).copied().unwrap_or(1);
    }
    shape
}

pub(super) const ALL: &[&GraphOp] = &[&SCALED_DOT_PRODUCT_ATTENTION];
