//! Attention in one layer.

use super::*;
use crate::TensorType;
use aneforge_native::layer;

const Q: Sample = drawn("q", &[1, 2, 3, 4]);
const K: Sample = drawn("k", &[1, 2, 3, 4]);
const V: Sample = drawn("v", &[1, 2, 3, 4]);
/// What a place that does not count adds to its score: far below any score, and finite so that sums stay defined.
const MASKED: f64 = -30000.0;

fn lengths(s: &Site<'_>) -> (usize, usize) {
    let length = |input: &str| s.shape(input).get(2).copied().unwrap_or(0);
    (length("q"), length("k"))
}

fn factor(s: &Site<'_>) -> f64 {
    let features = s.shape("q").last().copied().unwrap_or(1).max(1);
    s.float("scale").unwrap_or_else(|| 1.0 / (features as f64).sqrt())
}

/// Causal masks as rows of summands.
fn causal(length: usize) -> Vec<f64> {
    (0..length).flat_map(|row| (0..length).map(move |column| if column > row { MASKED } else { 0.0 })).collect()
}

/// Scaled dot-product attention as the engine's own layer.
pub static SDPA: GraphOp = GraphOp {
    inputs: &[input("q", HALF), input("k", HALF), input("v", HALF), optional("attn_mask", HALF)],
    attributes: &[AttributeSpec { name: "scale", kind: AttributeKind::Float, default: Default::Absent }, flag("is_causal", false)],
    constraints: &[
        rule(
            "C1",
            "q, k and v have four axes [batch, heads, sequence, features]",
            |s| ["q", "k", "v"].iter().all(|input| s.rank(input) == 4),
            Case::refused(&[drawn("q", &[2, 3, 4]), K, V], &[]),
        ),
        rule(
            "C2",
            "k and v have the same shape",
            |s| s.shape("k") == s.shape("v"),
            Case::refused(&[Q, K, drawn("v", &[1, 2, 3, 5])], &[]),
        ),
        rule(
            "C3",
            "q and k have the same batch, heads and features",
            |s| [0, 1, 3].iter().all(|&axis| s.shape("q")[axis] == s.shape("k")[axis]),
            Case::refused(&[drawn("q", &[1, 1, 3, 4]), K, V], &[]),
        ),
        rule(
            "C4",
            "attn_mask has one plane for all heads: [queries, keys], with ones in front or not",
            |s| {
                let (queries, keys) = lengths(s);
                let shape = s.shape("attn_mask");
                let plane = shape.ends_with(&[queries, keys]) && shape.iter().rev().skip(2).all(|&extent| extent == 1);
                !s.has("attn_mask") || plane
            },
            Case::refused(&[Q, K, V, drawn("attn_mask", &[1, 2, 3, 3])], &[]),
        ),
        rule(
            "C5",
            "the shorter sequence has fewer than 512 places and the longer at most 2048, beyond which the layer gives wrong numbers: \
             use attention, or cut the queries into tiles",
            |s| {
                let (queries, keys) = lengths(s);
                queries.min(keys) < 512 && queries.max(keys) <= 2048
            },
            Case::refused(&[drawn("q", &[1, 1, 512, 1]), drawn("k", &[1, 1, 512, 1]), drawn("v", &[1, 1, 512, 1])], &[]),
        ),
        rule(
            "C6",
            "is_causal stands without attn_mask, and q and k are equally long",
            |s| !s.flag("is_causal") || (!s.has("attn_mask") && lengths(s).0 == lengths(s).1),
            Case::refused(&[drawn("q", &[1, 2, 1, 4]), K, V], &[("is_causal", Default::Flag(true))]),
        ),
    ],
    vjp: Vjp::Rule(|b| {
        let (scale, mask) = (factor(&b.site()), b.all("attn_mask").first().cloned());
        let (length, is_causal) = (lengths(&b.site()).0, b.site().flag("is_causal"));
        let (q, k, v, grad) = (b.input("q"), b.input("k"), b.input("v"), b.grad());
        let mut scores = q.matmul_with(&k, false, true).scale(scale);
        if let Some(mask) = &mask {
            scores = scores + mask;
        } else if is_causal {
            scores = scores + b.graph().values(DType::Fp16, &[1, 1, length, length], &causal(length));
        }
        let shares = scores.softmax(-1);
        let of_shares = grad.matmul_with(&v, false, true);
        let centred = &of_shares - (&of_shares * &shares).sum(-1, true);
        let of_scores = &shares * centred;
        b.give("q", of_scores.matmul(&k).scale(scale));
        b.give("k", of_scores.matmul_with(&q, true, false).scale(scale));
        b.give("v", shares.matmul_with(&grad, true, false));
        if b.wants("attn_mask") {
            b.give_broadcast("attn_mask", of_scores);
        }
    }),
    tolerance: 6e-3,
    cases: &[
        Case::values(
            "equal_scores_average_the_values",
            &[
                given("q", &[1, 1, 1, 2], &[0.0, 0.0]),
                given("k", &[1, 1, 2, 2], &[1.0, 0.0, 0.0, 1.0]),
                given("v", &[1, 1, 2, 2], &[1.0, 2.0, 3.0, 6.0]),
            ],
            &[],
            (&[1, 1, 1, 2], &[2.0, 4.0]),
            "by hand",
        ),
        Case::shape("heads", &[Q, K, V], &[], &[1, 2, 3, 4]),
        Case::values(
            "the_first_place_sees_itself_alone",
            &[
                given("q", &[1, 1, 2, 1], &[0.0, 0.0]),
                given("k", &[1, 1, 2, 1], &[1.0, 2.0]),
                given("v", &[1, 1, 2, 1], &[4.0, 8.0]),
            ],
            &[("is_causal", Default::Flag(true))],
            (&[1, 1, 2, 1], &[4.0, 6.0]),
            "by hand",
        ),
        Case::shape(
            "two_images_and_a_mask",
            &[drawn("q", &[2, 2, 1, 4]), drawn("k", &[2, 2, 3, 4]), drawn("v", &[2, 2, 3, 4]), drawn("attn_mask", &[1, 3])],
            &[],
            &[2, 2, 1, 4],
        ),
    ],
    ..native("sdpa", "Softmax of scaled scores, plus a mask, times values: attention as one layer of the engine.", |l, s| {
        let [q, k, v] = ["q", "k", "v"].map(|input| s.value(input).and_then(|value| sequence_first(l, value)));
        let (queries, keys) = lengths(s);
        let mut arguments = vec![("query", q?.into()), ("key", k?.into()), ("value", v?.into())];
        let scale = l.constant("scale", TensorType::new(DType::Fp16, [1, 1, 1, 1]), &[factor(s)])?;
        arguments.push(("scale", scale.into()));
        if s.has("attn_mask") {
            arguments.push(("mask", l.reshaped(s.value("attn_mask")?, &[1, queries, 1, keys])?.into()));
        } else if s.flag("is_causal") {
            let ty = TensorType::new(DType::Fp16, [1, queries, 1, keys]);
            arguments.push(("mask", l.constant("causal", ty, &causal(queries))?.into()));
        }
        arguments.push(("SubtractMax", true.into()));
        let result = super::layer(l, &layer::SDPA, &arguments)?;
        Ok(vec![heads_first(l, result, s.shape("q"))?])
    })
};

/// `[batch, heads, sequence, features]` as the layer has it: the sequence in the channels, the heads of all images in the height.
fn sequence_first(l: &mut Lowering, value: ValueId) -> Result<ValueId, GraphError> {
    let shape = l.shape(value).to_vec();
    if shape[0] == 1 {
        return l.op("transpose", &[("x", value.into()), ("perm", vec![0i64, 2, 1, 3].into())]);
    }
    let moved = l.op("transpose", &[("x", value.into()), ("perm", vec![2i64, 0, 1, 3].into())])?;
    l.reshaped(moved, &[1, shape[2], shape[0] * shape[1], shape[3]])
}

/// The way back.
fn heads_first(l: &mut Lowering, value: ValueId, shape: &[usize]) -> Result<ValueId, GraphError> {
    if shape[0] == 1 {
        return l.op("transpose", &[("x", value.into()), ("perm", vec![0i64, 2, 1, 3].into())]);
    }
    let split = l.reshaped(value, &[shape[2], shape[0], shape[1], shape[3]])?;
    l.op("transpose", &[("x", split.into()), ("perm", vec![1i64, 2, 0, 3].into())])
}
