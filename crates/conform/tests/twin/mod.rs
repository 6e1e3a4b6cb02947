//! The engine's exact arithmetic written out plainly, one rounding rule per function: an independent
//! twin of the emulator for the programs of the published workloads.
//!
//! Rules as reported with the seeded figures of arXiv 2606.17090 and package 0.4.0: a product is
//! rounded half away from zero to a multiple of 2^-16, or dropped when its factors' exponents sum to
//! less than -16; products are summed exactly; the sum is rounded half away from zero to fp16.

use aneforge_conform::case::{HalfTensor, Program, RowOperation};
use half::f16;
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

/// How the chip runs a 3x3 convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// Every tap is a product (M1, M2, M4 parts).
    Direct,
    /// One-dimensional F(2,3) along the width (M5 and M6 parts).
    Winograd,
}

/// Runs a program whose operators all have an exact rule.
pub fn run(program: &Program, inputs: &[HalfTensor], form: Form) -> Vec<f16> {
    match program {
        Program::Linear { weights } => linear(&inputs[0].values, weights),
        Program::Convolutions { layers, relu } => {
            let [1, channels, height, width] = inputs[0].shape[..] else { panic!("not one image: {:?}", inputs[0].shape) };
            let mut image = inputs[0].values.clone();
            let mut channels = channels;
            for kernels in layers {
                image = match form {
                    Form::Direct => direct(&image, channels, height, width, kernels),
                    Form::Winograd => winograd(&image, channels, height, width, kernels),
                };
                channels = kernels.shape[0];
                if *relu {
                    image.iter_mut().for_each(|value| *value = value.max(f16::ZERO));
                }
            }
            image
        }
        Program::Jacobi { weights, iterations } => {
            let mut x = inputs[0].values.clone();
            for _ in 0..*iterations {
                let product = linear(&x, weights);
                x = (0..x.len())
                    .map(|index| {
                        let residual = inputs[1].values[index].to_f64() - product[index].to_f64();
                        multiply(round(residual), inputs[2].values[index])
                    })
                    .collect();
            }
            x
        }
        Program::Row { operation: RowOperation::Relu, .. } => inputs[0].values.iter().map(|value| value.max(f16::ZERO)).collect(),
        _ => panic!("no exact rule is known for {program:?}"),
    }
}

/// Rounds half away from zero to fp16; 2^15 and beyond is infinite, as at the engine's output port.
fn round(value: f64) -> f16 {
    let exponent = ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    let unit = 2.0f64.powi(exponent.max(-14) - 10);
    let magnitude = (value.abs() / unit + 0.5).floor() * unit;
    let magnitude = if magnitude >= 32768.0 { f64::INFINITY } else { magnitude };
    f16::from_f64(magnitude.copysign(value))
}

/// An element-wise product: half away to 11 bits first, and again where the result is subnormal.
fn multiply(left: f16, right: f16) -> f16 {
    let exact = left.to_f64() * right.to_f64();
    if exact == 0.0 {
        return f16::ZERO;
    }
    let exponent = ((exact.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    let unit = 2.0f64.powi(exponent - 10);
    round(((exact.abs() / unit + 0.5).floor() * unit).copysign(exact))
}

/// `x @ weights.T`.
fn linear(x: &[f16], weights: &HalfTensor) -> Vec<f16> {
    let [columns, depth] = weights.shape[..] else { panic!("weights are not a matrix") };
    let rows = x.len() / depth;
    let right: Vec<f16> = (0..depth * rows).map(|index| x[index % rows * depth + index / rows]).collect();
    let sums = dot_products(&weights.values, &right, depth);
    (0..rows * columns).map(|index| from_units(sums[index % columns * rows + index / columns])).collect()
}

fn from_units(units: i32) -> f16 {
    round(f64::from(units) / 65536.0)
}

fn padded(image: &[f16], height: usize, width: usize, channel: usize, row: usize, column: usize) -> f16 {
    if row == 0 || row > height || column == 0 || column > width {
        return f16::ZERO;
    }
    image[(channel * height + row - 1) * width + column - 1]
}

fn direct(image: &[f16], channels: usize, height: usize, width: usize, kernels: &HalfTensor) -> Vec<f16> {
    let mut taps = Vec::with_capacity(channels * 9 * height * width);
    for tap in 0..channels * 9 {
        for row in 0..height {
            taps.extend((0..width).map(|column| padded(image, height, width, tap / 9, row + tap / 3 % 3, column + tap % 3)));
        }
    }
    dot_products(&kernels.values, &taps, channels * 9).into_par_iter().map(from_units).collect()
}

fn winograd(image: &[f16], channels: usize, height: usize, width: usize, kernels: &HalfTensor) -> Vec<f16> {
    let outputs = kernels.shape[0];
    let pairs = width / 2;
    let [sums_0, sums_1, sums_2, sums_3]: [Vec<i32>; 4] = std::array::from_fn(|place| {
        let transformed: Vec<f16> = kernels
            .values
            .chunks_exact(3)
            .map(|taps| {
                let [first, middle, last] = [0, 1, 2].map(|tap| taps[tap].to_f64());
                match place {
                    0 => taps[0],
                    1 => round((first + middle + last) / 2.0),
                    2 => round((first - middle + last) / 2.0),
                    _ => taps[2],
                }
            })
            .collect();
        let mut taps = Vec::with_capacity(channels * 3 * height * pairs);
        for tap in 0..channels * 3 {
            for row in 0..height {
                taps.extend((0..pairs).map(|pair| {
                    let at = |offset| padded(image, height, width, tap / 3, row + tap % 3, 2 * pair + offset).to_f64();
                    round(match place {
                        0 => at(0) - at(2),
                        1 => at(1) + at(2),
                        2 => at(2) - at(1),
                        _ => at(1) - at(3),
                    })
                }));
            }
        }
        dot_products(&transformed, &taps, channels * 3)
    });
    (0..outputs * height * width)
        .map(|index| {
            let pair = index / 2;
            from_units(if index % 2 == 0 {
                sums_0[pair] + sums_1[pair] + sums_2[pair]
            } else {
                sums_1[pair] - sums_2[pair] - sums_3[pair]
            })
        })
        .collect()
}

const LANES: usize = 16;

/// `left [rows, depth] * right [depth, columns]` in units of 2^-16, with the engine's products.
///
/// The sums are 32-bit: the published workloads stay far below the 2^15 where they would wrap.
fn dot_products(left: &[f16], right: &[f16], depth: usize) -> Vec<i32> {
    let (rows, columns) = (left.len() / depth, right.len() / depth);
    let factors: Vec<[f32; 2]> = left.iter().map(|&value| [value.to_f32() * 65536.0, scale(value)]).collect();
    let mut result = vec![0; rows * columns];
    let panels: Vec<Vec<[i32; LANES]>> = (0..columns.div_ceil(LANES))
        .into_par_iter()
        .map(|panel| {
            let lanes: Vec<[[f32; LANES]; 2]> = (0..depth)
                .map(|step| {
                    let mut lanes = [[0.0; LANES]; 2];
                    for lane in 0..LANES.min(columns - panel * LANES) {
                        let value = right[step * columns + panel * LANES + lane];
                        lanes[0][lane] = value.to_f32();
                        lanes[1][lane] = scale(value);
                    }
                    lanes
                })
                .collect();
            Arch::new().dispatch(Panel { factors: &factors, lanes: &lanes })
        })
        .collect();
    for (row, line) in result.chunks_mut(columns).enumerate() {
        for (piece, panel) in line.chunks_mut(LANES).zip(&panels) {
            piece.copy_from_slice(&panel[row][..piece.len()]);
        }
    }
    result
}

/// 2^exponent of an fp16 value, subnormals counted at the exponent -14.
fn scale(value: f16) -> f32 {
    let exponent = i32::from((value.to_bits() >> 10) & 31).max(1) - 15;
    f32::from_bits(((exponent + 127) as u32) << 23)
}

struct Panel<'a> {
    factors: &'a [[f32; 2]],
    lanes: &'a [[[f32; LANES]; 2]],
}

impl WithSimd for Panel<'_> {
    type Output = Vec<[i32; LANES]>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> Self::Output {
        const DROPPED_BELOW: f32 = 1.0 / 65536.0;
        self.factors
            .chunks_exact(self.lanes.len())
            .map(|line| {
                let mut sums = [0i32; LANES];
                for (&[factor, factor_scale], [values, scales]) in line.iter().zip(self.lanes) {
                    for lane in 0..LANES {
                        let product = factor * values[lane];
                        let nudged = product + 0.5f32.copysign(product);
                        let kept = if factor_scale * scales[lane] >= DROPPED_BELOW { nudged } else { 0.0 };
                        sums[lane] += kept as i32;
                    }
                }
                sums
            })
            .collect()
    }
}
