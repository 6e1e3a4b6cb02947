//! The exact micro-tiles: forms A, B and C of the table in [`super`].

use super::super::simd::{Kernel, Level, Simd};
use super::super::tile::{MOST_ROWS, Sums};
use super::super::types::Run;
use super::choice::FormChoice;

/// 1.5 * 2^7: in its binade the unit in the last place of an f32 is 2^-16.
const MAGIC: f32 = 192.0;
/// 1.5 * 2^36: the same for f64.
const WIDE_MAGIC: f64 = 103_079_215_104.0;

/// One chunk of one tile.
pub(crate) struct Chunk<'a> {
    pub form: FormChoice,
    /// Rows, at most `EXACT_ROWS` (form C: `WIDE_ROWS`) of the level.
    pub rows: usize,
    /// Pairs of every row; entries from `rows` on repeat the last row.
    pub x: &'a [*const f32; MOST_ROWS],
    pub pieces: &'a [Run],
    pub panel: *const f32,
    /// Whether the result replaces or adds to `sums`.
    pub first: bool,
    pub sums: &'a mut Sums<i32>,
}

/// Runs a chunk: `sums` holds units of 2^-16, `2 * LANES` per row.
///
/// # Safety
/// The pieces behind all row pointers must be readable as pairs, the panel for each of their
/// steps. The bound of the form must hold for the values.
#[inline(always)]
pub(crate) unsafe fn run(level: Level, chunk: Chunk<'_>) {
    match (chunk.form, chunk.rows) {
        (FormChoice::Masked, 1) => level.dispatch(Fixed::<MASKED, 1>(chunk)),
        (FormChoice::Masked, 2..=4) => level.dispatch(Fixed::<MASKED, 4>(chunk)),
        (FormChoice::Masked, 5..=6) => level.dispatch(Fixed::<MASKED, 6>(chunk)),
        (FormChoice::Masked, 7..=8) => level.dispatch(Fixed::<MASKED, 8>(chunk)),
        (FormChoice::Masked, 9..=10) => level.dispatch(Fixed::<MASKED, 10>(chunk)),
        (FormChoice::Masked, 11..=12) => level.dispatch(Fixed::<MASKED, 12>(chunk)),
        (FormChoice::Plain, 1..=4) => level.dispatch(Fixed::<PLAIN, 4>(chunk)),
        (FormChoice::Plain, 5..=12) => level.dispatch(Fixed::<PLAIN, 12>(chunk)),
        (FormChoice::Integer, 1..=4) => level.dispatch(Fixed::<INTEGER, 4>(chunk)),
        (FormChoice::Integer, 5..=12) => level.dispatch(Fixed::<INTEGER, 12>(chunk)),
        (FormChoice::Wide, 1..=2) => level.dispatch(Fixed::<WIDE, 2>(chunk)),
        (FormChoice::Wide, 3..=6) => level.dispatch(Fixed::<WIDE, 6>(chunk)),
        (form, rows) => unreachable!("no tile of form {form:?} with {rows} rows"),
    }
}

const MASKED: u8 = 0;
const PLAIN: u8 = 1;
const INTEGER: u8 = 2;
const WIDE: u8 = 3;

/// Every form and size is a function of its own, see the fast tile.
struct Fixed<'a, const FORM: u8, const R: usize>(Chunk<'a>);

impl<const FORM: u8, const R: usize> Kernel for Fixed<'_, FORM, R> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        if R > (if FORM == WIDE { S::WIDE_ROWS } else { S::EXACT_ROWS }) {
            unreachable!("the tile is larger than the level's");
        }
        // SAFETY: the promise of `run`, the only place that makes this.
        unsafe {
            if FORM == WIDE {
                wide::<S, R>(s, self.0);
            } else {
                fixed::<S, FORM, R>(s, self.0);
            }
        }
    }
}

/// # Safety
/// As [`run`], with at most `R` rows.
#[inline(always)]
unsafe fn fixed<S: Simd, const FORM: u8, const R: usize>(s: S, chunk: Chunk<'_>) {
    let magic = s.splat(MAGIC);
    let mut acc = [[magic; 2]; R];
    let mut units = [[s.splat_int(0); 2]; R];
    let mut w = chunk.panel;
    let mut steps = 0_i32;
    for piece in chunk.pieces {
        let mut x = [chunk.x[0]; R];
        for r in 0..R {
            // SAFETY: the piece lies within the scratch.
            x[r] = unsafe { chunk.x[r].add(2 * piece.offset) };
        }
        for k in 0..piece.length {
            // SAFETY: the panel has a step for every k.
            let (w0, w1) = unsafe { (s.load(w), s.load(w.add(S::LANES))) };
            let (a0, a1) = (s.abs(w0), s.abs(w1));
            for r in 0..R {
                // SAFETY: `k < length`.
                let value = s.splat(unsafe { *x[r].add(2 * k) });
                if FORM == PLAIN {
                    acc[r][0] = multiply_add(s, value, w0, acc[r][0]);
                    acc[r][1] = multiply_add(s, value, w1, acc[r][1]);
                    continue;
                }
                // SAFETY: the threshold stands behind its value.
                let threshold = s.splat(unsafe { *x[r].add(2 * k + 1) });
                let (keep0, keep1) = (s.less_equal(threshold, a0), s.less_equal(threshold, a1));
                if FORM == MASKED {
                    acc[r][0] = multiply_add_where(s, keep0, value, w0, acc[r][0]);
                    acc[r][1] = multiply_add_where(s, keep1, value, w1, acc[r][1]);
                } else {
                    let t0 = multiply_add_where(s, keep0, value, w0, magic);
                    let t1 = multiply_add_where(s, keep1, value, w1, magic);
                    units[r][0] = s.add_int(units[r][0], s.bits(t0));
                    units[r][1] = s.add_int(units[r][1], s.bits(t1));
                }
            }
            // SAFETY: at most one step behind the last.
            w = unsafe { w.add(2 * S::LANES) };
        }
        steps = steps.wrapping_add(piece.length as i32);
    }
    let out = chunk.sums.0.as_mut_ptr();
    let origin = MAGIC.to_bits() as i32;
    for r in 0..R {
        for v in 0..2 {
            let mut value = if FORM == INTEGER {
                // Every step added the pattern of the magic number too; all modulo 2^32.
                s.sub_int(units[r][v], s.splat_int(origin.wrapping_mul(steps)))
            } else {
                s.sub_int(s.bits(acc[r][v]), s.splat_int(origin))
            };
            // SAFETY: R <= MOST_ROWS and 2 * LANES <= MOST_COLUMNS.
            unsafe {
                let to = out.add((2 * r + v) * S::LANES);
                if !chunk.first {
                    value = s.add_int(value, s.load_int(to));
                }
                s.store_int(to, value);
            }
        }
    }
}

/// Adds the rounded product. Without a fused operation the (exact) product is nudged instead of
/// the weight; a zero product becomes the smallest subnormal, which the addition drops.
#[inline(always)]
fn multiply_add<S: Simd>(s: S, x: S::F, w: S::F, acc: S::F) -> S::F {
    if S::FUSED {
        return s.fma(x, w, acc);
    }
    let product = s.bits(s.mul(x, w));
    s.add(acc, s.from_bits(s.add_int(product, s.splat_int(1))))
}

#[inline(always)]
fn multiply_add_where<S: Simd>(s: S, keep: S::M, x: S::F, w: S::F, acc: S::F) -> S::F {
    if S::FUSED {
        return s.fma_where(keep, x, w, acc);
    }
    s.select(keep, multiply_add(s, x, w, acc), acc)
}

/// # Safety
/// As [`run`], with at most `R` rows.
#[inline(always)]
unsafe fn wide<S: Simd, const R: usize>(s: S, chunk: Chunk<'_>) {
    let lanes = S::LANES / 2;
    let mut acc = [[s.splat_wide(WIDE_MAGIC); 4]; R];
    let mut w = chunk.panel;
    for piece in chunk.pieces {
        for k in 0..piece.length {
            let mut column = [s.splat_wide(0.0); 4];
            for (v, part) in column.iter_mut().enumerate() {
                // SAFETY: the panel has a step for every k.
                *part = unsafe { s.load_wide(w.add(v * lanes)) };
            }
            for r in 0..R {
                // SAFETY: the piece lies within the scratch.
                let (value, threshold) = unsafe {
                    let at = chunk.x[r].add(2 * (piece.offset + k));
                    (f64::from(*at), f64::from(*at.add(1)))
                };
                // Products here may exceed 64, where the nudge of an f32 would be half a unit: the
                // weights come without it, and the other factor moves by one f64 place.
                let nudged = if value == 0.0 { value } else { f64::from_bits(value.to_bits() + 1) };
                let (value, threshold) = (s.splat_wide(nudged), s.splat_wide(threshold));
                for (sum, &w) in acc[r].iter_mut().zip(&column) {
                    *sum = s.fma_wide(s.keep_wide(threshold, w, value), w, *sum);
                }
            }
            // SAFETY: at most one step behind the last.
            w = unsafe { w.add(4 * lanes) };
        }
    }
    let mut sums = [0.0_f64; 32];
    for r in 0..R {
        for v in 0..4 {
            let sum = s.sub_wide(acc[r][v], s.splat_wide(WIDE_MAGIC));
            // SAFETY: four half vectors of at most eight values.
            unsafe { s.store_wide(sums.as_mut_ptr().add(v * lanes), sum) };
        }
        for (lane, &sum) in sums[..4 * lanes].iter().enumerate() {
            // The cast saturates; anything from 2^31 units on is infinite at the output.
            chunk.sums.0[r * 4 * lanes + lane] = ((sum * 65536.0) as i32).max(-i32::MAX);
        }
    }
}
