//! What can go wrong while a graph is built, lowered or read from text.

use aneforge_mil::op::OpError;
use aneforge_mil::{DType, WeightError};

/// Why a graph, or a use of an operator in it, is not legal. Names the operator, what it got, the rule, and what to do.
#[derive(Clone, Debug, thiserror::Error)]
pub enum GraphError {
    /// A labelled rule of a graph operator is broken.
    #[error("{op} breaks rule {label}: {rule}; got {got}")]
    Constraint {
        /// Operator.
        op: &'static str,
        /// The rule's label in the operator's record.
        label: &'static str,
        /// The rule, with its remedy.
        rule: &'static str,
        /// Inputs with their types, attributes with their values.
        got: String,
    },
    /// A rule of the MIL operator that a graph operator lowers to is broken.
    #[error("{op}: {source}{got}")]
    Mil {
        /// Graph operator.
        op: &'static str,
        /// What the graph operator got, as a clause to append; empty where the MIL operator of the same name got the same.
        got: String,
        /// The rule of MIL.
        source: OpError,
    },
    /// An input is missing, superfluous, or of a kind the operator does not take.
    #[error("{op}: input {input:?} {problem}")]
    Input {
        /// Operator.
        op: &'static str,
        /// Input.
        input: String,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// An attribute is missing, unknown or has an illegal value.
    #[error("{op}: attribute {attribute:?} {problem}")]
    Attribute {
        /// Operator.
        op: &'static str,
        /// Attribute.
        attribute: String,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// Tensors of two graphs meet.
    #[error("{op}: input {input:?} belongs to another graph; build both tensors with the same Graph")]
    OtherGraph {
        /// Operator.
        op: &'static str,
        /// Input.
        input: String,
    },
    /// A name that is taken.
    #[error("there is already an input, parameter or output named {name:?}; choose another name")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// A shape that no engine takes.
    #[error("{op}: shape {shape} has rank {rank}, the engine takes at most 5 axes; merge axes with reshape")]
    Rank {
        /// Operator, `input`, `parameter` or `constant`.
        op: &'static str,
        /// The shape.
        shape: String,
        /// Its rank.
        rank: usize,
    },
    /// An axis of extent zero or a shape whose element count overflows.
    #[error("{op}: shape {shape} is empty or too large to count; every axis needs an extent of at least 1")]
    Extent {
        /// Operator, `input`, `parameter` or `constant`.
        op: &'static str,
        /// The shape.
        shape: String,
    },
    /// An element type that cannot stand there.
    #[error("{op}: element type {dtype} cannot stand here; use {allowed}")]
    Type {
        /// Operator, `input`, `parameter` or `constant`.
        op: &'static str,
        /// What was given.
        dtype: DType,
        /// What is allowed.
        allowed: String,
    },
    /// Values that do not fill their shape.
    #[error("{op}: shape {shape} holds {needed} elements but {given} values were given")]
    Count {
        /// Operator or `constant`.
        op: &'static str,
        /// The shape.
        shape: String,
        /// Its element count.
        needed: usize,
        /// Values given.
        given: usize,
    },
    /// A number that fp16 cannot hold.
    #[error("{op}: {value} lies outside fp16's range of +-65504; rescale the model so that constants fit")]
    Range {
        /// Operator or `constant`.
        op: &'static str,
        /// The number.
        value: f64,
    },
    /// A weight cannot be read.
    #[error("weight {name:?}: {source}")]
    Weight {
        /// Name of the parameter or constant.
        name: String,
        /// Why.
        source: WeightError,
    },
    /// An operator without a derivative stands between loss and parameter.
    #[error("{op} has no derivative: {reason}")]
    NotDifferentiable {
        /// Operator.
        op: &'static str,
        /// Why it has none, or what to use in its place.
        reason: String,
    },
    /// The loss of a backward pass is not a single number.
    #[error("backward needs a loss with one element, got shape {shape}; reduce it with mean or sum")]
    Loss {
        /// Shape of the loss.
        shape: String,
    },
    /// A program without results.
    #[error("a program needs at least one output")]
    NoOutputs,
    /// Graph text that cannot be read.
    #[error("graph text, line {line}, column {column}: {message}")]
    Text {
        /// Line, counted from 1.
        line: usize,
        /// Column in characters, counted from 1.
        column: usize,
        /// What is wrong and what would be right.
        message: String,
    },
}
