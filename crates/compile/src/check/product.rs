//! The relative error of a matrix product on the engine, from the scales of its operands alone.
//!
//! The engine rounds each product to a multiple of 2^-16 and drops it where the exponents of its factors sum to less than -16 (published
//! relative errors of arXiv 2606.17090 are reproduced to every digit by that rule, see `aneforge fingerprint`). For operands that are
//! normally distributed about zero both parts have a closed form: the drop loses the whole product, the rounding a twelfth of its step
//! squared.

/// Exponents summed over; beyond them nothing of a normal fp16 number is left.
const EXPONENTS: std::ops::RangeInclusive<i32> = -30..=16;
/// Step that products are rounded to, as a power of two.
const STEP: i32 = -16;

/// Expected relative L2 error of `x W` where the elements of both are normal with these standard deviations; the length of the sum
/// cancels. The result's own rounding to fp16 is in it. One where nothing of the product is left.
pub fn product_error(left: f64, right: f64) -> f64 {
    if left <= 0.0 || right <= 0.0 || !left.is_finite() || !right.is_finite() {
        return 0.0;
    }
    let parts = |scale: f64| -> Vec<(i32, f64, f64)> { EXPONENTS.map(|exponent| part(scale, exponent)).collect() };
    let (left_parts, right_parts) = (parts(left), parts(right));
    let rounding = 2f64.powi(2 * STEP) / 12.0;
    let mut lost = 0.0;
    for (a, often_a, square_a) in &left_parts {
        for (b, often_b, square_b) in &right_parts {
            lost += if a + b < STEP { square_a * square_b } else { often_a * often_b * rounding };
        }
    }
    // A mantissa is spread over an octave: the mean square of fp16's relative rounding is 2^-22 / 6.
    let result = 2f64.powi(-22) / 6.0;
    (lost / (left * right).powi(2) + result).sqrt().min(1.0)
}

/// How often a normal number of that scale has the exponent, and what it gives to the mean square.
fn part(scale: f64, exponent: i32) -> (i32, f64, f64) {
    let low = 2f64.powi(exponent);
    let below = |limit: f64| libm::erf(limit / scale / std::f64::consts::SQRT_2);
    let density = |at: f64| at * scale * (-0.5 * (at / scale).powi(2)).exp() * (2.0 / std::f64::consts::PI).sqrt();
    let often = below(2.0 * low) - below(low);
    (exponent, often, (scale * scale * often - (density(2.0 * low) - density(low))).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative errors that the benchmark results with arXiv 2606.17090 give for products of normal operands of deviation
    /// `1 / sqrt(inner)`.
    #[test]
    fn published_errors_of_products_are_predicted_to_two_percent() {
        let published = [
            (256.0, 0.001_252_285),
            (512.0, 0.002_578_004),
            (1024.0, 0.005_528_353),
            (2048.0, 0.012_131_920),
            (4096.0, 0.027_237_621),
            (6144.0, 0.043_990_474),
        ];
        for (inner, error) in published {
            let scale = f64::sqrt(1.0 / inner);
            let ours = product_error(scale, scale);
            assert!((ours / error - 1.0).abs() < 0.02, "{inner}: {ours} and not {error}");
        }
    }

    #[test]
    fn the_error_function_is_right_where_tables_have_it() {
        // Abramowitz and Stegun, table 7.1, and the complement at 3 and 4.
        for (x, value) in [(0.0, 0.0), (0.5, 0.520_499_877_8), (1.0, 0.842_700_792_9), (2.0, 0.995_322_265_0)] {
            assert!((libm::erf(x) - value).abs() < 1e-10, "{x}");
        }
        assert!((1.0 - libm::erf(3.0) - 2.209_049_7e-5).abs() < 1e-11);
        assert!((1.0 - libm::erf(4.0) - 1.541_725_8e-8).abs() < 1e-14);
    }

    #[test]
    fn large_operands_lose_nothing_and_tiny_ones_everything() {
        assert!(product_error(1.0, 1.0) < 3e-4);
        assert!(product_error(1e-4, 1e-4) > 0.99);
        assert_eq!(product_error(0.0, 1.0), 0.0);
    }
}
