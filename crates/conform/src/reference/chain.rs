//! Matrix products as chains of fused multiply-adds, the arithmetic of the hosts' BLAS and einsum.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

/// f32 or f64, with the few vector operations that a chain needs.
pub trait Real: Copy + Send + Sync + 'static {
    /// Zero.
    const ZERO: Self;
    /// As many values as one vector register of `S` holds.
    type Register<S: Simd>: Copy;
    /// A register full of one value.
    fn splat<S: Simd>(simd: S, value: Self) -> Self::Register<S>;
    /// `left * right + addend` with one rounding, lane by lane.
    fn fused<S: Simd>(simd: S, left: Self::Register<S>, right: Self::Register<S>, addend: Self::Register<S>) -> Self::Register<S>;
    /// A slice as registers; what does not fill one is left out.
    fn registers<S: Simd>(values: &[Self]) -> &[Self::Register<S>];
    /// As [`Real::registers`].
    fn registers_mut<S: Simd>(values: &mut [Self]) -> &mut [Self::Register<S>];
}

macro_rules! real {
    ($float:ident, $register:ident, $splat:ident, $fused:ident, $view:ident, $view_mut:ident) => {
        impl Real for $float {
            const ZERO: Self = 0.0;
            type Register<S: Simd> = S::$register;

            #[inline(always)]
            fn splat<S: Simd>(simd: S, value: Self) -> S::$register {
                simd.$splat(value)
            }
            #[inline(always)]
            fn fused<S: Simd>(simd: S, left: S::$register, right: S::$register, addend: S::$register) -> S::$register {
                simd.$fused(left, right, addend)
            }
            #[inline(always)]
            fn registers<S: Simd>(values: &[Self]) -> &[S::$register] {
                S::$view(values).0
            }
            #[inline(always)]
            fn registers_mut<S: Simd>(values: &mut [Self]) -> &mut [S::$register] {
                S::$view_mut(values).0
            }
        }
    };
}

real!(f32, f32s, splat_f32s, mul_add_e_f32s, as_simd_f32s, as_mut_simd_f32s);
real!(f64, f64s, splat_f64s, mul_add_e_f64s, as_simd_f64s, as_mut_simd_f64s);

/// Columns of one job: a multiple of two registers of every vector width (512 bits of f32 included).
const JOB_COLUMNS: usize = 32;
/// Rows of a tile. With two registers per row, eight sums run at once and hide the latency of the
/// fused multiply-add.
const ROWS: usize = 4;

/// Terms taken at a time, so that the packed columns stay in the first caches. The sums are carried
/// from one stretch to the next: the chain is the same.
const DEPTH_BLOCK: usize = 512;

/// `left [rows, depth] * right [depth, columns]`, row-major.
///
/// Each result is ONE chain over the depth: it starts at zero and takes one fused multiply-add per
/// term, in order of depth, in the precision of `T`. Lanes are independent results, so the vector
/// form gives exactly the scalar chain.
pub fn chain_product<T: Real>(left: &[T], right: &[T], depth: usize) -> Vec<T> {
    let rows = left.len().checked_div(depth).unwrap_or(0);
    let columns = right.len().checked_div(depth).unwrap_or(0);
    let blocks: Vec<Vec<T>> = (0..columns.div_ceil(JOB_COLUMNS))
        .into_par_iter()
        .map(|job| {
            let first_column = job * JOB_COLUMNS;
            Arch::new().dispatch(Job { left, right, depth, rows, columns, first_column })
        })
        .collect();
    let mut result = vec![T::ZERO; rows * columns];
    for (row, line) in result.chunks_mut(columns.max(1)).enumerate() {
        for (piece, block) in line.chunks_mut(JOB_COLUMNS).zip(&blocks) {
            piece.copy_from_slice(&block[row * JOB_COLUMNS..][..piece.len()]);
        }
    }
    result
}

/// All rows times [`JOB_COLUMNS`] columns (those beyond the last are zeros): the unit that is
/// compiled for the machine's vectors.
struct Job<'a, T> {
    left: &'a [T],
    right: &'a [T],
    depth: usize,
    rows: usize,
    columns: usize,
    first_column: usize,
}

impl<T: Real> WithSimd for Job<'_, T> {
    type Output = Vec<T>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Vec<T> {
        let width = 2 * size_of::<T::Register<S>>() / size_of::<T>();
        let mut block = vec![T::ZERO; self.rows * JOB_COLUMNS];
        let mut panel = vec![T::ZERO; DEPTH_BLOCK.min(self.depth) * width];
        for start in (0..JOB_COLUMNS).step_by(width) {
            let first = self.first_column + start;
            let filled = width.min(self.columns.saturating_sub(first));
            if filled == 0 {
                break;
            }
            for from in (0..self.depth).step_by(DEPTH_BLOCK) {
                let to = self.depth.min(from + DEPTH_BLOCK);
                for (step, lanes) in (from..to).zip(panel.chunks_exact_mut(width)) {
                    lanes.fill(T::ZERO);
                    lanes[..filled].copy_from_slice(&self.right[step * self.columns + first..][..filled]);
                }
                let panel = T::registers::<S>(&panel[..(to - from) * width]);
                self.carry_on(simd, from..to, panel, &mut block[start..]);
            }
        }
        block
    }
}

impl<T: Real> Job<'_, T> {
    /// Takes every row's sums (at `sums`, one line of [`JOB_COLUMNS`] per row) over a stretch of the depth.
    #[inline(always)]
    fn carry_on<S: Simd>(&self, simd: S, depth: Range<usize>, panel: &[T::Register<S>], sums: &mut [T]) {
        let width = 2 * size_of::<T::Register<S>>() / size_of::<T>();
        for row in (0..self.rows).step_by(ROWS) {
            // The last rows are repeated where fewer than a tile are left: same sums, stored once.
            let lines: [&[T]; ROWS] = std::array::from_fn(|offset| {
                let line = (row + offset).min(self.rows - 1) * self.depth;
                &self.left[line + depth.start..line + depth.end]
            });
            let mut tile = [[T::splat(simd, T::ZERO); 2]; ROWS];
            for (offset, tile) in tile.iter_mut().enumerate().take(self.rows - row) {
                tile.copy_from_slice(T::registers::<S>(&sums[(row + offset) * JOB_COLUMNS..][..width]));
            }
            let tile = carry_tile::<T, S>(simd, lines, panel, tile);
            for (offset, tile) in tile.iter().enumerate().take(self.rows - row) {
                T::registers_mut::<S>(&mut sums[(row + offset) * JOB_COLUMNS..][..width]).copy_from_slice(tile);
            }
        }
    }
}

#[inline(always)]
fn carry_tile<T: Real, S: Simd>(
    simd: S,
    lines: [&[T]; ROWS],
    panel: &[T::Register<S>],
    mut sums: [[T::Register<S>; 2]; ROWS],
) -> [[T::Register<S>; 2]; ROWS] {
    let [first, second, third, fourth] = lines;
    let factors = first.iter().zip(second).zip(third).zip(fourth);
    for (lanes, (((&first, &second), &third), &fourth)) in panel.chunks_exact(2).zip(factors) {
        for (sums, factor) in sums.iter_mut().zip([first, second, third, fourth]) {
            let factor = T::splat(simd, factor);
            sums[0] = T::fused(simd, factor, lanes[0], sums[0]);
            sums[1] = T::fused(simd, factor, lanes[1], sums[1]);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;

    #[test]
    fn every_result_is_the_scalar_chain_bit_for_bit() {
        let mut generator = Generator::from_seed(3);
        for (rows, depth, columns) in [(1, 1, 1), (5, 37, 33), (4, 129, 16), (9, 64, 3), (3, 8, 0), (6, 1300, 40)] {
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
