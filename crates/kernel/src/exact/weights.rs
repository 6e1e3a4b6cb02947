//! Weights prepared for the exact forms, and how the contraction axis is cut into blocks.

use half::f16;

use super::super::pack::Aligned;
use super::super::simd::{Kernel, Level, Simd};
use super::super::types::Run;
use super::{MacRules, Subnormals, scalar};

/// Most blocks that the contraction axis is cut into; bounds a buffer on the stack.
pub(crate) const MOST_BLOCKS: usize = 512;

/// Length of the blocks for which norms are kept.
pub(crate) fn block_length(k: usize) -> usize {
    32 * k.div_ceil(32 * MOST_BLOCKS).max(1)
}

/// The runs of a row, cut at block borders, so that every block is a few whole pieces.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pieces {
    pub list: Vec<Run>,
    /// Block `b` is `list[starts[b]..starts[b + 1]]`.
    pub starts: Vec<usize>,
    /// Steps of k before block `b`.
    pub depths: Vec<usize>,
}

impl Pieces {
    pub(crate) fn new(runs: &[Run]) -> Self {
        let k = runs.iter().map(|run| run.length).sum();
        let mut pieces = Self::default();
        pieces.cut(runs, k);
        pieces
    }

    fn cut(&mut self, runs: &[Run], k: usize) {
        let block = block_length(k);
        self.list.clear();
        self.starts.clear();
        self.depths.clear();
        let mut depth = 0;
        for run in runs {
            let mut done = 0;
            while done < run.length {
                if depth % block == 0 {
                    self.starts.push(self.list.len());
                    self.depths.push(depth);
                }
                let length = (run.length - done).min(block - depth % block);
                self.list.push(Run { offset: run.offset + done, length });
                done += length;
                depth += length;
            }
        }
        self.starts.push(self.list.len());
        self.depths.push(depth);
    }

    pub(crate) fn blocks(&self) -> usize {
        self.starts.len() - 1
    }
}

/// A weight matrix as f32 panels, nudged where the level fuses multiply and add, with the norms
/// from which the form is chosen.
#[derive(Clone)]
pub struct ExactWeights {
    level: Level,
    rules: MacRules,
    n: usize,
    k: usize,
    panels: Aligned<f32>,
    /// `[panel][block]`: the largest sum of squares of a column, rounded up.
    squares: Vec<f32>,
    /// `[panel]`: the largest magnitude.
    largest: Vec<f32>,
    /// The smallest nonzero magnitude of all.
    smallest: f32,
    /// The pieces of a dense row.
    pub(crate) dense: Pieces,
}

impl std::fmt::Debug for ExactWeights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExactWeights").field("n", &self.n).field("k", &self.k).finish_non_exhaustive()
    }
}

struct Fused;

impl Kernel for Fused {
    type Output = bool;
    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> bool {
        S::FUSED
    }
}

impl ExactWeights {
    /// Packs `element(column, depth)`.
    pub fn from_fn(level: Level, n: usize, k: usize, rules: MacRules, element: impl Fn(usize, usize) -> f16) -> Self {
        let mut weights = Self::empty(level, rules);
        weights.fill(n, k, element);
        weights
    }

    /// Packs a row-major `[N][K]` matrix.
    ///
    /// # Panics
    /// If `values` does not have `n * k` entries.
    pub fn from_rows(level: Level, n: usize, k: usize, values: &[f16], rules: MacRules) -> Self {
        assert_eq!(values.len(), n * k, "weights: length is not n * k");
        Self::from_fn(level, n, k, rules, |column, depth| values[column * k + depth])
    }

    /// Packs a row-major `[K][N]` matrix.
    ///
    /// # Panics
    /// If `values` does not have `n * k` entries.
    pub fn from_columns(level: Level, n: usize, k: usize, values: &[f16], rules: MacRules) -> Self {
        assert_eq!(values.len(), n * k, "weights: length is not n * k");
        Self::from_fn(level, n, k, rules, |column, depth| values[depth * n + column])
    }

    pub(crate) fn empty(level: Level, rules: MacRules) -> Self {
        Self {
            level,
            rules,
            n: 0,
            k: 0,
            panels: Aligned::default(),
            squares: Vec::new(),
            largest: Vec::new(),
            smallest: f32::INFINITY,
            dense: Pieces::default(),
        }
    }

    /// Packs another matrix into the same buffers.
    pub(crate) fn fill(&mut self, n: usize, k: usize, element: impl Fn(usize, usize) -> f16) {
        let width = self.level.panel_width();
        let nudge = u32::from(self.level.dispatch(Fused));
        let panel_count = n.div_ceil(width);
        let block = block_length(k);
        let blocks = k.div_ceil(block);
        (self.n, self.k, self.smallest) = (n, k, f32::INFINITY);
        self.panels.reset(panel_count * k * width);
        self.squares.clear();
        self.squares.resize(panel_count * blocks, 0.0);
        self.largest.clear();
        self.largest.resize(panel_count, 0.0);
        self.dense.cut(&[Run { offset: 0, length: k }], k);
        let data = self.panels.as_mut_slice();
        for column in 0..n {
            let panel = column / width;
            let start = panel * width * k + column % width;
            let mut sum = 0.0_f32;
            for depth in 0..k {
                let mut value = scalar::coerce(element(column, depth));
                if self.rules.subnormal_inputs == Subnormals::Zero && value.to_bits() & 0x7c00 == 0 {
                    value = f16::ZERO;
                }
                let wide = value.to_f32();
                let magnitude = wide.abs();
                if magnitude != 0.0 {
                    data[start + depth * width] = f32::from_bits(wide.to_bits() + nudge);
                    self.largest[panel] = self.largest[panel].max(magnitude);
                    self.smallest = self.smallest.min(magnitude);
                }
                sum += magnitude * magnitude;
                if depth % block == block - 1 || depth == k - 1 {
                    let most = &mut self.squares[panel * blocks + depth / block];
                    *most = most.max(sum);
                    sum = 0.0;
                }
            }
        }
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

    /// The rules it was packed for.
    pub fn rules(&self) -> MacRules {
        self.rules
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.panels.bytes()
    }

    /// Panels of `k` steps.
    pub(crate) fn panel(&self, panel: usize) -> &[f32] {
        let size = self.k * self.level.panel_width();
        &self.panels.as_slice()[panel * size..(panel + 1) * size]
    }

    pub(crate) fn squares(&self, panel: usize) -> &[f32] {
        let blocks = self.k.div_ceil(block_length(self.k));
        &self.squares[panel * blocks..(panel + 1) * blocks]
    }

    pub(crate) fn largest(&self, panel: usize) -> f32 {
        self.largest[panel]
    }

    pub(crate) fn smallest(&self) -> f32 {
        self.smallest
    }

    /// The fp16 weight at a place of a panel, the nudge undone.
    pub(crate) fn value(&self, panel: usize, depth: usize, lane: usize) -> f16 {
        let wide = self.panel(panel)[depth * self.level.panel_width() + lane];
        f16::from_f32(f32::from_bits(wide.to_bits() & !0x1fff))
    }
}
