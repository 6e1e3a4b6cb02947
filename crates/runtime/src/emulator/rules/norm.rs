//! Softmax and norms of one row, as the chain of what they are made of.

use super::reduce::{Reduction, maximum};
use super::rounding::{half_away, product, taken};
use super::unary::{Table, table};
use half::f16;
use std::sync::Arc;

/// The tables that softmax and the norms look up.
#[derive(Clone, Debug)]
pub struct RowTables {
    /// Exponential.
    pub exp: Table,
    /// Reciprocal.
    pub inverse: Table,
    /// Reciprocal square root.
    pub rsqrt: Table,
}

impl RowTables {
    /// Builds the three tables; `known` has those of a chip that were dumped.
    pub fn new(known: &dyn Fn(&str) -> Option<Arc<[f16]>>) -> Self {
        let fitted = |op: &str| table(op, "", &|_| 0.0).unwrap_or_else(|| Table::of(|x| x));
        let of = |op: &str| known(op).map_or_else(|| fitted(op), |results| Table::of_results(&results));
        Self { exp: of("exp"), inverse: of("inverse"), rsqrt: of("rsqrt") }
    }
}

impl Default for RowTables {
    fn default() -> Self {
        Self::new(&|_| None)
    }
}

/// Softmax of a row. The fused form subtracts the maximum first (ANE guide, chapter 3).
pub fn softmax(row: &[f16], out: &mut [f16], reduction: Reduction, tables: &RowTables, scratch: &mut Vec<f64>) {
    let top = maximum(row);
    for (result, &x) in out.iter_mut().zip(row) {
        *result = tables.exp.at(half_away(taken(x) - top));
    }
    let reciprocal = tables.inverse.at(reduction.sum(out, scratch)).to_f64();
    for result in out.iter_mut() {
        *result = product(result.to_f64(), reciprocal);
    }
}

/// Layer norm of a row: mean, difference, variance, reciprocal root, product, then the affine part.
#[allow(clippy::too_many_arguments)]
pub fn layer_norm(
    row: &[f16],
    gamma: Option<&[f16]>,
    beta: Option<&[f16]>,
    epsilon: f64,
    out: &mut [f16],
    reduction: Reduction,
    tables: &RowTables,
    scratch: &mut Vec<f64>,
) {
    let mean = reduction.mean(row, scratch).to_f64();
    for (result, &x) in out.iter_mut().zip(row) {
        *result = half_away(taken(x) - mean);
    }
    let variance = half_away(reduction.sum_of_squares(out, scratch) / row.len() as f64).to_f64();
    let scale = tables.rsqrt.at(half_away(variance + epsilon)).to_f64();
    for (index, result) in out.iter_mut().enumerate() {
        let mut value = product(result.to_f64(), scale);
        if let Some(gamma) = gamma {
            value = product(value.to_f64(), taken(gamma[index]));
        }
        if let Some(beta) = beta {
            value = half_away(value.to_f64() + taken(beta[index]));
        }
        *result = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REDUCTION: Reduction = Reduction { tree_from: 192 };

    fn halves(values: &[f64]) -> Vec<f16> {
        values.iter().map(|&value| f16::from_f64(value)).collect()
    }

    fn softmax_of(values: &[f64]) -> Vec<f64> {
        let row = halves(values);
        let mut out = vec![f16::ZERO; row.len()];
        softmax(&row, &mut out, REDUCTION, &RowTables::default(), &mut Vec::new());
        out.iter().map(|x| x.to_f64()).collect()
    }

    #[test]
    fn softmax_survives_large_and_infinite_lanes() {
        // Published: softmax([1000, 1, 2, 3]) = [1, 0, 0, 0]; a NaN lane takes all mass.
        assert_eq!(softmax_of(&[1000.0, 1.0, 2.0, 3.0]), [1.0, 0.0, 0.0, 0.0]);
        assert_eq!(softmax_of(&[5.0; 4]), [0.25; 4]);
        assert_eq!(softmax_of(&[0.0, f64::NAN, 1.0]), [0.0, 1.0, 0.0]);
    }

    #[test]
    fn layer_norm_is_near_its_closed_form() {
        let row = halves(&(0..96).map(|i| (f64::from(i) * 0.7).sin() * 3.0).collect::<Vec<_>>());
        let mut out = vec![f16::ZERO; row.len()];
        layer_norm(&row, None, None, 1e-5, &mut out, REDUCTION, &RowTables::default(), &mut Vec::new());
        let count = row.len() as f64;
        let mean = row.iter().map(|x| x.to_f64()).sum::<f64>() / count;
        let variance = row.iter().map(|x| (x.to_f64() - mean).powi(2)).sum::<f64>() / count;
        for (x, y) in row.iter().zip(&out) {
            let expected = (x.to_f64() - mean) / (variance + 1e-5).sqrt();
            assert!((y.to_f64() - expected).abs() < 4e-3, "{expected} {y}");
        }
    }
}
