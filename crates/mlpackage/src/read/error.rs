//! Why a package is no computation.

use aneforge_mil::op::OpError;
use aneforge_mil::{BlobError, SourceError};
use std::path::PathBuf;

/// A package could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file of the package cannot be read.
    #[error("cannot read {path}: {problem}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// The manifest does not lead to a model.
    #[error("{path} {problem}")]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The model file is not a model.
    #[error("{path} is no Core ML model: {problem}")]
    Decode {
        /// The model file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A model of another kind.
    #[error("{path} holds {kind}, not an ML Program; convert the original model again with convert_to=\"mlprogram\"")]
    Kind {
        /// The model file.
        path: PathBuf,
        /// What it holds.
        kind: &'static str,
    },
    /// A function that the program does not have.
    #[error("there is no function {name:?}; the program has {known}")]
    Function {
        /// The name asked for.
        name: String,
        /// Functions that there are.
        known: String,
    },
    /// A function for an op-set that is not known or that it has no block for.
    #[error("function {function:?} is for op-set {opset:?}, {problem}")]
    OpSet {
        /// The function.
        function: String,
        /// The op-set as the package calls it.
        opset: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// An input that cannot be bound to a shape.
    #[error("input {name:?} of function {function:?} {problem}")]
    Input {
        /// The function.
        function: String,
        /// The input.
        name: String,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// An operation that cannot be read.
    #[error("function {function:?}, operation {index} ({op} {name:?}): {fault}")]
    Operation {
        /// The function.
        function: String,
        /// Position in the block, counted from 0, constants included.
        index: usize,
        /// Operator keyword; `return` for the results.
        op: String,
        /// First result.
        name: String,
        /// What is wrong.
        fault: Box<ReadFault>,
    },
}

/// What is wrong with an operation.
#[derive(Debug, thiserror::Error)]
pub enum ReadFault {
    /// The table has no such operator.
    #[error("programs here cannot use the operator: {reason}")]
    UnknownOp {
        /// Why, and what to do.
        reason: &'static str,
    },
    /// A loop or a branch.
    #[error("it holds blocks; programs with control flow have no form on the engine: unroll loops before converting the model")]
    ControlFlow,
    /// A name that nothing before the operation has.
    #[error("nothing before it is called {name:?}")]
    Undefined {
        /// The name.
        name: String,
    },
    /// A name that is given to two values.
    #[error("the name {name:?} is taken already")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// A port of the operator's form in the package, or an attribute, that the record does not have.
    #[error("it has {what} {name:?}, which the operator does not take; it takes {known}")]
    UnknownPort {
        /// `an argument` or `an attribute`.
        what: &'static str,
        /// Its name.
        name: String,
        /// Ports of the record.
        known: String,
    },
    /// Another number of values at a port than it takes.
    #[error("argument {port:?} holds {count} values but takes one")]
    Count {
        /// The port.
        port: String,
        /// Values there.
        count: usize,
    },
    /// A type that values of a computation cannot have here.
    #[error("{name:?} is {problem}; tensors of known rank and the element types of MIL are read")]
    Type {
        /// The value.
        name: String,
        /// What it is.
        problem: String,
    },
    /// A literal that does not fill its type.
    #[error("the literal of {name:?} {problem}")]
    Literal {
        /// The value.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A result is declared with another type than the operator gives.
    #[error("{name:?} is declared {declared} but is {inferred}")]
    ResultType {
        /// The result.
        name: String,
        /// Its declared type.
        declared: String,
        /// The type that follows from the arguments.
        inferred: String,
    },
    /// Another number of results than the operator gives.
    #[error("{declared} results are declared but the operator gives {inferred}")]
    ResultCount {
        /// Results declared.
        declared: usize,
        /// Results of the operator.
        inferred: usize,
    },
    /// The operator's record refuses the arguments.
    #[error(transparent)]
    Op(#[from] OpError),
    /// The weight file is not there.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The weight file does not hold what the program says.
    #[error(transparent)]
    Blob(#[from] BlobError),
}
