//! The graph: an append-only arena of nodes and the handles people hold.

mod apply;
mod arena;
mod axes;
mod build;
mod source;
mod tensor;
mod text;

pub use apply::Argument;
pub(crate) use arena::{Arena, ConstantData, Node, NodeId, NodeKind, Port};
pub use axes::Axes;
pub use build::{Heads, Index, IntoIndices, Window, attention, concat, cross_attention, einsum, geglu, mha, sdpa, stack};
pub use source::Source;
pub use tensor::Tensor;
pub use text::GraphText;

use crate::{DType, GraphError, HostArray, TensorType, Weight};
use aneforge_mil::{DisplayShape, round_to_fp16};
use half::f16;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Largest rank the engine takes.
pub const MAX_RANK: usize = 5;

/// Element types of inputs and of results: fp16 for activations, int32 for indices, uint8 for images, bool for masks, fp32 at
/// edges.
const PORT_TYPES: &[DType] = &[DType::Fp16, DType::Fp32, DType::Int32, DType::Bool, DType::UInt8, DType::Int8, DType::UInt16];

/// Constants of at most this many numbers are written into the program's text; larger ones go to the weight file.
const INLINE_ELEMENTS: usize = 16;

/// A lazy tensor graph. Cloning gives another handle on the same graph; handles may be shared between threads.
///
/// Nodes are only ever added. Two uses of an operator on the same inputs with the same attributes are one node; inputs and
/// parameters keep their identity.
#[derive(Clone, Default)]
pub struct Graph {
    arena: Arc<RwLock<Arena>>,
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// A named input of the program. Inputs are called in the order in which they are created.
    pub fn input(&self, name: &str, dtype: DType, shape: &[usize]) -> Tensor {
        let ty = TensorType::new(dtype, shape);
        self.checked("input", &ty, |graph| graph.write().add_input(name, ty.clone()))
    }

    /// A named weight that training may change; it keeps its identity even where another one holds the same data.
    pub fn parameter(&self, name: &str, weight: Weight) -> Tensor {
        let ty = weight.ty().clone();
        self.checked("parameter", &ty, |graph| graph.write().add_parameter(name, weight))
    }

    /// A constant with the data of a weight, which is shared and not copied.
    pub fn weight(&self, weight: Weight) -> Tensor {
        let ty = weight.ty().clone();
        self.checked("constant", &ty, |graph| Ok(graph.write().add_constant(ty.clone(), ConstantData::Weight(weight))))
    }

    /// A constant with the data of a host array; fp32 is rounded to fp16.
    pub fn constant(&self, array: &HostArray) -> Tensor {
        let dtype = if array.dtype() == DType::Fp32 { DType::Fp16 } else { array.dtype() };
        self.values(dtype, array.shape(), &array.to_array().data)
    }

    /// A constant from its values, rounded to `dtype`.
    pub fn values(&self, dtype: DType, shape: &[usize], values: &[f64]) -> Tensor {
        let ty = TensorType::new(dtype, shape);
        self.checked("constant", &ty, |graph| {
            if ty.checked_count() != Some(values.len()) {
                return Err(GraphError::Count {
                    op: "constant",
                    shape: DisplayShape(shape).to_string(),
                    needed: ty.count(),
                    given: values.len(),
                });
            }
            let data = constant_data(&ty, values)?;
            Ok(graph.write().add_constant(ty.clone(), data))
        })
    }

    /// An fp16 constant of rank 0.
    pub fn scalar(&self, value: f64) -> Tensor {
        self.values(DType::Fp16, &[], &[value])
    }

    /// An fp16 constant of one repeated value.
    pub fn full(&self, shape: &[usize], value: f64) -> Tensor {
        let count = shape.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent)).unwrap_or(0);
        self.values(DType::Fp16, shape, &vec![value; count])
    }

    /// Number of nodes so far.
    pub fn len(&self) -> usize {
        self.read().nodes.len()
    }

    /// Whether nothing has been built yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether two handles stand for the same graph.
    pub fn is_same(&self, other: &Graph) -> bool {
        Arc::ptr_eq(&self.arena, &other.arena)
    }

    /// The inputs so far, in call order.
    pub fn inputs(&self) -> Vec<Tensor> {
        self.handles(|kind| matches!(kind, NodeKind::Input { .. }))
    }

    /// The parameters so far, in order of creation.
    pub fn parameters(&self) -> Vec<Tensor> {
        self.handles(|kind| matches!(kind, NodeKind::Parameter { .. }))
    }

    /// A tensor that only carries an error, for builders outside of this crate that refuse what they were given.
    pub fn failed(&self, error: GraphError) -> Tensor {
        Tensor::failed(self.clone(), Arc::new(error))
    }

    /// The tensor at a port of this graph.
    pub(crate) fn tensor_at(&self, port: Port) -> Tensor {
        let ty = self.read().node(port.node).outputs[port.output as usize].clone();
        Tensor::new(self.clone(), port, &ty)
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Arena> {
        // A poisoned lock means that a thread died between two pushes; the arena itself is append-only and stays consistent.
        self.arena.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Arena> {
        self.arena.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn handles(&self, wanted: fn(&NodeKind) -> bool) -> Vec<Tensor> {
        let arena = self.read();
        let found = arena.nodes.iter().enumerate().filter(|(_, node)| wanted(&node.kind));
        found
            .map(|(index, node)| Tensor::new(self.clone(), Port { node: NodeId(index as u32), output: 0 }, &node.outputs[0]))
            .collect()
    }

    fn checked(&self, op: &'static str, ty: &TensorType, add: impl FnOnce(&Self) -> Result<NodeId, GraphError>) -> Tensor {
        let added = check_type(op, ty, op != "input").and_then(|()| add(self));
        match added {
            Ok(node) => Tensor::new(self.clone(), Port { node, output: 0 }, ty),
            Err(error) => self.failed(error),
        }
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph({} nodes)", self.len())
    }
}

/// Checks what holds for every tensor of a graph.
pub(crate) fn check_type(op: &'static str, ty: &TensorType, constant: bool) -> Result<(), GraphError> {
    let shape = || DisplayShape(&ty.shape).to_string();
    if ty.rank() > MAX_RANK {
        return Err(GraphError::Rank { op, shape: shape(), rank: ty.rank() });
    }
    if !matches!(ty.checked_count().and_then(|count| count.checked_mul(8)), Some(1..)) {
        return Err(GraphError::Extent { op, shape: shape() });
    }
    let allowed = if constant { ty.dtype != DType::String } else { PORT_TYPES.contains(&ty.dtype) };
    if !allowed {
        let allowed = PORT_TYPES.iter().map(|dtype| dtype.keyword()).collect::<Vec<_>>().join(", ");
        return Err(GraphError::Type { op, dtype: ty.dtype, allowed });
    }
    Ok(())
}

/// Values rounded to their element type: written inline where they are few or integers, else kept as a weight.
fn constant_data(ty: &TensorType, values: &[f64]) -> Result<ConstantData, GraphError> {
    let mut rounded = Vec::with_capacity(values.len());
    for &value in values {
        let narrow = match ty.dtype {
            DType::Fp16 => round_to_fp16(value).to_f64(),
            DType::Fp32 => f64::from(value as f32),
            DType::Bool => f64::from(u8::from(value != 0.0)),
            _ => value.round(),
        };
        if narrow.is_infinite() && value.is_finite() {
            return Err(GraphError::Range { op: "constant", value });
        }
        rounded.push(narrow);
    }
    if ty.dtype == DType::Fp16 && values.len() > INLINE_ELEMENTS {
        let narrow: Vec<f16> = rounded.iter().map(|&value| f16::from_f64(value)).collect();
        let weight = Weight::from_fp16(ty.shape.clone(), &narrow);
        return Ok(ConstantData::Weight(weight.map_err(|source| GraphError::Weight { name: "constant".to_string(), source })?));
    }
    Ok(ConstantData::Values(rounded))
}
