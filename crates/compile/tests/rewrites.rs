//! Rewrites: what each puts in place of what, what it leaves alone and says why, and that results stay what they were.
#![allow(clippy::expect_used)]

mod common;

use aneforge_compile::{Rewrite, Rewrites};
use aneforge_core::Target;
use common::rewriting::{kept, ops, results, rewritten};

fn tiles(count: usize) -> Rewrites {
    Rewrites::default().with_tiles(count)
}

/// Attention of two heads over seven places, with a step between its products.
fn attention(steps: &str, scores: &str) -> String {
    format!(
        "func main<ios18>(tensor<fp16, [1, 2, 7, 4]> q, tensor<fp16, [1, 2, 7, 4]> k, tensor<fp16, [1, 2, 7, 3]> v, tensor<fp16, [7, 7]> m) {{
            tensor<fp16, [1, 2, 7, 7]> s = matmul(x = q, y = k, transpose_x = bool(false), transpose_y = bool(true))[name = string(\"s\")];
            {steps}
            tensor<fp16, [1, 2, 7, 7]> w = softmax(x = {scores}, axis = int32(-1))[name = string(\"w\")];
            tensor<fp16, [1, 2, 7, 3]> y = matmul(x = w, y = v, transpose_x = bool(false), transpose_y = bool(false))[name = string(\"y\")];
        }} -> (y);"
    )
}

const SCALED: &str = "tensor<fp16, [1, 2, 7, 7]> a = mul(x = s, y = fp16(0x1p-1))[name = string(\"a\")];";
const MASKED: &str = "tensor<fp16, [1, 2, 7, 7]> a = mul(x = fp16(0x1p-1), y = s)[name = string(\"a\")];
    tensor<fp16, [1, 2, 7, 7]> b = add(x = m, y = a)[name = string(\"b\")];";

#[test]
fn tiles_of_queries_give_the_same_bits() {
    for (steps, scores) in [("", "s"), (SCALED, "a"), (MASKED, "b")] {
        for count in [2, 3, 7, 100] {
            let text = attention(steps, scores);
            let (before, after, notes) = rewritten(&text, Rewrite::QueryTiles, "m1", tiles(count));
            let softmaxes = ops(&after).iter().filter(|op| **op == "softmax").count();
            assert_eq!(softmaxes, 7usize.div_ceil(7usize.div_ceil(count.min(7))), "{count} tiles");
            assert_eq!(results(&before), results(&after));
            assert!(notes.all().iter().any(|note| note.applied && note.text.contains("7 queries")));
        }
    }
}

#[test]
fn keys_behind_a_causal_mask_are_left_out() {
    let rows: Vec<String> =
        (0..7).flat_map(|row| (0..7).map(move |key| if key > row { "-0x1.d4cp+14" } else { "0x0p+0" }.to_string())).collect();
    let mask = format!(
        "tensor<fp16, [7, 7]> c = const()[name = string(\"c\"), val = tensor<fp16, [7, 7]>([{}])];
        tensor<fp16, [1, 2, 7, 7]> b = add(x = s, y = c)[name = string(\"b\")];",
        rows.chunks(7).map(|row| format!("[{}]", row.join(", "))).collect::<Vec<_>>().join(", ")
    );
    let (before, after, notes) = rewritten(&attention(&mask, "b"), Rewrite::QueryTiles, "m1", tiles(7));
    let widths: Vec<usize> =
        after.operations.iter().filter(|op| op.op.name == "softmax").map(|op| after.ty(op.outputs[0]).shape[3]).collect();
    assert_eq!(widths, [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(results(&before), results(&after));
    // 1 + 2 + ... + 6 of 49 keys are hidden.
    assert!(notes.all().iter().any(|note| note.text.contains("21 of 49")), "{notes:?}");
    // A mask that hides nothing whole, and one that is no constant, hide nothing.
    let (_, whole, _) = rewritten(&attention(MASKED, "b"), Rewrite::QueryTiles, "m1", tiles(7));
    assert!(whole.operations.iter().filter(|op| op.op.name == "softmax").all(|op| whole.ty(op.outputs[0]).shape[3] == 7));
}

#[test]
fn attention_becomes_one_operator_within_its_rounding() {
    for (steps, scores, target) in [(SCALED, "a", "m1"), (SCALED, "a", "generic"), (MASKED, "b", "generic"), ("", "s", "m5")] {
        let (before, after, _) = rewritten(&attention(steps, scores), Rewrite::AttentionOperator, target, Rewrites::default());
        assert!(ops(&after).contains(&"scaled_dot_product_attention") && !ops(&after).contains(&"softmax"), "{:?}", ops(&after));
        for (a, b) in results(&before).iter().zip(results(&after)) {
            let largest = a.data.iter().fold(0.0f64, |most, value| most.max(value.abs()));
            assert!(a.data.iter().zip(&b.data).all(|(a, b)| (a - b).abs() <= largest * 1e-9), "{target} {steps}");
        }
    }
}

#[test]
fn what_is_nearly_attention_is_left_alone_and_says_why() {
    let attention_text = attention(SCALED, "a");
    let second_use = attention_text.replace("} -> (y)", "} -> (y, w)");
    let scores_used = attention_text.replace("} -> (y)", "} -> (y, a)");
    let wrong_axis = attention_text.replace("axis = int32(-1)", "axis = int32(2)");
    let turned = attention_text
        .replace("tensor<fp16, [1, 2, 7, 4]> q,", "tensor<fp16, [1, 2, 4, 7]> q,")
        .replace("transpose_x = bool(false), transpose_y = bool(true)", "transpose_x = bool(true), transpose_y = bool(true)");
    for rewrite in [Rewrite::QueryTiles, Rewrite::AttentionOperator] {
        kept(&second_use, rewrite, "m1", tiles(2), "another use");
        kept(&scores_used, rewrite, "m1", tiles(2), "another use");
        kept(&wrong_axis, rewrite, "m1", tiles(2), "axis 2");
        kept(&turned, rewrite, "m1", tiles(2), "transposed");
        // A softmax of something else is no near miss.
        let plain = "func main<ios18>(tensor<fp16, [4, 4]> x) {
            tensor<fp16, [4, 4]> y = softmax(x = x, axis = int32(-1))[name = string(\"y\")];
        } -> (y);";
        kept(plain, rewrite, "m1", tiles(2), "");
    }
    kept(&attention(MASKED, "b"), Rewrite::AttentionOperator, "m1", Rewrites::default(), "ignore the operator's mask");
    kept(&attention_text, Rewrite::AttentionOperator, "m1:in-memory", Rewrites::default(), "written out");
    let capped = attention("tensor<fp16, [1, 2, 7, 7]> a = minimum(x = s, y = fp16(0x1p+4))[name = string(\"a\")];", "a");
    kept(&capped, Rewrite::AttentionOperator, "m1", Rewrites::default(), "more than a scale and a mask");
    // Few queries are one tile.
    kept(&attention_text, Rewrite::QueryTiles, "m1", Rewrites::default(), "");
}

fn grouped(repeat: &str, repeated: &str) -> String {
    format!(
        "func main<ios18>(tensor<fp16, [2, 6, 3, 8]> q, tensor<fp16, [2, 3, 5, 8]> k, tensor<fp16, [2, 1, 5, 8]> one) {{
            {repeat}
            tensor<fp16, [2, 6, 3, 5]> y = matmul(x = q, y = {repeated}, transpose_x = bool(false), transpose_y = bool(true))[name = string(\"y\")];
        }} -> (y);"
    )
}

const TILED: &str = "tensor<fp16, [2, 3, 1, 5, 8]> g = expand_dims(x = k, axes = tensor<int32, [1]>([2]))[name = string(\"g\")];
    tensor<fp16, [2, 3, 2, 5, 8]> t = tile(x = g, reps = tensor<int32, [5]>([1, 1, 2, 1, 1]))[name = string(\"t\")];
    tensor<fp16, [2, 6, 5, 8]> r = reshape(x = t, shape = tensor<int32, [4]>([2, 6, 5, 8]))[name = string(\"r\")];";

#[test]
fn shared_heads_are_multiplied_without_repeating_them() {
    let joined = TILED.replace(
        "tile(x = g, reps = tensor<int32, [5]>([1, 1, 2, 1, 1]))",
        "concat(values = (g, g), axis = int32(2), interleave = bool(false))",
    );
    let all = "tensor<fp16, [2, 6, 5, 8]> r = tile(x = one, reps = tensor<int32, [4]>([1, 6, 1, 1]))[name = string(\"r\")];";
    for repeat in [TILED, &joined, all] {
        let (before, after, _) = rewritten(&grouped(repeat, "r"), Rewrite::GroupedHeads, "m1", Rewrites::default());
        assert!(!ops(&after).iter().any(|op| ["tile", "concat"].contains(op)), "{:?}", ops(&after));
        assert_eq!(results(&before), results(&after));
    }
}

#[test]
fn other_repetitions_stay() {
    // Heads one after the other in place of each in a row: another order.
    let cycled = "tensor<fp16, [2, 6, 5, 8]> r = tile(x = k, reps = tensor<int32, [4]>([1, 2, 1, 1]))[name = string(\"r\")];";
    kept(&grouped(cycled, "r"), Rewrite::GroupedHeads, "m1", Rewrites::default(), "");
    let interleaved = TILED.replace(
        "tile(x = g, reps = tensor<int32, [5]>([1, 1, 2, 1, 1]))",
        "concat(values = (g, g), axis = int32(2), interleave = bool(true))",
    );
    kept(&grouped(&interleaved, "r"), Rewrite::GroupedHeads, "m1", Rewrites::default(), "");
    let turned = grouped(TILED, "r")
        .replace("[2, 6, 3, 8]> q", "[2, 6, 8, 3]> q")
        .replace("transpose_x = bool(false)", "transpose_x = bool(true)");
    kept(&turned, Rewrite::GroupedHeads, "m1", Rewrites::default(), "no rows per head");
    let long = grouped(TILED, "r").replace("[2, 6, 3, 8]", "[2, 6, 9000, 8]").replace("[2, 6, 3, 5]", "[2, 6, 9000, 5]");
    kept(&long, Rewrite::GroupedHeads, "m1", Rewrites::default(), "18000 rows");
}

#[test]
fn rewrites_are_chosen_by_name_and_run_by_default_on_chips_alone() {
    let (generic, chip) = (Target::Generic, "m1".parse().expect("a target"));
    for &rewrite in Rewrite::ALL {
        assert_eq!(rewrite.name().parse(), Ok(rewrite));
        assert!(!Rewrites::default().runs(rewrite, &generic) && !Rewrites::none().runs(rewrite, &chip));
        assert!(Rewrites::none().with(rewrite, true).runs(rewrite, &generic));
        assert!(!Rewrites::default().with(rewrite, true).with(rewrite, false).runs(rewrite, &chip));
        assert_eq!(Rewrites::default().runs(rewrite, &chip), rewrite.by_default(&chip));
    }
    let error = "tiles".parse::<Rewrite>().expect_err("no such rewrite").to_string();
    assert!(error.contains("query-tiles") && error.contains("grouped-heads"), "{error}");
}
