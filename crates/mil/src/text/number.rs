//! Numbers of the text: hex floats in C99 form both ways, decimals, rounding to an element type.

use crate::{DType, round_to_fp16};
use half::bf16;

/// The shortest C99 hex form of a float: `0x1.8p+1`, `-0x0p+0`, `inf`, `nan`.
pub(crate) fn format_float(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_string();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value.is_infinite() {
        return format!("{sign}inf");
    }
    let bits = value.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i64;
    let fraction = bits & ((1 << 52) - 1);
    let (lead, exponent) = match (exponent, fraction) {
        (0, 0) => (0, 0),
        (0, _) => (0, -1022),
        _ => (1, exponent - 1023),
    };
    let digits = format!("{fraction:013x}");
    let digits = digits.trim_end_matches('0');
    let point = if digits.is_empty() { "" } else { "." };
    format!("{sign}0x{lead}{point}{digits}p{exponent:+}")
}

/// Reads a float in decimal or hex form, `inf` or `nan`, rounded to `dtype`; `None` where the word is not a number.
pub(crate) fn parse_float(word: &str, dtype: DType) -> Option<f64> {
    let (negative, magnitude) = match word.as_bytes().first()? {
        b'-' => (true, &word[1..]),
        b'+' => (false, &word[1..]),
        _ => (false, word),
    };
    if matches!(magnitude.as_bytes().first()?, b'-' | b'+') {
        return None;
    }
    let value = match magnitude.get(..2) {
        Some("0x" | "0X") => parse_hex(&magnitude[2..])?,
        // Straight to the narrow type: rounding twice would be off for rare decimals.
        _ if dtype == DType::Fp32 => f64::from(magnitude.parse::<f32>().ok()?),
        _ => magnitude.parse::<f64>().ok()?,
    };
    let value = round_to(if negative { -value } else { value }, dtype);
    Some(if value.is_nan() { f64::NAN } else { value })
}

/// Rounds a number to a float type, to nearest, ties to even; other types pass through.
pub(crate) fn round_to(value: f64, dtype: DType) -> f64 {
    match dtype {
        DType::Fp16 => round_to_fp16(value).to_f64(),
        DType::Bf16 => bf16::from_f64(value).to_f64(),
        DType::Fp32 => f64::from(value as f32),
        _ => value,
    }
}

/// Reads an integer in decimal or hex form.
pub(crate) fn parse_int(word: &str) -> Option<i128> {
    let (negative, magnitude) = match word.as_bytes().first()? {
        b'-' => (true, &word[1..]),
        b'+' => (false, &word[1..]),
        _ => (false, word),
    };
    if !magnitude.as_bytes().first()?.is_ascii_digit() {
        return None;
    }
    let value = match magnitude.get(..2) {
        Some("0x" | "0X") => i128::from_str_radix(magnitude.get(2..).filter(|digits| !digits.starts_with(['+', '-']))?, 16),
        _ => magnitude.parse::<i128>(),
    };
    value.ok().map(|value| if negative { -value } else { value })
}

/// Smallest and largest value of an integer type; `None` for the others.
pub(crate) fn int_range(dtype: DType) -> Option<(i128, i128)> {
    let bits = dtype.bits() as u32;
    match dtype {
        DType::Int4 | DType::Int8 | DType::Int16 | DType::Int32 | DType::Int64 => {
            Some((-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1))
        }
        _ if dtype.is_integer() => Some((0, (1i128 << bits) - 1)),
        _ => None,
    }
}

/// Digits of a hex float after `0x`, for example `1.8p+1`; the exponent may be left out.
fn parse_hex(digits: &str) -> Option<f64> {
    let (mantissa, exponent) = match digits.find(['p', 'P']) {
        Some(at) => (&digits[..at], parse_exponent(&digits[at + 1..])?),
        None => (digits, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    // At most 60 significant bits are kept; what falls off behind them only matters as "not zero".
    let (mut significand, mut sticky, mut scale) = (0u64, false, exponent);
    for (digit, is_fraction) in whole.chars().map(|c| (c, false)).chain(fraction.chars().map(|c| (c, true))) {
        let value = u64::from(digit.to_digit(16)?);
        if significand >> 56 == 0 {
            significand = significand << 4 | value;
            scale = if is_fraction { scale - 4 } else { scale };
        } else {
            sticky |= value != 0;
            scale = if is_fraction { scale } else { scale + 4 };
        }
    }
    Some(assemble(significand, sticky, scale))
}

fn parse_exponent(digits: &str) -> Option<i64> {
    let magnitude = digits.strip_prefix(['+', '-']).unwrap_or(digits);
    if magnitude.is_empty() || !magnitude.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Far outside f64's range either way; the bound only keeps the arithmetic on it from overflowing.
    let value = magnitude.parse::<i64>().unwrap_or(i64::MAX).min(1 << 50);
    Some(if digits.starts_with('-') { -value } else { value })
}

/// `significand * 2^scale` rounded to nearest, ties to even; `sticky` says that a little more stood behind the significand.
fn assemble(significand: u64, sticky: bool, scale: i64) -> f64 {
    if significand == 0 {
        return 0.0;
    }
    let width = 64 - i64::from(significand.leading_zeros());
    let top = scale.saturating_add(width - 1);
    if top > 1023 {
        return f64::INFINITY;
    }
    if top < -1076 {
        return 0.0;
    }
    let precision = if top >= -1022 { 53 } else { 53 - (-1022 - top) };
    let drop = width - precision;
    if drop <= 0 {
        return scaled(significand, scale);
    }
    let drop = drop as u32;
    let kept = significand.checked_shr(drop).unwrap_or(0);
    let rest = u128::from(significand) & ((1u128 << drop) - 1);
    let half = 1u128 << (drop - 1);
    let up = rest > half || (rest == half && (sticky || kept & 1 == 1));
    scaled(kept + u64::from(up), scale + i64::from(drop))
}

/// `significand * 2^scale` for a product that f64 holds exactly (or that is infinite).
fn scaled(significand: u64, scale: i64) -> f64 {
    let power = |exponent: i64| f64::from_bits(((exponent + 1023) as u64) << 52);
    if scale < -1022 { significand as f64 * power(scale + 200) * power(-200) } else { significand as f64 * power(scale) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hex_floats_have_the_shortest_c99_form() {
        let cases = [
            (3.0, "0x1.8p+1"),
            (0.5, "0x1p-1"),
            (0.0, "0x0p+0"),
            (-0.0, "-0x0p+0"),
            (1.0, "0x1p+0"),
            (65504.0, "0x1.ffcp+15"),
            (5.960_464_477_539_063e-8, "0x1p-24"),
            (f64::from_bits(1), "0x0.0000000000001p-1022"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
        ];
        for (value, text) in cases {
            assert_eq!(format_float(value), text);
        }
    }

    #[test]
    fn every_spelling_of_a_number_is_read() {
        let cases = [
            ("0x1.8000000000000p+1", 3.0),
            ("0x0.0p+0", 0.0),
            ("0x3", 3.0),
            ("0X.8P1", 1.0),
            ("1", 1.0),
            ("1.", 1.0),
            (".5", 0.5),
            ("-2.5e-1", -0.25),
            ("+1E2", 100.0),
            ("-inf", f64::NEG_INFINITY),
            ("0x1p+99999999999999999999", f64::INFINITY),
            ("0x1p-99999999999999999999", 0.0),
            ("0x1p-1074", f64::from_bits(1)),
            ("0x1p-1075", 0.0),
            ("0x1.8p-1075", f64::from_bits(1)),
            ("0x1.fffffffffffff8p+0", 2.0),
            ("0x1.00000000000008p+0", 1.0),
            ("0x1.000000000000080000000000000001p+0", 1.0 + f64::EPSILON),
            ("0x1.fffffffffffffp+1023", f64::MAX),
            ("0x1.fffffffffffff8p+1023", f64::INFINITY),
        ];
        for (text, value) in cases {
            assert_eq!(parse_float(text, DType::Fp64).map(f64::to_bits), Some(value.to_bits()), "{text}");
        }
        for text in ["", "-", "--1", "-+1", "0x", "0x.", "0xg", "0x1p", "0x1p+", "0x1p+-3", "1..2", "abc", "0x1.2.3"] {
            assert_eq!(parse_float(text, DType::Fp64), None, "{text}");
        }
        assert_eq!(parse_float("0.1", DType::Fp16), Some(0.099_975_585_937_5));
        assert_eq!(parse_float("0.1", DType::Fp32), Some(f64::from(0.1f32)));
    }

    #[test]
    fn integers_are_read_in_both_bases_and_not_as_floats() {
        assert_eq!(parse_int("-12"), Some(-12));
        assert_eq!(parse_int("0x1F"), Some(31));
        assert_eq!(parse_int("18446744073709551615"), Some(u64::MAX.into()));
        for text in ["1.0", "1e3", "", "-", "0x-1", "x1", "--1"] {
            assert_eq!(parse_int(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_printed_float_reads_back_bit_for_bit(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            prop_assume!(!value.is_nan());
            let back = parse_float(&format_float(value), DType::Fp64);
            prop_assert_eq!(back.map(f64::to_bits), Some(bits));
        }
    }
}
