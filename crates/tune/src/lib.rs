//! Choices that need programs to be run.
//!
//! Programs are compiled in several equivalent ways, of which the fastest is kept whose results are near enough. Weights are compressed as far as what they do to the layers' and the program's results allows, measured on inputs like those
//! that the program will see.
#![forbid(unsafe_code)]

mod activations;
mod attention;
mod automatic;
mod calibration;
mod error;
mod layer;
mod lowering;
mod precision;
mod quality;
mod store;
mod trial;
mod variant;

pub use activations::{Quantised, quantise_activations};
pub use attention::{AttentionShape, AttentionTiles, TILES, tune_attention};
pub use automatic::{Automatic, automatic};
pub use calibration::Calibration;
pub use error::TuneError;
pub use lowering::{Bench, TuneOptions, Tuned, tune};
pub use precision::{Wanted, tune_precision};
pub use quality::{Quality, quality};
pub use store::Store;
pub use trial::Trial;
pub use variant::{USUAL, Variant, lowerings};
