//! Gradients that `cpu` computes as one step in place of what they are written as: of a convolution's weight, and of a maximum over
//! windows. The same answers as the meaning of the operators.
#![allow(clippy::unwrap_used)]

mod common;

use aneforge_core::{DType, Graph, Target, Tensor, Window, backward, lower};
use aneforge_runtime::{Program, open};
use std::sync::Arc;

/// Compares gradients on `cpu` with those of `reference`, and says whether a step of a kernel was among those that were made.
fn check(result: &Tensor, wrt: &[Tensor], kernel: &str) -> bool {
    let seed = result.graph().input("seed", DType::Fp16, result.shape().unwrap());
    let axes: Vec<i64> = (0..result.shape().unwrap().len() as i64).collect();
    let loss = result.mul(&seed).reduce_sum(axes, true);
    let gradients = backward(&loss, wrt).into_iter().enumerate().map(|(index, tensor)| (format!("grad{index}"), tensor));
    let body = lower(&gradients.collect::<Vec<_>>(), Target::Generic).unwrap();
    let program = Arc::new(Program::from_body("gradients", body));
    let inputs = common::inputs(&program, 5, (-2.0, 2.0));
    let wanted = common::run(&*open("reference").unwrap(), &program, &inputs);
    let device = open("cpu").unwrap();
    for (got, wanted) in common::run(&*device, &program, &inputs).iter().zip(&wanted) {
        let away = common::distance(got, wanted);
        assert!(away <= 2e-3, "differs by {away}");
    }
    device.load(&program).unwrap().report().steps.iter().any(|step| step.kernel.starts_with(kernel))
}

#[test]
fn a_gradient_of_a_convolutions_weight_is_one_product() {
    let plain = Window::default();
    let uneven = Window { pad: vec![2, 0, 1, 3], dilations: vec![2, 3], ..plain.clone() };
    for (channels, out, size, window) in [
        (1, 5, [3, 3], plain.clone().padding(1)),
        (12, 40, [3, 3], uneven),
        (4, 3, [1, 5], plain.clone()),
        (3, 17, [8, 10], plain.clone()),
    ] {
        let graph = Graph::new();
        let x = graph.input("x", DType::Fp16, &[3, channels, 8, 12]);
        let weight = graph.input("weight", DType::Fp16, &[out, channels, size[0], size[1]]);
        let result = x.abs().conv(&weight, None, &window);
        assert!(check(&result, &[x, weight], "weight gradient"), "{window:?}");
    }
}

#[test]
fn strided_and_grouped_convolutions_keep_their_products() {
    for window in [Window { strides: vec![2, 1], ..Window::default() }, Window { groups: 2, ..Window::default() }] {
        let graph = Graph::new();
        let x = graph.input("x", DType::Fp16, &[2, 4, 8, 9]);
        let weight = graph.input("weight", DType::Fp16, &[6, 4 / window.groups.max(1) as usize, 3, 3]);
        let result = x.abs().conv(&weight, None, &window);
        assert!(!check(&result, &[x, weight], "weight gradient"), "{window:?}");
    }
}

#[test]
fn a_gradient_of_a_maximum_is_one_step_and_ties_share_it() {
    for shape in [[3, 5, 8, 6], [2, 32, 4, 4], [1, 1, 2, 2]] {
        for flat in [false, true] {
            let graph = Graph::new();
            let x = graph.input("x", DType::Fp16, &shape);
            // Many windows of a relu hold nothing but zeros.
            let mut result = x.relu().max_pool(&Window::square(2));
            if flat {
                result = result.reshape(&[shape[0] as i64, -1]);
            }
            assert!(check(&result, &[x], "gradient of a max pool"), "{shape:?}");
        }
    }
}
