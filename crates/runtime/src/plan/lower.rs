//! Makes the step of a node.

use super::builder::{Builder, Described, Layout};
use super::generic::{Generic, GenericArgument};
use super::graph::Graph;
use super::memory::Spot;
use super::node::{Kind, Node};
use super::policy::Policy;
use super::{chain, compare, conv, matmul, movement, norm, pool, pool_gradient, product, reduce, weight_gradient};
use crate::DeviceError;
use crate::emulator::Engine;
use aneforge_mil::Operation;

/// Adds the steps that do `node`.
pub(crate) fn lower(builder: &mut Builder<'_>, node: &Node) -> Result<(), DeviceError> {
    match &node.kind {
        Kind::Generic => generic(builder, node),
        Kind::View(of) => {
            let spot = builder.read(*of)?;
            node.outputs.iter().for_each(|&id| builder.set(id, Layout::Dense, spot));
            Ok(())
        }
        Kind::Product(product) => product::lower(builder, node, product),
        Kind::Convolution(convolution) => conv::lower(builder, node, convolution),
        Kind::Matmul(product) => matmul::lower(builder, node, product),
        Kind::Attention(attention) => matmul::lower_attention(builder, node, attention),
        Kind::Norm(norm) => norm::lower(builder, node, norm),
        Kind::Chain(chain) => chain::lower(builder, node, chain),
        Kind::Reduce(reduce) => reduce::lower(builder, node, reduce),
        Kind::Pool(pool) => pool::lower(builder, node, pool),
        Kind::PoolGradient(gradient) => pool_gradient::lower(builder, node, gradient),
        Kind::WeightGradient(gradient) => weight_gradient::lower(builder, node, gradient),
        Kind::Compare(compare) => compare::lower(builder, node, compare),
        Kind::Move(moved) => movement::lower(builder, node, moved),
    }
}

/// The operation through its definition.
fn generic(builder: &mut Builder<'_>, node: &Node) -> Result<(), DeviceError> {
    let graph = builder.graph;
    let Some(operation) = node.covers.last().and_then(|&index| graph.body.operations.get(index)) else {
        return Err(DeviceError::internal("lower", "a node stands for nothing"));
    };
    let mut reads: Vec<Spot> = Vec::new();
    let mut arguments = Vec::with_capacity(operation.arguments.len());
    for operand in &operation.arguments {
        let mut port = Vec::new();
        for &id in operand.values() {
            let known = graph.body.argument(id);
            if known.value.is_some() || known.text.is_some() {
                port.push(GenericArgument::Known(known));
            } else {
                let spot = builder.read(id)?;
                reads.push(spot);
                port.push(GenericArgument::Read(spot, graph.body.ty(id).clone()));
            }
        }
        arguments.push(port);
    }
    let mut results = Vec::with_capacity(operation.outputs.len());
    for &id in &operation.outputs {
        results.push((builder.make(id, Layout::Dense)?, graph.body.ty(id).clone()));
    }
    let writes: Vec<_> = results.iter().map(|(slot, _)| *slot).collect();
    let rule = match builder.policy {
        Policy::Engine(engine) if is_scaling(graph, operation, engine) => Some(engine.scaling_rule()),
        policy => policy.rule(operation.op),
    };
    let described = Described { kernel: "meaning".to_string(), rule };
    let step = Generic { op: operation.op, arguments, results, policy: builder.policy.clone() };
    builder.push(node, described, Box::new(step), &reads, &writes);
    Ok(())
}

fn is_scaling(graph: &Graph, operation: &Operation, engine: &Engine) -> bool {
    let shape = |port| graph.at(operation, port).map(|id| graph.shape(id));
    match (operation.op.name, shape("x"), shape("weight")) {
        ("conv", Some(&[_, channels, _, _]), Some(&[_, _, height, width])) => engine.is_scaling([height, width], channels),
        _ => false,
    }
}
