//! Depthwise convolution: every channel has its own kernel, vectors run along channels.

use half::f16;

use super::conv::ConvShape;
use super::epilogue::Sink;
use super::simd::{Kernel, Simd};
use super::tile::MOST_COLUMNS;
use super::types::{Context, Epilogue, Output};

/// Weights of a depthwise convolution, `[tap][channel]`, channels filled up to whole panels.
pub(crate) struct DepthwiseWeights {
    taps: Vec<f32>,
    stride: usize,
}

impl DepthwiseWeights {
    /// From `[channel, 1, height, width]`.
    pub(crate) fn new(channels: usize, kernel: [usize; 2], weight: &[f16]) -> Self {
        let stride = channels.next_multiple_of(MOST_COLUMNS);
        let count = kernel[0] * kernel[1];
        let mut taps = vec![0.0; count * stride];
        for channel in 0..channels {
            for tap in 0..count {
                taps[tap * stride + channel] = weight[channel * count + tap].to_f32();
            }
        }
        Self { taps, stride }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.taps.len() * size_of::<f32>()
    }
}

/// Convolves the padded scratch.
#[allow(clippy::too_many_arguments)]
pub(crate) fn depthwise(
    context: Context<'_>,
    shape: &ConvShape,
    output_size: [usize; 2],
    bases: &[u32],
    weights: &DepthwiseWeights,
    scratch: &[f32],
    epilogue: &Epilogue<'_>,
    output: Output<'_, f16>,
) {
    let sink = Sink::new(epilogue, output, bases.len(), shape.channels_out);
    let rows = output_size[1];
    context.pool.run(bases.len() / rows, &|job, _| {
        let first = job * rows;
        context.level.dispatch(Pixels { shape, first, bases: &bases[first..first + rows], weights, scratch, sink });
    });
}

struct Pixels<'a> {
    shape: &'a ConvShape,
    first: usize,
    bases: &'a [u32],
    weights: &'a DepthwiseWeights,
    scratch: &'a [f32],
    sink: Sink<'a, f16>,
}

impl Kernel for Pixels<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let channels = self.shape.channels_in;
        let row = self.shape.padded()[1] * channels;
        let [height, width] = self.shape.kernel;
        let [dilation_y, dilation_x] = self.shape.dilation;
        let mut sums = [0.0_f32; MOST_COLUMNS];
        for (index, &base) in self.bases.iter().enumerate() {
            for column in (0..channels).step_by(2 * S::LANES) {
                let wanted = (channels - column).min(2 * S::LANES);
                let mut acc = [s.splat(0.0); 2];
                let mut edge = [0.0_f32; MOST_COLUMNS];
                for ky in 0..height {
                    for kx in 0..width {
                        let at = base as usize + ky * dilation_y * row + kx * dilation_x * channels + column;
                        let pixel = &self.scratch[at..at + wanted];
                        let from = if wanted == 2 * S::LANES {
                            pixel.as_ptr()
                        } else {
                            edge[..wanted].copy_from_slice(pixel);
                            edge.as_ptr()
                        };
                        let tap = (ky * width + kx) * self.weights.stride + column;
                        let taps = &self.weights.taps[tap..tap + 2 * S::LANES];
                        for v in 0..2 {
                            // SAFETY: both hold 2 * LANES values.
                            let (x, w) = unsafe { (s.load(from.add(v * S::LANES)), s.load(taps.as_ptr().add(v * S::LANES))) };
                            acc[v] = s.fma(x, w, acc[v]);
                        }
                    }
                }
                for v in 0..2 {
                    // SAFETY: MOST_COLUMNS is at least 2 * LANES.
                    unsafe { s.store(sums.as_mut_ptr().add(v * S::LANES), acc[v]) };
                }
                // SAFETY: jobs have disjoint rows within the sink's bounds.
                unsafe { self.sink.finish(s, self.first + index, column, sums.as_ptr()) };
            }
        }
    }
}
