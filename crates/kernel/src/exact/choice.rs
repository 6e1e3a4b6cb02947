//! Which exact form runs for a row block and a panel: proved from norms before it starts.
//!
//! Any partial sum over a chunk is at most `||x|| * ||w||` (Cauchy-Schwarz), plus half a unit of
//! 2^-16 of rounding per product. The norms are f32 sums of squares, whose relative error for the
//! few dozen terms of a block is below 1e-5; the limits leave 1% for it.

use super::super::types::Bases;
use super::entry::Entered;
use super::weights::{ExactWeights, MOST_BLOCKS, Pieces};

/// The square of the largest partial sum that form A may reach: 63 of 64.
const CHUNK_LIMIT: f32 = 63.0 * 63.0;
/// Most steps of a chunk; the rounding of 8192 products adds at most 1/16.
const MOST_STEPS: usize = 8192;
/// The largest sum that fits the i32 units, 1% off 2^15.
const SUM_LIMIT: f32 = 32_440.0;
/// The same for f64 accumulators, 2^35.
const WIDE_LIMIT: f32 = 3.4e10;
/// The largest single product of form B.
const PRODUCT_LIMIT: f32 = 63.0;

/// A form, see the table in the module documentation of [`super`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormChoice {
    /// A without the flush: no product can be flushed.
    Plain,
    /// A.
    Masked,
    /// B.
    Integer,
    /// C.
    Wide,
    /// D.
    Scalar,
}

/// Norms of a row block.
pub(crate) struct RowNorms {
    squares: [f32; MOST_BLOCKS],
    blocks: usize,
}

impl RowNorms {
    /// Per block the largest sum of squares of the rows `first..end`.
    pub(crate) fn new(entered: &Entered<'_>, bases: Bases<'_>, rows: std::ops::Range<usize>, pieces: &Pieces) -> Self {
        let blocks = pieces.blocks();
        let mut squares = [0.0_f32; MOST_BLOCKS];
        for row in rows {
            let base = bases.base(row);
            for (block, most) in squares[..blocks].iter_mut().enumerate() {
                let list = &pieces.list[pieces.starts[block]..pieces.starts[block + 1]];
                let sum: f32 = list.iter().map(|piece| entered.square(base + piece.offset, piece.length)).sum();
                // A NaN cannot occur: inputs are coerced, and inf * inf is inf.
                *most = most.max(sum);
            }
        }
        Self { squares, blocks }
    }
}

/// The form and, for A, where its chunks end.
pub(crate) struct Choice {
    pub form: FormChoice,
    /// Block numbers behind each chunk.
    pub ends: [u16; MOST_BLOCKS],
    pub chunks: usize,
    /// Bound of the sum.
    pub total: f32,
}

impl Choice {
    /// Chooses for one panel.
    pub(crate) fn new(norms: &RowNorms, entered: &Entered<'_>, weights: &ExactWeights, panel: usize, pieces: &Pieces) -> Self {
        let mut choice = Self { form: FormChoice::Scalar, ends: [0; MOST_BLOCKS], chunks: 0, total: 0.0 };
        let columns = weights.squares(panel);
        let mut fits = true;
        let (mut row, mut column, mut steps) = (0.0_f32, 0.0_f32, 0_usize);
        for block in 0..norms.blocks {
            let (x, w) = (norms.squares[block], columns[block]);
            let own = x * w;
            // 0 * inf: the zero side makes every product 0, except that infinity needs form D.
            choice.total += if own.is_nan() { f32::INFINITY } else { own.sqrt() };
            fits &= own < CHUNK_LIMIT;
            let length = pieces.depths[block + 1] - pieces.depths[block];
            if block > 0 && ((row + x) * (column + w) >= CHUNK_LIMIT || steps + length > MOST_STEPS) {
                choice.ends[choice.chunks] = block as u16;
                choice.chunks += 1;
                (row, column, steps) = (0.0, 0.0, 0);
            }
            row += x;
            column += w;
            steps += length;
        }
        choice.ends[choice.chunks] = norms.blocks as u16;
        choice.chunks += 1;
        choice.form = if choice.total < SUM_LIMIT {
            if fits {
                let flushed = exponent(entered.smallest) + exponent(weights.smallest()) < -16;
                if flushed { FormChoice::Masked } else { FormChoice::Plain }
            } else if entered.largest * weights.largest(panel) < PRODUCT_LIMIT {
                FormChoice::Integer
            } else {
                FormChoice::Wide
            }
        } else if choice.total < WIDE_LIMIT && !weights.rules().saturate_partials {
            FormChoice::Wide
        } else {
            FormChoice::Scalar
        };
        if !matches!(choice.form, FormChoice::Plain | FormChoice::Masked) {
            choice.ends[0] = norms.blocks as u16;
            choice.chunks = 1;
        }
        choice
    }
}

/// The fp16 exponent of a magnitude, at least -14; large where there is no nonzero value.
fn exponent(magnitude: f32) -> i32 {
    ((magnitude.to_bits() >> 23) as i32 - 127).max(-14)
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::super::super::simd::Level;
    use super::super::super::types::Context;
    use super::super::super::{Pool, types::Bases};
    use super::super::entry::entered_len;
    use super::super::gemm::enter_dense;
    use super::super::{ExactWeights, MacRules};
    use super::*;

    fn choose(x: &[f32], w: &[f32], rules: MacRules) -> (FormChoice, usize) {
        let k = x.len();
        let context = Context { pool: Pool::global(), level: Level::PORTABLE };
        let halves = |values: &[f32]| values.iter().map(|&value| f16::from_f32(value)).collect::<Vec<_>>();
        let weights = ExactWeights::from_rows(context.level, 1, k, &halves(w), rules);
        let mut scratch = vec![0.0; entered_len(k)];
        let entered = enter_dense(context, &halves(x), &weights, &mut scratch);
        let bases = Bases::Strided { start: 0, stride: k, count: 1 };
        let norms = RowNorms::new(&entered, bases, 0..1, &weights.dense);
        let choice = Choice::new(&norms, &entered, &weights, 0, &weights.dense);
        (choice.form, choice.chunks)
    }

    #[test]
    fn the_cheapest_form_that_can_be_proved_is_chosen() {
        let rules = MacRules::DEFAULT;
        let k = 256;
        let constant = |value: f32| vec![value; k];
        assert_eq!(choose(&constant(0.1), &constant(0.1), rules), (FormChoice::Plain, 1));
        assert_eq!(choose(&constant(0.001), &constant(0.001), rules), (FormChoice::Masked, 1));
        // Eight blocks of 32: norms of 31.5 fit only one by one, of 4 in chunks of several.
        assert_eq!(choose(&constant(1.0), &constant(1.0), rules), (FormChoice::Plain, 8));
        assert_eq!(choose(&constant(0.5), &constant(0.5), rules), (FormChoice::Plain, 2));
        assert_eq!(choose(&constant(7.0), &constant(7.0), rules).0, FormChoice::Integer);
        assert_eq!(choose(&constant(9.0), &constant(9.0), rules).0, FormChoice::Wide);
        assert_eq!(choose(&constant(1000.0), &constant(1000.0), rules).0, FormChoice::Wide);
        assert_eq!(choose(&constant(60_000.0), &constant(60_000.0), rules).0, FormChoice::Scalar);
        assert_eq!(choose(&constant(f32::INFINITY), &constant(0.0), rules).0, FormChoice::Scalar);
        let saturating = MacRules { saturate_partials: true, ..rules };
        assert_eq!(choose(&constant(7.0), &constant(7.0), saturating).0, FormChoice::Integer);
        assert_eq!(choose(&constant(1000.0), &constant(1000.0), saturating).0, FormChoice::Scalar);
    }
}
