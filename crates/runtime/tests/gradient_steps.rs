//! What gradients are full of beside products: comparisons that several selections read, repeated values, borders, sums over axes
//! that do not lie side by side. The same answers as the meaning of the operators.
#![allow(clippy::unwrap_used)]

mod common;

use aneforge_core::{DType, HostArray};
use aneforge_runtime::{Program, open};
use std::sync::Arc;

/// Below a thousandth: sums and products in the rounding of fp16.
const NEAR: f64 = 9.99e-4;

/// Checks that the answers of a device are at most `tolerance` from those of `reference`, relative to the norm, and that none of its
/// steps goes through the operators' meaning.
fn check(program: &Arc<Program>, tolerance: f64) {
    let inputs = common::inputs(program, 11, (-2.0, 2.0));
    let wanted = common::run(&*open("reference").unwrap(), program, &inputs);
    for name in ["cpu", "emulator:m1", "emulator:m5"] {
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

/// The same for a program of one result, `y`.
fn check_form(inputs: &str, statements: &str, tolerance: f64) {
    check(&common::program(inputs, statements, "y"), tolerance);
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

#[test]
fn a_condition_serves_several_selects() {
    for (windows, each) in
        [("2, 3, 2, 4, 2", "2, 3, 1, 4, 1"), ("1, 7, 1, 5, 3", "1, 7, 1, 5, 1"), ("2, 1, 2, 33, 2", "2, 1, 1, 33, 1")]
    {
        let sum: Vec<&str> = each.split(", ").collect();
        let statements = format!(
            "tensor<bool, [{windows}]> hit = greater_equal(x = x, y = e);
             tensor<fp16, [{windows}]> ones = select(cond = hit, a = x, b = z);
             tensor<fp16, [{}]> ties = reduce_sum(x = ones, axes = tensor<int32, [2]>([2, 4]), keep_dims = bool(true));
             tensor<fp16, [{}]> share = add(x = ties, y = e);
             tensor<fp16, [{windows}]> spread = add(x = share, y = z);
             tensor<fp16, [{windows}]> y = select(cond = hit, a = spread, b = x);",
            sum.join(", "),
            sum.join(", ")
        );
        let inputs = format!("tensor<fp16, [{windows}]> x, tensor<fp16, [{windows}]> z, tensor<fp16, [{each}]> e");
        check_form(&inputs, &statements, NEAR);
    }
}

#[test]
fn a_condition_that_is_an_output_or_an_input_is_read_and_written_as_bytes() {
    let statements = "tensor<bool, [3, 41]> c = less(x = x, y = z); tensor<bool, [3, 41]> y = logical_not(x = c);";
    let program = common::program("tensor<fp16, [3, 41]> x, tensor<fp16, [3, 41]> z", statements, "c, y");
    let given = common::inputs(&program, 2, (-1.0, 1.0));
    let wanted: Vec<bool> = given[0].to_f32().iter().zip(given[1].to_f32()).map(|(x, z)| *x < z).collect();
    for device in ["cpu", "emulator:m1"] {
        let got = common::run(&*open(device).unwrap(), &program, &given);
        assert_eq!(got[0].bytes(), wanted.iter().map(|&flag| u8::from(flag)).collect::<Vec<_>>(), "{device}");
    }
    let statements = "tensor<fp16, [3, 41]> y = select(cond = c, a = x, b = fp16(0x1p+1));";
    let program = common::program("tensor<bool, [3, 1]> c, tensor<fp16, [3, 41]> x", statements, "y");
    let flags = HostArray::from_bytes(DType::Bool, [3, 1], vec![1, 0, 1]).unwrap();
    let wanted: Vec<f32> = given[0].to_f32().iter().enumerate().map(|(at, &x)| if at / 41 == 1 { 2.0 } else { x }).collect();
    for device in ["reference", "cpu", "emulator:m1"] {
        let got = common::run(&*open(device).unwrap(), &program, &[flags.clone(), given[0].clone()]);
        assert_eq!(got[0].to_f32(), wanted, "{device}");
    }
}

#[test]
fn repeats() {
    for (shape, reps, result) in [
        ("2, 3", "1, 4", "2, 12"),
        ("2, 3", "3, 1", "6, 3"),
        ("1, 1, 5", "2, 3, 2", "2, 3, 10"),
        ("4, 1, 1", "1, 7, 9", "4, 7, 9"),
        ("1", "6", "6"),
    ] {
        let rank = reps.split(", ").count();
        let statement = format!("tensor<fp16, [{result}]> y = tile(x = x, reps = tensor<int32, [{rank}]>([{reps}]));");
        check_form(&format!("tensor<fp16, [{shape}]> x"), &statement, 0.0);
    }
}

#[test]
fn borders() {
    for (shape, pad, result, value) in [
        ("2, 3, 4", "1, 2", "2, 3, 7", "0x0p+0"),
        ("2, 3, 4", "0, 1, 2, 0", "2, 4, 6", "-0x1p+4"),
        ("2, 3, 4", "1, 1, 2, 0, 0, 3", "4, 5, 7", "0x1p-1"),
        ("5", "3, 0", "8", "0x1p+0"),
    ] {
        let count = pad.split(", ").count();
        let statement = format!(
            "tensor<fp16, [{result}]> y = pad(x = x, pad = tensor<int32, [{count}]>([{pad}]), mode = string(\"constant\"), \
             constant_val = fp16({value}));"
        );
        check_form(&format!("tensor<fp16, [{shape}]> x"), &statement, 0.0);
    }
}

#[test]
fn sums_over_axes_apart() {
    for op in ["reduce_sum", "reduce_mean"] {
        for (shape, axes, result) in [
            ("4, 5, 6, 7", "0, 2, 3", "5"),
            ("4, 5, 6, 7", "0, 2", "5, 7"),
            ("4, 5, 6, 7", "1, 3", "4, 6"),
            ("2, 1, 6, 7", "-1, 0", "1, 6"),
            ("3, 5, 2, 4, 2", "2, 4", "3, 5, 4"),
            ("64, 16, 9", "0, 2", "16"),
        ] {
            let count = axes.split(", ").count();
            let statement = format!(
                "tensor<fp16, [{result}]> y = {op}(x = x, axes = tensor<int32, [{count}]>([{axes}]), keep_dims = bool(false));"
            );
            check_form(&format!("tensor<fp16, [{shape}]> x"), &statement, NEAR);
        }
    }
}

#[test]
fn a_factor_with_axes_inside_the_channels_meets_its_own_elements() {
    // A convolution leaves channels innermost; the factor's rows are not those of channels, be they short or long.
    for channels in [6, 70] {
        for factor in ["1, C, 4, 1", "1, C, 1, 5", "1, 1, 4, 5", "1, C, 1, 1", "4, 5", "2, 1, 4, 1"] {
            let factor = factor.replace('C', &channels.to_string());
            let statements = format!(
                "tensor<fp16, [2, {channels}, 4, 5]> c = conv(x = x, weight = {}, strides = tensor<int32, [2]>([1, 1]), \
                 pad_type = string(\"valid\"), dilations = tensor<int32, [2]>([1, 1]), groups = int32(1));
                 tensor<fp16, [2, {channels}, 4, 5]> r = relu(x = c);
                 tensor<fp16, [2, {channels}, 4, 5]> y = mul(x = r, y = f);",
                common::literal(&[channels, 3, 1, 1], 3, (-1.0, 1.0))
            );
            check_form(&format!("tensor<fp16, [2, 3, 4, 5]> x, tensor<fp16, [{factor}]> f"), &statements, NEAR);
        }
    }
}
