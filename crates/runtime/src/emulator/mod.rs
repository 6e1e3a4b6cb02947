//! The arithmetic of one chip's engine, as published figures show it.
//!
//! The multiply-accumulate path and simple element-wise operators reproduce every published figure; reductions, norms, softmax and
//! table functions are stand-ins of the right size. Which is which stands in every step's report.

mod device;
mod engine;
mod options;
pub mod rules;

pub use device::Emulator;
pub(crate) use engine::Engine;
pub use options::{EmulatorOptions, PartialOverflow, SingleTap, SubnormalProducts};
