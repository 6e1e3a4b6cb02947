//! Why a program has no form as a package, or could not be written.

use aneforge_mil::{BlobError, EmitError};
use std::path::PathBuf;

/// A package could not be written; nothing is left of it.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Core ML has no such operator.
    #[error(
        "Core ML has no operator {op:?} ({name:?}); write it with other operators, or compile to a bundle instead of a package"
    )]
    Operator {
        /// Operator keyword.
        op: &'static str,
        /// First result.
        name: String,
    },
    /// An input or output that cannot be a multi-array.
    #[error("{edge} {name:?} is {ty}; Core ML's multi-arrays hold fp16, fp32 or int32 and have 1 to 5 axes: {advice}")]
    Edge {
        /// `input` or `output`.
        edge: &'static str,
        /// Its name.
        name: String,
        /// Its type.
        ty: String,
        /// What to do.
        advice: &'static str,
    },
    /// A computed value where Core ML takes constants only.
    #[error("{op} {name:?}: Core ML takes only a constant as argument {port:?} here; it is computed")]
    Computed {
        /// Operator keyword.
        op: &'static str,
        /// First result.
        name: String,
        /// The port.
        port: &'static str,
    },
    /// A use of an operator that Core ML refuses.
    #[error("{op} {name:?}: in Core ML, {limit}")]
    Limit {
        /// Operator keyword.
        op: &'static str,
        /// First result.
        name: String,
        /// What is refused, and what to do.
        limit: &'static str,
    },
    /// An output that no operation makes.
    #[error("output {name:?} is an input or a constant; Core ML's outputs are results of operations: add an identity")]
    Passed {
        /// The output.
        name: String,
    },
    /// A program without functions, or one name for two of them.
    #[error("{problem}")]
    Functions {
        /// What is wrong.
        problem: String,
    },
    /// A value that packages have no form for.
    #[error("{name:?}: {problem}")]
    Value {
        /// The value.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// The body has no form as a program.
    #[error(transparent)]
    Emit(#[from] EmitError),
    /// The weights could not be written.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The file system refused.
    #[error("cannot write {path}: {source}")]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}
