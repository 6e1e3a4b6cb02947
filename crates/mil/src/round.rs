//! Rounding f64 to fp16: once, and the same on every machine.

use half::f16;

/// The nearest fp16 number, ties to even; magnitudes from 65520 on become infinite.
///
/// `f16::from_f64` rounds twice, through f32, where the processor converts, and drops the low half of the significand where software
/// does: both are a unit off for some numbers beside a tie. The f32 here keeps a sticky last bit (round to odd), so that the second
/// rounding decides as if it saw all of `value`.
pub fn round_to_fp16(value: f64) -> f16 {
    const DROPPED: u64 = (1 << 29) - 1;
    let bits = value.to_bits();
    let sticky = u64::from(bits & DROPPED != 0) << 29;
    f16::from_f32(f64::from_bits((bits & !DROPPED) | sticky) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_just_above_a_tie_rounds_up_although_f32_would_drop_the_excess() {
        let tie = 1.0 + 2.0f64.powi(-11);
        assert_eq!(round_to_fp16(tie), f16::from_f32(1.0));
        assert_eq!(round_to_fp16(tie + 2.0f64.powi(-40)).to_bits(), f16::from_f32(1.0).to_bits() + 1);
        assert_eq!(round_to_fp16(-tie - 2.0f64.powi(-40)).to_bits(), f16::from_f32(-1.0).to_bits() + 1);
        assert_eq!(round_to_fp16(2.0f64.powi(-25)).to_bits(), 0);
        assert_eq!(round_to_fp16(2.0f64.powi(-25) * (1.0 + 1e-15)).to_bits(), 1);
    }

    #[test]
    fn every_number_and_its_neighbourhood_survive_the_round_trip() {
        for bits in (0..0x7c00u16).chain(0x8000..0xfc00) {
            let exact = f16::from_bits(bits).to_f64();
            assert_eq!(round_to_fp16(exact).to_bits(), bits);
            assert_eq!(round_to_fp16(exact * (1.0 + 1e-9)).to_bits(), bits);
        }
    }

    #[test]
    fn large_numbers_infinities_and_nan_keep_their_kind() {
        assert_eq!(round_to_fp16(65519.999), f16::MAX);
        assert_eq!(round_to_fp16(65520.0), f16::INFINITY);
        assert_eq!(round_to_fp16(-1e300), f16::NEG_INFINITY);
        assert_eq!(round_to_fp16(f64::NEG_INFINITY), f16::NEG_INFINITY);
        assert!(round_to_fp16(f64::NAN).is_nan());
        assert!(round_to_fp16(f64::from_bits(f64::INFINITY.to_bits() | 1)).is_nan());
    }
}
