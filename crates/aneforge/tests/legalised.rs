//! What the workarounds for a chip's compiler do to results: nothing, or no more than they say, where the plain form is right.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use aneforge::{Array, Compiled, DType, Graph, Tensor, compile};
use aneforge_testkit::difference;
use common::graphs::Maker;
use common::{Inputs, keywords, options, run, written};

/// A graph of one input, with that input's values.
fn one_input(values: &[f64], shape: &[usize], build: impl Fn(&Tensor) -> Tensor) -> (Tensor, Inputs) {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, shape);
    let inputs = vec![("x".to_string(), Array::new(DType::Fp16, shape, values.to_vec()).rounded())];
    (build(&x), inputs)
}

fn compiled(y: &Tensor, target: &str) -> Compiled {
    compile(&[("y", y)], &options(target)).unwrap()
}

/// The single result of a graph for a target, on a device.
fn result(y: &Tensor, inputs: &Inputs, target: &str, device: &str) -> Vec<f64> {
    run(device, &written(&compiled(y, target)).program, inputs)[0].data.clone()
}

#[test]
fn softplus_is_right_where_the_native_form_of_the_engine_gives_zero() {
    let mut values: Vec<f64> = (0..64).map(|step| 9.0 + f64::from(step) * 0.0625).collect();
    values.extend([11.09, 11.1, 50.0, 1000.0, 12345.0, 30000.0, 0.0, -5.0, -20.0, 9.99, 10.0, 10.01]);
    let (y, inputs) = one_input(&values, &[values.len()], Tensor::softplus);
    let closed: Vec<f64> = inputs[0].1.data.iter().map(|&x| x.max(0.0) + (-x.abs()).exp().ln_1p()).collect();
    assert!(keywords(&compiled(&y, "m1").body).contains(&"minimum"));
    for (target, device) in
        [("generic", "reference"), ("m1", "reference"), ("m1", "cpu"), ("m1", "emulator:m1"), ("m5", "emulator:m5")]
    {
        for (&got, (&closed, &x)) in result(&y, &inputs, target, device).iter().zip(closed.iter().zip(&inputs[0].1.data)) {
            // Each of the steps rounds to fp16, whose distance at 16384 to 32768 is 16; 4.6e-5 is the pass's own bound.
            let allowed = 4.6e-5 + closed * if device == "reference" { 5e-4 } else { 2e-3 } + 1e-3;
            assert!((got - closed).abs() <= allowed, "softplus({x}) for {target} on {device}: {got}, closed form {closed}");
        }
    }
}

#[test]
fn round_is_right_where_the_native_form_of_the_engine_is_not() {
    let mut values =
        vec![1023.5, 1024.0, 1025.0, 2047.0, 2049.0, 4097.0, 32767.0, 60000.0, 65504.0, 0.5, 1.5, 2.5, 0.25, 511.5, 1022.5];
    values.extend(values.clone().iter().map(|value| -value));
    let (y, inputs) = one_input(&values, &[values.len()], Tensor::round);
    assert_eq!(keywords(&compiled(&y, "m1").body), ["abs", "less", "round", "select"]);
    let plain = result(&y, &inputs, "generic", "reference");
    for (&got, &x) in plain.iter().zip(&inputs[0].1.data) {
        assert!((got - x).abs() <= 0.5 && got.fract() == 0.0, "round({x}) = {got}");
    }
    for (target, device) in [("m1", "reference"), ("m1", "cpu"), ("generic", "cpu")] {
        assert_eq!(result(&y, &inputs, target, device), plain, "{target} on {device}");
    }
}

#[test]
fn round_below_a_select_of_the_users_own_is_guarded_too() {
    let (y, inputs) = one_input(&[-3.4, 1500.0, 40000.0, 0.7], &[4], |x| x.greater(&x.constant_like(0.0)).select(&x.round(), x));
    let operators = keywords(&compiled(&y, "m1").body);
    assert_eq!(operators.iter().filter(|&&op| op == "select").count(), 2, "{operators:?}");
    assert_eq!(result(&y, &inputs, "m1", "reference"), result(&y, &inputs, "generic", "reference"));
}

#[test]
fn a_scalar_factor_after_rounding_is_written_out_and_changes_nothing() {
    let values: Vec<f64> = (0..48).map(|step| f64::from(step) * 0.37 - 9.0).collect();
    type Build = fn(&Tensor) -> Tensor;
    let graphs: [(&str, Build); 5] = [
        ("floor", |x| x.floor() * 0.25),
        ("ceil, factor first", |x| 0.25 * x.ceil()),
        ("round", |x| x.round() * 3.0),
        ("reduced before", |x| x.mean(1, true).round() * 0.5),
        ("twice", |x| x.floor() * 0.5 * 0.5),
    ];
    for (name, build) in graphs {
        let (y, inputs) = one_input(&values, &[4, 12], build);
        let chip = compiled(&y, "m1");
        let factor = chip.body.operations.iter().find(|operation| operation.op.name == "mul").expect("a product");
        let scalars = factor.arguments.iter().flat_map(|operand| operand.values()).filter(|&&id| chip.body.ty(id).count() == 1);
        assert_eq!(scalars.count(), 0, "{name}: {:?}", keywords(&chip.body));
        let plain = result(&y, &inputs, "generic", "reference");
        assert_eq!(result(&y, &inputs, "m1", "reference"), plain, "{name}");
        assert!(difference(&result(&y, &inputs, "m1", "cpu"), &plain).worst <= 1e-3, "{name}");
        assert!(difference(&result(&y, &inputs, "m1", "emulator:m1"), &plain).worst <= 1e-3, "{name}");
    }
}

#[test]
fn square_and_a_product_with_zero_keep_their_values() {
    let values: Vec<f64> = (0..30).map(|step| f64::from(step) * 0.61 - 9.0).collect();
    let (y, inputs) = one_input(&values, &[2, 15], |x| x.square().relu());
    assert!(!keywords(&compiled(&y, "m1").body).contains(&"square"));
    assert_eq!(result(&y, &inputs, "m1", "reference"), result(&y, &inputs, "generic", "reference"));
    let (y, inputs) = one_input(&values, &[2, 15], |x| x.sum(1, true) * 0.0);
    for device in ["reference", "cpu", "emulator:m1"] {
        assert_eq!(result(&y, &inputs, "m1", device), [0.0, 0.0], "{device}");
    }
    assert!(!keywords(&compiled(&y, "m1").body).contains(&"mul"));
}

#[test]
fn a_wide_layer_norm_with_its_affine_part_at_rank_2_gives_the_same() {
    for (shape, gain, offset) in [
        (vec![1, 3, 1024], true, true),
        (vec![2, 2, 3, 1536], true, true),
        (vec![1, 3, 1024], true, false),
        (vec![1, 3, 1024], false, true),
    ] {
        let mut make = Maker::new(shape.len() as u64);
        let width = *shape.last().unwrap();
        let x = make.input("x", &shape, -2.0, 2.0);
        let (gamma, beta) = (make.weight(&[width], 0.5, 1.5), make.weight(&[width], -0.5, 0.5));
        let y = x.layer_norm(-1, gain.then_some(&gamma), offset.then_some(&beta), 1e-5);
        let sample = make.sample("wide layer norm", 4e-3, &[("y", &y)]);
        let chip = compiled(&y, "m1");
        let affine = chip.body.operations.iter().filter(|operation| {
            let constant =
                operation.arguments.iter().flat_map(|operand| operand.values()).any(|&id| chip.body.ty(id).count() == width);
            constant && matches!(operation.op.name, "mul" | "add")
        });
        let ranks: Vec<usize> = affine.map(|operation| chip.body.ty(operation.outputs[0]).rank()).collect();
        assert_eq!(ranks, vec![2; usize::from(gain) + usize::from(offset)], "{shape:?}: {:?}", keywords(&chip.body));
        let plain = result(&y, &sample.inputs, "generic", "reference");
        assert!(difference(&result(&y, &sample.inputs, "m1", "reference"), &plain).worst <= 1e-3);
        for device in ["cpu", "emulator:m1"] {
            let found = difference(&result(&y, &sample.inputs, "m1", device), &plain);
            assert!(found.worst <= sample.tolerance, "{shape:?} on {device}: {found:?}");
        }
    }
}

#[test]
fn an_output_that_no_operation_makes_gets_one_and_keeps_its_values() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[2, 3]);
    let values = [1.0, -2.0, 65504.0, 6e-8, 0.0, 3.5];
    let inputs: Inputs = vec![("x".to_string(), Array::new(DType::Fp16, [2, 3], values.to_vec()).rounded())];
    let constant = graph.values(DType::Fp16, &[2], &[0.5, -4.0]);
    let relu = x.relu();
    for target in ["generic", "m1", "m5"] {
        let outputs = [("same", &x), ("fixed", &constant), ("once", &relu), ("again", &relu)];
        let bundle = written(&compile(&outputs, &options(target)).unwrap());
        for device in ["reference", "cpu"] {
            let results = run(device, &bundle.program, &inputs);
            assert_eq!(results[0].data, inputs[0].1.data, "{target} on {device}");
            assert_eq!(results[1].data, [0.5, -4.0], "{target} on {device}");
            assert_eq!(results[2].data, results[3].data, "{target} on {device}");
        }
        // An output that has its input's own name as well.
        let bundle = written(&compile(&[("x", &x)], &options(target)).unwrap());
        assert_eq!(run("cpu", &bundle.program, &inputs)[0].data, inputs[0].1.data, "{target}");
    }
}

#[test]
fn what_a_chip_cannot_take_is_refused_with_the_limit_and_a_remedy() {
    let graph = Graph::new();
    let wide = graph.input("wide", DType::Fp16, &[1, 20000]);
    let error = compile(&[("y", &wide.relu())], &options("m1")).unwrap_err().to_string();
    assert!(error.contains("20000") && error.contains("16384") && error.contains("M1"), "{error}");
    assert!(compile(&[("y", &wide.relu())], &options("m5")).is_ok());
    assert!(compile(&[("y", &wide.relu())], &options("generic")).is_ok());
}
