//! Reverse-mode derivatives, built as nodes of the same graph.

use crate::graph::{NodeKind, Port};
use crate::op::{InputKind, Site, Vjp};
use crate::{Attribute, Graph, GraphError, GraphOp, Tensor, TensorType};
use aneforge_mil::DisplayShape;
use std::collections::HashMap;

/// What the derivative rule of an operator works with: the use's inputs, results and attributes, and the gradients of the loss
/// with respect to the results. The rule hands back gradients of the inputs, of exactly their shapes.
#[derive(Debug)]
pub struct Backward<'a> {
    op: &'static GraphOp,
    graph: &'a Graph,
    inputs: Vec<Vec<Tensor>>,
    outputs: Vec<Tensor>,
    grads: Vec<Option<Tensor>>,
    types: Vec<Vec<TensorType>>,
    attributes: Vec<Attribute>,
    wanted: Vec<Vec<bool>>,
    given: Vec<(usize, usize, Tensor)>,
}

impl Backward<'_> {
    /// The graph.
    pub fn graph(&self) -> &Graph {
        self.graph
    }

    /// Types and attributes of the use; it has no MIL values.
    pub fn site(&self) -> Site<'_> {
        Site { op: self.op, types: &self.types, attributes: &self.attributes, values: &[] }
    }

    /// All tensors at an input.
    pub fn all(&self, input: &str) -> &[Tensor] {
        self.op.input(input).and_then(|index| self.inputs.get(index)).map_or(&[], Vec::as_slice)
    }

    /// The tensor at an input; a failed one where nothing stands there.
    pub fn input(&self, input: &str) -> Tensor {
        self.all(input).first().cloned().unwrap_or_else(|| {
            self.graph.failed(GraphError::Input { op: self.op.name, input: input.to_string(), problem: "is missing".to_string() })
        })
    }

    /// The first result.
    pub fn output(&self) -> Tensor {
        self.outputs[0].clone()
    }

    /// A result; a failed tensor where the operator has fewer.
    pub fn output_at(&self, index: usize) -> Tensor {
        self.outputs.get(index).cloned().unwrap_or_else(|| self.graph.failed(GraphError::NoOutputs))
    }

    /// Gradient with respect to the first result.
    pub fn grad(&self) -> Tensor {
        self.grad_of(0)
    }

    /// Gradient with respect to a result; zeros where the loss does not depend on it.
    pub fn grad_of(&self, output: usize) -> Tensor {
        match self.grads.get(output).cloned().flatten() {
            Some(grad) => grad,
            None => {
                let shape = self.outputs.get(output).and_then(|tensor| tensor.shape().ok()).unwrap_or(&[]).to_vec();
                self.graph.full(&shape, 0.0)
            }
        }
    }

    /// Whether the gradient of an input is needed at all.
    pub fn wants(&self, input: &str) -> bool {
        self.op.input(input).and_then(|index| self.wanted.get(index)).is_some_and(|wanted| wanted.iter().any(|&wanted| wanted))
    }

    /// Hands back the gradient of an input.
    pub fn give(&mut self, input: &str, grad: Tensor) {
        self.give_at(input, 0, grad);
    }

    /// Hands back the gradient of one tensor of a variadic input.
    pub fn give_at(&mut self, input: &str, index: usize, grad: Tensor) {
        if let Some(port) = self.op.input(input) {
            self.given.push((port, index, grad));
        }
    }

    /// Hands back the gradient of an input that was broadcast to the shape of `grad`: summed back to the input's shape.
    pub fn give_broadcast(&mut self, input: &str, grad: Tensor) {
        if self.wants(input) {
            let shape = self.input(input).shape().map(<[usize]>::to_vec);
            let reduced = match shape {
                Ok(shape) => sum_to(&grad, &shape),
                Err(error) => self.graph.failed(error),
            };
            self.give(input, reduced);
        }
    }
}

/// Gradients of `loss`, a tensor with one element, with respect to each tensor of `wrt`, as new nodes of its graph.
///
/// A tensor the loss does not depend on has a gradient of zeros. Where an operator on the way has no derivative, or the loss has
/// more than one element, the tensors returned carry that error.
pub fn backward(loss: &Tensor, wrt: &[Tensor]) -> Vec<Tensor> {
    match gradients(loss, wrt) {
        Ok(grads) => grads,
        Err(error) => wrt.iter().map(|_| loss.graph().failed(error.clone())).collect(),
    }
}

/// The sum of `grad` over the axes along which a tensor of `shape` was broadcast.
pub fn sum_to(grad: &Tensor, shape: &[usize]) -> Tensor {
    let full = match grad.shape() {
        Ok(full) => full.to_vec(),
        Err(error) => return grad.graph().failed(error),
    };
    if full == shape {
        return grad.clone();
    }
    let leading = full.len().saturating_sub(shape.len());
    let axes: Vec<i64> = (0..full.len())
        .filter(|&axis| axis < leading || (shape[axis - leading] == 1 && full[axis] != 1))
        .map(|axis| axis as i64)
        .collect();
    let summed = if axes.is_empty() { grad.clone() } else { grad.reduce_sum(axes, true) };
    let shape: Vec<i64> = shape.iter().map(|&extent| extent as i64).collect();
    summed.reshape(&shape)
}

fn gradients(loss: &Tensor, wrt: &[Tensor]) -> Result<Vec<Tensor>, GraphError> {
    let (root, ty) = (loss.port()?, loss.ty()?.clone());
    if ty.count() != 1 {
        return Err(GraphError::Loss { shape: DisplayShape(&ty.shape).to_string() });
    }
    let graph = loss.graph();
    let targets = wrt
        .iter()
        .map(|tensor| {
            let same = tensor.graph().is_same(graph);
            if same { tensor.port() } else { Err(GraphError::OtherGraph { op: "backward", input: format!("{tensor:?}") }) }
        })
        .collect::<Result<Vec<_>, _>>()?;
    let depends = dependents(graph, root, &targets);
    let mut grads: HashMap<Port, Tensor> = HashMap::from([(root, graph.values(ty.dtype, &ty.shape, &[1.0]))]);
    for index in (0..=root.node.index()).rev().filter(|&index| depends[index]) {
        step(graph, index, &depends, &mut grads)?;
    }
    let zeros = |tensor: &Tensor| tensor.shape().map(|shape| graph.full(shape, 0.0));
    targets.iter().zip(wrt).map(|(port, tensor)| grads.get(port).cloned().map_or_else(|| zeros(tensor), Ok)).collect()
}

/// Which nodes depend on one of the targets (targets included), up to the root.
fn dependents(graph: &Graph, root: Port, targets: &[Port]) -> Vec<bool> {
    let arena = graph.read();
    let mut depends = vec![false; root.node.index() + 1];
    for (index, node) in arena.nodes.iter().enumerate().take(depends.len()) {
        depends[index] = targets.iter().any(|port| port.node.index() == index)
            || matches!(&node.kind, NodeKind::Apply { inputs, .. } if inputs.iter().flatten().any(|port| depends[port.node.index()]));
    }
    depends
}

/// Runs the rule of one node and adds what it gives to the gradients so far.
fn step(graph: &Graph, index: usize, depends: &[bool], grads: &mut HashMap<Port, Tensor>) -> Result<(), GraphError> {
    let node = graph.read().nodes[index].clone();
    let NodeKind::Apply { op, inputs, attributes } = node.kind else { return Ok(()) };
    let port = |output: usize| Port { node: crate::graph::NodeId(index as u32), output: output as u32 };
    let own: Vec<Option<Tensor>> = (0..node.outputs.len()).map(|output| grads.get(&port(output)).cloned()).collect();
    let reaches_target = inputs.iter().flatten().any(|port| depends[port.node.index()]);
    if own.iter().all(Option::is_none) || !reaches_target {
        return Ok(());
    }
    let rule = match op.vjp {
        Vjp::Rule(rule) => rule,
        Vjp::None(reason) => return Err(GraphError::NotDifferentiable { op: op.name, reason: reason.to_string() }),
    };
    let tensor = |port: &Port| {
        let ty = graph.read().node(port.node).outputs[port.output as usize].clone();
        Tensor::new(graph.clone(), *port, &ty)
    };
    let tensors: Vec<Vec<Tensor>> = inputs.iter().map(|ports| ports.iter().map(&tensor).collect()).collect();
    let types = tensors.iter().map(|here| here.iter().map(|tensor| tensor.ty().cloned()).collect()).collect::<Result<_, _>>()?;
    let mut backward = Backward {
        op,
        graph,
        types,
        inputs: tensors,
        outputs: (0..node.outputs.len()).map(|output| tensor(&port(output))).collect(),
        grads: own,
        attributes,
        wanted: inputs.iter().map(|ports| ports.iter().map(|port| depends[port.node.index()]).collect()).collect(),
        given: Vec::new(),
    };
    rule(&mut backward);
    for (input, place, grad) in backward.given {
        let Some(&source) = inputs.get(input).and_then(|ports| ports.get(place)) else { continue };
        if !depends[source.node.index()] {
            continue;
        }
        let (given, wanted) = (grad.ty()?, graph.read().node(source.node).outputs[source.output as usize].clone());
        if *given != wanted {
            let name = op.inputs[input].name.to_string();
            let kind = if op.inputs[input].kind == InputKind::Variadic { format!("{name}[{place}]") } else { name };
            let problem = format!("got a gradient {given} from its derivative rule, it needs {wanted}");
            return Err(GraphError::Input { op: op.name, input: kind, problem });
        }
        let sum = match grads.remove(&source) {
            Some(before) => before.add(&grad),
            None => grad,
        };
        grads.insert(source, sum);
    }
    Ok(())
}
