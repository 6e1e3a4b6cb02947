//! 3x3 convolution as one-dimensional Winograd F(2, 3) along the width, as the M5 and M6 parts
//! compute it (found by reproducing the published seeded convolution figures of the ANEForge
//! paper, arXiv 2606.17090, for these chips).
//!
//! Outputs come in pairs. With d0..d3 the inputs under a pair and g0..g2 a kernel row:
//!
//! ```text
//! V0 = d0 - d2   V1 = d1 + d2   V2 = d2 - d1   V3 = d1 - d3            each rounded to fp16
//! U0 = g0        U1 = (g0 + g1 + g2) / 2   U2 = (g0 - g1 + g2) / 2   U3 = g2       likewise
//! Mj = sum over kernel rows and channels of Vj * Uj          products and sums as everywhere
//! out[2t] = M0 + M1 + M2         out[2t + 1] = M1 - M2 - M3               in fixed point
//! ```

use half::f16;

use super::super::conv::{ConvShape, ShapeError};
use super::super::gemm::{Split, tile_edge};
use super::super::simd::{Kernel, Level, Simd};
use super::super::tile::{MOST_COLUMNS, MOST_ROWS, Sums};
use super::super::types::{Bases, Context, Epilogue, Output, Run};
use super::choice::{Choice, FormChoice, RowNorms};
use super::conv::ExactConv2d;
use super::entry::{enter, store_with_threshold};
use super::gemm::{ExactRows, Left, scalar_sum, sum_tile};
use super::scalar::{self, Accumulator};
use super::sink::ExactSink;
use super::weights::{ExactWeights, Pieces};
use super::{MacRules, Subnormals, round};

/// Sums of the four parts must stay below 2^15 together.
const SUM_LIMIT: f32 = 32_440.0;

/// Transformed weights and addresses.
pub(crate) struct Winograd {
    weights: [ExactWeights; 4],
    pieces: Pieces,
    /// Begin of every pair in each of the four planes.
    bases: [Vec<u32>; 4],
    pairs: usize,
    rules: MacRules,
}

/// The transformed kernel row, each value rounded once.
pub(crate) fn transform_weights(g: [f16; 3]) -> [f16; 4] {
    let [a, b, c] = g.map(|value| scalar::coerce(value).to_f64());
    let half = |sum: f64| if sum.is_nan() { f16::ZERO } else { scalar::half_away(sum / 2.0) };
    [g[0], half(a + b + c), half(a - b + c), g[2]]
}

/// The transformed inputs under one pair, each value rounded once.
#[cfg(test)]
pub(crate) fn transform_inputs(d: [f16; 4]) -> [f16; 4] {
    [scalar::sub(d[0], d[2]), scalar::add(d[1], d[2]), scalar::sub(d[2], d[1]), scalar::sub(d[1], d[3])]
}

impl Winograd {
    pub(crate) fn new(level: Level, shape: &ConvShape, weight: &[f16], rules: MacRules) -> Result<Self, ShapeError> {
        if !ExactConv2d::winograd_applies(shape) {
            return Err(ShapeError::Winograd);
        }
        let channels = shape.channels_in;
        let part = |j: usize| {
            ExactWeights::from_fn(level, shape.channels_out, 3 * channels, rules, |column, depth| {
                let (ky, channel) = (depth / channels, depth % channels);
                let at = (column * channels + channel) * 9 + ky * 3;
                transform_weights([weight[at], weight[at + 1], weight[at + 2]])[j]
            })
        };
        let pairs = shape.input[1].div_ceil(2);
        let row = pairs * channels;
        let runs: Vec<Run> = (0..3).map(|ky| Run { offset: ky * row, length: channels }).collect();
        let [height, _] = shape.padded();
        let plane = shape.batch * height * row;
        let bases = [0, 1, 2, 3].map(|j| {
            let mut bases = Vec::with_capacity(shape.batch * shape.input[0] * pairs);
            for image in 0..shape.batch {
                for y in 0..shape.input[0] {
                    for t in 0..pairs {
                        bases.push((j * plane + (image * height + y) * row + t * channels) as u32);
                    }
                }
            }
            bases
        });
        Ok(Self { weights: [part(0), part(1), part(2), part(3)], pieces: Pieces::new(&runs), bases, pairs, rules })
    }

    /// Values of the four planes.
    pub(crate) fn values(&self, shape: &ConvShape) -> usize {
        4 * shape.batch * shape.padded()[0] * self.pairs * shape.channels_in
    }

    pub(crate) fn bytes(&self) -> usize {
        self.weights.iter().map(ExactWeights::bytes).sum()
    }

    pub(crate) fn run(
        &self,
        context: Context<'_>,
        shape: &ConvShape,
        input: &[f16],
        epilogue: &Epilogue<'_>,
        scratch: &mut [f32],
        output: Output<'_, f16>,
    ) {
        let [height, width] = shape.input;
        assert!(input.len() >= shape.batch * height * width * shape.channels_in, "input: shorter than the shape");
        let padded_height = shape.padded()[0];
        let rows = shape.batch * padded_height;
        let row = self.pairs * shape.channels_in;
        let entered = enter(context, scratch, 4 * rows * row, |to| {
            context.pool.run(rows, &|index, _| {
                let (image, y) = (index / padded_height, index % padded_height);
                // SAFETY: every job has its own row of each plane.
                let planes = [0, 1, 2, 3].map(|j| unsafe { to.slice(2 * (j * rows + index) * row, 2 * row) });
                if y == 0 || y > height {
                    planes.into_iter().for_each(|plane| plane.fill(0.0));
                    return;
                }
                let from = (image * height + y - 1) * width * shape.channels_in;
                let input = &input[from..from + width * shape.channels_in];
                let drop_subnormals = self.rules.subnormal_inputs == Subnormals::Zero;
                let channels = shape.channels_in;
                context.level.dispatch(TransformRow { input, width, channels, planes, drop_subnormals });
            });
        });
        let lefts = [0, 1, 2, 3].map(|j| {
            let left = Left { entered, bases: Bases::List(&self.bases[j]), pieces: &self.pieces };
            left.check(self.weights[j].k());
            left
        });
        let level = self.weights[0].level();
        let sink = ExactSink::new(epilogue, output, shape.batch * height * width, shape.channels_out);
        let panels = shape.channels_out.div_ceil(level.panel_width());
        let split =
            Split::new(self.bases[0].len(), panels, level.dispatch(ExactRows), 32 * self.weights[0].k(), context.pool.threads());
        context.pool.run(split.jobs(), &|job, _| {
            let (row_range, panel_range) = split.job(job);
            level.dispatch(Block { level, plan: self, lefts: &lefts, width, row_range, panel_range, sink });
        });
    }
}

/// The input transform of one image row.
struct TransformRow<'a> {
    input: &'a [f16],
    width: usize,
    channels: usize,
    planes: [&'a mut [f32]; 4],
    drop_subnormals: bool,
}

impl Kernel for TransformRow<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let zeros = [f16::ZERO; 32];
        let drop = self.drop_subnormals;
        for t in 0..self.width.div_ceil(2) {
            for channel in (0..self.channels).step_by(S::LANES) {
                let count = S::LANES.min(self.channels - channel);
                let mut copies = [[f16::ZERO; 32]; 4];
                let mut d = [s.splat(0.0); 4];
                for i in 0..4 {
                    // Column 2t - 1 + i of the input; zero outside.
                    let column = (2 * t + i).wrapping_sub(1);
                    let from: *const f16 = if column >= self.width {
                        zeros.as_ptr()
                    } else {
                        let at = column * self.channels + channel;
                        let values = &self.input[at..at + count];
                        if count == S::LANES {
                            values.as_ptr()
                        } else {
                            copies[i][..count].copy_from_slice(values);
                            copies[i].as_ptr()
                        }
                    };
                    // SAFETY: at least LANES values in each case.
                    d[i] = round::coerce(s, unsafe { s.load_half(from.cast()) });
                }
                let zero = s.splat(0.0);
                let v = [
                    round::add(s, d[0], s.sub(zero, d[2])),
                    round::add(s, d[1], d[2]),
                    round::add(s, d[2], s.sub(zero, d[1])),
                    round::add(s, d[1], s.sub(zero, d[3])),
                ];
                let at = 2 * (t * self.channels + channel);
                for j in 0..4 {
                    let mut pairs = [0.0_f32; 64];
                    let plane = &mut self.planes[j][at..at + 2 * count];
                    if count == S::LANES {
                        // SAFETY: the slice has two values per lane.
                        unsafe { store_with_threshold(s, plane.as_mut_ptr(), v[j], drop) };
                    } else {
                        // SAFETY: the array has two values per lane.
                        unsafe { store_with_threshold(s, pairs.as_mut_ptr(), v[j], drop) };
                        plane.copy_from_slice(&pairs[..2 * count]);
                    }
                }
            }
        }
    }
}

struct Block<'a> {
    level: Level,
    plan: &'a Winograd,
    lefts: &'a [Left<'a>; 4],
    width: usize,
    row_range: std::ops::Range<usize>,
    panel_range: std::ops::Range<usize>,
    sink: ExactSink<'a>,
}

impl Kernel for Block<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let rows = self.row_range.len();
        if rows == 0 {
            return;
        }
        let columns = 2 * S::LANES;
        let norm = |j: usize| {
            let left = &self.lefts[j];
            RowNorms::new(&left.entered, left.bases, self.row_range.clone(), left.pieces)
        };
        let norms = [norm(0), norm(1), norm(2), norm(3)];
        let tiles = rows.div_ceil(S::EXACT_ROWS);
        let mut parts = [const { Sums([0_i32; MOST_ROWS * MOST_COLUMNS]) }; 4];
        for panel in self.panel_range.clone() {
            let choose = |j: usize| {
                let left = &self.lefts[j];
                Choice::new(&norms[j], &left.entered, &self.plan.weights[j], panel, left.pieces)
            };
            let choices = [choose(0), choose(1), choose(2), choose(3)];
            let total: f32 = choices.iter().map(|choice| choice.total).sum();
            let vector = total < SUM_LIMIT && choices.iter().all(|choice| choice.form != FormChoice::Scalar);
            for index in 0..tiles {
                let first = self.row_range.start + tile_edge(rows, tiles, index);
                let count = self.row_range.start + tile_edge(rows, tiles, index + 1) - first;
                if vector {
                    for (j, part) in parts.iter_mut().enumerate() {
                        let (left, weights) = (&self.lefts[j], &self.plan.weights[j]);
                        sum_tile::<S>(self.level, left, weights, panel, &choices[j], first, count, part);
                    }
                    combine(s, &mut parts, count * columns);
                } else {
                    self.scalar_tile(panel, first, count, columns, &mut parts);
                }
                for r in 0..count {
                    let row = (first + r) / self.plan.pairs;
                    let x = (first + r) % self.plan.pairs * 2;
                    for (odd, part) in parts[..2].iter().enumerate() {
                        if x + odd < self.width {
                            let pixel = row * self.width + x + odd;
                            // SAFETY: the pixel is one of the output's; jobs have disjoint pairs.
                            unsafe {
                                self.sink.finish(s, pixel, panel * columns, part.0.as_ptr().add(r * columns));
                            }
                        }
                    }
                }
            }
        }
    }
}

impl Block<'_> {
    fn scalar_tile(&self, panel: usize, first: usize, count: usize, columns: usize, parts: &mut [Sums<i32>; 4]) {
        for r in 0..count {
            for lane in 0..columns {
                let m = [0, 1, 2, 3].map(|j| scalar_sum(&self.lefts[j], &self.plan.weights[j], panel, first + r, lane));
                let [even, odd] = output_transform(m);
                parts[0].0[r * columns + lane] = even;
                parts[1].0[r * columns + lane] = odd;
            }
        }
    }
}

/// The two outputs of a pair in units of 2^-16, limited to i32.
pub(crate) fn output_transform(m: [Accumulator; 4]) -> [i32; 2] {
    let combine = |terms: [(Accumulator, bool); 3]| {
        let mut sum = Accumulator::default();
        for (term, negative) in terms {
            sum.merge(term, negative);
        }
        sum.units()
    };
    [combine([(m[0], false), (m[1], false), (m[2], false)]), combine([(m[1], false), (m[2], true), (m[3], true)])]
}

/// `parts[0] = M0 + M1 + M2`, `parts[1] = M1 - M2 - M3`.
#[inline(always)]
fn combine<S: Simd>(s: S, parts: &mut [Sums<i32>; 4], count: usize) {
    for at in (0..count).step_by(S::LANES) {
        // SAFETY: tiles are whole vectors within the buffers.
        unsafe {
            let mut m = [s.splat_int(0); 4];
            for (value, part) in m.iter_mut().zip(parts.iter()) {
                *value = s.load_int(part.0.as_ptr().add(at));
            }
            let even = s.add_int(s.add_int(m[0], m[1]), m[2]);
            let odd = s.sub_int(s.sub_int(m[1], m[2]), m[3]);
            s.store_int(parts[0].0.as_mut_ptr().add(at), even);
            s.store_int(parts[1].0.as_mut_ptr().add(at), odd);
        }
    }
}
