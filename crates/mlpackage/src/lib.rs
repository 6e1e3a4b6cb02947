//! Core ML packages: MIL programs written to and read from .mlpackage.
#![forbid(unsafe_code)]
