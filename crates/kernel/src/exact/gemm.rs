//! Exact matrix products: form per row block and panel, tiles, rounding.

use half::f16;

use super::super::gemm::{Split, tile_edge};
use super::super::simd::{Kernel, Level, Simd};
use super::super::tile::{MOST_COLUMNS, MOST_ROWS, Sums};
use super::super::types::{Bases, Context, Epilogue, Output};
use super::Subnormals;
use super::choice::{Choice, FormChoice, RowNorms};
use super::entry::{Entered, WidenPairs, enter, entered_len};
use super::scalar::Accumulator;
use super::sink::ExactSink;
use super::tile::{self, Chunk};
use super::weights::{ExactWeights, Pieces};

/// f32 values of scratch that [`dense`] needs for `values` activations (`m * K`).
pub fn scratch_len(values: usize) -> usize {
    entered_len(values)
}

/// A dense fp16 matrix `[m][K]` times weights, in the engine's arithmetic.
///
/// # Panics
/// If a slice is too short; `scratch` needs [`scratch_len`]`(m * K)` values.
pub fn dense(
    context: Context<'_>,
    input: &[f16],
    m: usize,
    weights: &ExactWeights,
    epilogue: &Epilogue<'_>,
    scratch: &mut [f32],
    output: Output<'_, f16>,
) {
    let k = weights.k();
    let input = &input[..m * k];
    let entered = enter_dense(context, input, weights, scratch);
    let bases = Bases::Strided { start: 0, stride: k, count: m };
    product(context, &Left { entered, bases, pieces: &weights.dense }, weights, epilogue, output);
}

/// Enters a slice as it is.
pub(crate) fn enter_dense<'a>(context: Context<'_>, input: &[f16], weights: &ExactWeights, scratch: &'a mut [f32]) -> Entered<'a> {
    let drop_subnormals = weights.rules().subnormal_inputs == Subnormals::Zero;
    enter(context, scratch, input.len(), |pairs| {
        let block = super::super::convert::BLOCK;
        context.pool.run(input.len().div_ceil(block), &|job, _| {
            let part = super::super::convert::part(input.len(), job);
            // SAFETY: jobs have disjoint parts.
            let to = unsafe { pairs.slice(2 * part.start, 2 * part.len()) };
            context.level.dispatch(WidenPairs { from: &input[part], to, drop_subnormals });
        });
    })
}

/// The left operand of an exact product.
#[derive(Clone, Copy)]
pub(crate) struct Left<'a> {
    pub entered: Entered<'a>,
    pub bases: Bases<'a>,
    pub pieces: &'a Pieces,
}

impl Left<'_> {
    /// Checks that every row lies within the pairs.
    pub(crate) fn check(&self, k: usize) {
        assert_eq!(self.pieces.depths.last().copied().unwrap_or(0), k, "runs: their lengths must sum to K");
        let reach = self.pieces.list.iter().map(|piece| piece.offset + piece.length).max().unwrap_or(0);
        if self.bases.count() > 0 {
            assert!(2 * (self.bases.largest() + reach) <= self.entered.pairs.len(), "rows: beyond the scratch");
        }
    }
}

/// `left x weights` into `output`.
pub(crate) fn product(
    context: Context<'_>,
    left: &Left<'_>,
    weights: &ExactWeights,
    epilogue: &Epilogue<'_>,
    output: Output<'_, f16>,
) {
    let sink = ExactSink::new(epilogue, output, left.bases.count(), weights.n());
    product_into(context, left, weights, sink);
}

/// `left x weights` into a sink of that size.
pub(crate) fn product_into(context: Context<'_>, left: &Left<'_>, weights: &ExactWeights, sink: ExactSink<'_>) {
    left.check(weights.k());
    let m = left.bases.count();
    let level = weights.level();
    let panels = weights.n().div_ceil(level.panel_width());
    let split = Split::new(m, panels, level.dispatch(ExactRows), 8 * weights.k(), context.pool.threads());
    context.pool.run(split.jobs(), &|job, _| {
        let (row_range, panel_range) = split.job(job);
        level.dispatch(Block { level, left, weights, row_range, panel_range, sink });
    });
}

/// Rows of the level's largest exact tile.
pub(crate) struct ExactRows;

impl Kernel for ExactRows {
    type Output = usize;
    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> usize {
        S::EXACT_ROWS
    }
}

struct Block<'a> {
    level: Level,
    left: &'a Left<'a>,
    weights: &'a ExactWeights,
    row_range: std::ops::Range<usize>,
    panel_range: std::ops::Range<usize>,
    sink: ExactSink<'a>,
}

impl Kernel for Block<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let width = 2 * S::LANES;
        let rows = self.row_range.len();
        if rows == 0 {
            return;
        }
        let (left, weights) = (self.left, self.weights);
        let norms = RowNorms::new(&left.entered, left.bases, self.row_range.clone(), left.pieces);
        let tiles = rows.div_ceil(S::EXACT_ROWS);
        let mut sums = Sums([0; MOST_ROWS * MOST_COLUMNS]);
        for panel in self.panel_range {
            let choice = Choice::new(&norms, &left.entered, weights, panel, left.pieces);
            for index in 0..tiles {
                let first = self.row_range.start + tile_edge(rows, tiles, index);
                let count = self.row_range.start + tile_edge(rows, tiles, index + 1) - first;
                sum_tile::<S>(self.level, left, weights, panel, &choice, first, count, &mut sums);
                for r in 0..count {
                    // SAFETY: the row is one of the product's; jobs have disjoint tiles.
                    unsafe { self.sink.finish(s, first + r, panel * width, sums.0.as_ptr().add(r * width)) };
                }
            }
        }
    }
}

/// The sums of a tile of `count <= EXACT_ROWS` rows in units of 2^-16, by the chosen form.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(crate) fn sum_tile<S: Simd>(
    level: Level,
    left: &Left<'_>,
    weights: &ExactWeights,
    panel: usize,
    choice: &Choice,
    first: usize,
    count: usize,
    sums: &mut Sums<i32>,
) {
    let width = 2 * S::LANES;
    if choice.form == FormChoice::Scalar {
        for r in 0..count {
            for lane in 0..width {
                sums.0[r * width + lane] = scalar_sum(left, weights, panel, first + r, lane).units();
            }
        }
        return;
    }
    let most = if choice.form == FormChoice::Wide { S::WIDE_ROWS } else { S::EXACT_ROWS };
    let mut done = 0;
    while done < count {
        let rows = most.min(count - done);
        let mut x = [left.entered.pairs.as_ptr(); MOST_ROWS];
        for (r, pointer) in x.iter_mut().enumerate() {
            let row = first + done + r.min(rows - 1);
            // SAFETY: `Left::check` has shown that every base is within the pairs.
            *pointer = unsafe { pointer.add(2 * left.bases.base(row)) };
        }
        let mut block = 0;
        for (index, &end) in choice.ends[..choice.chunks].iter().enumerate() {
            let pieces = &left.pieces.list[left.pieces.starts[block]..left.pieces.starts[usize::from(end)]];
            let depth = left.pieces.depths[block];
            // A tile below the top one of the buffer starts `done` rows further down.
            let mut part = Sums([0; MOST_ROWS * MOST_COLUMNS]);
            let target = if done == 0 { &mut *sums } else { &mut part };
            let chunk = Chunk {
                form: choice.form,
                rows,
                x: &x,
                pieces,
                panel: weights.panel(panel)[depth * width..].as_ptr(),
                first: index == 0,
                sums: target,
            };
            // SAFETY: `Left::check` covers the pairs, the panel has K steps, `Choice` proved the bound.
            unsafe { tile::run(level, chunk) };
            if done > 0 {
                sums.0[done * width..(done + rows) * width].copy_from_slice(&part.0[..rows * width]);
            }
            block = usize::from(end);
        }
        done += rows;
    }
}

/// One sum by the scalar twin.
pub(crate) fn scalar_sum(left: &Left<'_>, weights: &ExactWeights, panel: usize, row: usize, lane: usize) -> Accumulator {
    let base = left.bases.base(row);
    let mut sum = Accumulator::default();
    let mut depth = 0;
    for piece in &left.pieces.list {
        for k in 0..piece.length {
            let x = f16::from_f32(left.entered.pairs[2 * (base + piece.offset + k)]);
            sum.add(x, weights.value(panel, depth, lane), weights.rules());
            depth += 1;
        }
    }
    sum
}
