//! Apple's side of the engine: private frameworks, opened at run time, behind safe types.
//!
//! Nothing is linked. [`Frameworks::open`] finds each function, class and method by name when the program runs, in the system's
//! frameworks or in one library that stands in for all of them, so the same code runs on a Mac and in tests elsewhere. What is
//! missing is an error that lists all of it.
//!
//! Every C type is exact: on arm64 a wrong width changes where an argument lies. The types are those that public sources give:
//! the PyPI package aneforge 0.4.0 and the ANE guide (arXiv 2606.22283) for the `e5rt_*` functions, maderix/ANE, Orion
//! (arXiv 2603.06728) and their successors for the classes of AppleNeuralEngine, Apple's headers for the rest. All of them are
//! `reported`; debug builds ask the Objective-C runtime for a method's types before its first call.
//!
//! Objects are released exactly once, children before their parents. This is the only crate besides the C library with code
//! that the compiler can't check for memory safety, and nothing of it shows in its interface.

mod block;
mod error;
mod frameworks;
mod library;
mod pool;

pub mod ane;
pub mod e5rt;
pub mod energy;
pub mod memory;
pub mod objc;
pub mod surface;

pub use error::{AppleError, Missing, SysError};
pub use frameworks::Frameworks;
pub use library::{Lookup, Source};
