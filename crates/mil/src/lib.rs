//! MIL, the language Apple's model compiler reads: types, the operator table, programs as data, text, weight blobs.
//!
//! [`Program`] is what the text says; [`Body`] is a function of it with names resolved against the operator table.
//! [`parse`] and [`print()`] go between text and program, [`resolve`] and [`emit`] between program and body.
#![forbid(unsafe_code)]

mod array;
mod blob;
mod body;
mod build;
mod check;
mod compact;
mod convert;
mod dtype;
mod emit;
mod older;
pub mod op;
mod program;
mod resolve;
mod round;
mod text;
mod types;
mod weight;

pub use array::{Array, strides};
pub use blob::{BlobError, BlobFile, BlobFileWriter, BlobIter, BlobView, BlobWriter};
pub use body::{Body, Constant, Operand, Operation, Output, State, Value, ValueId, ValueKind, unpack};
pub use build::{BuildError, Builder, Given};
pub use check::{SMALL_CONSTANT, VerifyError};
pub use dtype::DType;
pub use emit::{EmitError, EmitOptions, Emitter, emit, pack};
pub use older::modern_form;
pub use program::{Argument, Attribute, Function, Literal, LiteralValue, Location, Port, Program, Statement};
pub use resolve::{BlobFolder, BlobSource, NoBlobs, ResolveError, ResolveFault, SourceError, resolve};
pub use round::round_to_fp16;
pub use text::{Dialect, ParseError, parse, print};
pub use types::{DisplayShape, TensorType, Type};
pub use weight::{CHUNK_ELEMENTS, Compute, Weight, WeightError};
