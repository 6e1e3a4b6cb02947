//! The reference side of a published figure: what the host computed in wide arithmetic, and the
//! error measure that was printed.
//!
//! Two things of the host show in the last digits and are therefore modelled. numpy's einsum on the
//! published machines behaves as one fused multiply-add per term, in the order of the reduced index;
//! and a Python or numpy scalar widens a float32 array to float64 under NumPy 2 but not under NumPy 1
//! ([`Host`]), which decides both the dtype of the weights and that of the sums.

mod chain;
mod convolution;
mod error;

pub use chain::{Real, chain_product};
pub use convolution::{Image, Stride1, unfold};
pub use error::{ErrorSum, relative_error};

use half::f16;

/// The promotion rule of the numpy on the machine that took a figure, for `float32 array * scalar`
/// with a float64 scalar such as `np.sqrt(2.0 / 9)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// NumPy 1: the array's float32 stays.
    NumPy1,
    /// NumPy 2: the result is float64 (NEP 50).
    NumPy2,
}

impl Host {
    /// `value * scalar` for a float32 `value` and a numpy float64 `scalar`, held in f64.
    pub fn scale(self, value: f32, scalar: f64) -> f64 {
        match self {
            Self::NumPy1 => f64::from(value * scalar as f32),
            Self::NumPy2 => f64::from(value) * scalar,
        }
    }

    /// `value / scalar` for a float32 `value` and a numpy float64 `scalar`, held in f64.
    pub fn divide(self, value: f32, scalar: f64) -> f64 {
        match self {
            Self::NumPy1 => f64::from(value / scalar as f32),
            Self::NumPy2 => f64::from(value) / scalar,
        }
    }
}

/// `astype(float16)` of a float64: one rounding, half to even.
///
/// Going through a plain f32 would round twice. The f32 here keeps a sticky last bit (round to odd),
/// so the second rounding decides as if it saw all of `value`.
pub fn to_half(value: f64) -> f16 {
    const DROPPED: u64 = (1 << 29) - 1;
    let bits = value.to_bits();
    let sticky = u64::from(bits & DROPPED != 0) << 29;
    f16::from_f32(f64::from_bits((bits & !DROPPED) | sticky) as f32)
}

/// [`to_half`] of every value.
pub fn to_halves(values: &[f64]) -> Vec<f16> {
    values.iter().map(|&value| to_half(value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_just_above_a_tie_rounds_up_although_f32_would_drop_the_excess() {
        let tie = 1.0 + 2.0f64.powi(-11);
        assert_eq!(to_half(tie), f16::from_f32(1.0));
        assert_eq!(to_half(tie + 2.0f64.powi(-40)).to_bits(), f16::from_f32(1.0).to_bits() + 1);
        assert_eq!(to_half(-tie - 2.0f64.powi(-40)).to_bits(), f16::from_f32(-1.0).to_bits() + 1);
        assert_eq!(to_half(2.0f64.powi(-25)).to_bits(), 0);
        assert_eq!(to_half(2.0f64.powi(-25) * (1.0 + 1e-15)).to_bits(), 1);
    }

    #[test]
    fn every_half_and_its_neighbourhood_survive_the_round_trip() {
        for bits in 0..0x7c00u16 {
            let exact = f16::from_bits(bits).to_f64();
            assert_eq!(to_half(exact).to_bits(), bits);
            assert_eq!(to_half(exact * (1.0 + 1e-9)).to_bits(), bits);
        }
    }

    #[test]
    fn the_two_numpy_generations_differ_by_one_rounding() {
        let scalar = (2.0f64 / 576.0).sqrt();
        let narrow = Host::NumPy1.scale(1.1, scalar);
        let wide = Host::NumPy2.scale(1.1, scalar);
        assert_eq!(narrow, f64::from(narrow as f32));
        assert_ne!(narrow, wide);
        assert!((narrow - wide).abs() < 1e-8);
        assert_eq!(Host::NumPy1.divide(1.5, 32.0), Host::NumPy2.divide(1.5, 32.0));
    }
}
