//! Matrix products with packed weights: f32 accumulation, epilogue in the tile.

use half::f16;

use super::convert::widen;
use super::epilogue::{Sink, Stored};
use super::pack::PackedWeights;
use super::simd::{Kernel, Level, Simd};
use super::tile::{MOST_COLUMNS, MOST_ROWS, Panel, Steps, Sums, WIDE_STEPS, tile};
use super::types::{Bases, Context, Epilogue, Output, Rows, Run};

/// `rows x weights`, fp16 results.
///
/// # Panics
/// If the runs do not sum to K, or a row, the output or an operand of the epilogue reaches
/// beyond its slice.
pub fn gemm(
    context: Context<'_>,
    scratch: &[f32],
    rows: Rows<'_>,
    weights: &PackedWeights,
    epilogue: &Epilogue<'_>,
    output: Output<'_, f16>,
) {
    product(context, scratch, rows, weights, epilogue, output);
}

/// `rows x weights`, f32 results.
///
/// # Panics
/// As [`gemm`].
pub fn gemm_f32(
    context: Context<'_>,
    scratch: &[f32],
    rows: Rows<'_>,
    weights: &PackedWeights,
    epilogue: &Epilogue<'_>,
    output: Output<'_, f32>,
) {
    product(context, scratch, rows, weights, epilogue, output);
}

/// A dense fp16 matrix `[m][K]` times packed weights; `scratch` takes `m * K` values.
///
/// # Panics
/// If a slice is too short.
pub fn dense(
    context: Context<'_>,
    input: &[f16],
    m: usize,
    weights: &PackedWeights,
    epilogue: &Epilogue<'_>,
    scratch: &mut [f32],
    output: Output<'_, f16>,
) {
    let k = weights.k();
    let scratch = &mut scratch[..m * k];
    widen(context, &input[..m * k], scratch);
    let rows = Rows { bases: Bases::Strided { start: 0, stride: k, count: m }, runs: &[Run { offset: 0, length: k }] };
    gemm(context, scratch, rows, weights, epilogue, output);
}

/// Checks that every run of every row lies within the scratch and that the runs sum to K.
pub(crate) fn check_rows(rows: Rows<'_>, k: usize, scratch: usize) {
    let total: usize = rows.runs.iter().map(|run| run.length).sum();
    assert_eq!(total, k, "runs: their lengths must sum to K");
    if rows.bases.count() > 0 {
        let reach = rows.runs.iter().map(|run| run.offset + run.length).max().unwrap_or(0);
        assert!(rows.bases.largest() + reach <= scratch, "rows: beyond the scratch");
    }
}

/// Bytes of rows that a job keeps in the second cache beside its panels.
const ROW_BLOCK: usize = 1 << 20;

/// How a product of `m` rows and `panels` panels is cut into jobs: row blocks x panel groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Split {
    m: usize,
    panels: usize,
    row_blocks: usize,
    panel_groups: usize,
    most: usize,
}

impl Split {
    /// `most` rows of `row_bytes` fit one tile. A job reuses its panels over as many tiles as the
    /// second cache holds rows, and its rows over several panels; cutting goes on until every
    /// thread has a few jobs to choose from.
    pub(crate) fn new(m: usize, panels: usize, most: usize, row_bytes: usize, threads: usize) -> Self {
        let tiles = m.div_ceil(most);
        let block = (ROW_BLOCK / (row_bytes * most).max(1)).max(2);
        let mut split = Self { m, panels, row_blocks: tiles.div_ceil(block), panel_groups: 1, most };
        let enough = if threads == 1 { 1 } else { 8 * threads };
        while split.jobs() < enough && split.panel_groups < panels {
            split.panel_groups = (split.panel_groups * 2).min(panels);
        }
        while split.jobs() < enough && split.row_blocks * 2 < tiles {
            split.row_blocks *= 2;
        }
        split
    }

    pub(crate) fn jobs(&self) -> usize {
        self.row_blocks * self.panel_groups
    }

    /// Rows and panels of a job. Neighbouring jobs share panels, as those are what is large.
    pub(crate) fn job(&self, index: usize) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
        let (group, block) = (index / self.row_blocks, index % self.row_blocks);
        // Blocks are cut at multiples of whole balanced tiles.
        let tiles = self.m.div_ceil(self.most).max(1);
        let edge = |block: usize| tile_edge(self.m, tiles, block * tiles / self.row_blocks);
        let cut = |group: usize| group * self.panels / self.panel_groups;
        (edge(block)..edge(block + 1), cut(group)..cut(group + 1))
    }
}

/// Begin of tile `index` of `tiles` balanced tiles over `rows` rows: 49 rows in 4 tiles are
/// 13 + 12 + 12 + 12.
#[inline(always)]
pub(crate) fn tile_edge(rows: usize, tiles: usize, index: usize) -> usize {
    index * (rows / tiles) + index.min(rows % tiles)
}

fn product<T: Stored>(
    context: Context<'_>,
    scratch: &[f32],
    rows: Rows<'_>,
    weights: &PackedWeights,
    epilogue: &Epilogue<'_>,
    output: Output<'_, T>,
) {
    check_rows(rows, weights.k(), scratch.len());
    let m = rows.bases.count();
    let sink: Sink<'_, T> = Sink::new(epilogue, output, m, weights.n());
    let level = weights.level();
    let most = level.dispatch(TileRows);
    let panels = weights.n().div_ceil(level.panel_width());
    let split = Split::new(m, panels, most, 4 * weights.k(), context.pool.threads());
    context.pool.run(split.jobs(), &|job, _| {
        let (row_range, panel_range) = split.job(job);
        level.dispatch(Block { level, scratch, rows, panels: weights.data(), k: weights.k(), row_range, panel_range, sink });
    });
}

/// Rows of the level's largest f32 tile.
pub(crate) struct TileRows;

impl Kernel for TileRows {
    type Output = usize;
    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> usize {
        S::ROWS
    }
}

/// One job: all tiles of some rows and some panels.
struct Block<'a, T> {
    level: Level,
    scratch: &'a [f32],
    rows: Rows<'a>,
    panels: &'a [u16],
    k: usize,
    row_range: std::ops::Range<usize>,
    panel_range: std::ops::Range<usize>,
    sink: Sink<'a, T>,
}

impl<T: Stored> Kernel for Block<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let width = 2 * S::LANES;
        let rows = self.row_range.len();
        if rows == 0 {
            return;
        }
        let tiles = rows.div_ceil(S::ROWS);
        let mut sums = [const { Sums([0.0; MOST_ROWS * MOST_COLUMNS]) }; GROUP];
        let mut wide = Wide([0.0; WIDE_STEPS * MOST_COLUMNS]);
        for panel in self.panel_range.clone() {
            let weights = &self.panels[panel * width * self.k..(panel + 1) * width * self.k];
            for group in (0..tiles).step_by(GROUP) {
                let members = group..tiles.min(group + GROUP);
                if members.len() < WORTH_WIDENING {
                    let steps = Steps { first: 0, end: self.k, goes_on: false };
                    for (index, sums) in members.clone().zip(&mut sums) {
                        self.tile::<S, u16>(tiles, index, weights.as_ptr(), steps, sums);
                    }
                } else {
                    for first in (0..self.k).step_by(WIDE_STEPS) {
                        let end = self.k.min(first + WIDE_STEPS);
                        for at in (first * width..end * width).step_by(S::LANES) {
                            // SAFETY: the panel has `k * width` values, a multiple of LANES, and a chunk
                            // at most `WIDE_STEPS * MOST_COLUMNS`.
                            unsafe { s.store(wide.0.as_mut_ptr().add(at - first * width), s.load_half(weights.as_ptr().add(at))) };
                        }
                        let steps = Steps { first, end, goes_on: first > 0 };
                        for (index, sums) in members.clone().zip(&mut sums) {
                            self.tile::<S, f32>(tiles, index, wide.0.as_ptr(), steps, sums);
                        }
                    }
                }
                for (index, sums) in members.zip(&sums) {
                    let (first, count) = self.place(tiles, index);
                    for r in 0..count {
                        // SAFETY: the row is one of the product's; jobs have disjoint tiles.
                        unsafe { self.sink.finish(s, first + r, panel * width, sums.0.as_ptr().add(r * width)) };
                    }
                }
            }
        }
    }
}

impl<T> Block<'_, T> {
    /// First row and number of rows of a tile.
    #[inline(always)]
    fn place(&self, tiles: usize, index: usize) -> (usize, usize) {
        let rows = self.row_range.len();
        let first = self.row_range.start + tile_edge(rows, tiles, index);
        (first, self.row_range.start + tile_edge(rows, tiles, index + 1) - first)
    }

    #[inline(always)]
    fn tile<S: Simd, W: Panel>(&self, tiles: usize, index: usize, panel: *const W, steps: Steps, sums: &mut Sums<f32>) {
        let (first, count) = self.place(tiles, index);
        let mut x = [self.scratch.as_ptr(); MOST_ROWS];
        for (r, pointer) in x.iter_mut().enumerate().take(count) {
            // SAFETY: `check_rows` has shown that every base is within the scratch.
            *pointer = unsafe { pointer.add(self.rows.bases.base(first + r)) };
        }
        // SAFETY: `check_rows` covers the reads, the panel has the steps asked for, tiles are balanced
        // so that none has more than `S::ROWS` rows.
        unsafe { tile(self.level, count, &x, self.rows.runs, panel, steps, sums) };
    }
}

/// Tiles that share a widened piece of a panel.
const GROUP: usize = 8;

/// Fewer tiles than this convert the weights as they go.
const WORTH_WIDENING: usize = 3;

/// A piece of a panel in f32.
#[repr(C, align(64))]
struct Wide([f32; WIDE_STEPS * MOST_COLUMNS]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_cover_every_row_and_panel_once() {
        for (m, panels, most, row_bytes, threads) in
            [(1, 1, 14, 4, 2), (49, 16, 14, 18_432, 2), (3136, 2, 14, 2304, 4), (197, 96, 12, 3072, 2), (5, 300, 4, 64, 8)]
        {
            let split = Split::new(m, panels, most, row_bytes, threads);
            let mut seen = vec![0_u8; m * panels];
            for job in 0..split.jobs() {
                let (rows, panel_range) = split.job(job);
                for row in rows {
                    panel_range.clone().for_each(|panel| seen[row * panels + panel] += 1);
                }
            }
            assert!(seen.iter().all(|&count| count == 1), "{split:?}");
        }
    }

    #[test]
    fn tails_are_balanced() {
        let sizes: Vec<usize> = (0..4).map(|index| tile_edge(49, 4, index + 1) - tile_edge(49, 4, index)).collect();
        assert_eq!(sizes, [13, 12, 12, 12]);
    }
}
