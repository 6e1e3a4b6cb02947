//! ANEForge for C: [`interface`] is the library's own interface, declared in `include/aneforge.h`; [`dispatcher`] has the nine
//! symbols of the native dispatcher of the PyPI package aneforge 0.4.0, declared in `include/ane_e5rt.h`.
//!
//! Handles are numbers in the guise of pointers, never used twice: one that was released, or never was one, is an error instead of
//! a crash. No panic leaves the library; what failed stands in [`interface::aneforge_last_error`].

pub mod dispatcher;
mod fault;
mod handles;
pub mod interface;
mod loaded;
mod raw;

pub use fault::Status;
