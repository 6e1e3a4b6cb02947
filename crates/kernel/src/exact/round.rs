//! Rounding half away from zero, in vectors.
//!
//! Values travel as f32 that hold fp16 values. Half-away rounding looks only at the bits down to
//! the half of a unit, so an input that was truncated towards zero below them is as good as the
//! exact one; an input rounded to nearest is not.

use super::super::simd::Simd;

/// The first infinite result of the multiply-accumulate output port: 2^15.
pub(crate) const PORT_LIMIT: f32 = 32768.0;
/// The first infinite result of element-wise operations.
pub(crate) const STORE_LIMIT: f32 = 65536.0;

const SIGN: i32 = i32::MIN;
const DROPPED: i32 = 0x1fff;
const HALF_UNIT: i32 = 0x1000;

/// Rounds to 11 significant bits, whatever the exponent.
#[inline(always)]
fn eleven_bits<S: Simd>(s: S, magnitude: S::I) -> S::I {
    s.and(s.add_int(magnitude, s.splat_int(HALF_UNIT)), s.splat_int(!DROPPED))
}

/// Rounds to fp16, half away from zero; results from `limit` on are infinite. Not for NaN.
#[inline(always)]
pub(crate) fn half_away<S: Simd>(s: S, value: S::F, limit: f32) -> S::F {
    let bits = s.bits(value);
    let sign = s.and(bits, s.splat_int(SIGN));
    let magnitude = s.and(bits, s.splat_int(!SIGN));
    let normal = s.from_bits(eleven_bits(s, magnitude));
    // Below 2^-14 the unit is 2^-24: count half units, add one, halve.
    let halves = s.to_int(s.mul(s.from_bits(magnitude), s.splat(33_554_432.0)));
    let whole = s.shift_right::<1>(s.add_int(halves, s.splat_int(1)));
    let small = s.mul(s.to_float(whole), s.splat(1.0 / 16_777_216.0));
    let is_small = s.greater_int(s.splat_int(0x3880_0000), magnitude);
    let rounded = s.select(is_small, small, normal);
    let limited = s.select(s.less(rounded, s.splat(limit)), rounded, s.splat(f32::INFINITY));
    s.from_bits(s.or(s.bits(limited), sign))
}

/// Rounds a sum in units of 2^-16 (within +-(2^31 - 1)) at the output port.
#[inline(always)]
pub(crate) fn round_units<S: Simd>(s: S, units: S::I) -> S::F {
    let sign = s.and(units, s.splat_int(SIGN));
    let magnitude = s.max_int(units, s.sub_int(s.splat_int(0), units));
    // An f32 holds 24 bits; from there on the low bits are cut off, which half-away permits.
    let large = s.greater_int(magnitude, s.splat_int((1 << 24) - 1));
    let magnitude = s.select_int(large, s.and(magnitude, s.splat_int(!0xff)), magnitude);
    let value = s.mul(s.to_float(magnitude), s.splat(1.0 / 65536.0));
    half_away(s, s.from_bits(s.or(s.bits(value), sign)), PORT_LIMIT)
}

/// NaN becomes positive infinity.
#[inline(always)]
pub(crate) fn coerce<S: Simd>(s: S, value: S::F) -> S::F {
    s.select(s.less_equal(value, value), value, s.splat(f32::INFINITY))
}

/// NaN, here the result of an indeterminate form, becomes +0.
#[inline(always)]
fn defined<S: Simd>(s: S, value: S::F) -> S::F {
    s.select(s.less_equal(value, value), value, s.splat(0.0))
}

/// Sum of two fp16 values, rounded once.
#[inline(always)]
pub(crate) fn add<S: Simd>(s: S, a: S::F, b: S::F) -> S::F {
    let sum = s.add(a, b);
    // The error of the f32 sum, exactly (Knuth); where it points back to zero the sum was
    // rounded outwards and the truncated one is its neighbour.
    let part = s.sub(sum, a);
    let error = s.add(s.sub(a, s.sub(sum, part)), s.sub(b, part));
    let zero = s.splat(0.0);
    let outwards =
        s.or_mask(s.and_mask(s.less(error, zero), s.less(zero, sum)), s.and_mask(s.less(zero, error), s.less(sum, zero)));
    let bits = s.bits(sum);
    let truncated = s.select_int(outwards, s.sub_int(bits, s.splat_int(1)), bits);
    half_away(s, defined(s, s.from_bits(truncated)), STORE_LIMIT)
}

/// Product of two fp16 values, rounded to 11 bits and then to the grid.
#[inline(always)]
pub(crate) fn mul<S: Simd>(s: S, a: S::F, b: S::F) -> S::F {
    let exact = s.bits(defined(s, s.mul(a, b)));
    let sign = s.and(exact, s.splat_int(SIGN));
    let first = eleven_bits(s, s.and(exact, s.splat_int(!SIGN)));
    half_away(s, s.from_bits(s.or(first, sign)), STORE_LIMIT)
}

/// Quotient of two fp16 values, rounded once. The f32 quotient cannot fall on a tie that the
/// exact one misses: the two differ by more than half an f32 unit.
#[inline(always)]
pub(crate) fn div<S: Simd>(s: S, a: S::F, b: S::F) -> S::F {
    let divisor = s.add(b, s.splat(0.0));
    half_away(s, defined(s, s.div(a, divisor)), STORE_LIMIT)
}
