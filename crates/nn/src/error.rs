//! What can go wrong while a model is built or trained.

use aneforge_compile::CompileError;
use aneforge_core::{EvaluateError, GraphError, HostError, TensorType, WeightError};
use aneforge_runtime::DeviceError;

/// Why a model cannot be built or trained as asked.
#[derive(Debug, thiserror::Error)]
pub enum NnError {
    /// Two parameters of one name.
    #[error("there is already a parameter {name:?}; open a scope of another name for the second module")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// No parameter of that name.
    #[error("there is no parameter {name:?}; there are {known}")]
    UnknownName {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// A setting out of its range.
    #[error("{what} is {got}; {rule}")]
    Setting {
        /// The setting.
        what: &'static str,
        /// What was given.
        got: String,
        /// What is allowed, and what to do.
        rule: &'static str,
    },
    /// Another number of values than a parameter or an input holds.
    #[error("{name:?} has {needed} elements, {given} were given")]
    Count {
        /// The parameter or input.
        name: String,
        /// Elements it holds.
        needed: usize,
        /// Elements given.
        given: usize,
    },
    /// A value that no 16-bit float holds.
    #[error("{name:?} holds {value} at element {index}: weights and data must be finite and below 65504")]
    Range {
        /// The parameter or input.
        name: String,
        /// Place of the value.
        index: usize,
        /// The value.
        value: f64,
    },
    /// An array of another type or shape than its port.
    #[error("{name:?} takes {needed}, got {given}")]
    Batch {
        /// The input or state.
        name: String,
        /// Its type.
        needed: TensorType,
        /// What was given.
        given: TensorType,
    },
    /// A label that is no class.
    #[error("label {label} at element {index} of {name:?} is no class: labels are 0 to {last}")]
    Label {
        /// The input.
        name: String,
        /// Place of the label.
        index: usize,
        /// The label.
        label: i64,
        /// The last class.
        last: usize,
    },
    /// Training has left the numbers.
    #[error("step {step}: the loss is {loss} and {skipped} steps in a row were skipped at loss scale {scale}; {remedy}")]
    NotFinite {
        /// The step.
        step: u64,
        /// The loss.
        loss: f32,
        /// Steps skipped one after the other.
        skipped: u32,
        /// The loss scale by then.
        scale: f32,
        /// What to do.
        remedy: String,
    },
    /// A rule of the graph is broken.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A weight cannot be made.
    #[error(transparent)]
    Weight(#[from] WeightError),
    /// An array cannot be made.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The program cannot be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The device refuses or fails.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A sample cannot be evaluated.
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
    /// There is no place for temporary files.
    #[error("cannot make a temporary folder: {0}")]
    Folder(std::io::Error),
}
