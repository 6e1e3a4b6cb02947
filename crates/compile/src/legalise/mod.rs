//! Replacements for what Espresso, the compiler behind the e5rt route, is known to lower wrongly or not at all.
//!
//! Each fact is reported by the ANEForge package 0.4.0 (MIT, issue tracker and emitter comments) or the ANE guide, arXiv 2606.22283.
//! A rewrite that keeps meaning exactly is lossless; the others say by how much they may differ.

mod arithmetic;
mod batched_weight;
mod blockwise;
pub mod in_memory;
mod layer_norm;
mod limits;
mod output;
mod round;
mod scalar;
mod sine;
mod softplus;

pub use arithmetic::{SQUARE, ZERO_PRODUCT};
pub use batched_weight::BATCHED_WEIGHT;
pub use blockwise::BLOCKWISE_WEIGHT;
pub use layer_norm::LAYER_NORM_AFFINE;
pub use limits::check as check_limits;
pub use output::MADE_OUTPUTS;
pub use round::ROUND;
pub use scalar::SCALAR_AFTER_ROUNDING;
pub use sine::SINE;
pub use softplus::SOFTPLUS;

use aneforge_core::Target;

/// Whether programs for a target go through Espresso, or past it into the same compiler of the engine: nobody says on which side of
/// that line its faults are.
fn through_espresso(target: &Target) -> bool {
    target.chip().is_some()
}
