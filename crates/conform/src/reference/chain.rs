//! Matrix products as chains of fused multiply-adds, the arithmetic of the hosts' BLAS and einsum.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

/// f32 or f64.
pub trait Real: Copy + Send + Sync + 'static {
    /// Zero.
    const ZERO: Self;
    /// `self * factor + addend` with one rounding.
    fn fused(self, factor: Self, addend: Self) -> Self;
}

impl Real for f32 {
    const ZERO: Self = 0.0;
    #[inline(always)]
    fn fused(self, factor: Self, addend: Self) -> Self {
        self.mul_add(factor, addend)
    }
}

impl Real for f64 {
    const ZERO: Self = 0.0;
    #[inline(always)]
    fn fused(self, factor: Self, addend: Self) -> Self {
        self.mul_add(factor, addend)
    }
}

/// Columns that one tile carries; 16 f32 or f64 fill two or four vector registers.
const LANES: usize = 16;
/// Rows that one tile carries.
const ROWS: usize = 4;

/// `left [rows, depth] * right [depth, columns]`, row-major.
///
/// Each result is ONE chain over the depth: it starts at zero and takes one fused multiply-add per
/// term, in order of depth, in the precision of `T`. Lanes are independent results, so the vector
/// form gives exactly the scalar chain.
pub fn chain_product<T: Real>(left: &[T], right: &[T], depth: usize) -> Vec<T> {
    let rows = left.len().checked_div(depth).unwrap_or(0);
    let columns = right.len().checked_div(depth).unwrap_or(0);
    let panels: Vec<Vec<[T; LANES]>> = (0..columns.div_ceil(LANES))
        .into_par_iter()
        .map(|panel| {
            let product = PanelProduct { left, panel: &pack(right, depth, columns, panel * LANES), depth, rows };
            Arch::new().dispatch(product)
        })
        .collect();
    let mut result = vec![T::ZERO; rows * columns];
    for (row, line) in result.chunks_mut(columns.max(1)).enumerate() {
        for (piece, panel) in line.chunks_mut(LANES).zip(&panels) {
            piece.copy_from_slice(&panel[row][..piece.len()]);
        }
    }
    result
}

/// The columns `first..first + LANES` side by side per depth, filled up with zeros.
fn pack<T: Real>(right: &[T], depth: usize, columns: usize, first: usize) -> Vec<[T; LANES]> {
    let width = LANES.min(columns - first);
    (0..depth)
        .map(|step| {
            let mut lanes = [T::ZERO; LANES];
            let start = step * columns + first;
            lanes[..width].copy_from_slice(&right[start..start + width]);
            lanes
        })
        .collect()
}

/// All rows of `left` times one packed panel: the unit that is compiled for the machine's vectors.
struct PanelProduct<'a, T> {
    left: &'a [T],
    panel: &'a [[T; LANES]],
    depth: usize,
    rows: usize,
}

impl<T: Real> WithSimd for PanelProduct<'_, T> {
    type Output = Vec<[T; LANES]>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> Self::Output {
        let mut result = vec![[T::ZERO; LANES]; self.rows];
        let mut lines = self.left.chunks_exact(self.depth * ROWS);
        let mut outputs = result.chunks_exact_mut(ROWS);
        for (lines, outputs) in lines.by_ref().zip(outputs.by_ref()) {
            tile::<T, ROWS>(lines, self.depth, self.panel, outputs);
        }
        let rest = lines.remainder().chunks_exact(self.depth);
        for (line, output) in rest.zip(outputs.into_remainder()) {
            tile::<T, 1>(line, self.depth, self.panel, std::slice::from_mut(output));
        }
        result
    }
}

#[inline(always)]
fn tile<T: Real, const R: usize>(lines: &[T], depth: usize, panel: &[[T; LANES]], outputs: &mut [[T; LANES]]) {
    let lines: [&[T]; R] = std::array::from_fn(|row| &lines[row * depth..][..panel.len()]);
    let mut sums = [[T::ZERO; LANES]; R];
    for (step, lanes) in panel.iter().enumerate() {
        for (sum, line) in sums.iter_mut().zip(&lines) {
            let factor = line[step];
            for (sum, &lane) in sum.iter_mut().zip(lanes) {
                *sum = factor.fused(lane, *sum);
            }
        }
    }
    outputs.copy_from_slice(&sums);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;

    #[test]
    fn every_result_is_the_scalar_chain_bit_for_bit() {
        let mut generator = Generator::from_seed(3);
        for (rows, depth, columns) in [(1, 1, 1), (5, 37, 33), (4, 129, 16), (9, 64, 3), (3, 8, 0)] {
            let left = generator.normals_f32(rows * depth);
            let right = generator.normals_f32(depth * columns);
            let product = chain_product(&left, &right, depth);
            assert_eq!(product.len(), rows * columns);
            for (index, value) in product.into_iter().enumerate() {
                let (row, column) = (index / columns, index % columns);
                let chain =
                    (0..depth).fold(0.0f32, |sum, step| left[row * depth + step].mul_add(right[step * columns + column], sum));
                assert_eq!(value.to_bits(), chain.to_bits());
            }
        }
    }

    #[test]
    fn f64_chains_multiply_small_integers_exactly() {
        let left: Vec<f64> = (0..6).map(f64::from).collect();
        let right: Vec<f64> = (0..6).map(f64::from).collect();
        assert_eq!(chain_product(&left, &right, 3), [10.0, 13.0, 28.0, 40.0]);
    }
}
