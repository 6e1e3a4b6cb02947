//! MIL, the language Apple's model compiler reads: types, the operator table, programs as data, text, weight blobs.
//!
//! [`Program`] is what the text says; [`Body`] is a function of it with names resolved against the operator table.
#![forbid(unsafe_code)]

mod array;
mod body;
mod build;
mod check;
mod dtype;
pub mod op;
mod program;
mod types;
mod weight;

pub use array::{Array, strides};
pub use body::{Body, Constant, Operand, Operation, Output, Value, ValueId, ValueKind, unpack};
pub use build::{BuildError, Builder, Given};
pub use check::{SMALL_CONSTANT, VerifyError};
pub use dtype::DType;
pub use program::{Argument, Attribute, Function, Literal, LiteralValue, Location, Port, Program, Statement};
pub use types::{DisplayShape, TensorType, Type};
pub use weight::{CHUNK_ELEMENTS, Compute, Weight, WeightError};
