//! The fast kernels against plain f64 loops, at every level of the machine.

use half::f16;

use super::conv::{Conv2d, ConvShape, Layout};
use super::matmul::{AttentionShape, MatmulShape, Place};
use super::types::{Activation, Context, Epilogue, Operand, Output, Residual};
use super::{Level, PackedWeights, Pool, gemm, matmul, norm};

/// Reproducible values, roughly uniform in -1..1.
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn bits(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    pub(crate) fn value(&mut self) -> f32 {
        self.bits() as i32 as f32 / 2_147_483_648.0
    }

    pub(crate) fn halves(&mut self, count: usize, scale: f32) -> Vec<f16> {
        (0..count).map(|_| f16::from_f32(self.value() * scale)).collect()
    }
}

fn contexts() -> impl Iterator<Item = Context<'static>> {
    Level::available().into_iter().map(|level| Context { pool: Pool::global(), level })
}

#[track_caller]
fn close(found: f16, want: f64, scale: f64) {
    let error = (found.to_f64() - want).abs();
    assert!(error <= scale * 1e-5 + want.abs() * 6e-4 + 1e-7, "{found} instead of {want}");
}

#[test]
fn dense_products_of_every_row_count_agree_with_f64() {
    let mut random = Random(1);
    for context in contexts() {
        for m in (1..=18).chain([49]) {
            let (n, k) = (70, 45);
            let x = random.halves(m * k, 1.0);
            let w = random.halves(n * k, 1.0);
            let bias: Vec<f32> = (0..n).map(|_| random.value()).collect();
            let residual = random.halves(m * n, 1.0);
            let weights = PackedWeights::from_rows(context.level, n, k, &w);
            for before_activation in [true, false] {
                let epilogue = Epilogue {
                    scale: Some(0.5),
                    bias: Some(&bias),
                    residual: Some(Residual { data: &residual, offset: 0, stride: n, before_activation }),
                    activation: Activation::Relu,
                };
                let mut scratch = vec![0.0; m * k];
                let mut out = vec![f16::ZERO; m * n];
                gemm::dense(context, &x, m, &weights, &epilogue, &mut scratch, Output::dense(&mut out, n));
                for (at, &found) in out.iter().enumerate() {
                    let (row, column) = (at / n, at % n);
                    let sum: f64 = (0..k).map(|i| x[row * k + i].to_f64() * w[column * k + i].to_f64()).sum();
                    let value = sum * 0.5 + f64::from(bias[column]);
                    let add = residual[at].to_f64();
                    let want = if before_activation { (value + add).max(0.0) } else { value.max(0.0) + add };
                    close(found, want, 8.0);
                }
            }
        }
    }
}

/// Convolution by its definition.
pub(crate) fn convolve(shape: &ConvShape, x: &[f16], w: &[f16], mut tap: impl FnMut(usize, f16, f16)) {
    let [height, width] = shape.output().unwrap();
    let (inputs, outputs) = (shape.channels_in / shape.groups, shape.channels_out / shape.groups);
    let mut at = 0;
    for pixel in 0..shape.batch * height * width {
        let (image, y, x_out) = (pixel / (height * width), pixel / width % height, pixel % width);
        for out in 0..shape.channels_out {
            for ky in 0..shape.kernel[0] {
                for kx in 0..shape.kernel[1] {
                    let row = (y * shape.stride[0] + ky * shape.dilation[0]).wrapping_sub(shape.pads[0]);
                    let column = (x_out * shape.stride[1] + kx * shape.dilation[1]).wrapping_sub(shape.pads[2]);
                    if row >= shape.input[0] || column >= shape.input[1] {
                        continue;
                    }
                    for channel in 0..inputs {
                        let from = ((image * shape.input[0] + row) * shape.input[1] + column) * shape.channels_in;
                        let weight = ((out * inputs + channel) * shape.kernel[0] + ky) * shape.kernel[1] + kx;
                        tap(at, x[from + out / outputs * inputs + channel], w[weight]);
                    }
                }
            }
            at += 1;
        }
    }
}

pub(crate) fn conv_shapes() -> Vec<ConvShape> {
    let base = ConvShape {
        batch: 1,
        input: [9, 7],
        channels_in: 10,
        channels_out: 37,
        kernel: [3, 3],
        stride: [1, 1],
        dilation: [1, 1],
        pads: [1, 1, 1, 1],
        groups: 1,
    };
    vec![
        base,
        ConvShape { batch: 2, stride: [2, 2], kernel: [5, 3], pads: [2, 1, 0, 3], ..base },
        ConvShape { dilation: [2, 2], pads: [2, 2, 2, 2], ..base },
        ConvShape { kernel: [1, 1], pads: [0; 4], stride: [2, 2], ..base },
        ConvShape { groups: 2, channels_out: 72, ..base },
        ConvShape { groups: 35, channels_in: 35, channels_out: 35, ..base },
        ConvShape { groups: 64, channels_in: 64, channels_out: 64, stride: [2, 1], dilation: [1, 2], ..base },
        ConvShape { channels_in: 3, kernel: [7, 7], stride: [2, 2], pads: [3; 4], input: [20, 21], ..base },
    ]
}

#[test]
fn convolutions_agree_with_their_definition() {
    let mut random = Random(2);
    for context in contexts() {
        for shape in conv_shapes() {
            let x = random.halves(shape.batch * shape.input[0] * shape.input[1] * shape.channels_in, 1.0);
            let taps = shape.channels_in / shape.groups * shape.kernel[0] * shape.kernel[1];
            let w = random.halves(shape.channels_out * taps, 1.0);
            let conv = Conv2d::new(context.level, shape, &w).unwrap();
            let [height, width] = conv.output();
            let mut want = vec![0.0_f64; shape.batch * height * width * shape.channels_out];
            convolve(&shape, &x, &w, |at, x, w| want[at] += x.to_f64() * w.to_f64());
            let mut scratch = vec![f32::NAN; conv.scratch_len()];
            let mut channels_first = x.clone();
            let pixels = shape.input[0] * shape.input[1];
            super::spatial::transpose(context, shape.batch, pixels, shape.channels_in, &x, &mut channels_first);
            for (layout, input) in [(Layout::Nhwc, &x), (Layout::Nchw, &channels_first)] {
                let mut out = vec![f16::ZERO; want.len()];
                let output = Output::dense(&mut out, shape.channels_out);
                conv.run(context, input, layout, &Epilogue::default(), &mut scratch, output);
                for (&found, &want) in out.iter().zip(&want) {
                    close(found, want, 10.0);
                }
            }
        }
    }
}

#[test]
fn impossible_geometries_are_errors() {
    let shape = conv_shapes()[0];
    assert!(Conv2d::new(Level::PORTABLE, shape, &[]).is_err());
    assert!(ConvShape { kernel: [12, 3], ..shape }.output().is_err());
    assert!(ConvShape { groups: 3, ..shape }.output().is_err());
    assert!(ConvShape { stride: [0, 1], ..shape }.output().is_err());
}

#[test]
fn batched_products_follow_strides() {
    let mut random = Random(3);
    for context in contexts() {
        let shape = MatmulShape { batch: [2, 3], m: 17, n: 41, k: 19 };
        let (m, n, k) = (shape.m, shape.n, shape.k);
        let x = random.halves(6 * m * k, 1.0);
        let y = random.halves(6 * n * k, 1.0);
        for (transposed_x, transposed_y) in [(false, false), (true, false), (false, true), (true, true)] {
            let operand = |data, rows: usize, columns: usize, transposed: bool| Operand {
                data,
                offset: 0,
                batch_strides: [3 * rows * columns, rows * columns],
                row_stride: if transposed { 1 } else { columns },
                column_stride: if transposed { rows } else { 1 },
            };
            let a = operand(&x, m, k, transposed_x);
            let b = operand(&y, k, n, transposed_y);
            let mut scratch = vec![f32::NAN; matmul::scratch_len(context.level, &shape)];
            let mut out = vec![f16::ZERO; 6 * m * n];
            let place = Place::dense(&shape);
            matmul::matmul(context, shape, a, b, &Epilogue::default(), &mut scratch, &mut out, place);
            for (at, &found) in out.iter().enumerate() {
                let (batch, row, column) = (at / (m * n), at / n % m, at % n);
                let entry = |operand: &Operand<'_>, row: usize, column: usize| {
                    let at = operand.matrix(batch / 3, batch % 3);
                    operand.data[at + row * operand.row_stride + column * operand.column_stride].to_f64()
                };
                let want: f64 = (0..k).map(|i| entry(&a, row, i) * entry(&b, i, column)).sum();
                close(found, want, 10.0);
            }
        }
    }
}

#[test]
fn attention_agrees_with_f64_on_interleaved_heads() {
    let mut random = Random(4);
    for context in contexts() {
        let shape = AttentionShape { batch: 2, heads: 3, queries: 61, keys: 45, width: 16, value_width: 20 };
        let AttentionShape { batch, heads, queries, keys, width, value_width } = shape;
        let view = |data, rows: usize, columns: usize| Operand {
            data,
            offset: 0,
            batch_strides: [rows * heads * columns, columns],
            row_stride: heads * columns,
            column_stride: 1,
        };
        let q = random.halves(batch * heads * queries * width, 2.0);
        let k = random.halves(batch * heads * keys * width, 2.0);
        let v = random.halves(batch * heads * keys * value_width, 2.0);
        let mask: Vec<f16> = (0..keys).map(|key| f16::from_f32(if key > 40 { -1e4 } else { 0.0 })).collect();
        let mask = Operand { data: &mask, offset: 0, batch_strides: [0, 0], row_stride: 0, column_stride: 1 };
        let place =
            Place { offset: 0, batch_strides: [queries * heads * value_width, value_width], row_stride: heads * value_width };
        let mut out = vec![f16::ZERO; batch * heads * queries * value_width];
        let mut scratch = vec![f32::NAN; matmul::attention_scratch_len(context.level, context.pool.threads(), &shape)];
        let (a, b, c) = (view(&q, queries, width), view(&k, keys, width), view(&v, keys, value_width));
        matmul::attention(context, shape, a, b, c, 0.25, Some(mask), &mut scratch, &mut out, place);
        let entry = |operand: &Operand<'_>, batch, head, row: usize, column: usize| {
            operand.data[operand.matrix(batch, head) + row * operand.row_stride + column].to_f64()
        };
        for (at, &found) in out.iter().enumerate() {
            let (column, head) = (at % value_width, at / value_width % heads);
            let (query, image) = (at / (value_width * heads) % queries, at / (value_width * heads * queries));
            let score =
                |key| -> f64 { (0..width).map(|i| entry(&a, image, head, query, i) * entry(&b, image, head, key, i)).sum() };
            let weights: Vec<f64> = (0..41).map(|key| (score(key) * 0.25).exp()).collect();
            let total: f64 = weights.iter().sum();
            let want: f64 = (0..41).map(|key| weights[key] / total * entry(&c, image, head, key, column)).sum();
            close(found, want, 10.0);
        }
    }
}

#[test]
fn norms_and_softmax_agree_with_f64() {
    let mut random = Random(5);
    for context in contexts() {
        for width in [1, 7, 16, 45, 384] {
            let input = random.halves(9 * width, 4.0);
            let other = random.halves(9 * width, 1.0);
            let gamma: Vec<f32> = (0..width).map(|_| random.value()).collect();
            let beta: Vec<f32> = (0..width).map(|_| random.value()).collect();
            let mut soft = vec![f16::ZERO; input.len()];
            let (mut layer, mut root) = (soft.clone(), soft.clone());
            norm::softmax(context, width, &input, &mut soft);
            norm::layer_norm(context, width, &input, Some(&other), Some(&gamma), Some(&beta), 1e-3, &mut layer);
            norm::rms_norm(context, width, &input, Some(&gamma), 1e-3, &mut root);
            for row in 0..9 {
                let range = row * width..(row + 1) * width;
                let x: Vec<f64> = input[range.clone()].iter().map(|value| value.to_f64()).collect();
                let total: f64 = x.iter().map(|value| value.exp()).sum();
                let sum: Vec<f64> = x.iter().zip(&other[range]).map(|(a, b)| a + b.to_f64()).collect();
                let mean = sum.iter().sum::<f64>() / width as f64;
                let variance = sum.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / width as f64;
                let power = x.iter().map(|value| value * value).sum::<f64>() / width as f64;
                for column in 0..width {
                    let at = row * width + column;
                    let (g, b) = (f64::from(gamma[column]), f64::from(beta[column]));
                    close(soft[at], x[column].exp() / total, 1.0);
                    close(layer[at], (sum[column] - mean) / (variance + 1e-3).sqrt() * g + b, 10.0);
                    close(root[at], x[column] / (power + 1e-3).sqrt() * g, 10.0);
                }
            }
        }
    }
}
