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
/// Every size is a function of its own: the unrolled loops are long, and compilers take more than
/// linear time over them.
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
    let tile = Tile { x, runs, panel, sums };
    match rows {
        1 => level.dispatch(Fixed::<1, 4>(tile)),
        2 => level.dispatch(Fixed::<2, 4>(tile)),
        3 => level.dispatch(Fixed::<3, 2>(tile)),
        4 => level.dispatch(Fixed::<4, 1>(tile)),
        5 => level.dispatch(Fixed::<5, 1>(tile)),
        6 => level.dispatch(Fixed::<6, 1>(tile)),
        7 => level.dispatch(Fixed::<7, 1>(tile)),
        8 => level.dispatch(Fixed::<8, 1>(tile)),
        9 => level.dispatch(Fixed::<9, 1>(tile)),
        10 => level.dispatch(Fixed::<10, 1>(tile)),
        11 => level.dispatch(Fixed::<11, 1>(tile)),
        12 => level.dispatch(Fixed::<12, 1>(tile)),
        13 => level.dispatch(Fixed::<13, 1>(tile)),
        14 => level.dispatch(Fixed::<14, 1>(tile)),
        _ => unreachable!("a tile has 1 to {MOST_ROWS} rows"),
    }
}

struct Tile<'a> {
    x: &'a [*const f32; MOST_ROWS],
    runs: &'a [Run],
    panel: *const u16,
    sums: &'a mut Sums<f32>,
}

struct Fixed<'a, const R: usize, const U: usize>(Tile<'a>);

impl<const R: usize, const U: usize> Kernel for Fixed<'_, R, U> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Tile { x, runs, panel, sums } = self.0;
        if R > S::ROWS {
            unreachable!("a tile has 1 to {} rows", S::ROWS);
        }
        // SAFETY: the promise of `tile`, the only place that makes this.
        unsafe { fixed::<S, R, U>(s, x, runs, panel, sums) }
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
