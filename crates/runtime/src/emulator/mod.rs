//! The arithmetic of one chip's engine, as published figures show it.
//!
//! The multiply-accumulate path and simple element-wise operators reproduce every published figure; reductions, norms, softmax and
//! table functions are stand-ins of the right size. Which is which stands in every step's report. A dump of a device's answers
//! ([`crate::numerics`]) makes its functions exact.

mod device;
mod engine;
mod known;
mod options;
pub mod rules;

pub use device::Emulator;
pub(crate) use engine::Engine;
pub use options::{ConvolutionForm, EmulatorOptions, PartialOverflow, SingleTap, SubnormalProducts};
