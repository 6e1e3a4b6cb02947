//! What can be wrong with a network.

use aneforge_mil::op::OpError;
use std::path::PathBuf;

/// Why a network could not be read or written. Nothing is left half written.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// A file could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The file is no property list, or one that no network needs.
    #[error("{path} is no usable property list: {problem}")]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A place of the property list holds something else than it must.
    #[error("{path}: at {place}: {fault}")]
    Place {
        /// The file.
        path: PathBuf,
        /// Keys from the top, joined by slashes.
        place: String,
        /// What is wrong.
        fault: Fault,
    },
    /// A body holds something that a network cannot say.
    #[error("{name:?} cannot stand in a net.plist: {problem}")]
    Body {
        /// Name of the value or operator.
        name: String,
        /// What is wrong and what to do.
        problem: String,
    },
}

/// What is wrong at a place of a property list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A key that must be there is not.
    #[error("the key {key:?} is missing")]
    Missing {
        /// The key.
        key: String,
    },
    /// A key that nothing reads.
    #[error("the key {key:?} is unknown; known are {known}")]
    Unknown {
        /// The key.
        key: String,
        /// What is read there.
        known: String,
    },
    /// A value of another kind.
    #[error("expected {wanted}, found {found}")]
    Kind {
        /// What must stand there.
        wanted: &'static str,
        /// What does.
        found: String,
    },
    /// A value out of its range.
    #[error("{0}")]
    Value(String),
    /// A name that stands for nothing, for two things, or for another thing than it must.
    #[error("{0}")]
    Wiring(String),
    /// Two counts that must agree do not.
    #[error("{what}: {found}, expected {expected}")]
    Count {
        /// What is counted.
        what: &'static str,
        /// Found.
        found: String,
        /// Expected.
        expected: String,
    },
    /// A type of layer that has no record.
    #[error("the layer type {name:?} cannot be used: {reason}")]
    Layer {
        /// Type name.
        name: String,
        /// Why.
        reason: String,
    },
    /// A layer whose record refuses it.
    #[error(transparent)]
    Rule(#[from] OpError),
    /// A constant whose bytes are not there.
    #[error("{0}")]
    Weights(String),
}
