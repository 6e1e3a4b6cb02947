//! Regions that a backward pass computes again stay so through all passes, and keep less in memory.
#![allow(clippy::unwrap_used)]

use aneforge_compile::{CompileOptions, compile};
use aneforge_core::{Body, DType, Graph, Target, Tensor, backward, checkpoint};
use std::collections::HashMap;

const LAYERS: usize = 12;
const PER_REGION: usize = 3;

/// A chain of layers, trained on one of its regions' boundaries or as a whole.
fn compiled(regions: bool, target: Target) -> Body {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[64, 32]);
    let weights: Vec<Tensor> = (0..LAYERS).map(|index| graph.input(&format!("w{index}"), DType::Fp16, &[32, 32])).collect();
    let mut y = x;
    for part in weights.chunks(PER_REGION) {
        let layers = |x: &Tensor| part.iter().fold(x.clone(), |x, weight| x.matmul(weight).tanh());
        y = if regions { checkpoint(&[y], |inputs| layers(&inputs[0])) } else { layers(&y) };
    }
    let loss = y.square().mean([0, 1], true);
    let grads = backward(&loss, &weights);
    let names: Vec<String> = (0..LAYERS).map(|index| format!("g{index}")).collect();
    let outputs: Vec<(&str, &Tensor)> = names.iter().map(String::as_str).zip(&grads).collect();
    compile(&outputs, &CompileOptions { target, ..CompileOptions::default() }).unwrap().body
}

fn count(body: &Body, op: &str) -> usize {
    body.operations.iter().filter(|operation| operation.op.name == op).count()
}

/// Most elements of results that a later operation needs, at any operation; outputs, which are the same in both, don't count.
fn peak(body: &Body) -> usize {
    let mut last = HashMap::new();
    for (at, operation) in body.operations.iter().enumerate() {
        operation.arguments.iter().flat_map(|operand| operand.values()).for_each(|id| {
            last.insert(*id, at);
        });
    }
    let outputs: Vec<_> = body.outputs.iter().map(|output| output.value).collect();
    let (mut live, mut peak) = (HashMap::new(), 0);
    for (at, operation) in body.operations.iter().enumerate() {
        for &id in operation.outputs.iter().filter(|id| !outputs.contains(id)) {
            live.insert(id, body.value(id).ty.count());
        }
        peak = peak.max(live.values().sum());
        live.retain(|id, _| last.get(id).is_some_and(|&last| last > at));
    }
    peak
}

#[test]
fn what_is_computed_again_is_not_merged_and_memory_shrinks() {
    for target in [Target::Generic, "m1".parse().unwrap(), "m1:in-memory".parse().unwrap()] {
        let (kept, again) = (compiled(false, target), compiled(true, target));
        assert_eq!([count(&kept, "tanh"), count(&again, "tanh")], [LAYERS, 2 * LAYERS], "{target:?}");
        let (kept, again) = (peak(&kept), peak(&again));
        assert!(again * 10 < kept * 8, "{target:?}: {again} elements live at once, {kept} without regions");
    }
}
