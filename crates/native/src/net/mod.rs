//! net.plist: a network of native layers on disk, schema 1.0.10, beside its weight files.
//!
//! The layout is that of the files which the Python package aneforge 0.4.0 writes (MIT) and of the ANE guide, arXiv 2606.22283,
//! chapter 26. Three files in a folder: `net.plist`, `weights.0`, which is empty, and `weights.1` with constants where there are any.

mod decode;
mod encode;
mod error;
mod guard;
mod node;
mod read;
mod unit;
mod write;

pub use error::{Fault, NetError};
pub use read::read;
pub use write::write;

/// Name of the property list.
pub const NET: &str = "net.plist";
/// Names of the weight files; units and constants count from 0.
pub const WEIGHTS: [&str; 2] = ["weights.0", "weights.1"];
/// The schema that is written and read.
pub const VERSION: &str = "1.0.10";

/// Largest property list that is read.
const MAX_BYTES: u64 = 16 << 20;
/// Most elements of a property list, shared ones counted as often as they are used.
const MAX_NODES: usize = 1 << 20;
/// Deepest nesting of a property list; the schema needs nine.
const MAX_DEPTH: usize = 16;
/// Largest extent of an axis that any engine takes (ANE guide, arXiv 2606.22283, chapter 20: 17 bits for channels).
const MAX_EXTENT: usize = 131_071;

/// Names of element types.
const TYPES: &[(aneforge_mil::DType, &str)] = &[(aneforge_mil::DType::Fp16, "Float16"), (aneforge_mil::DType::UInt16, "UInt16")];

/// Keys that stand in a network beside units, constants and outputs.
const NETWORK_KEYS: [&str; 3] = ["Units", "Weights", "Constants"];
