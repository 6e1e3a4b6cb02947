//! How far two results are apart.

/// Distance between a result and what was expected of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Largest absolute difference over the largest finite expected magnitude (at least 1e-3).
    pub worst: f64,
    /// Where that is.
    pub at: usize,
    /// Euclidean length of the difference over that of the expected values.
    pub relative_l2: f64,
}

/// Compares two results element by element. NaN equals NaN; a value that is finite on one side only is infinitely far.
///
/// # Panics
/// Where the lengths differ.
pub fn difference(got: &[f64], expected: &[f64]) -> Difference {
    assert_eq!(got.len(), expected.len(), "results of different lengths");
    let scale = expected.iter().filter(|value| value.is_finite()).fold(1e-3f64, |most, value| most.max(value.abs()));
    let (mut worst, mut at, mut squares, mut length) = (0.0f64, 0, 0.0, 0.0);
    for (index, (&got, &expected)) in got.iter().zip(expected).enumerate() {
        let apart = match () {
            () if got == expected || (got.is_nan() && expected.is_nan()) => 0.0,
            () if got.is_finite() && expected.is_finite() => (got - expected).abs(),
            () => f64::INFINITY,
        };
        if apart / scale > worst {
            (worst, at) = (apart / scale, index);
        }
        squares += apart * apart;
        length += if expected.is_finite() { expected * expected } else { 0.0 };
    }
    let relative_l2 = if squares == 0.0 { 0.0 } else { (squares / length.max(f64::MIN_POSITIVE)).sqrt() };
    Difference { worst, at, relative_l2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_results_are_nowhere_apart_also_where_they_are_no_numbers() {
        let values = [1.0, f64::NAN, f64::INFINITY, 0.0];
        assert_eq!(difference(&values, &values), Difference { worst: 0.0, at: 0, relative_l2: 0.0 });
    }

    #[test]
    fn the_worst_place_is_named_and_scaled_by_the_largest_expected_value() {
        let found = difference(&[3.0, 4.5, 0.0], &[3.0, 4.0, 0.0]);
        assert_eq!((found.worst, found.at), (0.125, 1));
        assert!((found.relative_l2 - 0.1).abs() < 1e-12);
    }

    #[test]
    fn a_number_in_the_place_of_an_infinity_is_infinitely_far() {
        assert_eq!(difference(&[65504.0], &[f64::INFINITY]).worst, f64::INFINITY);
        assert_eq!(difference(&[1.0, f64::NAN], &[1.0, 2.0]).worst, f64::INFINITY);
    }
}
