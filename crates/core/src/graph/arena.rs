//! Nodes, and the table that finds an equal one.

use crate::checkpoint::Region;
use crate::{Attribute, DType, GraphError, GraphOp, TensorType, Weight};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Index of a node; nodes only ever use earlier ones, so this is a topological order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(pub u32);

/// One result of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Port {
    pub node: NodeId,
    pub output: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub kind: NodeKind,
    pub outputs: Vec<TensorType>,
    /// Name that people gave to the result.
    pub name: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) enum NodeKind {
    Input { name: String },
    Parameter { name: String, weight: Weight },
    Constant(ConstantData),
    Apply { op: &'static GraphOp, inputs: Vec<Vec<Port>>, attributes: Vec<Attribute> },
}

#[derive(Clone, Debug)]
pub(crate) enum ConstantData {
    /// Rounded to the constant's element type.
    Values(Vec<f64>),
    Weight(Weight),
}

/// What makes two nodes the same.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Values(DType, Vec<usize>, Vec<u64>),
    Weight((usize, usize, DType), DType, Vec<usize>),
    /// Operators are told apart by their record's address, so that a user's operator may share a name.
    Apply(usize, Vec<Vec<Port>>, Vec<Attribute>),
}

#[derive(Default)]
pub(crate) struct Arena {
    pub nodes: Vec<Node>,
    /// Seeds of weights that were read from text as stand-ins.
    pub seeds: HashMap<u32, u64>,
    /// Parts to be computed again in a backward pass, in the order in which they end.
    pub regions: Vec<Region>,
    known: HashMap<Key, NodeId>,
    names: HashMap<String, NodeId>,
}

impl NodeId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Arena {
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    pub fn add_input(&mut self, name: &str, ty: TensorType) -> Result<NodeId, GraphError> {
        self.add_named(name, NodeKind::Input { name: name.to_string() }, ty)
    }

    pub fn add_parameter(&mut self, name: &str, weight: Weight) -> Result<NodeId, GraphError> {
        let ty = weight.ty().clone();
        self.add_named(name, NodeKind::Parameter { name: name.to_string(), weight }, ty)
    }

    pub fn add_constant(&mut self, ty: TensorType, data: ConstantData) -> NodeId {
        let key = match &data {
            ConstantData::Values(values) => {
                Key::Values(ty.dtype, ty.shape.clone(), values.iter().map(|value| value.to_bits()).collect())
            }
            ConstantData::Weight(weight) => Key::Weight(weight.identity(), ty.dtype, ty.shape.clone()),
        };
        self.add_known(key, Node { kind: NodeKind::Constant(data), outputs: vec![ty], name: None })
    }

    /// The node of the same operator on the same inputs, if there is one, and its result types.
    pub fn known_apply(
        &self,
        op: &'static GraphOp,
        inputs: &[Vec<Port>],
        attributes: &[Attribute],
    ) -> Option<(NodeId, Vec<TensorType>)> {
        let id = *self.known.get(&Key::Apply(std::ptr::from_ref(op) as usize, inputs.to_vec(), attributes.to_vec()))?;
        Some((id, self.node(id).outputs.clone()))
    }

    pub fn add_apply(
        &mut self,
        op: &'static GraphOp,
        inputs: Vec<Vec<Port>>,
        attributes: Vec<Attribute>,
        outputs: Vec<TensorType>,
    ) -> NodeId {
        let key = Key::Apply(std::ptr::from_ref(op) as usize, inputs.clone(), attributes.clone());
        self.add_known(key, Node { kind: NodeKind::Apply { op, inputs, attributes }, outputs, name: None })
    }

    /// Names the result of a node; the first name stays.
    pub fn name(&mut self, id: NodeId, name: &str) {
        if let Some(node) = self.nodes.get_mut(id.index())
            && node.name.is_none()
        {
            node.name = Some(name.to_string());
        }
    }

    fn add_named(&mut self, name: &str, kind: NodeKind, ty: TensorType) -> Result<NodeId, GraphError> {
        match self.names.entry(name.to_string()) {
            Entry::Occupied(_) => Err(GraphError::DuplicateName { name: name.to_string() }),
            Entry::Vacant(slot) => {
                let id = NodeId(self.nodes.len() as u32);
                slot.insert(id);
                self.nodes.push(Node { kind, outputs: vec![ty], name: Some(name.to_string()) });
                Ok(id)
            }
        }
    }

    fn add_known(&mut self, key: Key, node: Node) -> NodeId {
        let next = NodeId(self.nodes.len() as u32);
        let id = *self.known.entry(key).or_insert(next);
        if id == next {
            self.nodes.push(node);
        }
        id
    }
}
