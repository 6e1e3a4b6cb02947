//! Choices that need programs to be run.
//!
//! Weights are compressed as far as what they do to the layers' and the program's results allows, measured on inputs like those
//! that the program will see.
#![forbid(unsafe_code)]

mod activations;
mod automatic;
mod calibration;
mod error;
mod layer;
mod quality;

pub use activations::{Quantised, quantise_activations};
pub use automatic::{Automatic, automatic};
pub use calibration::Calibration;
pub use error::TuneError;
pub use quality::{Quality, quality};
