//! `aneforge._core`: what the Python package is made of. Converts, calls the library, converts back; all meaning is the library's.
#![forbid(unsafe_code)]

mod array;
mod build;
mod fault;
mod node;
mod program;
mod session;

use pyo3::prelude::*;

/// The compiled part of the package; its classes and functions are wrapped by those of `aneforge`.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::build::{Value, apply, backward, composite, constant, input, operators, parameter};
    #[pymodule_export]
    use super::program::{Program, chips, compile, devices, load};
}
