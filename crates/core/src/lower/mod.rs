//! From nodes to MIL operations.

mod argument;
mod lowering;
mod names;

pub use argument::Arg;
pub use lowering::Lowering;

use crate::graph::{Arena, ConstantData, Node, NodeKind, Port};
use crate::op::Site;
use crate::{Attribute, GraphError, GraphOp, Target, Tensor, TensorType};
use aneforge_mil::{Body, Output, ValueId};
use std::collections::HashSet;

/// How a graph is lowered.
#[derive(Clone, Copy, Debug, Default)]
pub struct LowerOptions {
    /// What for.
    pub target: Target,
    /// Inputs that no output needs stay inputs of the program.
    pub keep_unused_inputs: bool,
}

/// Lowers everything that `outputs` need to one body of MIL operations, its results named as given.
///
/// Nodes appear in order of creation, inputs too; what no output needs is left out.
///
/// # Errors
/// The first error a tensor carries, a name given twice, tensors of two graphs, or a rule that the target adds.
pub fn lower(outputs: &[(String, Tensor)], target: Target) -> Result<Body, GraphError> {
    lower_with(outputs, LowerOptions { target, keep_unused_inputs: false })
}

/// [`lower`] with options.
///
/// # Errors
/// As [`lower`].
pub fn lower_with(outputs: &[(String, Tensor)], options: LowerOptions) -> Result<Body, GraphError> {
    let Some((_, first)) = outputs.first() else { return Err(GraphError::NoOutputs) };
    let mut ports = Vec::with_capacity(outputs.len());
    let mut names = HashSet::new();
    for (name, tensor) in outputs {
        ports.push(tensor.port()?);
        if !tensor.graph().is_same(first.graph()) {
            return Err(GraphError::OtherGraph { op: "output", input: name.clone() });
        }
        if !names.insert(name.as_str()) {
            return Err(GraphError::DuplicateName { name: name.clone() });
        }
    }
    let arena = first.graph().read();
    let live = live_nodes(&arena, &ports, options.keep_unused_inputs);
    // An output may have the name of an input only where it is that input.
    for (index, node) in arena.nodes.iter().enumerate().filter(|(index, _)| live[*index]) {
        let NodeKind::Input { name } = &node.kind else { continue };
        let other = |((output, _), port): (&(String, Tensor), &Port)| output == name && port.node.index() != index;
        if outputs.iter().zip(&ports).any(other) {
            return Err(GraphError::DuplicateName { name: name.clone() });
        }
        names.remove(name.as_str());
    }
    let mut lowering = Lowering::new(options.target);
    names.iter().for_each(|name| lowering.reserve(name));
    let mut results: Vec<Vec<ValueId>> = vec![Vec::new(); arena.nodes.len()];
    for (index, node) in arena.nodes.iter().enumerate().filter(|(index, _)| live[*index]) {
        results[index] = lower_node(&mut lowering, node, &results)?;
    }
    let value = |port: &Port| results[port.node.index()][port.output as usize];
    let outputs = outputs.iter().zip(&ports).map(|((name, _), port)| Output { name: name.clone(), value: value(port) }).collect();
    Ok(lowering.finish(outputs))
}

/// Result types of one use of an operator: those of its lowering for the generic target.
pub(crate) fn infer(
    arena: &Arena,
    op: &'static GraphOp,
    ports: &[Vec<Port>],
    types: &[Vec<TensorType>],
    attributes: &[Attribute],
) -> Result<Vec<TensorType>, GraphError> {
    let mut lowering = Lowering::new(Target::Generic);
    let mut values = Vec::with_capacity(ports.len());
    for (ports, types) in ports.iter().zip(types) {
        let mut here = Vec::with_capacity(ports.len());
        for (port, ty) in ports.iter().zip(types) {
            here.push(match &arena.node(port.node).kind {
                NodeKind::Constant(data) => lowering.constant_node("constant", ty, data),
                NodeKind::Parameter { weight, .. } => lowering.weight(weight),
                _ => lowering.input("input", ty),
            });
        }
        values.push(here);
    }
    let results = run_lowering(&mut lowering, &Site { op, types, attributes, values: &values })?;
    Ok(results.into_iter().map(|id| lowering.ty(id).clone()).collect())
}

fn live_nodes(arena: &Arena, outputs: &[Port], keep_inputs: bool) -> Vec<bool> {
    let mut live = vec![false; arena.nodes.len()];
    outputs.iter().for_each(|port| live[port.node.index()] = true);
    // Nodes only use earlier ones, so one sweep from the back marks everything without recursion.
    for (index, node) in arena.nodes.iter().enumerate().rev() {
        match &node.kind {
            NodeKind::Apply { inputs, .. } if live[index] => {
                inputs.iter().flatten().for_each(|port| live[port.node.index()] = true);
            }
            NodeKind::Input { .. } if keep_inputs => live[index] = true,
            _ => {}
        }
    }
    live
}

fn lower_node(lowering: &mut Lowering, node: &Node, results: &[Vec<ValueId>]) -> Result<Vec<ValueId>, GraphError> {
    let name = node.name.as_deref();
    match &node.kind {
        NodeKind::Input { name } => Ok(vec![lowering.input(name, &node.outputs[0])]),
        NodeKind::Parameter { name, weight } => Ok(vec![lowering.named_weight(name, weight)]),
        NodeKind::Constant(data @ ConstantData::Values(_)) => {
            Ok(vec![lowering.constant_node(name.unwrap_or("constant"), &node.outputs[0], data)])
        }
        NodeKind::Constant(data) => Ok(vec![lowering.constant_node(name.unwrap_or("weight"), &node.outputs[0], data)]),
        NodeKind::Apply { op, inputs, attributes } => {
            let values: Vec<Vec<ValueId>> = inputs
                .iter()
                .map(|ports| ports.iter().map(|port| results[port.node.index()][port.output as usize]).collect())
                .collect();
            let types: Vec<Vec<TensorType>> =
                values.iter().map(|ids| ids.iter().map(|&id| lowering.ty(id).clone()).collect()).collect();
            let first_new = lowering.begin(op.name, name);
            let outputs = run_lowering(lowering, &Site { op, types: &types, attributes, values: &values })?;
            lowering.finish_node(first_new, &outputs);
            Ok(outputs)
        }
    }
}

fn run_lowering(lowering: &mut Lowering, site: &Site<'_>) -> Result<Vec<ValueId>, GraphError> {
    (site.op.lower)(lowering, site).map_err(|error| match error {
        GraphError::Mil { source, .. } => {
            let same = source.to_string().starts_with(&format!("{} ", site.op.name));
            let got = if same { String::new() } else { format!("; {} got {}", site.op.name, site.describe()) };
            GraphError::Mil { op: site.op.name, got, source }
        }
        other => other,
    })
}
