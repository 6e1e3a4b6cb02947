//! What can go wrong between a program and its results.

use crate::ane::AneError;
use crate::numerics::DumpError;
use aneforge_mil::op::OpError;
use aneforge_mil::{DType, DisplayShape, TensorType, WeightError};

/// Why a device could not be opened, or could not load or execute a program.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DeviceError {
    /// No device has this name.
    #[error("no device is called {name:?}; the devices are {known}")]
    UnknownDevice {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The device exists but this machine cannot provide it. Nothing else is used in its place.
    #[error("device {name:?} is not possible here: {reason}")]
    NotHere {
        /// What was asked for.
        name: String,
        /// Why not.
        reason: String,
    },
    /// A file is no dump of an engine's arithmetic that can be used.
    #[error("cannot use {path} as a dump: {problem}")]
    Dump {
        /// The file.
        path: String,
        /// Why not, with the place.
        #[source]
        problem: DumpError,
    },
    /// The program could not be read.
    #[error("cannot read the program {program}: {problem}")]
    Program {
        /// Where it was read from.
        program: String,
        /// What is wrong; for text with line and column.
        problem: String,
    },
    /// The device has no way to execute a use of an operator.
    #[error("{op} ({name}) cannot be executed: {problem}")]
    Unsupported {
        /// Operator keyword.
        op: &'static str,
        /// Name of its first result.
        name: String,
        /// What is missing.
        problem: String,
    },
    /// The system refused the memory that a program needs for its values.
    #[error("the program needs {bytes} bytes for its values and the system refuses them; use a smaller batch or shorter inputs")]
    Memory {
        /// Bytes asked for.
        bytes: usize,
    },
    /// The caller gave more or fewer buffers than the program has ports.
    #[error("the program has {expected} {kind} ({names}) but {got} were given")]
    PortCount {
        /// `inputs` or `outputs`.
        kind: &'static str,
        /// Number of ports.
        expected: usize,
        /// Their names.
        names: String,
        /// Number of buffers.
        got: usize,
    },
    /// The program has no such port, or it was left out or given twice.
    #[error("input {port:?} {problem}; the inputs are {known}")]
    PortName {
        /// The name.
        port: String,
        /// What is wrong with it.
        problem: &'static str,
        /// All names.
        known: String,
    },
    /// The program has no such state.
    #[error("no state is called {name:?}; {}", if known.is_empty() { "the program keeps none".to_string() } else { format!("the states are {known}") })]
    StateName {
        /// The name.
        name: String,
        /// All names.
        known: String,
    },
    /// A buffer has the wrong length.
    #[error("port {port:?} is {expected} and takes {bytes} bytes, got {got}")]
    PortLength {
        /// Name of the port.
        port: String,
        /// Its type.
        expected: TensorType,
        /// Bytes that the type takes.
        bytes: usize,
        /// Bytes given.
        got: usize,
    },
    /// There is no port of that number.
    #[error("the program has {count} {kind}; there is none of number {index}, counted from 0")]
    PortIndex {
        /// `inputs` or `outputs`.
        kind: &'static str,
        /// The number.
        index: usize,
        /// Number of ports.
        count: usize,
    },
    /// A buffer was read or written outside of its bytes.
    #[error("a buffer of {length} bytes has no {bytes} bytes from byte {offset} on")]
    BufferRange {
        /// First byte.
        offset: usize,
        /// Number of bytes.
        bytes: usize,
        /// Length of the buffer.
        length: usize,
    },
    /// A buffer cannot stand at a port.
    #[error("port {port:?} cannot take this buffer: {problem}")]
    Binding {
        /// Name of the port.
        port: String,
        /// Why not.
        problem: String,
    },
    /// An array has the wrong element type.
    #[error("port {port:?} holds {expected} elements, got {got}; convert the array first")]
    PortDType {
        /// Name of the port.
        port: String,
        /// Its element type.
        expected: DType,
        /// The array's.
        got: DType,
    },
    /// An array has the wrong shape.
    #[error("port {port:?} has shape {}, got {}", DisplayShape(.expected), DisplayShape(.got))]
    PortShape {
        /// Name of the port.
        port: String,
        /// Its shape.
        expected: Vec<usize>,
        /// The array's.
        got: Vec<usize>,
    },
    /// An operator refused its arguments.
    #[error(transparent)]
    Op(#[from] OpError),
    /// A constant could not be read.
    #[error(transparent)]
    Weight(#[from] WeightError),
    /// The engine, or the way to it, refused.
    #[error(transparent)]
    Ane(#[from] AneError),
    /// A rule of this crate was broken: a defect, reported instead of a panic.
    #[error("internal fault in {place}: {problem}")]
    Internal {
        /// Where.
        place: &'static str,
        /// What.
        problem: String,
    },
}

impl DeviceError {
    /// True where the cause is this machine, not the program or the call (exit code 3 of the command line).
    pub fn is_not_here(&self) -> bool {
        matches!(self, Self::NotHere { .. })
    }

    pub(crate) fn internal(place: &'static str, problem: impl Into<String>) -> Self {
        Self::Internal { place, problem: problem.into() }
    }
}
