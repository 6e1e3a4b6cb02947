//! The engine's rounding of real numbers to fp16, and its view of special values.

use half::f16;

/// Rounds to fp16, ties away from zero; magnitudes from 65520 on become infinite. NaN, which no engine operation gives, becomes +0:
/// indeterminate forms are +0 there (ANE guide, chapter 3).
pub fn half_away(value: f64) -> f16 {
    if value.is_nan() {
        return f16::ZERO;
    }
    let rounded = round_significand(value, 11, -24);
    if rounded.abs() >= 65536.0 { f16::INFINITY.copysign(f16::from_f64(value)) } else { f16::from_f64(rounded) }
}

/// A product of two fp16 numbers: rounded half away to 11 significant bits first, then once more to the subnormal grid where it is
/// that small. Reproduces the seeded Jacobi workload of arXiv 2606.17090.
pub fn product(x: f64, y: f64) -> f16 {
    let exact = x * y;
    if exact.is_nan() {
        return f16::ZERO;
    }
    half_away(round_significand(exact, 11, -1000))
}

/// Rounds half away from zero to `bits` significant bits, but never finer than multiples of `2^finest`.
pub fn round_significand(value: f64, bits: i32, finest: i32) -> f64 {
    // `f64::round` is half away from zero; scaling by a power of two is exact.
    on_grid(value, bits, finest, f64::round)
}

/// Rounds to 11 significant bits or to multiples of 2^-24, ties to even, with no upper limit.
pub fn half_even(value: f64) -> f64 {
    on_grid(value, 11, -24, f64::round_ties_even)
}

fn on_grid(value: f64, bits: i32, finest: i32, round: fn(f64) -> f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let exponent = ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    let exponent = (exponent - bits + 1).max(finest);
    // Powers of two from their bits: this stands in the inner loop of long reductions.
    let power = |exponent: i32| f64::from_bits(((exponent.clamp(-1022, 1023) + 1023) as u64) << 52);
    round(value * power(-exponent)) * power(exponent)
}

/// A value as the engine takes it in: NaN counts as +infinity (ANE guide, chapter 3).
pub fn taken(value: f16) -> f64 {
    if value.is_nan() { f64::INFINITY } else { value.to_f64() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_away_from_zero() {
        for (value, expected) in [(2049.0, 2050.0), (-2049.0, -2050.0), (2047.5, 2048.0), (1.0 + f64::powi(2.0, -11), 1.0009765625)]
        {
            assert_eq!(half_away(value).to_f64(), expected, "{value}");
        }
        assert_eq!(half_away(f64::powi(2.0, -25)).to_bits(), 1, "half of the smallest subnormal rounds up");
        assert_eq!(half_away(f64::powi(2.0, -25) * 0.999).to_bits(), 0);
    }

    #[test]
    fn every_fp16_number_rounds_to_itself() {
        for bits in 0..=u16::MAX {
            let value = f16::from_bits(bits);
            if !value.is_nan() {
                assert_eq!(half_away(value.to_f64()).to_bits(), bits, "{value}");
            }
        }
    }

    #[test]
    fn large_magnitudes_become_infinite_and_nan_becomes_zero() {
        assert_eq!(half_away(65519.9).to_f64(), 65504.0);
        assert_eq!(half_away(65520.0), f16::INFINITY);
        assert_eq!(half_away(-1e300), f16::NEG_INFINITY);
        assert_eq!(half_away(f64::NAN).to_bits(), 0);
    }

    #[test]
    fn subnormal_products_round_twice() {
        // 1027 * 511 * 2^-34 is 512.497 units of the subnormal grid; 11 bits make it 512.5, a tie that goes up.
        let (x, y) = (1027.0 * f64::powi(2.0, -20), 511.0 * f64::powi(2.0, -14));
        assert_eq!(half_away(x * y).to_bits(), 512);
        assert_eq!(product(x, y).to_bits(), 513);
    }
}
