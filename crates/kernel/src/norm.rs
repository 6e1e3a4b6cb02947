//! Softmax and normalisations over the last axis, computed in f32 and rounded once.

use half::f16;

use super::math::exp;
use super::simd::{Kernel, Level, Simd};
use super::types::{Context, Shared};

/// Most values per job.
const BLOCK: usize = 8192;

/// What is done with a row: its number, its place in the output, a buffer of its width.
type RowWork<'w> = dyn Fn(usize, &mut [f16], &mut [f32]) + Sync + 'w;

/// Calls `work` for blocks of rows of `width` values.
fn rows_in_parallel(context: Context<'_>, length: usize, width: usize, output: &mut [f16], work: &RowWork<'_>) {
    assert!(width > 0 && length.is_multiple_of(width), "rows: the length must be a multiple of the width");
    assert_eq!(output.len(), length, "rows: output length");
    let rows = length / width;
    let block = (BLOCK / width).max(1);
    let out = Shared::new(output);
    context.pool.run(rows.div_ceil(block), &|job, _| {
        // Rows up to this width are widened on the stack; wider ones cost an allocation.
        let mut stack = [0.0_f32; 4096];
        let mut heap = Vec::new();
        let row_buffer: &mut [f32] = if width <= stack.len() {
            &mut stack[..width]
        } else {
            heap.resize(width, 0.0);
            &mut heap
        };
        for row in job * block..rows.min((job + 1) * block) {
            // SAFETY: jobs have disjoint rows.
            work(row, unsafe { out.slice(row * width, width) }, row_buffer);
        }
    });
}

/// Softmax over the last axis of `width` values, with the maximum subtracted.
///
/// # Panics
/// If the lengths differ or are no multiple of `width`.
pub fn softmax(context: Context<'_>, width: usize, input: &[f16], output: &mut [f16]) {
    rows_in_parallel(context, input.len(), width, output, &|row, out, buffer| {
        let input = &input[row * width..(row + 1) * width];
        context.level.dispatch(super::convert::Widen { from: input, to: buffer });
        softmax_row(context.level, buffer);
        context.level.dispatch(super::convert::Narrow { from: buffer, to: out });
    });
}

/// Softmax of one f32 row in place.
pub(crate) fn softmax_row(level: Level, row: &mut [f32]) {
    level.dispatch(Softmax(row));
}

/// The exponential with results below 1e-30 flushed to zero: a masked key would give subnormal numbers otherwise, which slow down
/// every product they meet. fp16 ends at 6e-8.
#[inline(always)]
fn exponential<S: Simd>(s: S, x: S::F) -> S::F {
    s.max(s.splat(0.0), s.sub(exp(s, x), s.splat(1e-30)))
}

struct Softmax<'a>(&'a mut [f32]);

impl Kernel for Softmax<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let row = self.0;
        let whole = row.len() / S::LANES * S::LANES;
        let mut most = s.splat(f32::NEG_INFINITY);
        for at in (0..whole).step_by(S::LANES) {
            // SAFETY: `at + LANES <= length`, here and below.
            most = s.max(unsafe { s.load(row.as_ptr().add(at)) }, most);
        }
        let mut largest = s.largest(most);
        for &value in &row[whole..] {
            largest = largest.max(value);
        }
        // A row of -inf would give NaN; it counts as a row of equal values.
        if largest == f32::NEG_INFINITY {
            row.fill(1.0 / row.len() as f32);
            return;
        }
        let offset = s.splat(largest);
        let mut total = s.splat(0.0);
        for at in (0..whole).step_by(S::LANES) {
            // SAFETY: as above.
            let value = unsafe { s.load(row.as_ptr().add(at)) };
            let value = exponential(s, s.sub(value, offset));
            total = s.add(total, value);
            // SAFETY: as above.
            unsafe { s.store(row.as_mut_ptr().add(at), value) };
        }
        let mut sum = s.sum(total);
        if whole < row.len() {
            let mut last = [f32::NEG_INFINITY; 32];
            last[..row.len() - whole].copy_from_slice(&row[whole..]);
            // SAFETY: the array has at least LANES values.
            unsafe {
                let value = exponential(s, s.sub(s.load(last.as_ptr()), offset));
                s.store(last.as_mut_ptr(), value);
            }
            let count = row.len() - whole;
            sum += last[..count].iter().sum::<f32>();
            row[whole..].copy_from_slice(&last[..count]);
        }
        let factor = 1.0 / sum;
        for value in row.iter_mut() {
            *value *= factor;
        }
    }
}

/// `(x - mean) / sqrt(variance + epsilon) * gamma + beta` over the last axis, where x is the
/// input plus, if given, a residual (added in f32 and not rounded in between).
///
/// # Panics
/// If a length does not fit.
#[allow(clippy::too_many_arguments)]
pub fn layer_norm(
    context: Context<'_>,
    width: usize,
    input: &[f16],
    residual: Option<&[f16]>,
    gamma: Option<&[f32]>,
    beta: Option<&[f32]>,
    epsilon: f32,
    output: &mut [f16],
) {
    normalise(context, width, input, residual, gamma, beta, epsilon, true, output);
}

/// `x / sqrt(mean(x^2) + epsilon) * gamma` over the last axis.
///
/// # Panics
/// If a length does not fit.
pub fn rms_norm(context: Context<'_>, width: usize, input: &[f16], gamma: Option<&[f32]>, epsilon: f32, output: &mut [f16]) {
    normalise(context, width, input, None, gamma, None, epsilon, false, output);
}

#[allow(clippy::too_many_arguments)]
fn normalise(
    context: Context<'_>,
    width: usize,
    input: &[f16],
    residual: Option<&[f16]>,
    gamma: Option<&[f32]>,
    beta: Option<&[f32]>,
    epsilon: f32,
    centre: bool,
    output: &mut [f16],
) {
    for (name, values) in [("gamma", gamma), ("beta", beta)] {
        assert!(values.is_none_or(|values| values.len() == width), "{name}: one value per column");
    }
    assert!(residual.is_none_or(|residual| residual.len() == input.len()), "residual: length");
    rows_in_parallel(context, input.len(), width, output, &|row, out, buffer| {
        let range = row * width..(row + 1) * width;
        context.level.dispatch(super::convert::Widen { from: &input[range.clone()], to: buffer });
        let residual = residual.map(|residual| &residual[range]);
        context.level.dispatch(Normalise { row: buffer, residual, gamma, beta, epsilon, centre });
        context.level.dispatch(super::convert::Narrow { from: buffer, to: out });
    });
}

struct Normalise<'a> {
    row: &'a mut [f32],
    residual: Option<&'a [f16]>,
    gamma: Option<&'a [f32]>,
    beta: Option<&'a [f32]>,
    epsilon: f32,
    centre: bool,
}

impl Kernel for Normalise<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let length = self.row.len();
        let whole = length / S::LANES * S::LANES;
        let row = self.row.as_mut_ptr();
        let count = length as f32;
        let mut total = s.splat(0.0);
        if let Some(residual) = self.residual {
            for at in (0..whole).step_by(S::LANES) {
                // SAFETY: `at + LANES <= length`, the slices are equally long; also below.
                unsafe {
                    let value = s.add(s.load(row.add(at)), s.load_half(residual.as_ptr().cast::<u16>().add(at)));
                    s.store(row.add(at), value);
                }
            }
            for at in whole..length {
                self.row[at] += residual[at].to_f32();
            }
        }
        let row = self.row.as_mut_ptr();
        let mut mean = 0.0;
        if self.centre {
            for at in (0..whole).step_by(S::LANES) {
                // SAFETY: as above.
                total = s.add(total, unsafe { s.load(row.add(at)) });
            }
            let rest: f32 = self.row[whole..].iter().sum();
            mean = (s.sum(total) + rest) / count;
        }
        let row = self.row.as_mut_ptr();
        let mut squares = s.splat(0.0);
        for at in (0..whole).step_by(S::LANES) {
            // SAFETY: as above.
            let difference = s.sub(unsafe { s.load(row.add(at)) }, s.splat(mean));
            squares = s.fma(difference, difference, squares);
        }
        let rest: f32 = self.row[whole..].iter().map(|value| (value - mean) * (value - mean)).sum();
        let factor = 1.0 / ((s.sum(squares) + rest) / count + self.epsilon).sqrt();
        let row = self.row.as_mut_ptr();
        for at in (0..whole).step_by(S::LANES) {
            // SAFETY: as above.
            unsafe {
                let mut value = s.mul(s.sub(s.load(row.add(at)), s.splat(mean)), s.splat(factor));
                if let Some(gamma) = self.gamma {
                    value = s.mul(value, s.load(gamma.as_ptr().add(at)));
                }
                if let Some(beta) = self.beta {
                    value = s.add(value, s.load(beta.as_ptr().add(at)));
                }
                s.store(row.add(at), value);
            }
        }
        for at in whole..length {
            let mut value = (self.row[at] - mean) * factor;
            value *= self.gamma.map_or(1.0, |gamma| gamma[at]);
            self.row[at] = value + self.beta.map_or(0.0, |beta| beta[at]);
        }
    }
}
