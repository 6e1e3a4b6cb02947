//! What a program costs on a chip: time and energy of a call, before anybody runs it.
//!
//! ```
//! use aneforge_cost::{Chip, HostClass, Model, Operation, Format, Work};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = Model::committed()?;
//! let chip = Chip::find("m4").ok_or("m4")?;
//! let layer = Operation::linear(1.0, 4096.0, 4096.0, Format::Fp16);
//! let estimate = model.chip(chip, HostClass::Native).estimate(&Work::new(4096.0, 4096.0, vec![layer]));
//! assert!(estimate.total_ms.low < estimate.total_ms.value && estimate.total_ms.value < estimate.total_ms.high);
//! # Ok(())
//! # }
//! ```
//!
//! A program of MIL becomes work by [`body::items`]. Coefficients come from published measurements (see [`Coefficients`]): nobody behind
//! this version has measured anything on a Mac.
#![forbid(unsafe_code)]

pub mod body;
mod chip;
pub mod coefficients;
pub mod energy;
mod estimate;
pub mod fit;
mod latency;
pub mod parameters;
pub mod solve;
mod work;

pub use aneforge_core::Chip;
pub use coefficients::{CoefficientError, Coefficients};
pub use estimate::{Basis, ChipModel, Estimate, Model, Ranged};
pub use latency::{Bounds, HostClass, Latency, QUEUE_DEPTH, Rates, SPILL_BYTES, Traits};
pub use work::{Format, Kind, Operation, Values, Work};
