//! Parts of a graph that a backward pass computes again in place of keeping their intermediate results.

use crate::graph::{NodeId, NodeKind, Port};
use crate::{Attribute, Graph, Tensor};
use std::collections::HashMap;

/// What `region` builds on `inputs`, to be computed again where a gradient needs what is inside of it: the backward pass then keeps
/// the inputs and the result alone, for the price of a second forward pass through the region (Chen et al. 2016, arXiv 1604.06174).
///
/// The second pass starts from the inputs plus zero times an element of the gradient. So nothing merges it with the first one, the
/// compilers of engines included, and it cannot start before the backward pass is there. That element must be finite, which one that
/// is not makes known anyway. Tensors that `region` uses and that are not among the inputs are kept; of regions within regions the
/// outermost counts. Graph text does not say what is a region.
///
/// ```
/// use aneforge_core::{DType, Graph, backward, checkpoint};
///
/// let graph = Graph::new();
/// let x = graph.input("x", DType::Fp16, &[2, 3]);
/// let y = checkpoint(std::slice::from_ref(&x), |inputs| inputs[0].exp().sin());
/// let slope = backward(&y.sum([0, 1], false), &[x]).remove(0);
/// assert_eq!(slope.shape()?, [2, 3]);
/// # Ok::<(), aneforge_core::GraphError>(())
/// ```
pub fn checkpoint(inputs: &[Tensor], region: impl FnOnce(&[Tensor]) -> Tensor) -> Tensor {
    let output = region(inputs);
    // A tensor with an error has no place; what is wrong with it is said where it is used.
    if let Ok(port) = output.port() {
        let graph = output.graph();
        let ports = inputs.iter().filter(|tensor| tensor.graph().is_same(graph)).filter_map(|tensor| tensor.port().ok()).collect();
        graph.write().regions.push(Region { inputs: ports, output: port });
    }
    output
}

/// Where a region begins and ends.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    pub inputs: Vec<Port>,
    pub output: Port,
}

/// The regions below a root, with what stands for their tensors once they are computed again.
pub(crate) struct Replays {
    regions: Vec<Replay>,
    /// Region of a node.
    of: HashMap<usize, usize>,
}

struct Replay {
    inputs: Vec<Port>,
    /// Nodes inside, in order.
    members: Vec<usize>,
    /// Filled when the backward pass comes to the region.
    again: HashMap<Port, Tensor>,
}

impl Replays {
    /// Those of a graph whose nodes up to `last` are differentiated.
    pub fn new(graph: &Graph, last: usize) -> Self {
        let arena = graph.read();
        let (mut regions, mut of) = (Vec::new(), HashMap::new());
        for region in arena.regions.iter().filter(|region| region.output.node.index() <= last) {
            let begins = |index: usize| region.inputs.iter().any(|port| port.node.index() == index);
            let end = region.output.node.index();
            let mut inside = vec![false; end + 1];
            for index in 0..=end {
                let NodeKind::Apply { inputs, .. } = &arena.nodes[index].kind else { continue };
                let fed = |port: &Port| region.inputs.contains(port) || inside[port.node.index()];
                inside[index] = !begins(index) && inputs.iter().flatten().any(fed);
            }
            let mut needed = vec![false; end + 1];
            needed[end] = inside[end];
            for index in (0..=end).rev().filter(|&index| inside[index]) {
                let NodeKind::Apply { inputs, .. } = &arena.nodes[index].kind else { continue };
                if needed[index] {
                    inputs.iter().flatten().for_each(|port| needed[port.node.index()] |= inside[port.node.index()]);
                }
            }
            let members: Vec<usize> = (0..=end).filter(|&index| needed[index]).collect();
            // Regions come in the order in which they end, so an outer one is later and takes over.
            of.extend(members.iter().map(|&index| (index, regions.len())));
            regions.push(Replay { inputs: region.inputs.clone(), members, again: HashMap::new() });
        }
        Self { regions, of }
    }

    /// The tensor that a derivative rule of a node works with in place of a tensor of the forward pass. `grad` is a gradient that
    /// the node has: what is computed again waits for the first one that reaches its region.
    pub fn seen_by(&mut self, graph: &Graph, node: usize, tensor: Tensor, port: Port, grad: &Tensor) -> Tensor {
        let Some(replay) = self.of.get(&node).and_then(|&region| self.regions.get_mut(region)) else { return tensor };
        if replay.again.is_empty() {
            replay.run(graph, grad);
        }
        replay.again.get(&port).cloned().unwrap_or(tensor)
    }
}

impl Replay {
    fn run(&mut self, graph: &Graph, grad: &Tensor) {
        for &port in &self.inputs {
            let input = graph.tensor_at(port);
            let is_float = input.ty().is_ok_and(|ty| ty.dtype.is_float());
            self.again.insert(port, if is_float { after(&input, grad) } else { input });
        }
        for &index in &self.members {
            let kind = graph.read().nodes[index].kind.clone();
            let NodeKind::Apply { op, inputs, attributes } = kind else { continue };
            let tensor = |port: &Port| self.again.get(port).cloned().unwrap_or_else(|| graph.tensor_at(*port));
            let lists: Vec<Vec<Tensor>> = inputs.iter().map(|ports| ports.iter().map(tensor).collect()).collect();
            let named = op.attributes.iter().zip(attributes).map(|(spec, value)| (spec.name, value));
            let named: Vec<(&str, Attribute)> = named.filter(|(_, value)| *value != Attribute::Absent).collect();
            for (output, result) in graph.apply_lists(op, &lists, &named).into_iter().enumerate() {
                self.again.insert(Port { node: NodeId(index as u32), output: output as u32 }, result);
            }
        }
    }
}

/// `input`, but not before `grad` is there.
fn after(input: &Tensor, grad: &Tensor) -> Tensor {
    let (Ok(ty), Ok(rank)) = (input.ty(), grad.rank()) else { return input.clone() };
    let element = grad.slice_by_size(&vec![0; rank], &vec![1; rank]).reshape(&vec![1; ty.rank()]);
    input.add(&element.cast(ty.dtype).muls(0.0))
}
