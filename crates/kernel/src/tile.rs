//! The f32 micro-tile: a few rows of the scratch times one panel, accumulated in registers.

use super::simd::{Kernel, Level, Simd};
use super::types::Run;

/// Most rows of a tile at any level.
pub(crate) const MOST_ROWS: usize = 14;

/// Columns of the widest panel.
pub(crate) const MOST_COLUMNS: usize = 32;

/// Sums of one tile, row after row.
#[repr(C, align(64))]
pub(crate) struct Sums<T>(pub [T; MOST_ROWS * MOST_COLUMNS]);

/// Steps of a panel that are widened at once: with the rows of a tile they stay in the first cache.
pub(crate) const WIDE_STEPS: usize = 192;

/// Weights of a panel as they stand in memory.
pub(crate) trait Panel: Copy {
    /// # Safety
    /// `from` must be readable for `LANES` values.
    unsafe fn load<S: Simd>(s: S, from: *const Self) -> S::F;
}

/// fp16 bit patterns.
impl Panel for u16 {
    #[inline(always)]
    unsafe fn load<S: Simd>(s: S, from: *const Self) -> S::F {
        // SAFETY: the caller's promise.
        unsafe { s.load_half(from) }
    }
}

/// Widened before. Converting inside the tile costs a fifth of its speed where many tiles share a panel.
impl Panel for f32 {
    #[inline(always)]
    unsafe fn load<S: Simd>(s: S, from: *const Self) -> S::F {
        // SAFETY: the caller's promise.
        unsafe { s.load(from) }
    }
}

/// Steps along K that a tile does, counted over all runs, and whether it goes on from sums.
#[derive(Clone, Copy)]
pub(crate) struct Steps {
    /// First step.
    pub first: usize,
    /// Step behind the last.
    pub end: usize,
    /// Whether `sums` hold what earlier steps gave.
    pub goes_on: bool,
}

/// Computes `rows` rows (1 to `S::ROWS`) of a tile into `sums`, `2 * LANES` values per row.
///
/// Every size is a function of its own: the unrolled loops are long, and compilers take more than
/// linear time over them.
///
/// # Safety
/// Every run behind every row pointer must be readable, the panel must hold `2 * LANES` values
/// for each of `steps`, which lie within the runs, `rows` must be in 1..=`S::ROWS`.
#[inline(always)]
pub(crate) unsafe fn tile<W: Panel>(
    level: Level,
    rows: usize,
    x: &[*const f32; MOST_ROWS],
    runs: &[Run],
    panel: *const W,
    steps: Steps,
    sums: &mut Sums<f32>,
) {
    let tile = Tile { x, runs, panel, steps, sums };
    match rows {
        1 => level.dispatch(Fixed::<W, 1, 4>(tile)),
        2 => level.dispatch(Fixed::<W, 2, 4>(tile)),
        3 => level.dispatch(Fixed::<W, 3, 2>(tile)),
        4 => level.dispatch(Fixed::<W, 4, 1>(tile)),
        5 => level.dispatch(Fixed::<W, 5, 1>(tile)),
        6 => level.dispatch(Fixed::<W, 6, 1>(tile)),
        7 => level.dispatch(Fixed::<W, 7, 1>(tile)),
        8 => level.dispatch(Fixed::<W, 8, 1>(tile)),
        9 => level.dispatch(Fixed::<W, 9, 1>(tile)),
        10 => level.dispatch(Fixed::<W, 10, 1>(tile)),
        11 => level.dispatch(Fixed::<W, 11, 1>(tile)),
        12 => level.dispatch(Fixed::<W, 12, 1>(tile)),
        13 => level.dispatch(Fixed::<W, 13, 1>(tile)),
        14 => level.dispatch(Fixed::<W, 14, 1>(tile)),
        _ => unreachable!("a tile has 1 to {MOST_ROWS} rows"),
    }
}

struct Tile<'a, W> {
    x: &'a [*const f32; MOST_ROWS],
    runs: &'a [Run],
    panel: *const W,
    steps: Steps,
    sums: &'a mut Sums<f32>,
}

struct Fixed<'a, W, const R: usize, const U: usize>(Tile<'a, W>);

impl<W: Panel, const R: usize, const U: usize> Kernel for Fixed<'_, W, R, U> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        if R > S::ROWS {
            unreachable!("a tile has 1 to {} rows", S::ROWS);
        }
        // SAFETY: the promise of `tile`, the only place that makes this.
        unsafe { fixed::<S, W, R, U>(s, self.0) }
    }
}

/// `R` rows; `U` independent sets of accumulators hide the latency of the multiply-add where
/// `R` alone gives too few chains.
///
/// # Safety
/// As [`tile`].
#[inline(always)]
unsafe fn fixed<S: Simd, W: Panel, const R: usize, const U: usize>(s: S, tile: Tile<'_, W>) {
    let Tile { x, runs, panel, steps, sums } = tile;
    let mut acc = [[[s.splat(0.0); 2]; R]; U];
    let out = sums.0.as_mut_ptr();
    if steps.goes_on {
        for r in 0..R {
            for v in 0..2 {
                // SAFETY: R <= MOST_ROWS and 2 * LANES <= MOST_COLUMNS.
                acc[0][r][v] = unsafe { s.load(out.add((2 * r + v) * S::LANES)) };
            }
        }
    }
    let mut w = panel;
    let mut begin = 0;
    for run in runs {
        let (from, to) = (steps.first.max(begin), steps.end.min(begin + run.length));
        let skipped = from.saturating_sub(begin);
        begin += run.length;
        if from >= to {
            continue;
        }
        let length = to - from;
        let mut p = [x[0]; R];
        for r in 0..R {
            // SAFETY: the run lies within the scratch.
            p[r] = unsafe { x[r].add(run.offset + skipped) };
        }
        let mut k = 0;
        while k + U <= length {
            for set in acc.iter_mut() {
                // SAFETY: `k < length`, and the panel has a step for every k.
                unsafe { step::<S, W, R>(s, &p, k, w, set) };
                // SAFETY: at most one step behind the last.
                w = unsafe { w.add(2 * S::LANES) };
                k += 1;
            }
        }
        while k < length {
            // SAFETY: as above.
            unsafe { step::<S, W, R>(s, &p, k, w, &mut acc[0]) };
            // SAFETY: as above.
            w = unsafe { w.add(2 * S::LANES) };
            k += 1;
        }
    }
    for r in 0..R {
        for v in 0..2 {
            let mut total = acc[0][r][v];
            for set in &acc[1..] {
                total = s.add(total, set[r][v]);
            }
            // SAFETY: R <= MOST_ROWS and 2 * LANES <= MOST_COLUMNS.
            unsafe { s.store(out.add((2 * r + v) * S::LANES), total) };
        }
    }
}

/// One step along k.
///
/// # Safety
/// `x[r] + k` must be readable, `w` for `2 * LANES` values.
#[inline(always)]
unsafe fn step<S: Simd, W: Panel, const R: usize>(s: S, x: &[*const f32; R], k: usize, w: *const W, acc: &mut [[S::F; 2]; R]) {
    // SAFETY: the caller's promise.
    let (w0, w1) = unsafe { (W::load(s, w), W::load(s, w.add(S::LANES))) };
    for r in 0..R {
        // SAFETY: the caller's promise.
        let broadcast = s.splat(unsafe { *x[r].add(k) });
        acc[r][0] = s.fma(broadcast, w0, acc[r][0]);
        acc[r][1] = s.fma(broadcast, w1, acc[r][1]);
    }
}
