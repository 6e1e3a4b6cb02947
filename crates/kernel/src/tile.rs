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

/// Computes `rows` rows (1 to `S::ROWS`) of a tile into `sums`, `2 * LANES` values per row.
///
/// The call goes through the level once more although the caller already runs at it: that makes
/// one copy of the unrolled loops per level instead of one per caller.
///
/// # Safety
/// Every run behind every row pointer must be readable, the panel must hold `2 * LANES` values
/// for each step of the runs, `rows` must be in 1..=`S::ROWS`.
#[inline(always)]
pub(crate) unsafe fn tile(
    level: Level,
    rows: usize,
    x: &[*const f32; MOST_ROWS],
    runs: &[Run],
    panel: *const u16,
    sums: &mut Sums<f32>,
) {
    level.dispatch(Tile { rows, x, runs, panel, sums });
}

struct Tile<'a> {
    rows: usize,
    x: &'a [*const f32; MOST_ROWS],
    runs: &'a [Run],
    panel: *const u16,
    sums: &'a mut Sums<f32>,
}

impl Kernel for Tile<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        // SAFETY: the promise of `tile`, the only place that makes this.
        unsafe { any_rows(s, self.rows, self.x, self.runs, self.panel, self.sums) }
    }
}

/// # Safety
/// As [`tile`].
#[inline(always)]
unsafe fn any_rows<S: Simd>(s: S, rows: usize, x: &[*const f32; MOST_ROWS], runs: &[Run], panel: *const u16, sums: &mut Sums<f32>) {
    // SAFETY: handed through. Instances beyond `S::ROWS` are never reached and cost nothing.
    unsafe {
        match rows {
            1 => fixed::<S, 1, 4>(s, x, runs, panel, sums),
            2 => fixed::<S, 2, 4>(s, x, runs, panel, sums),
            3 => fixed::<S, 3, 2>(s, x, runs, panel, sums),
            4 => fixed::<S, 4, 1>(s, x, runs, panel, sums),
            5 if S::ROWS >= 5 => fixed::<S, 5, 1>(s, x, runs, panel, sums),
            6 if S::ROWS >= 6 => fixed::<S, 6, 1>(s, x, runs, panel, sums),
            7 if S::ROWS >= 7 => fixed::<S, 7, 1>(s, x, runs, panel, sums),
            8 if S::ROWS >= 8 => fixed::<S, 8, 1>(s, x, runs, panel, sums),
            9 if S::ROWS >= 9 => fixed::<S, 9, 1>(s, x, runs, panel, sums),
            10 if S::ROWS >= 10 => fixed::<S, 10, 1>(s, x, runs, panel, sums),
            11 if S::ROWS >= 11 => fixed::<S, 11, 1>(s, x, runs, panel, sums),
            12 if S::ROWS >= 12 => fixed::<S, 12, 1>(s, x, runs, panel, sums),
            13 if S::ROWS >= 13 => fixed::<S, 13, 1>(s, x, runs, panel, sums),
            14 if S::ROWS >= 14 => fixed::<S, 14, 1>(s, x, runs, panel, sums),
            _ => unreachable!("a tile has 1 to {} rows", S::ROWS),
        }
    }
}

/// `R` rows; `U` independent sets of accumulators hide the latency of the multiply-add where
/// `R` alone gives too few chains.
///
/// # Safety
/// As [`tile`].
#[inline(always)]
unsafe fn fixed<S: Simd, const R: usize, const U: usize>(
    s: S,
    x: &[*const f32; MOST_ROWS],
    runs: &[Run],
    panel: *const u16,
    sums: &mut Sums<f32>,
) {
    let mut acc = [[[s.splat(0.0); 2]; R]; U];
    let mut w = panel;
    for run in runs {
        let mut p = [x[0]; R];
        for r in 0..R {
            // SAFETY: the run lies within the scratch.
            p[r] = unsafe { x[r].add(run.offset) };
        }
        let mut k = 0;
        while k + U <= run.length {
            for set in acc.iter_mut() {
                // SAFETY: `k < length`, and the panel has a step for every k.
                unsafe { step::<S, R>(s, &p, k, w, set) };
                // SAFETY: at most one step behind the last.
                w = unsafe { w.add(2 * S::LANES) };
                k += 1;
            }
        }
        while k < run.length {
            // SAFETY: as above.
            unsafe { step::<S, R>(s, &p, k, w, &mut acc[0]) };
            // SAFETY: as above.
            w = unsafe { w.add(2 * S::LANES) };
            k += 1;
        }
    }
    let out = sums.0.as_mut_ptr();
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
unsafe fn step<S: Simd, const R: usize>(s: S, x: &[*const f32; R], k: usize, w: *const u16, acc: &mut [[S::F; 2]; R]) {
    // SAFETY: the caller's promise.
    let (w0, w1) = unsafe { (s.load_half(w), s.load_half(w.add(S::LANES))) };
    for r in 0..R {
        // SAFETY: the caller's promise.
        let broadcast = s.splat(unsafe { *x[r].add(k) });
        acc[r][0] = s.fma(broadcast, w0, acc[r][0]);
        acc[r][1] = s.fma(broadcast, w1, acc[r][1]);
    }
}
