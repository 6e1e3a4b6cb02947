//! Pooling, transposition and layout changes of fp16 data.

use half::f16;

use super::conv::{ShapeError, window_output};
use super::simd::{Kernel, Simd};
use super::types::{Context, Shared};

/// Geometry of a pooling over NHWC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolShape {
    /// Images.
    pub batch: usize,
    /// Height and width of the input.
    pub input: [usize; 2],
    /// Channels.
    pub channels: usize,
    /// Height and width of the window.
    pub kernel: [usize; 2],
    /// Steps along height and width.
    pub stride: [usize; 2],
    /// Padding: top, bottom, left, right. It never wins a maximum.
    pub pads: [usize; 4],
    /// Whether an average divides by the number of values inside the image instead of the size
    /// of the window.
    pub exclude_padding: bool,
}

impl PoolShape {
    /// Height and width of the output.
    ///
    /// # Errors
    /// If the geometry is impossible.
    pub fn output(&self) -> Result<[usize; 2], ShapeError> {
        window_output(self.input, self.kernel, self.stride, [1, 1], self.pads)
    }
}

/// Maximum of every window, NHWC.
///
/// # Errors
/// If the geometry is impossible.
///
/// # Panics
/// If a slice is too short.
pub fn max_pool(context: Context<'_>, shape: PoolShape, input: &[f16], output: &mut [f16]) -> Result<(), ShapeError> {
    pool(context, shape, input, output, true)
}

/// Average of every window, NHWC, in f32.
///
/// # Errors
/// If the geometry is impossible.
///
/// # Panics
/// If a slice is too short.
pub fn average_pool(context: Context<'_>, shape: PoolShape, input: &[f16], output: &mut [f16]) -> Result<(), ShapeError> {
    pool(context, shape, input, output, false)
}

fn pool(context: Context<'_>, shape: PoolShape, input: &[f16], output: &mut [f16], max: bool) -> Result<(), ShapeError> {
    let [height, width] = shape.output()?;
    let values = shape.batch * shape.input[0] * shape.input[1] * shape.channels;
    assert!(input.len() >= values, "pooling: input shorter than the shape");
    let row = width * shape.channels;
    assert!(output.len() >= shape.batch * height * row, "pooling: output shorter than the shape");
    let out = Shared::new(output);
    context.pool.run(shape.batch * height, &|job, _| {
        // SAFETY: jobs have disjoint rows.
        let output = unsafe { out.slice(job * row, row) };
        let (image, y) = (job / height, job % height);
        context.level.dispatch(PoolRow { shape: &shape, input, image, y, output, max });
    });
    Ok(())
}

struct PoolRow<'a> {
    shape: &'a PoolShape,
    input: &'a [f16],
    image: usize,
    y: usize,
    output: &'a mut [f16],
    max: bool,
}

impl Kernel for PoolRow<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let shape = self.shape;
        let channels = shape.channels;
        let [height, width] = shape.input;
        let window = |at: usize, axis: usize| {
            let start = at * shape.stride[axis];
            let pad = shape.pads[2 * axis];
            let end = (start + shape.kernel[axis]).saturating_sub(pad).min(shape.input[axis]);
            start.saturating_sub(pad).min(end)..end
        };
        let rows = window(self.y, 0);
        for (x, output) in self.output.chunks_exact_mut(channels).enumerate() {
            let columns = window(x, 1);
            let inside = rows.len() * columns.len();
            let count = if shape.exclude_padding { inside } else { shape.kernel[0] * shape.kernel[1] };
            for channel in (0..channels).step_by(S::LANES) {
                let lanes = S::LANES.min(channels - channel);
                let mut copy = [f16::ZERO; 32];
                let mut value = s.splat(if self.max { f32::NEG_INFINITY } else { 0.0 });
                for y in rows.clone() {
                    for x in columns.clone() {
                        let at = ((self.image * height + y) * width + x) * channels + channel;
                        let from = &self.input[at..at + lanes];
                        let from = if lanes == S::LANES {
                            from.as_ptr()
                        } else {
                            copy[..lanes].copy_from_slice(from);
                            copy.as_ptr()
                        };
                        // SAFETY: at least LANES values.
                        let next = unsafe { s.load_half(from.cast()) };
                        value = if self.max { s.max(value, next) } else { s.add(value, next) };
                    }
                }
                if !self.max {
                    value = s.div(value, s.splat(count.max(1) as f32));
                }
                let output = &mut output[channel..channel + lanes];
                if lanes == S::LANES {
                    // SAFETY: LANES values.
                    unsafe { s.store_half(output.as_mut_ptr().cast(), value) };
                } else {
                    // SAFETY: the copy has at least LANES values.
                    unsafe { s.store_half(copy.as_mut_ptr().cast(), value) };
                    output.copy_from_slice(&copy[..lanes]);
                }
            }
        }
    }
}

/// Mean over all pixels of every image and channel, NHWC in, `[batch][channels]` out.
///
/// # Panics
/// If a slice is too short.
pub fn global_average(context: Context<'_>, batch: usize, pixels: usize, channels: usize, input: &[f16], output: &mut [f16]) {
    assert!(input.len() >= batch * pixels * channels, "global average: input too short");
    assert!(output.len() >= batch * channels, "global average: output too short");
    const GROUP: usize = 64;
    let groups = channels.div_ceil(GROUP);
    let out = Shared::new(output);
    context.pool.run(batch * groups, &|job, _| {
        let (image, first) = (job / groups, job % groups * GROUP);
        let count = GROUP.min(channels - first);
        // SAFETY: jobs have disjoint channels.
        let output = unsafe { out.slice(image * channels + first, count) };
        let mut sums = [0.0_f32; GROUP];
        let mut wide = [0.0_f32; GROUP];
        for pixel in 0..pixels {
            let at = (image * pixels + pixel) * channels + first;
            context.level.dispatch(super::convert::Widen { from: &input[at..at + count], to: &mut wide[..count] });
            for (sum, value) in sums.iter_mut().zip(&wide[..count]) {
                *sum += value;
            }
        }
        for (to, sum) in output.iter_mut().zip(sums) {
            *to = f16::from_f32(sum / pixels.max(1) as f32);
        }
    });
}

/// Transposes `batch` matrices `[rows][columns]`. NHWC to NCHW is rows = pixels, columns =
/// channels; NCHW to NHWC the reverse.
///
/// # Panics
/// If a slice is too short.
pub fn transpose(context: Context<'_>, batch: usize, rows: usize, columns: usize, input: &[f16], output: &mut [f16]) {
    let matrix = rows * columns;
    assert!(input.len() >= batch * matrix, "transpose: input too short");
    assert!(output.len() >= batch * matrix, "transpose: output too short");
    const TILE: usize = 32;
    let bands = columns.div_ceil(TILE);
    let out = Shared::new(output);
    context.pool.run(batch * bands, &|job, _| {
        let (image, first) = (job / bands, job % bands * TILE);
        let count = TILE.min(columns - first);
        // SAFETY: jobs have disjoint bands of output rows.
        let output = unsafe { out.slice(image * matrix + first * rows, count * rows) };
        let input = &input[image * matrix..(image + 1) * matrix];
        for start in (0..rows).step_by(TILE) {
            let end = rows.min(start + TILE);
            for column in 0..count {
                let to = &mut output[column * rows + start..column * rows + end];
                for (value, row) in to.iter_mut().zip(start..end) {
                    *value = input[row * columns + first + column];
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::super::pool::Pool;
    use super::super::simd::Level;
    use super::*;

    fn values(count: usize) -> Vec<f16> {
        (0..count).map(|i| f16::from_f32(((i * 37) % 101) as f32 / 8.0 - 6.0)).collect()
    }

    #[test]
    fn pools_agree_with_loops_at_every_level() {
        let shape = PoolShape {
            batch: 2,
            input: [7, 9],
            channels: 21,
            kernel: [3, 3],
            stride: [2, 2],
            pads: [1, 1, 1, 1],
            exclude_padding: true,
        };
        let input = values(2 * 7 * 9 * 21);
        let [height, width] = shape.output().unwrap();
        for level in Level::available() {
            let context = Context { pool: Pool::global(), level };
            let mut most = vec![f16::ZERO; 2 * height * width * 21];
            let mut mean = most.clone();
            max_pool(context, shape, &input, &mut most).unwrap();
            average_pool(context, shape, &input, &mut mean).unwrap();
            for (at, (most, mean)) in most.iter().zip(&mean).enumerate() {
                let (channel, pixel) = (at % 21, at / 21);
                let (x, y, image) = (pixel % width, pixel / width % height, pixel / width / height);
                let mut seen = Vec::new();
                for (ky, kx) in (0..9).map(|tap| (tap / 3, tap % 3)) {
                    let (row, column) = ((y * 2 + ky).wrapping_sub(1), (x * 2 + kx).wrapping_sub(1));
                    if row < 7 && column < 9 {
                        seen.push(input[((image * 7 + row) * 9 + column) * 21 + channel].to_f32());
                    }
                }
                assert_eq!(most.to_f32(), seen.iter().copied().fold(f32::MIN, f32::max));
                let want = seen.iter().sum::<f32>() / seen.len() as f32;
                assert!((mean.to_f32() - want).abs() < 4e-3);
            }
        }
    }

    #[test]
    fn transposing_twice_is_the_identity_and_the_global_average_is_a_mean() {
        let context = Context::global();
        let (batch, rows, columns) = (2, 45, 70);
        let input = values(batch * rows * columns);
        let (mut once, mut twice) = (input.clone(), input.clone());
        transpose(context, batch, rows, columns, &input, &mut once);
        assert_eq!(once[rows * columns + 3 * rows + 2], input[rows * columns + 2 * columns + 3]);
        transpose(context, batch, columns, rows, &once, &mut twice);
        assert_eq!(input, twice);
        let mut mean = vec![f16::ZERO; batch * columns];
        global_average(context, batch, rows, columns, &input, &mut mean);
        let want: f32 = (0..rows).map(|row| input[row * columns + 69].to_f32()).sum::<f32>() / rows as f32;
        assert!((mean[69].to_f32() - want).abs() < 4e-3);
    }
}
