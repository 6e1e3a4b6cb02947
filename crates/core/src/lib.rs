//! The lazy tensor graph, the operator table that people use, autograd, and what the chips can do.
//!
//! Build a [`Graph`] with [`Tensor`] methods and operators, then [`lower`] it to a body of MIL operations for a [`Target`].
//! Nothing here runs a program except [`evaluate`], which computes a body's meaning in f64.
#![forbid(unsafe_code)]

mod attribute;
pub mod autograd;
mod error;
mod evaluate;
mod graph;
mod host;
mod lower;
pub mod op;
mod target;

pub use attribute::{Attribute, AttributeKind, AttributeSpec};
pub use error::GraphError;
pub use evaluate::{EvaluateError, evaluate};
pub use autograd::backward;
pub use graph::{Argument, Axes, Graph, Heads, Index, IntoIndices, Tensor, Window, attention, concat, mha, stack};
pub use host::{HostArray, HostError};
pub use lower::{Arg, LowerOptions, Lowering, lower, lower_with};
pub use op::GraphOp;
pub use target::{Chip, Family, Route, Target, TargetError, chips};

pub use aneforge_mil::{Array, Body, DType, TensorType, Weight, WeightError};
