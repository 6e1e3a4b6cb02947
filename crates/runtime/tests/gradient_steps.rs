//! What gradients are full of beside products: comparisons that several selections read, repeated values, borders, sums over axes
//! that do not lie side by side. The same answers as the meaning of the operators.
#![allow(clippy::unwrap_used)]

mod common;

use aneforge_runtime::{Program, open};
use std::sync::Arc;

/// Largest difference from `reference` on `cpu`, relative to the norm; steps of `cpu` that go through the meaning.
fn check(program: &Arc<Program>, tolerance: f64) {
    let inputs = common::inputs(program, 11, (-2.0, 2.0));
    let wanted = common::run(&*open("reference").unwrap(), program, &inputs);
    for name in ["cpu", "emulator:m1"] {
        let device = open(name).unwrap();
        let got = common::run(&*device, program, &inputs);
        for (got, wanted) in got.iter().zip(&wanted) {
            let away = common::distance(got, wanted);
            assert!(away <= tolerance, "{name}: differs by {away}");
        }
        let steps = device.load(program).unwrap().report().steps;
        let slow: Vec<_> = steps.iter().filter(|step| step.kernel == "meaning").map(|step| &step.ops).collect();
        assert!(slow.is_empty(), "{name}: {slow:?}");
    }
}

fn ints(values: &[usize]) -> String {
    format!("tensor<int32, [{}]>({values:?})", values.len())
}

#[test]
fn sums_over_scattered_axes() {
    for (shape, axes, kept) in [
        (vec![3, 5, 7, 9], vec![0, 2, 3], vec![1, 5, 1, 1]),
        (vec![1, 17, 1, 40], vec![0, 2, 3], vec![1, 17, 1, 1]),
        (vec![6, 3, 2, 5, 3], vec![2, 4], vec![6, 3, 1, 5, 1]),
        (vec![4, 3, 50], vec![0, 2], vec![1, 3, 1]),
        (vec![2, 700], vec![1], vec![2, 1]),
    ] {
        for op in ["reduce_sum", "reduce_mean"] {
            // Longer rows go through the engine's tree of fp16 additions, which is less exact.
            let tolerance = if axes == [1] { 2e-2 } else { 1e-3 };
            let statement = format!("tensor<fp16, {kept:?}> y = {op}(x = x, axes = {}, keep_dims = bool(true));", ints(&axes));
            check(&common::program(&format!("tensor<fp16, {shape:?}> x"), &statement, "y"), tolerance);
        }
    }
}

#[test]
fn borders_of_constants() {
    let statement = format!(
        "tensor<fp16, [2, 3, 8, 6]> y = pad(x = x, pad = {}, mode = string(\"constant\"), constant_val = fp16(1.5));",
        ints(&[0, 0, 0, 0, 1, 2, 0, 3])
    );
    check(&common::program("tensor<fp16, [2, 3, 5, 3]> x", &statement, "y"), 0.0);
}

#[test]
fn a_comparison_with_short_rows_read_twice() {
    for [images, down, rows, across, columns] in [[6, 3, 2, 5, 2], [700, 2, 3, 3, 2], [1, 1, 2, 1, 2], [5, 40, 2, 1, 70]] {
        let (whole, one) = ([images, down, rows, across, columns], [images, down, 1, across, 1]);
        let statements = format!(
            "tensor<fp16, {whole:?}> size = abs(x = x);\n\
             tensor<bool, {whole:?}> hit = greater(x = size, y = y);\n\
             tensor<fp16, {whole:?}> g_all = tile(x = g, reps = {});\n\
             tensor<fp16, {whole:?}> x2 = mul(x = x, y = x);\n\
             tensor<fp16, {whole:?}> a = select(cond = hit, a = g_all, b = x);\n\
             tensor<fp16, {whole:?}> b = select(cond = hit, a = x2, b = g_all);",
            ints(&[1, 1, rows, 1, columns])
        );
        let inputs = format!("tensor<fp16, {whole:?}> x, tensor<fp16, {one:?}> y, tensor<fp16, {one:?}> g");
        check(&common::program(&inputs, &statements, "a, b"), 1e-3);
    }
}
