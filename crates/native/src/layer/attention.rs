//! Attention in one layer.

use super::build::*;
use super::{Layer, ParamKind};
use aneforge_mil::op::{Arguments, Arithmetic, Default, MilOp, OpError, constant};
use aneforge_mil::{Array, DType};

/// Where an exponential stored as fp16 becomes infinite: the logarithm of 65504 (arXiv 2606.22283, chapter 3).
const EXP_LIMIT: f64 = 11.09;

const HEADS: &[(&str, aneforge_mil::op::Given)] = &[
    ("query", given(&[1, 1, 1, 2], &[0.0, 0.0])),
    ("key", given(&[1, 2, 1, 2], &[1.0, 0.0, 0.0, 1.0])),
    ("value", given(&[1, 2, 1, 2], &[1.0, 2.0, 3.0, 6.0])),
    ("scale", given(&[1, 1, 1, 1], &[1.0])),
    ("SubtractMax", aneforge_mil::op::flag(true)),
];
const MASKED: &[(&str, aneforge_mil::op::Given)] = &[
    ("query", given(&[1, 1, 1, 2], &[0.0, 0.0])),
    ("key", given(&[1, 2, 1, 2], &[1.0, 0.0, 0.0, 1.0])),
    ("value", given(&[1, 2, 1, 2], &[1.0, 2.0, 3.0, 6.0])),
    ("scale", given(&[1, 1, 1, 1], &[1.0])),
    ("mask", given(&[1, 1, 1, 2], &[0.0, -30000.0])),
    ("SubtractMax", aneforge_mil::op::flag(true)),
];

/// Scaled dot-product attention. The channels are the sequence, the height is the heads, the width the features of a head.
pub static SDPA: Layer = Layer {
    bottoms: &[&["query", "key", "value", "scale"], &["query", "key", "value", "scale", "mask"]],
    params: &[param("SubtractMax", ParamKind::Flag)],
    ..layer(
        MilOp {
            ports: &[
                x("query"),
                x("key"),
                x("value"),
                constant("scale", HALF, Default::Required),
                optional("mask", HALF),
                flag("SubtractMax"),
            ],
            constraints: &[
                FOUR,
                rule("C2", "key and value have the same shape", |a| a.shape("key") == a.shape("value")),
                rule(
                    "C3",
                    "query and key have the same batch, heads and features; only the sequence, their channels, may differ",
                    |a| {
                        let ([qn, _, qh, qw], [kn, _, kh, kw]) = (extents(a, "query"), extents(a, "key"));
                        (qn, qh, qw) == (kn, kh, kw)
                    },
                ),
                rule("C4", "scale is one number", |a| a.shape("scale").iter().product::<usize>() == 1),
                rule(
                    "C5",
                    "mask has one row for each query and one column for each key, for all heads: [1, queries, 1, keys]",
                    |a| !a.has("mask") || extents(a, "mask") == [1, extents(a, "query")[1], 1, extents(a, "key")[1]],
                ),
                rule(
                    "C6",
                    "the shorter sequence has fewer than 512 places and the longer at most 2048; beyond that the layer gives wrong \
                     numbers (measured on M5 by the authors of arXiv 2606.17090): cut the queries into tiles or use products and softmax",
                    |a| {
                        let (queries, keys) = (extents(a, "query")[1], extents(a, "key")[1]);
                        queries.min(keys) < 512 && queries.max(keys) <= 2048
                    },
                ),
            ],
            arithmetic: Arithmetic::Modelled(
                "products, softmax and products in f64, rounded once; published error against fp32 about 3e-3 up to 2048 places",
            ),
            tolerance: 6e-3,
            cases: &[
                Case::new("equal_scores_average_the_values", HEADS, &[(&[1, 1, 1, 2], &[2.0, 4.0])], BY_HAND),
                Case::new("a_mask_is_added_to_the_scores", MASKED, &[(&[1, 1, 1, 2], &[1.0, 2.0])], BY_HAND),
            ],
            ..unary(
                "SDPA",
                "Softmax of scaled scores, plus a mask, times values, for each head.",
                |a| result(a, DType::Fp16, a.shape("query").to_vec()),
                attention,
            )
        },
        &[],
    )
};

fn attention(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let (query, key, value) = (a.array("query")?, a.array("key")?, a.array("value")?);
    let scale = a.number("scale").unwrap_or(1.0);
    let mask = a.get("mask").and_then(|mask| mask.value.as_ref());
    let subtract = a.flag("SubtractMax");
    let [batch, queries, heads, features] = extents(a, "query");
    let keys = extents(a, "key")[1];
    let at = |length: usize, n: usize, place: usize, head: usize| ((n * length + place) * heads + head) * features;
    let mut data = vec![0.0; query.data.len()];
    for (n, place, head) in (0..batch).flat_map(|n| (0..queries).flat_map(move |q| (0..heads).map(move |h| (n, q, h)))) {
        let own = at(queries, n, place, head);
        let mut weights: Vec<f64> = (0..keys)
            .map(|other| {
                let theirs = at(keys, n, other, head);
                let dot: f64 = (0..features).map(|f| query.data[own + f] * key.data[theirs + f]).sum();
                dot * scale + mask.map_or(0.0, |mask| mask.data[place * keys + other])
            })
            .collect();
        exponentials(&mut weights, subtract);
        let total: f64 = weights.iter().sum();
        for (other, weight) in weights.iter().enumerate() {
            let theirs = at(keys, n, other, head);
            // An overflowing exponential over an overflowing sum is indeterminate, which the engine stores as zero.
            let share = if total.is_infinite() { 0.0 } else { weight / total };
            (0..features).for_each(|f| data[own + f] += share * value.data[theirs + f]);
        }
    }
    of(vec![query.ty.clone()], data)
}

/// Exponentials of scores, shifted by the largest or, as the layer's own default has it, not, where they may overflow.
fn exponentials(scores: &mut [f64], subtract: bool) {
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for score in scores {
        *score = match subtract {
            true => (*score - largest).exp(),
            false if *score > EXP_LIMIT => f64::INFINITY,
            false => score.exp(),
        };
    }
}
