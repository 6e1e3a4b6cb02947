//! Weights in the order in which the micro-kernel reads them.

use bytemuck::{Pod, Zeroable};
use half::f16;

use super::simd::Level;

/// One cache line; panels start on a line so that no vector load straddles two.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Line([u8; 64]);

/// A zeroed buffer of `T` that starts on a cache line.
#[derive(Clone, Default)]
pub(crate) struct Aligned<T> {
    lines: Vec<Line>,
    length: usize,
    element: std::marker::PhantomData<T>,
}

impl<T: Pod> Aligned<T> {
    pub(crate) fn zeroed(length: usize) -> Self {
        let lines = vec![Line::zeroed(); (length * size_of::<T>()).div_ceil(64)];
        Self { lines, length, element: std::marker::PhantomData }
    }

    /// Zeroes the buffer and gives it a new length, within its capacity where that suffices.
    pub(crate) fn reset(&mut self, length: usize) {
        self.lines.clear();
        self.lines.resize((length * size_of::<T>()).div_ceil(64), Line::zeroed());
        self.length = length;
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        &bytemuck::cast_slice(&self.lines)[..self.length]
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.length]
    }

    pub(crate) fn bytes(&self) -> usize {
        self.lines.len() * size_of::<Line>()
    }
}

/// A weight matrix of N columns and K rows (the contraction axis) as fp16 panels: columns in
/// groups of [`Level::panel_width`], each group stored `[K][width]`, the last one filled up with
/// zeros. K must be in the order in which the runs of the left operand walk it.
#[derive(Clone)]
pub struct PackedWeights {
    level: Level,
    n: usize,
    k: usize,
    panels: Aligned<u16>,
}

impl std::fmt::Debug for PackedWeights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PackedWeights").field("n", &self.n).field("k", &self.k).finish()
    }
}

impl PackedWeights {
    /// Packs `element(column, depth)` for the instructions of `level`.
    pub fn from_fn(level: Level, n: usize, k: usize, element: impl Fn(usize, usize) -> f16) -> Self {
        let width = level.panel_width();
        let mut panels = Aligned::zeroed(n.div_ceil(width) * k * width);
        let data: &mut [u16] = panels.as_mut_slice();
        for column in 0..n {
            let start = column / width * width * k + column % width;
            for depth in 0..k {
                data[start + depth * width] = element(column, depth).to_bits();
            }
        }
        Self { level, n, k, panels }
    }

    /// Packs a row-major `[N][K]` matrix (a linear layer's weight).
    ///
    /// # Panics
    /// If `values` does not have `n * k` entries.
    pub fn from_rows(level: Level, n: usize, k: usize, values: &[f16]) -> Self {
        assert_eq!(values.len(), n * k, "weights: length is not n * k");
        Self::from_fn(level, n, k, |column, depth| values[column * k + depth])
    }

    /// Packs a row-major `[K][N]` matrix (the right operand of a matrix product).
    ///
    /// # Panics
    /// If `values` does not have `n * k` entries.
    pub fn from_columns(level: Level, n: usize, k: usize, values: &[f16]) -> Self {
        assert_eq!(values.len(), n * k, "weights: length is not n * k");
        Self::from_fn(level, n, k, |column, depth| values[depth * n + column])
    }

    /// Columns.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Length of the contraction axis.
    pub fn k(&self) -> usize {
        self.k
    }

    /// The level it was packed for.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.panels.bytes()
    }

    pub(crate) fn data(&self) -> &[u16] {
        self.panels.as_slice()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_orders_give_the_same_zero_filled_panels() {
        for level in Level::available() {
            let (n, k, width) = (width_plus(level), 3, level.panel_width());
            let rows: Vec<f16> = (0..n * k).map(|i| f16::from_f32(i as f32)).collect();
            let columns: Vec<f16> = (0..n * k).map(|i| rows[(i % n) * k + i / n]).collect();
            let a = PackedWeights::from_rows(level, n, k, &rows);
            let b = PackedWeights::from_columns(level, n, k, &columns);
            assert_eq!(a.data(), b.data());
            assert_eq!(a.data().len(), 2 * k * width);
            assert_eq!(a.data()[width * k + 5], 0);
            assert_eq!(a.data()[width * k + width], rows[width * k + 1].to_bits());
            assert_eq!(a.data().as_ptr() as usize % 64, 0);
        }
    }

    fn width_plus(level: Level) -> usize {
        level.panel_width() + 5
    }
}
