//! What a program costs on a chip: time and energy of a call, before anybody runs it.
#![forbid(unsafe_code)]

mod chip;
pub mod coefficients;
pub mod energy;
pub mod fit;
mod latency;
pub mod parameters;
pub mod solve;
mod work;

pub use aneforge_core::Chip;
pub use coefficients::{CoefficientError, Coefficients};
pub use latency::{Bounds, HostClass, Latency, QUEUE_DEPTH, Rates, SPILL_BYTES, Traits};
pub use work::{Format, Kind, Operation, Values, Work};
