//! Reductions along an axis.

use super::rounding::{half_away, half_even, taken};
use half::f16;

/// How a reduction of one row works: the axis length from which sums go through the tree.
#[derive(Clone, Copy, Debug)]
pub struct Reduction {
    /// Shortest axis that goes through the tree of fp16 additions.
    pub tree_from: usize,
}

impl Reduction {
    /// The sum of a row, rounded to fp16.
    pub fn sum(&self, row: &[f16], scratch: &mut Vec<f64>) -> f16 {
        half_away(self.wide_sum(row.iter().map(|&x| taken(x)), scratch))
    }

    /// The mean of a row. The division comes before the store, so it does not overflow where the sum would.
    pub fn mean(&self, row: &[f16], scratch: &mut Vec<f64>) -> f16 {
        half_away(self.wide_sum(row.iter().map(|&x| taken(x)), scratch) / row.len() as f64)
    }

    /// The sum of magnitudes.
    pub fn sum_of_magnitudes(&self, row: &[f16], scratch: &mut Vec<f64>) -> f16 {
        half_away(self.wide_sum(row.iter().map(|&x| taken(x).abs()), scratch))
    }

    /// The sum of squares, before its store; squares are not rounded, the reduction unit has a squaring form of its own.
    pub fn sum_of_squares(&self, row: &[f16], scratch: &mut Vec<f64>) -> f64 {
        self.wide_sum(row.iter().map(|&x| taken(x) * taken(x)), scratch)
    }

    /// The sum before its store. Terms of 40 bits and less add up exactly in f64 for every axis the engine has.
    pub fn wide_sum(&self, terms: impl ExactSizeIterator<Item = f64>, scratch: &mut Vec<f64>) -> f64 {
        if terms.len() < self.tree_from {
            return defined(terms.sum());
        }
        // Ties to even inside the tree: half away from zero, at every level, would bias the sum to twice the published error.
        scratch.clear();
        scratch.extend(terms);
        while scratch.len() > 1 {
            let half = scratch.len().div_ceil(2);
            for index in 0..half {
                let left = scratch[2 * index];
                scratch[index] = match scratch.get(2 * index + 1) {
                    Some(right) => defined(half_even(left + right)),
                    None => left,
                };
            }
            scratch.truncate(half);
        }
        scratch.first().copied().unwrap_or(0.0)
    }
}

/// The largest value of a row as the engine takes it in; -infinity for an empty row.
pub fn maximum(row: &[f16]) -> f64 {
    row.iter().map(|&x| taken(x)).fold(f64::NEG_INFINITY, f64::max)
}

/// The smallest value of a row.
pub fn minimum(row: &[f16]) -> f64 {
    row.iter().map(|&x| taken(x)).fold(f64::INFINITY, f64::min)
}

/// Infinity minus infinity is +0 on the engine.
fn defined(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Reduction = Reduction { tree_from: 192 };

    #[test]
    fn a_short_sum_rounds_once_half_away() {
        // Published for all chips: 257 + 7 * 256 = 2049 gives 2050.
        let mut row = vec![f16::from_f64(256.0); 8];
        row[0] = f16::from_f64(257.0);
        assert_eq!(SHORT.sum(&row, &mut Vec::new()).to_f64(), 2050.0);
    }

    #[test]
    fn a_long_sum_has_the_error_of_a_tree_of_fp16_additions() {
        let row: Vec<f16> = (0..4096).map(|i| f16::from_f64(f64::from((i * 7919) % 1000) / 1000.0)).collect();
        let exact: f64 = row.iter().map(|x| x.to_f64()).sum();
        let error = (SHORT.sum(&row, &mut Vec::new()).to_f64() - exact).abs() / exact;
        assert!(error < 5e-3, "{error}");
        assert_eq!(SHORT.sum(&vec![f16::ONE; 16000], &mut Vec::new()).to_f64(), 16000.0);
    }

    #[test]
    fn sums_beyond_fp16_are_infinite_and_indeterminate_ones_zero() {
        let mut scratch = Vec::new();
        assert_eq!(SHORT.sum(&[f16::MAX, f16::MAX], &mut scratch), f16::INFINITY);
        assert_eq!(SHORT.sum(&[f16::INFINITY, f16::NEG_INFINITY], &mut scratch).to_bits(), 0);
        assert_eq!(SHORT.mean(&[f16::MAX, f16::MAX], &mut scratch), f16::MAX);
    }
}
