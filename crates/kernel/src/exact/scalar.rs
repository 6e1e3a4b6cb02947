//! The engine's arithmetic written down directly, one value at a time: the twin that every
//! vector kernel is compared with, and the last resort where no bound can be proved.
//!
//! Source of the product and sum rules: fits to the seeded workloads published with the
//! ANEForge paper (arXiv 2606.17090). Source of the NaN, infinity and signed-zero rules and of
//! the 2^15 ceiling: the ANE guide (arXiv 2606.22283).

use half::f16;

use super::{MacRules, Subnormals};

/// Significand and exponent of a finite fp16: the value is `significand * 2^(exponent - 10)`.
pub fn parts(value: f16) -> (i32, i32) {
    let bits = i32::from(value.to_bits());
    let (field, fraction) = (bits >> 10 & 31, bits & 1023);
    let (significand, exponent) = if field == 0 { (fraction, -14) } else { (fraction + 1024, field - 15) };
    (if bits >> 15 != 0 { -significand } else { significand }, exponent)
}

/// Product of two finite values in units of 2^-16: dropped where the exponents sum to less than
/// -16, otherwise rounded half away from zero to a whole unit.
pub fn product(x: f16, w: f16, rules: MacRules) -> i64 {
    if rules.subnormal_inputs == Subnormals::Zero && (is_subnormal(x) || is_subnormal(w)) {
        return 0;
    }
    let ((mx, ex), (mw, ew)) = (parts(x), parts(w));
    let exponent = ex + ew;
    let exact = i64::from(mx) * i64::from(mw);
    if exact == 0 || exponent < -16 {
        return 0;
    }
    if exponent >= 4 {
        return exact << (exponent - 4);
    }
    let rounded = (exact.abs() + (1 << (3 - exponent))) >> (4 - exponent);
    exact.signum() * rounded
}

fn is_subnormal(value: f16) -> bool {
    value.to_bits() & 0x7c00 == 0
}

/// A running exact sum of products, with the rules for infinities.
#[derive(Debug, Clone, Copy, Default)]
pub struct Accumulator {
    units: i128,
    plus: bool,
    minus: bool,
}

impl Accumulator {
    /// Adds `x * w`.
    pub fn add(&mut self, x: f16, w: f16, rules: MacRules) {
        let (x, w) = (coerce(x), coerce(w));
        if x.is_finite() && w.is_finite() {
            self.units += i128::from(product(x, w, rules));
            if rules.saturate_partials {
                self.plus |= self.units >= 1 << 31;
                self.minus |= self.units <= -(1 << 31);
            }
        } else if x.to_bits() << 1 != 0 && w.to_bits() << 1 != 0 {
            // Infinity times zero counts as zero.
            let negative = x.is_sign_negative() != w.is_sign_negative();
            self.plus |= !negative;
            self.minus |= negative;
        }
    }

    /// The sum in units of 2^-16, limited to what an i32 holds; everything from 2^31 units
    /// (2^15) on is infinite at the output. Infinities of both signs cancel to zero.
    pub fn units(&self) -> i32 {
        match (self.plus, self.minus) {
            (true, true) => 0,
            (true, false) => i32::MAX,
            (false, true) => -i32::MAX,
            (false, false) => self.units.clamp(-i128::from(i32::MAX), i128::from(i32::MAX)) as i32,
        }
    }

    /// The result at the output port.
    pub fn round(&self) -> f16 {
        round_units(i128::from(self.units()))
    }

    /// Adds or subtracts another sum.
    pub fn merge(&mut self, other: Accumulator, negative: bool) {
        self.units += if negative { -other.units } else { other.units };
        self.plus |= if negative { other.minus } else { other.plus };
        self.minus |= if negative { other.plus } else { other.minus };
    }
}

/// A dot product as the multiply-accumulate array computes it.
pub fn dot(pairs: impl IntoIterator<Item = (f16, f16)>, rules: MacRules) -> f16 {
    let mut sum = Accumulator::default();
    for (x, w) in pairs {
        sum.add(x, w, rules);
    }
    sum.round()
}

/// Rounds `units * 2^-16` to fp16, half away from zero; 2^15 and more is infinite.
pub fn round_units(units: i128) -> f16 {
    let magnitude = units.unsigned_abs();
    let bits = 128 - magnitude.leading_zeros();
    let shift = bits.saturating_sub(11);
    let half = if shift == 0 { 0 } else { 1_u128 << (shift - 1) };
    let rounded = (magnitude + half) >> shift << shift;
    let value = if rounded >= 1 << 31 { f64::INFINITY } else { rounded as f64 / 65536.0 };
    f16::from_f64(if units < 0 { -value } else { value })
}

/// Rounds half away from zero to fp16; what rounds beyond 65504 is infinite.
pub fn half_away(value: f64) -> f16 {
    let magnitude = value.abs();
    if magnitude == 0.0 || !magnitude.is_finite() {
        return f16::from_f64(value);
    }
    let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(-14);
    let unit = 2.0_f64.powi(exponent - 10);
    // The quotient has at most 53 bits, so adding a half is exact or too small to matter.
    let scaled = magnitude / unit;
    let whole = scaled.floor();
    let rounded = if scaled - whole >= 0.5 { whole + 1.0 } else { whole } * unit;
    f16::from_f64(if rounded >= 65536.0 { f64::INFINITY } else { rounded }.copysign(value))
}

/// A NaN at an input becomes positive infinity.
pub fn coerce(value: f16) -> f16 {
    if value.is_nan() { f16::INFINITY } else { value }
}

fn defined(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value }
}

/// Element-wise sum, one rounding; `inf - inf` is +0.
pub fn add(a: f16, b: f16) -> f16 {
    half_away(defined(coerce(a).to_f64() + coerce(b).to_f64()))
}

/// Element-wise difference, one rounding.
pub fn sub(a: f16, b: f16) -> f16 {
    half_away(defined(coerce(a).to_f64() - coerce(b).to_f64()))
}

/// Element-wise product: rounded to 11 significant bits first, then, where the result is
/// subnormal, once more to its grid. `0 * inf` is +0.
pub fn mul(a: f16, b: f16) -> f16 {
    let exact = defined(coerce(a).to_f64() * coerce(b).to_f64());
    if exact == 0.0 || !exact.is_finite() {
        return half_away(exact);
    }
    let unit = 2.0_f64.powi((exact.abs().to_bits() >> 52) as i32 - 1023 - 10);
    let first = (exact.abs() / unit + 0.5).floor() * unit;
    half_away(first.copysign(exact))
}

/// Element-wise quotient, one rounding; a divisor of -0 counts as +0, `0 / 0` is +0.
pub fn div(a: f16, b: f16) -> f16 {
    let divisor = coerce(b).to_f64() + 0.0;
    half_away(defined(coerce(a).to_f64() / divisor))
}

/// The larger value.
pub fn max(a: f16, b: f16) -> f16 {
    let (a, b) = (coerce(a), coerce(b));
    if a > b { a } else { b }
}

/// The smaller value.
pub fn min(a: f16, b: f16) -> f16 {
    let (a, b) = (coerce(a), coerce(b));
    if a < b { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: MacRules = MacRules::DEFAULT;

    fn h(value: f64) -> f16 {
        f16::from_f64(value)
    }

    #[test]
    fn products_round_half_away_on_the_grid_and_flush_by_exponent() {
        assert_eq!(product(h(1.5), h(2.0), RULES), 3 << 16);
        // 2^-8 * 2^-9 is half a unit, but its exponents sum to -17.
        assert_eq!(product(h(2.0_f64.powi(-8)), h(2.0_f64.powi(-9)), RULES), 0);
        assert_eq!(product(h(2.0_f64.powi(-8)), h(2.0_f64.powi(-8)), RULES), 1);
        // 1.5 * 2^-16 is a tie between one and two units.
        assert_eq!(product(h(-1.5 * 2.0_f64.powi(-8)), h(2.0_f64.powi(-8)), RULES), -2);
        // 1.25 * 2^-16 rounds to one unit.
        assert_eq!(product(h(1.25 * 2.0_f64.powi(-8)), h(2.0_f64.powi(-8)), RULES), 1);
    }

    #[test]
    fn sums_round_once_and_reach_infinity_at_two_to_the_fifteen() {
        assert_eq!(round_units(2049 << 16).to_f32(), 2050.0);
        assert_eq!(round_units(-(2049 << 16)).to_f32(), -2050.0);
        assert_eq!(round_units(32759 << 16).to_f32(), 32752.0);
        assert_eq!(round_units(32760 << 16).to_f32(), f32::INFINITY);
        assert_eq!(round_units(3).to_f64(), 3.0 / 65536.0);
    }

    #[test]
    fn infinities_follow_the_published_rules() {
        let inf = f16::INFINITY;
        assert_eq!(dot([(inf, h(1.0)), (h(1.0), h(1.0))], RULES), inf);
        assert_eq!(dot([(inf, h(0.0)), (h(1.0), h(1.0))], RULES), h(1.0));
        assert_eq!(dot([(inf, h(1.0)), (inf, h(-1.0))], RULES), h(0.0));
        assert_eq!(dot([(f16::NAN, h(-1.0))], RULES), f16::NEG_INFINITY);
        assert_eq!(add(f16::NAN, h(0.0)), inf);
        assert_eq!(sub(inf, inf).to_bits(), 0);
        assert_eq!(div(h(1.0), h(-0.0)), inf);
        assert_eq!(mul(h(0.0), inf).to_bits(), 0);
    }

    #[test]
    fn element_wise_rounding_is_half_away_and_double_for_subnormal_products() {
        assert_eq!(add(h(2048.0), h(1.0)).to_f32(), 2050.0);
        assert_eq!(add(h(65504.0), h(16.0)), f16::INFINITY);
        assert_eq!(add(h(65504.0), h(15.0)).to_f32(), 65504.0);
        // (1 + 2^-10) * (1 - 2^-11) * 2^-15: 11 bits round to 2^-15 * (1 + 2^-11 -> 1 + 2^-10).
        let a = f16::from_bits(0x3c01);
        let b = f16::from_bits(0x01ff);
        let exact = a.to_f64() * b.to_f64();
        let twice = half_away(half_away(exact * 1024.0).to_f64() / 1024.0);
        assert_eq!(mul(a, b), twice);
    }
}
