//! The arithmetic of the engine's multiply-accumulate array, bit for bit.
//!
//! A product is rounded half away from zero to a multiple of 2^-16, or dropped when the
//! exponents of its factors sum to less than -16; products are summed exactly; the sum is rounded
//! to fp16 half away from zero and is infinite from 2^15 on. [`scalar`] writes that down.
//!
//! The fast forms let the rounding of a floating-point addition do the work. With an f32
//! accumulator in [128, 256) the unit in the last place is 2^-16, so `fma(x, w, acc)` rounds the
//! product to the grid and adds it, as long as the accumulator stays in that range. Ties, which
//! the hardware would break to even, are avoided by moving one factor by one unit in the last
//! place away from zero: products have at most 22 significant bits, so the nudge is smaller than
//! half of their last place and cannot make or skip a rounding boundary. Which form runs is
//! decided by bounds that are proved beforehand, per row block and panel:
//!
//! | form | per vector of products | condition |
//! |---|---|---|
//! | A | compare, multiply-add | Cauchy-Schwarz bound of every chunk below 64 |
//! | B | compare, multiply-add, integer add | every single product below 64, the sum below 2^15 |
//! | C | the same in f64 | the sum below 2^35 |
//! | D | the scalar twin | none; infinities, NaN, saturating partial sums |

mod choice;
mod conv;
mod entry;
mod gemm;
mod matmul;
pub(crate) mod round;
pub mod scalar;
pub(crate) mod sink;
#[cfg(test)]
mod tests;
mod tile;
mod weights;
mod winograd;

pub use conv::{ExactConv2d, Form};
pub use gemm::{dense, scratch_len};
pub use matmul::{MatmulScratch, matmul};
pub use weights::ExactWeights;

/// What the array does with subnormal fp16 inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Subnormals {
    /// They take part with exponent -14, like any value (what the published figures fit; no
    /// figure decides it).
    #[default]
    Counted,
    /// They count as zero (reported for M1 in the ANE guide).
    Zero,
}

/// Rules that no published figure decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct MacRules {
    /// Subnormal inputs.
    pub subnormal_inputs: Subnormals,
    /// Whether a running sum that reaches 2^15 makes the result infinite although later terms
    /// would bring it back (reported in the ANE guide; the order is that of the contraction axis).
    pub saturate_partials: bool,
}

impl MacRules {
    /// Subnormals count, only the final sum saturates.
    pub const DEFAULT: MacRules = MacRules { subnormal_inputs: Subnormals::Counted, saturate_partials: false };
}
