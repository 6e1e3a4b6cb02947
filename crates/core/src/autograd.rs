//! Reverse-mode derivatives, built as nodes of the same graph.

use crate::checkpoint::Replays;
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
            None => self.outputs.get(output).map_or_else(|| self.graph.failed(GraphError::NoOutputs), zeros),
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
    let seed = loss.ty().cloned().and_then(|ty| match ty.count() {
        1 => Ok(loss.graph().values(ty.dtype, &ty.shape, &[1.0])),
        _ => Err(GraphError::Loss { shape: DisplayShape(&ty.shape).to_string() }),
    });
    match seed {
        Ok(seed) => backward_from(&[(loss.clone(), seed)], wrt, &[]),
        Err(error) => wrt.iter().map(|_| loss.graph().failed(error.clone())).collect(),
    }
}

/// Gradients with respect to each tensor of `wrt` of the sum over all `roots` of a tensor times its seed, element by element: the
/// products of the seeds with the roots' Jacobians. A seed is a gradient that comes from elsewhere, of its root's type.
///
/// Tensors of `stop` are constants to the derivative: nothing passes them backwards. One that is in `wrt` as well has its gradient
/// and ends there.
///
/// Errors are carried as by [`backward`]; a seed of another type than its root is one.
///
/// ```
/// use aneforge_core::{Array, DType, Graph, Target, autograd::backward_from, evaluate, lower};
///
/// let graph = Graph::new();
/// let (x, seed) = (graph.input("x", DType::Fp16, &[2]), graph.input("seed", DType::Fp16, &[2]));
/// let slope = backward_from(&[(x.square(), seed)], &[x], &[]).remove(0);
/// let body = lower(&[("slope".to_string(), slope)], Target::Generic)?;
/// let array = |values: &[f64]| Array::new(DType::Fp16, [2], values.to_vec());
/// assert_eq!(evaluate(&body, &[array(&[3.0, 4.0]), array(&[1.0, 0.5])])?[0].data, [6.0, 4.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn backward_from(roots: &[(Tensor, Tensor)], wrt: &[Tensor], stop: &[Tensor]) -> Vec<Tensor> {
    match gradients(roots, wrt, stop) {
        Ok(grads) => grads,
        Err(error) => wrt.iter().map(|tensor| tensor.graph().failed(error.clone())).collect(),
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

fn gradients(roots: &[(Tensor, Tensor)], wrt: &[Tensor], stop: &[Tensor]) -> Result<Vec<Tensor>, GraphError> {
    let Some(graph) = roots.first().map(|(root, _)| root.graph()) else { return Err(GraphError::NoOutputs) };
    let port_of = |tensor: &Tensor| {
        let same = tensor.graph().is_same(graph);
        if same { tensor.port() } else { Err(GraphError::OtherGraph { op: "backward", input: format!("{tensor:?}") }) }
    };
    let targets = wrt.iter().map(port_of).collect::<Result<Vec<_>, _>>()?;
    let stops = stop.iter().map(port_of).collect::<Result<Vec<_>, _>>()?;
    let mut grads: HashMap<Port, Tensor> = HashMap::new();
    let mut last = 0;
    for (root, seed) in roots {
        let port = port_of(root)?;
        port_of(seed)?;
        let (given, wanted) = (seed.ty()?, root.ty()?);
        if given != wanted {
            let problem = format!("has type {given}, its root has {wanted}");
            return Err(GraphError::Input { op: "backward", input: "seed".to_string(), problem });
        }
        last = last.max(port.node.index());
        accumulate(&mut grads, port, seed.clone());
    }
    let depends = dependents(graph, last, &targets);
    let mut replays = Replays::new(graph, last);
    for index in (0..=last).rev().filter(|&index| depends[index]) {
        step(graph, index, &Way { depends: &depends, stops: &stops }, &mut replays, &mut grads)?;
    }
    Ok(targets.iter().zip(wrt).map(|(port, tensor)| grads.get(port).cloned().unwrap_or_else(|| zeros(tensor))).collect())
}

/// No gradient, of the tensor's type; in fp16 for integers, which have none.
fn zeros(tensor: &Tensor) -> Tensor {
    match tensor.ty() {
        Ok(ty) if ty.dtype.is_float() => tensor.graph().values(ty.dtype, &ty.shape, &vec![0.0; ty.count()]),
        Ok(ty) => tensor.graph().full(&ty.shape, 0.0),
        Err(error) => tensor.graph().failed(error),
    }
}

fn accumulate(grads: &mut HashMap<Port, Tensor>, port: Port, grad: Tensor) {
    let sum = match grads.remove(&port) {
        Some(before) => before.add(&grad),
        None => grad,
    };
    grads.insert(port, sum);
}

/// Where gradients go.
struct Way<'a> {
    /// Nodes that depend on a target.
    depends: &'a [bool],
    /// What they don't pass.
    stops: &'a [Port],
}

/// Which nodes depend on one of the targets (targets included), up to the root.
fn dependents(graph: &Graph, last: usize, targets: &[Port]) -> Vec<bool> {
    let arena = graph.read();
    let mut depends = vec![false; last + 1];
    for (index, node) in arena.nodes.iter().enumerate().take(depends.len()) {
        depends[index] = targets.iter().any(|port| port.node.index() == index)
            || matches!(&node.kind, NodeKind::Apply { inputs, .. } if inputs.iter().flatten().any(|port| depends[port.node.index()]));
    }
    depends
}

/// Runs the rule of one node and adds what it gives to the gradients so far.
fn step(
    graph: &Graph,
    index: usize,
    way: &Way<'_>,
    replays: &mut Replays,
    grads: &mut HashMap<Port, Tensor>,
) -> Result<(), GraphError> {
    let depends = way.depends;
    let node = graph.read().nodes[index].clone();
    let NodeKind::Apply { op, inputs, attributes } = node.kind else { return Ok(()) };
    let port = |output: usize| Port { node: crate::graph::NodeId(index as u32), output: output as u32 };
    let passes = |port: &Port| !way.stops.contains(port);
    let own: Vec<Option<Tensor>> =
        (0..node.outputs.len()).map(|output| grads.get(&port(output)).filter(|_| passes(&port(output))).cloned()).collect();
    let reaches_target = inputs.iter().flatten().any(|port| depends[port.node.index()]);
    let Some(first) = own.iter().flatten().next().cloned().filter(|_| reaches_target) else { return Ok(()) };
    let rule = match op.vjp {
        Vjp::Rule(rule) => rule,
        Vjp::None(reason) => return Err(GraphError::NotDifferentiable { op: op.name, reason: reason.to_string() }),
    };
    let mut tensor = |port: &Port| replays.seen_by(graph, index, graph.tensor_at(*port), *port, &first);
    let tensors: Vec<Vec<Tensor>> = inputs.iter().map(|ports| ports.iter().map(&mut tensor).collect()).collect();
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
        accumulate(grads, source, grad);
    }
    Ok(())
}
