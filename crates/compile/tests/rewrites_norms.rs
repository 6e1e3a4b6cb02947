//! Norms, scales and sums: found in each form that programs spell them in, left alone where they are nearly one.
#![allow(clippy::expect_used)]

mod common;

use aneforge_compile::{CompileOptions, Rewrite, Rewrites, compile};
use aneforge_core::{DType, Graph, Target};
use aneforge_mil::Body;
use common::rewriting::{kept, ops, results, rewritten};

/// Largest difference of the results over the largest result.
fn distance(before: &Body, after: &Body) -> f64 {
    let (before, after) = (results(before), results(after));
    let mut worst = 0.0f64;
    for (a, b) in before.iter().zip(&after) {
        let largest = a.data.iter().fold(0.0f64, |most, value| most.max(value.abs()));
        worst = a.data.iter().zip(&b.data).fold(worst, |worst, (a, b)| worst.max((a - b).abs() / largest));
    }
    worst
}

/// A norm over the last axis with a square, a root and steps behind.
fn norm(square: &str, root: &str, behind: &str) -> String {
    format!(
        "func main<ios18>(tensor<fp16, [3, 8]> x, tensor<fp16, [8]> g) {{
            tensor<fp16, [3, 1]> m = reduce_mean(x = x, axes = tensor<int32, [1]>([-1]), keep_dims = bool(true))[name = string(\"m\")];
            tensor<fp16, [3, 8]> d = sub(x = x, y = m)[name = string(\"d\")];
            tensor<fp16, [3, 8]> q = {square}[name = string(\"q\")];
            tensor<fp16, [3, 1]> v = reduce_mean(x = q, axes = tensor<int32, [1]>([1]), keep_dims = bool(true))[name = string(\"v\")];
            {root}
            {behind}
        }} -> (y);"
    )
}

const RSQRT: &str = "tensor<fp16, [3, 1]> r = rsqrt(x = v, epsilon = fp16(0x1p-10))[name = string(\"r\")];
    tensor<fp16, [3, 8]> y = mul(x = d, y = r)[name = string(\"y\")];";

#[test]
fn each_way_to_spell_a_layer_norm_is_found() {
    let eps = "tensor<fp16, [3, 1]> e = add(x = v, y = fp16(0x1p-10))[name = string(\"e\")];";
    let roots = [
        RSQRT.to_string(),
        format!(
            "{eps} tensor<fp16, [3, 1]> r = sqrt(x = e)[name = string(\"r\")]; tensor<fp16, [3, 8]> y = real_div(x = d, y = r)[name = string(\"y\")];"
        ),
        format!(
            "{eps} tensor<fp16, [3, 1]> r = pow(x = e, y = fp16(-0x1p-1))[name = string(\"r\")]; tensor<fp16, [3, 8]> y = mul(x = r, y = d)[name = string(\"y\")];"
        ),
        format!(
            "{eps} tensor<fp16, [3, 1]> r = pow(x = e, y = fp16(0x1p-1))[name = string(\"r\")]; tensor<fp16, [3, 8]> y = real_div(x = d, y = r)[name = string(\"y\")];"
        ),
    ];
    for square in ["square(x = d)", "mul(x = d, y = d)", "pow(x = d, y = fp16(0x1p+1))"] {
        for root in &roots {
            let (before, after, notes) = rewritten(&norm(square, root, ""), Rewrite::NativeNorms, "m1", Rewrites::default());
            assert_eq!(ops(&after), ["layer_norm"], "{square} {root}");
            assert!(distance(&before, &after) < 1e-9, "{square} {root}");
            assert!(notes.all().iter().any(|note| note.applied));
        }
    }
}

#[test]
fn gain_and_offset_join_the_norm() {
    let root = RSQRT.replace("> y =", "> n =").replace("\"y\"", "\"n\"");
    let affine = "tensor<fp16, [3, 8]> s = mul(x = tensor<fp16, [8]>([0x1p+0, 0x1p+1, 0x1p-1, 0x1p+0, 0x1p+0, 0x1p+2, 0x1p+0, 0x1p+0]), y = n)[name = string(\"s\")];
        tensor<fp16, [3, 8]> y = add(x = s, y = tensor<fp16, [1, 8]>([[0x1p+0, 0x1p+1, 0x1p-1, 0x0p+0, 0x1p+0, 0x1p+2, 0x1p+0, 0x1p+0]]))[name = string(\"y\")];";
    let (before, after, _) = rewritten(&norm("square(x = d)", &root, affine), Rewrite::NativeNorms, "m1", Rewrites::default());
    assert_eq!(ops(&after), ["layer_norm"]);
    assert!(distance(&before, &after) < 1e-9);
    // A gain that is no constant, and one per row, stay outside.
    let computed = "tensor<fp16, [3, 8]> y = mul(x = n, y = g)[name = string(\"y\")];";
    let per_row =
        "tensor<fp16, [3, 8]> y = mul(x = n, y = tensor<fp16, [3, 1]>([[0x1p+0], [0x1p+1], [0x1p+2]]))[name = string(\"y\")];";
    for behind in [computed, per_row] {
        let (before, after, _) = rewritten(&norm("square(x = d)", &root, behind), Rewrite::NativeNorms, "m1", Rewrites::default());
        assert_eq!(ops(&after), ["layer_norm", "mul"]);
        assert!(distance(&before, &after) < 1e-9);
    }
}

#[test]
fn a_norm_over_a_plane_is_an_instance_norm() {
    let text = "func main<ios18>(tensor<fp16, [2, 3, 2, 4]> x) {
        tensor<fp16, [2, 3, 1, 1]> m = reduce_mean(x = x, axes = tensor<int32, [2]>([2, 3]), keep_dims = bool(true))[name = string(\"m\")];
        tensor<fp16, [2, 3, 2, 4]> d = sub(x = x, y = m)[name = string(\"d\")];
        tensor<fp16, [2, 3, 2, 4]> q = square(x = d)[name = string(\"q\")];
        tensor<fp16, [2, 3, 1, 1]> v = reduce_mean(x = q, axes = tensor<int32, [2]>([-1, -2]), keep_dims = bool(true))[name = string(\"v\")];
        tensor<fp16, [2, 3, 1, 1]> r = rsqrt(x = v, epsilon = fp16(0x1p-10))[name = string(\"r\")];
        tensor<fp16, [2, 3, 2, 4]> n = mul(x = d, y = r)[name = string(\"n\")];
        tensor<fp16, [2, 3, 2, 4]> y = mul(x = n, y = tensor<fp16, [3, 1, 1]>([[[0x1p+0]], [[0x1p+1]], [[0x1p-1]]]))[name = string(\"y\")];
    } -> (y);";
    let (before, after, _) = rewritten(text, Rewrite::NativeNorms, "m1", Rewrites::default());
    assert_eq!(ops(&after), ["instance_norm"]);
    assert!(distance(&before, &after) < 1e-9);
}

#[test]
fn what_is_nearly_a_norm_stays() {
    let plain = norm("square(x = d)", RSQRT, "");
    let rewrites = Rewrites::default();
    kept(&plain.replace("} -> (y)", "} -> (y, d)"), Rewrite::NativeNorms, "m1", rewrites, "another use");
    kept(&plain.replace("} -> (y)", "} -> (y, v)"), Rewrite::NativeNorms, "m1", rewrites, "another use");
    // The square of something else, and a mean over another axis, are no norm at all.
    kept(&plain.replace("square(x = d)", "square(x = x)"), Rewrite::NativeNorms, "m1", rewrites, "");
    kept(&plain.replace("sub(x = x, y = m)", "sub(x = m, y = x)"), Rewrite::NativeNorms, "m1", rewrites, "");
    let wide = plain.replace("[3, 8]", "[3, 10240]").replace("[8]", "[10240]");
    kept(&wide, Rewrite::NativeNorms, "m1", rewrites, "10240 features");
    let columns = plain.replace("[-1]", "[0]").replace("([1])", "([0])").replace("[3, 1]", "[1, 8]");
    kept(&columns, Rewrite::NativeNorms, "m1", rewrites, "not the last");
    kept(
        &columns.replace("sub(x = x, y = m)", "add(x = x, y = m)"),
        Rewrite::LengthNorms,
        "m1",
        rewrites,
        "runs over the last ones",
    );
}

#[test]
fn the_graphs_own_root_mean_square_norm_becomes_a_length() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[4, 16]);
    let y = x.rms_norm(-1, None, 1e-3);
    let target: Target = "m1".parse().expect("a target");
    let with =
        |rewrites| compile(&[("y", &y)], &CompileOptions { target, rewrites, ..CompileOptions::default() }).expect("compiles");
    let (plain, length) = (with(Rewrites::default()), with(Rewrites::default().with(Rewrite::LengthNorms, true)));
    assert!(ops(&plain.body).contains(&"reduce_l2_norm"));
    assert_eq!(ops(&length.body), ["reshape", "l2_norm", "mul", "reshape"]);
    // The factor and epsilon are rounded to fp16.
    assert!(distance(&plain.body, &length.body) < 1e-3);
    let tiny = compile(
        &[("y", &x.rms_norm(-1, None, 1e-12))],
        &CompileOptions { target, rewrites: Rewrites::default().with(Rewrite::LengthNorms, true), ..CompileOptions::default() },
    )
    .expect("compiles");
    assert!(ops(&tiny.body).contains(&"reduce_l2_norm"));
    assert!(tiny.notes.all().iter().any(|note| !note.applied && note.text.contains("epsilon")));
}

/// A convolution of two channels with steps behind it.
fn layer(behind: &str) -> String {
    format!(
        "func main<ios18>(tensor<fp16, [1, 2, 2, 3]> x, tensor<fp16, [2, 1, 1]> g) {{
            tensor<fp16, [2, 2, 1, 1]> w = const()[name = string(\"w\"), val = tensor<fp16, [2, 2, 1, 1]>([[[[0x1.8p+0]], [[0x1p+1]]], [[[-0x1p-2]], [[0x1.4p+0]]]])];
            tensor<fp16, [1, 2, 2, 3]> c = conv(x = x, weight = w, bias = tensor<fp16, [2]>([0x1p-1, -0x1p+0]))[name = string(\"c\")];
            {behind}
        }} -> (y);"
    )
}

#[test]
fn scales_and_offsets_go_into_the_layer_before() {
    let channels = "tensor<fp16, [2, 1, 1]>([[[0x1p-1]], [[0x1.8p+1]]])";
    let norm = format!(
        "tensor<fp16, [1, 2, 2, 3]> n = batch_norm(x = c, mean = {0}, variance = {0}, gamma = {0}, beta = {0}, epsilon = fp16(0x1p-10))[name = string(\"n\")];",
        "tensor<fp16, [2]>([0x1p-1, 0x1.8p+0])"
    );
    let texts = [
        format!("tensor<fp16, [1, 2, 2, 3]> y = mul(x = c, y = {channels})[name = string(\"y\")];"),
        format!("tensor<fp16, [1, 2, 2, 3]> y = add(x = {channels}, y = c)[name = string(\"y\")];"),
        format!("tensor<fp16, [1, 2, 2, 3]> y = sub(x = c, y = {channels})[name = string(\"y\")];"),
        norm.replace("> n =", "> y =").replace("\"n\"", "\"y\""),
        format!("{norm} tensor<fp16, [1, 2, 2, 3]> y = mul(x = n, y = fp16(0x1p+1))[name = string(\"y\")];"),
    ];
    for text in &texts {
        let (before, after, _) = rewritten(&layer(text), Rewrite::ScaleFolding, "m1", Rewrites::default());
        assert_eq!(ops(&after), ["conv"], "{text}");
        assert!(distance(&before, &after) < 1e-3, "{text}: {}", distance(&before, &after));
    }
}

#[test]
fn what_cannot_be_folded_stays() {
    let by = |factor: &str| layer(&format!("tensor<fp16, [1, 2, 2, 3]> y = mul(x = c, y = {factor})[name = string(\"y\")];"));
    let scaled = by("fp16(0x1p+1)");
    let rewrites = Rewrites::default();
    kept(&scaled.replace("} -> (y)", "} -> (y, c)"), Rewrite::ScaleFolding, "m1", rewrites, "another use");
    kept(&by("g"), Rewrite::ScaleFolding, "m1", rewrites, "");
    kept(&by("tensor<fp16, [3]>([0x1p+0, 0x1p+1, 0x1p+2])"), Rewrite::ScaleFolding, "m1", rewrites, "");
    // Below fp16's range the weights would be rounded away.
    kept(&by("fp16(0x1p-24)"), Rewrite::ScaleFolding, "m1", rewrites, "of their norm");
    kept(&by("fp16(0x1.ffcp+15)"), Rewrite::ScaleFolding, "m1", rewrites, "leave fp16's range");
}

#[test]
fn long_sums_become_products_with_ones() {
    let sum = |axis: i64, keep: bool, result: &str| {
        format!(
            "func main<ios18>(tensor<fp16, [2, 300, 260]> x) {{
                tensor<fp16, {result}> y = reduce_sum(x = x, axes = tensor<int32, [1]>([{axis}]), keep_dims = bool({keep}))[name = string(\"y\")];
            }} -> (y);"
        )
    };
    for (axis, keep, result) in
        [(-1, true, "[2, 300, 1]"), (2, false, "[2, 300]"), (1, true, "[2, 1, 260]"), (-2, false, "[2, 260]")]
    {
        let (before, after, _) = rewritten(&sum(axis, keep, result), Rewrite::SumByProduct, "m1", Rewrites::default());
        assert_eq!(ops(&after)[0], "matmul");
        assert!(distance(&before, &after) < 1e-12);
    }
    kept(&sum(0, true, "[1, 300, 260]"), Rewrite::SumByProduct, "m1", Rewrites::default(), "");
    let long_front = sum(0, true, "[1, 3, 260]").replace("[2, 300, 260]", "[512, 3, 260]");
    kept(&long_front, Rewrite::SumByProduct, "m1", Rewrites::default(), "not one of the last two");
    let short = sum(-1, true, "[2, 300, 1]").replace("[2, 300, 260]", "[2, 300, 100]");
    kept(&short, Rewrite::SumByProduct, "m1", Rewrites::default(), "");
}
