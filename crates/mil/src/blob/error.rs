//! What can be wrong with a weight file.

use crate::{DType, WeightError};
use std::path::PathBuf;

/// A weight file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// The system refused.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// `create`, `write`, ...
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The file could not be mapped.
    #[error(transparent)]
    Map(#[from] aneforge_map::MapError),
    /// Something would stand behind the end of the file.
    #[error(
        "{path}, byte {offset}: expected {needed} bytes of {what}, but the file ends at byte {length}; it is cut short or the offset is wrong"
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Where the missing thing starts.
        offset: u64,
        /// What should stand there.
        what: &'static str,
        /// Its size.
        needed: u64,
        /// Size of the file.
        length: u64,
    },
    /// Another storage version.
    #[error("{path}, byte 4: expected storage version 2, found {found}; this is no MIL weight file")]
    Version {
        /// The file.
        path: PathBuf,
        /// The version that stands there.
        found: u32,
    },
    /// No blob starts at an offset.
    #[error("{path}, byte {offset}: expected a blob descriptor (0xDEADBEEF), found {found:#010X}")]
    Sentinel {
        /// The file.
        path: PathBuf,
        /// The offset asked for.
        offset: u64,
        /// What stands there.
        found: u32,
    },
    /// An element type code that the format does not have or that this crate does not read.
    #[error("{path}, byte {}: element type code {code} is unknown; known are 1 to 15", offset + 4)]
    DTypeCode {
        /// The file.
        path: PathBuf,
        /// Offset of the descriptor.
        offset: u64,
        /// The code.
        code: u32,
    },
    /// A descriptor that contradicts itself.
    #[error("{path}, byte {offset}: {problem}")]
    Descriptor {
        /// The file.
        path: PathBuf,
        /// Offset of the descriptor.
        offset: u64,
        /// The contradiction.
        problem: String,
    },
    /// The header promises more blobs than can be found.
    #[error("{path}: the header counts {expected} blobs but only {found} follow one another")]
    Count {
        /// The file.
        path: PathBuf,
        /// Count in the header.
        expected: u32,
        /// Blobs found.
        found: u32,
    },
    /// The program declares another element type than the file holds.
    #[error("{path}, byte {offset}: the program declares {declared} but the file holds {stored} elements")]
    DType {
        /// The file.
        path: PathBuf,
        /// Offset of the descriptor.
        offset: u64,
        /// Declared type.
        declared: String,
        /// Element type in the file.
        stored: DType,
    },
    /// The program declares another size than the file holds.
    #[error("{path}, byte {offset}: the program declares {declared}, {expected} bytes, but the blob holds {found}")]
    Size {
        /// The file.
        path: PathBuf,
        /// Offset of the descriptor.
        offset: u64,
        /// Declared type.
        declared: String,
        /// Bytes of the declared type.
        expected: u64,
        /// Bytes in the file.
        found: u64,
    },
    /// The format has no code for an element type.
    #[error("a weight file cannot hold {dtype} elements; write them into the text")]
    Unstorable {
        /// The element type.
        dtype: DType,
    },
    /// A weight could not be read while it was written.
    #[error("cannot write a weight of type {ty}: {source}")]
    Weight {
        /// Its type.
        ty: String,
        /// Why.
        source: WeightError,
    },
    /// A constant of a program could not be written.
    #[error("constant {name:?}: {source}")]
    Constant {
        /// The constant.
        name: String,
        /// Why.
        source: Box<BlobError>,
    },
    /// Writing goes on after an error.
    #[error("the weight file is incomplete after an earlier error; write it anew")]
    Poisoned,
}
