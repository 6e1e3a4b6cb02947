//! What a plan is made from: operations, and groups of operations that one kernel does.

use super::graph::Graph;
use super::{Options, chain, compare, conv, matmul, movement, norm, pool, pool_gradient, product, reduce, weight_gradient};
use aneforge_mil::{Operand, Operation, ValueId};

/// A unit of work before it has places.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// What it does.
    pub(crate) kind: Kind,
    /// Operations of the body that it stands for.
    pub(crate) covers: Vec<usize>,
    /// Values it needs.
    pub(crate) reads: Vec<ValueId>,
    /// Results.
    pub(crate) outputs: Vec<ValueId>,
}

/// What a node does.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// An operation through its definition.
    Generic,
    /// The same elements under another shape.
    View(ValueId),
    Product(product::Product),
    Convolution(conv::Convolution),
    Matmul(matmul::Matmul),
    Attention(matmul::Attention),
    Norm(norm::Norm),
    Chain(chain::Chain),
    Reduce(reduce::Reduce),
    Pool(pool::Pool),
    PoolGradient(pool_gradient::PoolGradient),
    WeightGradient(weight_gradient::WeightGradient),
    Compare(compare::Compare),
    Move(movement::Move),
}

impl Node {
    /// Keywords of the operators it stands for.
    pub(crate) fn ops(&self, graph: &Graph) -> Vec<&'static str> {
        self.covers.iter().map(|&index| graph.body.operations[index].op.name).collect()
    }
}

/// Groups the operations of a body into nodes, in an order in which they can run. Larger idioms are looked for first.
pub(crate) fn group(graph: &Graph, options: &Options) -> Vec<Node> {
    let count = graph.body.operations.len();
    let mut taken = vec![false; count];
    let mut nodes: Vec<Node> = Vec::with_capacity(count);
    let mut sweep = |backwards: bool, recognise: &dyn Fn(usize, &[bool]) -> Option<Node>| {
        for step in 0..count {
            let index = if backwards { count - 1 - step } else { step };
            if taken[index] {
                continue;
            }
            let Some(node) = recognise(index, &taken) else { continue };
            if node.covers.iter().all(|&covered| !taken[covered]) {
                node.covers.iter().for_each(|&covered| taken[covered] = true);
                nodes.push(node);
            }
        }
    };
    sweep(false, &|index, taken| matmul::recognise_attention(graph, index, options, taken));
    sweep(false, &|index, taken| norm::recognise_written_out(graph, index, options, taken));
    sweep(false, &|index, taken| pool_gradient::recognise(graph, index, options, taken));
    sweep(false, &|index, taken| weight_gradient::recognise(graph, index, options, taken));
    sweep(false, &|index, taken| product::recognise(graph, index, options, taken));
    sweep(false, &|index, taken| conv::recognise(graph, index, options, taken));
    sweep(false, &|index, taken| matmul::recognise(graph, index, options, taken));
    sweep(true, &|index, taken| chain::recognise(graph, index, options, taken));
    sweep(false, &|index, _| single(graph, index, options));
    nodes.iter_mut().for_each(|node| node.covers.sort_unstable());
    // A node can run where its last operation stood: everything that it reads was made before one of its operations.
    nodes.sort_by_key(|node| node.covers.last().copied());
    prune(graph, nodes)
}

fn single(graph: &Graph, index: usize, options: &Options) -> Option<Node> {
    let operation = &graph.body.operations[index];
    if let Some(of) = view(graph, operation) {
        return Some(Node { kind: Kind::View(of), covers: vec![index], reads: vec![of], outputs: operation.outputs.clone() });
    }
    norm::recognise(graph, index)
        .or_else(|| reduce::recognise(graph, index, options))
        .or_else(|| pool::recognise(graph, index, options))
        .or_else(|| compare::recognise(graph, index))
        .or_else(|| movement::recognise(graph, index))
        .or_else(|| {
            let reads = operation.arguments.iter().flat_map(Operand::values).copied().collect();
            Some(Node { kind: Kind::Generic, covers: vec![index], reads, outputs: operation.outputs.clone() })
        })
}

/// Drops nodes whose results nobody reads any more, such as a transpose that became strides of a product.
fn prune(graph: &Graph, nodes: Vec<Node>) -> Vec<Node> {
    let mut needed = vec![false; graph.body.values.len()];
    graph.body.roots().for_each(|root| needed[root.index()] = true);
    let mut kept = Vec::with_capacity(nodes.len());
    for node in nodes.into_iter().rev() {
        if node.outputs.iter().any(|id| needed[id.index()]) {
            node.reads.iter().for_each(|id| needed[id.index()] = true);
            kept.push(node);
        }
    }
    kept.reverse();
    kept
}

/// The value that an operation shows under another shape, elements unchanged.
fn view(graph: &Graph, operation: &Operation) -> Option<ValueId> {
    const VIEWS: &[&str] = &["reshape", "squeeze", "expand_dims", "flatten2d", "identity"];
    let x = VIEWS.contains(&operation.op.name).then(|| graph.at(operation, "x"))??;
    let output = *operation.outputs.first()?;
    (graph.body.ty(x).count() == graph.body.ty(output).count() && graph.dtype(x) == graph.dtype(output)).then_some(x)
}
