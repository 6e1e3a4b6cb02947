//! Gradients from given seeds, tensors that stop them, and regions that a backward pass computes again.
#![allow(clippy::unwrap_used)]

use aneforge_core::autograd::backward_from;
use aneforge_core::{Array, Body, DType, Graph, Target, Tensor, backward, checkpoint, evaluate, lower};

fn body(tensors: &[Tensor]) -> Body {
    let named: Vec<(String, Tensor)> =
        tensors.iter().enumerate().map(|(index, tensor)| (format!("y{index}"), tensor.clone())).collect();
    lower(&named, Target::Generic).unwrap()
}

fn values(tensors: &[Tensor], inputs: &[(&[usize], &[f64])]) -> Vec<Vec<f64>> {
    let arrays: Vec<Array> = inputs.iter().map(|(shape, data)| Array::new(DType::Fp16, *shape, data.to_vec())).collect();
    evaluate(&body(tensors), &arrays).unwrap().into_iter().map(|array| array.data).collect()
}

fn count(body: &Body, op: &str) -> usize {
    body.operations.iter().filter(|operation| operation.op.name == op).count()
}

#[test]
fn a_seed_is_multiplied_with_the_jacobian_and_roots_are_added_up() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[2]);
    let (first, second) = (graph.input("first", DType::Fp16, &[2]), graph.input("second", DType::Fp16, &[2]));
    let roots = [(x.square(), first.clone()), (x.muls(3.0), second), (x.square(), first)];
    let slope = backward_from(&roots, &[x], &[]).remove(0);
    // 2 x first, twice, and 3 second.
    let got = values(&[slope], &[(&[2], &[1.0, -2.0]), (&[2], &[0.5, 1.0]), (&[2], &[4.0, -1.0])]);
    assert_eq!(got[0], [2.0 + 12.0, -8.0 - 3.0]);
}

#[test]
fn a_seed_of_another_type_and_no_root_are_errors() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[2]);
    let narrow = graph.input("narrow", DType::Fp16, &[1]);
    let error = backward_from(&[(x.square(), narrow)], std::slice::from_ref(&x), &[])[0].check().unwrap_err().to_string();
    assert!(error.contains("seed") && error.contains("[1]") && error.contains("[2]"), "{error}");
    assert!(backward_from(&[], &[x], &[])[0].check().is_err());
}

#[test]
fn nothing_passes_a_stopped_tensor_and_one_that_is_asked_for_has_its_gradient() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[1]);
    let h = x.square();
    let loss = h.mul(&x);
    let seed = graph.full(&[1], 1.0);
    let through = backward_from(&[(loss.clone(), seed.clone())], &[x.clone(), h.clone()], &[]);
    let stopped = backward_from(&[(loss, seed)], &[x, h.clone()], &[h]);
    let got = values(&[through, stopped].concat(), &[(&[1], &[3.0])]);
    // x^3: 3 x^2 in all, x^2 where x^2 is held; the gradient of h is x both times.
    assert_eq!(got, [[27.0], [3.0], [9.0], [3.0]]);
}

/// Two layers, the first of them in a region of its own or not.
fn model(regions: bool) -> (Vec<Tensor>, Vec<Tensor>) {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[2, 3]);
    let weight = graph.input("weight", DType::Fp16, &[3, 3]);
    let layer = |x: &Tensor| x.matmul(&weight).sin().matmul(&weight).exp();
    let deep = |x: &Tensor| layer(&layer(x));
    let y = if regions { checkpoint(std::slice::from_ref(&x), |inputs| deep(&inputs[0])) } else { deep(&x) };
    let loss = y.square().mean([0, 1], false);
    let grads = backward(&loss, &[x, weight]);
    (vec![loss], grads)
}

#[test]
fn a_region_is_computed_again_with_the_same_gradients() {
    let inputs: [(&[usize], &[f64]); 2] =
        [(&[2, 3], &[0.5, -0.25, 1.0, 0.75, -1.0, 0.125]), (&[3, 3], &[0.25, -0.5, 0.75, 0.5, 0.125, -0.25, -0.75, 0.5, 0.375])];
    let all = |regions| {
        let (loss, grads) = model(regions);
        [loss, grads].concat()
    };
    assert_eq!(values(&all(false), &inputs), values(&all(true), &inputs), "the same operations on the same values");
    let (kept, again) = (body(&all(false)), body(&all(true)));
    assert_eq!([count(&kept, "sin"), count(&again, "sin")], [2, 4], "each sine of the region is there twice");
    // What the forward pass alone needs ends before the backward pass starts: no result of the region but its last is used by it.
    let last_forward = again.operations.iter().position(|operation| operation.op.name == "reduce_mean").unwrap();
    let early: Vec<_> = again.operations[..last_forward].iter().flat_map(|operation| &operation.outputs).copied().collect();
    let crossing = again.operations[last_forward..]
        .iter()
        .flat_map(|operation| operation.arguments.iter().flat_map(|operand| operand.values()))
        .filter(|id| early.contains(id))
        .collect::<std::collections::HashSet<_>>();
    assert!(crossing.len() <= 2, "{} forward results live on", crossing.len());
}

#[test]
fn a_region_within_a_region_is_computed_again_once() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[1]);
    let inner = |x: &Tensor| checkpoint(std::slice::from_ref(x), |inputs| inputs[0].sin());
    let y = checkpoint(std::slice::from_ref(&x), |inputs| inner(&inputs[0].square()).exp());
    let slope = backward(&y.square(), std::slice::from_ref(&x)).remove(0);
    assert_eq!(count(&body(&[y.clone(), slope.clone()]), "sin"), 2);
    let at = 0.75f64;
    let wanted = 2.0 * (at * at).sin().exp().powi(2) * (at * at).cos() * 2.0 * at;
    assert!((values(&[slope], &[(&[1], &[at])])[0][0] - wanted).abs() < 1e-12);
}
