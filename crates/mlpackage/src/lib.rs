//! Core ML packages: MIL programs written to and read from `.mlpackage`.
//!
//! A package is a folder: `Manifest.json`, a model file in protocol buffers that holds the program and what is known about its
//! inputs and outputs, and a file of weights in the format that MIL programs share. [`write()`] makes one from bodies, for Core ML
//! to run; [`Package`] reads one that any converter wrote, for the engine to run without Core ML.
//!
//! Both go through the operator table of MIL: what is read is checked against the records like any other program.
#![forbid(unsafe_code)]

mod manifest;
mod opset;
mod proto;
mod read;
mod write;

pub use opset::OpSet;
pub use read::{FunctionOutline, Package, ReadError, ReadFault, ReadOptions};
pub use write::{WriteError, Written, write};
