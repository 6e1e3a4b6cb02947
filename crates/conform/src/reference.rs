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
pub fn to_half(value: f64) -> f16 {
    aneforge_core::round_to_fp16(value)
}

/// [`to_half`] of every value.
pub fn to_halves(values: &[f64]) -> Vec<f16> {
    values.iter().map(|&value| to_half(value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
