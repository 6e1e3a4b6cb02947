//! Sine and cosine on chips that have neither, over every fp16 number and with every step rounded to fp16.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

#[path = "../../core/tests/support/rounded.rs"]
mod rounded;

use aneforge_compile::{CompileOptions, compile};
use aneforge_core::{Array, DType, Graph, Tensor};
use half::f16;

#[test]
fn sine_and_cosine_are_right_over_the_whole_range_of_fp16() {
    let all = (0..=u16::MAX).map(|bits| f16::from_bits(bits).to_f64());
    let values: Vec<f64> = all.filter(|value| value.is_finite()).collect();
    type Function = (&'static str, fn(&Tensor) -> Tensor, fn(f64) -> f64);
    let functions: [Function; 2] = [("sin", Tensor::sin, f64::sin), ("cos", Tensor::cos, f64::cos)];
    for target in ["m1", "m2"] {
        for (name, build, exact) in functions {
            let graph = Graph::new();
            let shape = [8, values.len() / 8];
            let y = build(&graph.input("x", DType::Fp16, &shape));
            let options = CompileOptions { target: target.parse().unwrap(), ..CompileOptions::default() };
            let body = compile(&[("y", &y)], &options).unwrap().body;
            assert!(body.operations.iter().all(|operation| !["sin", "cos"].contains(&operation.op.name)));
            let got = rounded::run(&body, &[Array::new(DType::Fp16, shape, values.clone())]);
            let (mut near, mut far) = ((0f64, 0.0), (0f64, 0.0));
            for (&x, &got) in values.iter().zip(&got) {
                let error = (got - exact(x)).abs();
                let place = if x.abs() <= 32.0 { &mut near } else { &mut far };
                if error.is_nan() || error > place.0 {
                    *place = (error, x);
                }
            }
            println!("{name} for {target}: {:.2e} at {} up to 32, {:.2e} at {} beyond", near.0, near.1, far.0, far.1);
            assert!(near.0 <= 2e-3 && far.0 <= 5e-3, "{name} for {target}: {near:?} up to 32, {far:?} beyond");
        }
    }
}

#[test]
fn small_angles_keep_their_relative_precision() {
    let values: Vec<f64> = (0..14).map(|power| 2f64.powi(-power) * 0.75).collect();
    let graph = Graph::new();
    let y = graph.input("x", DType::Fp16, &[values.len()]).sin();
    let options = CompileOptions { target: "m1".parse().unwrap(), ..CompileOptions::default() };
    let body = compile(&[("y", &y)], &options).unwrap().body;
    for (x, got) in values.iter().zip(rounded::run(&body, &[Array::new(DType::Fp16, [values.len()], values.clone())])) {
        assert!((got - x.sin()).abs() <= 2e-3 * x.sin(), "sin({x}) = {got}");
    }
}

#[test]
fn infinity_has_no_sine() {
    let graph = Graph::new();
    let y = graph.input("x", DType::Fp16, &[2]).sin();
    let options = CompileOptions { target: "m1".parse().unwrap(), ..CompileOptions::default() };
    let body = compile(&[("y", &y)], &options).unwrap().body;
    let got = rounded::run(&body, &[Array::new(DType::Fp16, [2], vec![f64::INFINITY, f64::NEG_INFINITY])]);
    assert!(got.iter().all(|value| value.is_nan()), "{got:?}");
}
