//! The handle people hold.

use super::{Graph, NodeKind, Port};
use crate::{DType, GraphError, TensorType};
use aneforge_mil::DisplayShape;
use std::fmt;
use std::sync::Arc;

/// One value of a [`Graph`]. Cheap to clone; nothing is computed until a program that contains it runs.
///
/// Builders never panic and never return a `Result`: where a rule is broken the tensor they return carries the error, and so does
/// everything built from it. [`Tensor::check`], [`Tensor::shape`], lowering and compiling report it.
#[derive(Clone)]
pub struct Tensor {
    graph: Graph,
    state: Result<Handle, Arc<GraphError>>,
}

#[derive(Clone)]
struct Handle {
    port: Port,
    ty: Arc<TensorType>,
}

impl Tensor {
    pub(crate) fn new(graph: Graph, port: Port, ty: &TensorType) -> Self {
        Self { graph, state: Ok(Handle { port, ty: Arc::new(ty.clone()) }) }
    }

    pub(crate) fn failed(graph: Graph, error: Arc<GraphError>) -> Self {
        Self { graph, state: Err(error) }
    }

    /// The graph it belongs to.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The tensor itself, or the first error on the way to it.
    ///
    /// # Errors
    /// The first broken rule among everything this tensor was built from.
    pub fn check(&self) -> Result<&Self, GraphError> {
        self.port().map(|_| self)
    }

    /// Element type and shape.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn ty(&self) -> Result<&TensorType, GraphError> {
        match &self.state {
            Ok(handle) => Ok(&handle.ty),
            Err(error) => Err(GraphError::clone(error)),
        }
    }

    /// Extent of each axis.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn shape(&self) -> Result<&[usize], GraphError> {
        self.ty().map(|ty| ty.shape.as_slice())
    }

    /// Number of axes.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn rank(&self) -> Result<usize, GraphError> {
        self.ty().map(TensorType::rank)
    }

    /// Element type.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn dtype(&self) -> Result<DType, GraphError> {
        self.ty().map(|ty| ty.dtype)
    }

    /// Gives the value a name, which the program's text then uses; the first name stays.
    #[must_use]
    pub fn named(&self, name: &str) -> Self {
        if let Ok(handle) = &self.state {
            self.graph.write().name(handle.port.node, name);
        }
        self.clone()
    }

    /// The name people gave it: that of an input or parameter, or the one from [`Self::named`].
    pub fn name(&self) -> Option<String> {
        let handle = self.state.as_ref().ok()?;
        self.graph.read().node(handle.port.node).name.clone()
    }

    /// Whether it is a constant or a parameter.
    pub fn is_constant(&self) -> bool {
        self.state.as_ref().is_ok_and(|handle| {
            matches!(self.graph.read().node(handle.port.node).kind, NodeKind::Constant(_) | NodeKind::Parameter { .. })
        })
    }

    /// Whether both handles stand for the same value.
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.state, &other.state) {
            (Ok(a), Ok(b)) => a.port == b.port && self.graph.is_same(&other.graph),
            _ => false,
        }
    }

    pub(crate) fn port(&self) -> Result<Port, GraphError> {
        match &self.state {
            Ok(handle) => Ok(handle.port),
            Err(error) => Err(GraphError::clone(error)),
        }
    }

    /// The error it carries, to be carried on.
    pub(crate) fn error(&self) -> Option<Arc<GraphError>> {
        self.state.as_ref().err().cloned()
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.state {
            Ok(handle) => {
                write!(
                    f,
                    "Tensor(%{}.{}, {}, {})",
                    handle.port.node.0,
                    handle.port.output,
                    handle.ty.dtype,
                    DisplayShape(&handle.ty.shape)
                )
            }
            Err(error) => write!(f, "Tensor(failed: {error})"),
        }
    }
}
