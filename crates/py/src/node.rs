//! The graph as Python holds it: nodes that live as long as a tensor that uses them. The library's graphs only grow, so one is made
//! for each question (what is the type of this result, compile this) and forgotten.

use aneforge_core::{Attribute, GraphOp, TensorType, Weight};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A node, numbered in order of creation: what it uses has smaller numbers.
pub struct Node {
    pub number: u64,
    pub kind: Kind,
}

/// What a node is.
pub enum Kind {
    Input { name: Option<String> },
    Parameter { name: Option<String>, weight: Weight },
    Values(Vec<f64>),
    Weight(Weight),
    Apply { op: &'static GraphOp, inputs: Vec<Vec<Tensor>>, attributes: Vec<Attribute> },
}

/// One result of a node.
#[derive(Clone)]
pub struct Tensor {
    pub node: Arc<Node>,
    pub output: usize,
    pub ty: TensorType,
}

impl Node {
    /// A node that nothing else has.
    pub fn new(kind: Kind) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Arc::new(Self { number: NEXT.fetch_add(1, Ordering::Relaxed), kind })
    }

    /// The tensors that it uses.
    pub fn inputs(&self) -> impl Iterator<Item = &Tensor> {
        let lists = match &self.kind {
            Kind::Apply { inputs, .. } => inputs.as_slice(),
            _ => &[],
        };
        lists.iter().flatten()
    }

    /// Name in `Tensor.op`.
    pub fn op(&self) -> &'static str {
        match &self.kind {
            Kind::Input { .. } | Kind::Parameter { .. } => "input",
            Kind::Values(_) | Kind::Weight(_) => "const_array",
            Kind::Apply { op, .. } => op.name,
        }
    }

    fn take_inputs(&mut self) -> Vec<Tensor> {
        match &mut self.kind {
            Kind::Apply { inputs, .. } => std::mem::take(inputs).into_iter().flatten().collect(),
            _ => Vec::new(),
        }
    }
}

/// A long chain must not take a stack frame per node when it goes.
impl Drop for Node {
    fn drop(&mut self) {
        let mut waiting = self.take_inputs();
        while let Some(tensor) = waiting.pop() {
            if let Some(mut node) = Arc::into_inner(tensor.node) {
                waiting.append(&mut node.take_inputs());
            }
        }
    }
}

impl Tensor {
    /// The only result of a new node.
    pub fn new(kind: Kind, ty: TensorType) -> Self {
        Self { node: Node::new(kind), output: 0, ty }
    }

    /// What tells it from other tensors.
    pub fn key(&self) -> (u64, usize) {
        (self.node.number, self.output)
    }
}
