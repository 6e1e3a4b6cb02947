//! The reference convolution of the published workloads: 3x3, stride 1, zero padding 1, as the
//! product of the unfolded image with the flattened kernels.

use super::{Real, chain_product};

/// One image `[channels, height, width]`, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Image<T> {
    /// Channels, height and width.
    pub shape: [usize; 3],
    /// `channels * height * width` values.
    pub values: Vec<T>,
}

/// Kernels `[outputs, channels, 3, 3]` applied with stride 1 and padding 1.
#[derive(Clone, Copy, Debug)]
pub struct Stride1<'a, T> {
    /// The kernels, row-major.
    pub kernels: &'a [T],
}

impl<T: Real> Stride1<'_, T> {
    /// Convolves `image`: one fused multiply-add chain per output, over channels, then kernel rows,
    /// then kernel columns.
    pub fn convolve(&self, image: &Image<T>) -> Image<T> {
        let [channels, height, width] = image.shape;
        let depth = channels * 9;
        let values = chain_product(self.kernels, &unfold(image), depth);
        Image { shape: [self.kernels.len() / depth, height, width], values }
    }
}

/// The taps of every output pixel: `[channels * 9, height * width]`, zero where a tap lies outside.
pub fn unfold<T: Real>(image: &Image<T>) -> Vec<T> {
    let [channels, height, width] = image.shape;
    let mut taps = vec![T::ZERO; channels * 9 * height * width];
    for (plane, taps) in taps.chunks_mut((height * width).max(1)).enumerate() {
        let (channel, tap_row, tap_column) = (plane / 9, plane / 3 % 3, plane % 3);
        // Output column c reads input column c + tap_column - 1; both ends may lie outside.
        let first = 1 - tap_column.min(1);
        let last = width - tap_column.saturating_sub(1).min(width);
        for (row, line) in taps.chunks_mut(width).enumerate() {
            let source = row + tap_row;
            if source == 0 || source > height || first >= last {
                continue;
            }
            let start = (channel * height + source - 1) * width;
            line[first..last].copy_from_slice(&image.values[start + first + tap_column - 1..start + last + tap_column - 1]);
        }
    }
    taps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;

    #[test]
    fn the_unfolded_product_equals_the_sum_over_taps() {
        let (channels, outputs) = (3, 2);
        for (height, width) in [(5, 4), (1, 1), (1, 6), (7, 1)] {
            let mut generator = Generator::from_seed(4);
            let image = Image { shape: [channels, height, width], values: generator.normals(channels * height * width) };
            let kernels = generator.normals(outputs * channels * 9);
            let result = Stride1 { kernels: &kernels }.convolve(&image);
            assert_eq!(result.shape, [outputs, height, width]);
            let at = |channel: usize, row: isize, column: isize| {
                let inside = (0..height as isize).contains(&row) && (0..width as isize).contains(&column);
                if !inside {
                    return 0.0;
                }
                image.values[(channel * height + row as usize) * width + column as usize]
            };
            for (index, value) in result.values.iter().enumerate() {
                let (output, row, column) = (index / (height * width), index / width % height, index % width);
                let mut sum = 0.0;
                for tap in 0..channels * 9 {
                    let (channel, tap_row, tap_column) = (tap / 9, tap / 3 % 3, tap % 3);
                    sum += kernels[output * channels * 9 + tap]
                        * at(channel, (row + tap_row) as isize - 1, (column + tap_column) as isize - 1);
                }
                assert!((value - sum).abs() < 1e-12);
            }
        }
    }
}
