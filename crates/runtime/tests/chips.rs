//! What a chip's engine does at its edges, as published: cliffs, special values, rounding, and where chips differ.
#![allow(clippy::unwrap_used)]

mod common;

use aneforge_core::{DType, HostArray};
use aneforge_runtime::emulator::{Emulator, EmulatorOptions, PartialOverflow, SingleTap, SubnormalProducts};
use aneforge_runtime::{Device, Program, open};
use common::{program, run};
use half::f16;
use std::sync::Arc;

fn array(shape: &[usize], values: &[f64]) -> HostArray {
    let bytes = values.iter().flat_map(|&value| f16::from_f64(value).to_le_bytes()).collect();
    HostArray::from_bytes(DType::Fp16, shape, bytes).unwrap()
}

fn values(device: &dyn Device, program: &Arc<Program>, inputs: &[HostArray]) -> Vec<f64> {
    run(device, program, inputs).remove(0).to_array().data
}

fn on(chip: &str, program: &Arc<Program>, inputs: &[HostArray]) -> Vec<f64> {
    values(open(&format!("emulator:{chip}")).unwrap().as_ref(), program, inputs)
}

fn unary(op: &str, x: &[f64]) -> (Arc<Program>, [HostArray; 1]) {
    let count = x.len();
    let statement = format!("tensor<fp16, [{count}]> y = {op}[name = string(\"y\")];");
    (program(&format!("tensor<fp16, [{count}]> x"), &statement, "y"), [array(&[count], x)])
}

fn product(depth: usize) -> Arc<Program> {
    let inputs = format!("tensor<fp16, [1, {depth}]> x, tensor<fp16, [{depth}, 2]> w");
    program(&inputs, "tensor<fp16, [1, 2]> y = matmul(x = x, y = w)[name = string(\"y\")];", "y")
}

fn dot(device: &dyn Device, x: &[f64], w: &[f64]) -> f64 {
    let columns: Vec<f64> = w.iter().flat_map(|&value| [value, 0.0]).collect();
    values(device, &product(x.len()), &[array(&[1, x.len()], x), array(&[x.len(), 2], &columns)])[0]
}

const CHIPS: [&str; 7] = ["m1", "m2pro", "m3", "m4", "m5", "m5pro", "m6"];

#[test]
fn a_slice_that_starts_inside_the_width_is_infinite_beyond_4094_on_m1_and_m2_alone() {
    let slice = |begin: &str, size: &str, shape: &str| {
        let statement = format!(
            "tensor<fp16, {shape}> y = slice_by_size(x = x, begin = tensor<int32, [4]>({begin}), size = tensor<int32, [4]>({size}))[name = string(\"y\")];"
        );
        program("tensor<fp16, [1, 1, 2, 4]> x", &statement, "y")
    };
    let x = [array(&[1, 1, 2, 4], &[0.0, 4094.0, 4100.0, -4100.0, 60000.0, 1.0, -2.0, 3.0])];
    let inside = slice("[0, 0, 0, 1]", "[1, 1, 1, 3]", "[1, 1, 1, 3]");
    for chip in ["m1", "m1max", "m2", "m2pro"] {
        assert_eq!(on(chip, &inside, &x), [4094.0, f64::INFINITY, f64::NEG_INFINITY], "{chip}");
    }
    for chip in ["m3", "m4", "m5", "m6"] {
        assert_eq!(on(chip, &inside, &x), [4094.0, 4100.0, -4100.0], "{chip}");
    }
    // From the start of the width, and along the height, nothing happens.
    assert_eq!(on("m1", &slice("[0, 0, 0, 0]", "[1, 1, 1, 3]", "[1, 1, 1, 3]"), &x), [0.0, 4094.0, 4100.0]);
    assert_eq!(on("m1", &slice("[0, 0, 1, 0]", "[1, 1, 1, 4]", "[1, 1, 1, 4]"), &x), [60000.0, 1.0, -2.0, 3.0]);
}

#[test]
fn products_and_sums_round_as_published() {
    for chip in CHIPS {
        let device = open(&format!("emulator:{chip}")).unwrap();
        let dot = |x: &[f64], w: &[f64]| dot(device.as_ref(), x, w);
        assert_eq!(dot(&[32752.0, 0.0], &[1.0, 1.0]), 32752.0, "{chip}: the largest finite result");
        assert_eq!(dot(&[16384.0, 16384.0], &[1.0, 1.0]), f64::INFINITY, "{chip}: 2^15 is infinite");
        assert_eq!(dot(&[-16384.0, -16384.0], &[1.0, 1.0]), f64::NEG_INFINITY, "{chip}");
        assert_eq!(dot(&[2048.0, 1.0], &[1.0, 1.0]), 2050.0, "{chip}: ties go away from zero");
        // 2^-9 * 2^-8 = 2^-17: the exponents sum to less than -16, so the product is dropped although half a grid step remains.
        let (a, b) = (f64::powi(2.0, -9), f64::powi(2.0, -8));
        assert_eq!(dot(&[a, 0.0], &[b, 0.0]), 0.0, "{chip}: small products are dropped");
        // 1.5 * 2^-16 is a tie of the 2^-16 grid.
        assert_eq!(dot(&[1.5 * b, 0.0], &[b, 0.0]), f64::powi(2.0, -15), "{chip}: products round to the grid, half away");
        assert_eq!(dot(&vec![1.0; 16000], &vec![1.0; 16000]), 16000.0, "{chip}: sums are exact");
    }
}

#[test]
fn a_convolution_of_one_tap_reaches_the_end_of_fp16_and_one_of_two_channels_does_not() {
    let convolution = |channels: usize| {
        let statement = format!(
            "tensor<fp16, [1, {channels}, 1, 1]> w = const()[name = string(\"w\"), val = tensor<fp16, [1, {channels}, 1, 1]>([{}])];
             tensor<fp16, [1, 1, 1, 2]> y = conv(x = x, weight = w, pad_type = string(\"valid\"))[name = string(\"y\")];",
            vec!["1"; channels].join(", ")
        );
        program(&format!("tensor<fp16, [1, {channels}, 1, 2]> x"), &statement, "y")
    };
    let one = [array(&[1, 1, 1, 2], &[60000.0, -65504.0])];
    let two = [array(&[1, 2, 1, 2], &[60000.0, -65504.0, 0.0, 0.0])];
    for chip in CHIPS {
        assert_eq!(on(chip, &convolution(1), &one), [60000.0, -65504.0], "{chip}");
        assert_eq!(on(chip, &convolution(2), &two), [f64::INFINITY, f64::NEG_INFINITY], "{chip}");
    }
    let chip = aneforge_core::Chip::find("m1").unwrap();
    let port = Emulator::new(chip, EmulatorOptions { single_tap: SingleTap::Port, ..EmulatorOptions::default() });
    assert_eq!(values(&port, &convolution(1), &one), [f64::INFINITY, f64::NEG_INFINITY]);
}

#[test]
fn element_wise_products_reach_the_end_of_fp16() {
    let inputs = "tensor<fp16, [2]> x, tensor<fp16, [2]> z";
    let mul = program(inputs, "tensor<fp16, [2]> y = mul(x = x, y = z)[name = string(\"y\")];", "y");
    let given = [array(&[2], &[32752.0, 256.0]), array(&[2], &[2.0, 256.0])];
    for chip in CHIPS {
        assert_eq!(on(chip, &mul, &given), [65504.0, f64::INFINITY], "{chip}");
    }
}

#[test]
fn nan_counts_as_infinity_and_indeterminate_forms_are_zero() {
    let (infinity, nan) = (f64::INFINITY, f64::NAN);
    let binary = |op: &str, x: f64, z: f64| {
        let statement = format!("tensor<fp16, [1]> y = {op}(x = x, y = z)[name = string(\"y\")];");
        let made = program("tensor<fp16, [1]> x, tensor<fp16, [1]> z", &statement, "y");
        CHIPS.map(|chip| on(chip, &made, &[array(&[1], &[x]), array(&[1], &[z])])[0])
    };
    for (op, x, z, wanted) in [
        ("add", nan, 0.0, infinity),
        ("maximum", 1.0, nan, infinity),
        ("sub", infinity, infinity, 0.0),
        ("mul", 0.0, infinity, 0.0),
        ("mul", nan, 1.0, infinity),
    ] {
        assert_eq!(binary(op, x, z), [wanted; 7], "{op}({x}, {z})");
    }
    for (op, x, wanted) in [
        ("relu(x = x)", nan, infinity),
        ("sigmoid(x = x)", nan, 1.0),
        ("tanh(x = x)", nan, 1.0),
        ("exp(x = x)", nan, infinity),
        ("sqrt(x = x)", -1.0, 0.0),
        ("rsqrt(x = x)", -1.0, 0.0),
        ("log(x = x)", 0.0, -45440.0),
        ("inverse(x = x, epsilon = fp16(0x0p+0))", -0.0, infinity),
    ] {
        let (made, given) = unary(op, &[x]);
        for chip in CHIPS {
            assert_eq!(on(chip, &made, &given), [wanted], "{op} of {x} on {chip}");
        }
    }
}

#[test]
fn only_m5_and_m6_run_convolutions_in_the_winograd_form() {
    let weight = common::literal(&[4, 3, 3, 3], 3, (-1.0, 1.0));
    let statement = format!(
        "tensor<fp16, [1, 4, 6, 6]> y = conv(x = x, weight = {weight}, strides = tensor<int32, [2]>([1, 1]), pad_type = string(\"custom\"), pad = tensor<int32, [4]>([1, 1, 1, 1]), dilations = tensor<int32, [2]>([1, 1]), groups = int32(1))[name = string(\"y\")];"
    );
    let made = program("tensor<fp16, [1, 3, 6, 6]> x", &statement, "y");
    let given = common::inputs(&made, 1, (-2.0, 2.0));
    let direct = on("m1", &made, &given);
    for chip in ["m2", "m2max", "m3", "m4", "m4pro"] {
        assert_eq!(on(chip, &made, &given), direct, "{chip}");
    }
    let winograd = on("m5", &made, &given);
    assert_ne!(winograd, direct);
    assert!(winograd.iter().zip(&direct).all(|(a, b)| (a - b).abs() < 0.02));
    for chip in ["m5pro", "m6"] {
        assert_eq!(on(chip, &made, &given), winograd, "{chip}");
    }
}

#[test]
fn undecided_rules_are_switches() {
    let chip = |name| aneforge_core::Chip::find(name).unwrap();
    let with = |name, options| Emulator::new(chip(name), options);
    let overflow = EmulatorOptions { partial_overflow: PartialOverflow::Immediate, ..Default::default() };
    let (x, w) = ([30000.0, 30000.0, -40000.0, 0.0], [1.0; 4]);
    assert_eq!(dot(&with("m1", EmulatorOptions::default()), &x, &w), 20000.0);
    assert_eq!(dot(&with("m1", overflow), &x, &w), f64::INFINITY);
    let flushed = |reading| EmulatorOptions { subnormal_products: reading, ..Default::default() };
    let (x, w) = ([f64::powi(2.0, -15), 0.0], [2.0, 0.0]);
    assert_eq!(dot(&with("m1", flushed(SubnormalProducts::Kept)), &x, &w), f64::powi(2.0, -14));
    assert_eq!(dot(&with("m1", flushed(SubnormalProducts::Flushed)), &x, &w), 0.0);
    assert_eq!(dot(&with("m1", flushed(SubnormalProducts::PerChip)), &x, &w), 0.0);
    assert_eq!(dot(&with("m5", flushed(SubnormalProducts::PerChip)), &x, &w), f64::powi(2.0, -14));
}
