//! The lazy tensor graph, the operator table that people use, autograd, and what the chips can do.
//!
//! Build a [`Graph`] with [`Tensor`] methods and operators, then [`lower`] it to a body of MIL operations for a [`Target`].
//! Nothing here runs a program except [`evaluate`], which computes a body's meaning in f64.
//!
//! ```
//! use aneforge_core::{Array, DType, Graph, Target, backward, evaluate, lower};
//!
//! let graph = Graph::new();
//! let x = graph.input("x", DType::Fp16, &[2, 3]);
//! let y = (1.0 - &x).relu() * 2.0 + x.mean(-1, true);
//! let loss = y.square().mean([0, 1], false);
//! let slope = backward(&loss, &[x]).remove(0);
//!
//! // Errors are carried along: nothing above needed a `?`.
//! let body = lower(&[("loss".to_string(), loss), ("slope".to_string(), slope)], Target::Generic)?;
//! let input = Array::new(DType::Fp16, [2, 3], vec![0.5, 1.5, -1.0, 0.0, 2.0, 1.0]);
//! let results = evaluate(&body, &[input])?;
//! assert_eq!(results[1].shape(), [2, 3]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod attribute;
pub mod autograd;
mod checkpoint;
mod error;
mod evaluate;
mod graph;
mod host;
mod lower;
pub mod op;
mod target;

pub use attribute::{Attribute, AttributeKind, AttributeSpec};
pub use autograd::{backward, backward_from};
pub use checkpoint::checkpoint;
pub use error::GraphError;
pub use evaluate::{EvaluateError, Observer, evaluate, evaluate_with};
pub use graph::{
    Argument, Axes, Graph, GraphText, Heads, Index, IntoIndices, Source, Tensor, Window, attention, concat, cross_attention,
    einsum, geglu, mha, sdpa, stack,
};
pub use host::{HostArray, HostError};
pub use lower::{Arg, LowerOptions, Lowering, lower, lower_with};
pub use op::GraphOp;
pub use target::{Chip, CompilerTarget, Family, Features, Limits, Route, Target, TargetError, Tier, chips, compiler_targets};

pub use aneforge_mil::{Array, Body, DType, TensorType, Weight, WeightError, round_to_fp16};
