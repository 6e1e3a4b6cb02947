//! The exact kernels against the scalar twin, bit for bit, at every level of the machine.

use half::f16;

use super::super::conv::{ConvShape, Layout};
use super::super::matmul::{MatmulShape, Place};
use super::super::tests::{Random, conv_shapes, convolve};
use super::super::types::{Activation, Context, Epilogue, Operand, Output, Residual};
use super::super::{Level, Pool};
use super::scalar::{self, Accumulator};
use super::winograd::{output_transform, transform_inputs, transform_weights};
use super::{ExactConv2d, ExactWeights, Form, MacRules, MatmulScratch, Subnormals, dense, matmul, scratch_len};

/// A kind of operand values.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// Uniform in -1..1 times a factor.
    Normal(f32),
    /// Few significant bits, so that products often fall on ties.
    Ties,
    /// Exponents around -8, so that the exponents of products meet the flush.
    Band,
    /// Subnormal fp16.
    Subnormal,
    /// Any bit pattern below a limit.
    Below(u16),
}

impl Kind {
    fn value(self, random: &mut Random) -> f16 {
        let bits = random.bits() as u16;
        match self {
            Kind::Normal(scale) => f16::from_f32(random.value() * scale),
            Kind::Ties => f16::from_f32((bits % 64) as f32 / 2048.0 * if bits & 0x8000 == 0 { 1.0 } else { -1.0 }),
            Kind::Band => f16::from_bits(bits & 0x83ff | (15 - 6 - (bits >> 11 & 7)) << 10),
            Kind::Subnormal => f16::from_bits(bits & 0x83ff),
            Kind::Below(limit) => f16::from_bits((bits & 0x8000) | (bits % limit)),
        }
    }
}

const CLASSES: [(Kind, Kind); 12] = [
    (Kind::Normal(1.0), Kind::Normal(0.1)),
    (Kind::Normal(4.0), Kind::Normal(0.02)),
    (Kind::Ties, Kind::Ties),
    (Kind::Band, Kind::Band),
    (Kind::Subnormal, Kind::Normal(1.0)),
    (Kind::Normal(100.0), Kind::Subnormal),
    (Kind::Below(0x3400), Kind::Below(0x3400)),
    (Kind::Normal(30.0), Kind::Normal(2.0)),
    (Kind::Normal(100.0), Kind::Normal(10.0)),
    (Kind::Normal(500.0), Kind::Normal(500.0)),
    (Kind::Below(0x7c00), Kind::Below(0x7c00)),
    (Kind::Below(0x7fff), Kind::Normal(1.0)),
];

fn contexts() -> impl Iterator<Item = Context<'static>> {
    Level::available().into_iter().map(|level| Context { pool: Pool::global(), level })
}

#[test]
fn dense_products_equal_the_twin_in_every_class() {
    let mut random = Random(7);
    for context in contexts() {
        for class in CLASSES {
            for (m, n, k) in [(1, 5, 1), (13, 37, 70), (25, 33, 300)] {
                let x: Vec<f16> = (0..m * k).map(|_| class.0.value(&mut random)).collect();
                let w: Vec<f16> = (0..n * k).map(|_| class.1.value(&mut random)).collect();
                for rules in [MacRules::DEFAULT, MacRules { subnormal_inputs: Subnormals::Zero, saturate_partials: true }] {
                    let weights = ExactWeights::from_rows(context.level, n, k, &w, rules);
                    let mut scratch = vec![f32::NAN; scratch_len(m * k)];
                    let mut out = vec![f16::ZERO; m * n];
                    let output = Output::dense(&mut out, n);
                    dense(context, &x, m, &weights, &Epilogue::default(), &mut scratch, output);
                    for (at, found) in out.iter().enumerate() {
                        let (row, column) = (at / n, at % n);
                        let pairs = (0..k).map(|i| (x[row * k + i], w[column * k + i]));
                        let want = scalar::dot(pairs, rules);
                        assert_eq!(
                            found.to_bits(),
                            want.to_bits(),
                            "{} {class:?} {rules:?} {m}x{k}x{n} at {at}: {found} instead of {want}",
                            context.level
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn one_sided_sums_are_driven_up_to_the_bound() {
    for context in contexts() {
        // 64 products of 63/64 approach 63, then shrink again: the chunks must not leave the range.
        for sign in [1.0, -1.0] {
            let k = 640;
            let x: Vec<f16> = (0..k).map(|i| f16::from_f32(if i % 128 < 64 { sign } else { -sign })).collect();
            let w: Vec<f16> = (0..k).map(|i| f16::from_f32(0.984_375 + (i % 3) as f32 * 0.0009)).collect();
            let weights = ExactWeights::from_rows(context.level, 1, k, &w, MacRules::DEFAULT);
            let mut scratch = vec![0.0; scratch_len(k)];
            let mut out = [f16::ZERO];
            dense(context, &x, 1, &weights, &Epilogue::default(), &mut scratch, Output::dense(&mut out, 1));
            assert_eq!(out[0], scalar::dot(x.iter().copied().zip(w.iter().copied()), MacRules::DEFAULT));
        }
    }
}

#[test]
fn a_fused_epilogue_equals_separate_operations() {
    let mut random = Random(8);
    let (m, n, k) = (9, 40, 50);
    let x = random.halves(m * k, 2.0);
    let w = random.halves(n * k, 1.0);
    let bias = random.halves(n, 3.0);
    let wide_bias: Vec<f32> = bias.iter().map(|value| value.to_f32()).collect();
    let residual = random.halves(m * n, 5.0);
    let scale = f16::from_f32(0.3);
    for context in contexts() {
        let weights = ExactWeights::from_rows(context.level, n, k, &w, MacRules::DEFAULT);
        for before_activation in [true, false] {
            let epilogue = Epilogue {
                scale: Some(scale.to_f32()),
                bias: Some(&wide_bias),
                residual: Some(Residual { data: &residual, offset: 0, stride: n, before_activation }),
                activation: Activation::Relu,
            };
            let mut scratch = vec![0.0; scratch_len(m * k)];
            let mut out = vec![f16::ZERO; m * n];
            dense(context, &x, m, &weights, &epilogue, &mut scratch, Output::dense(&mut out, n));
            for (at, &found) in out.iter().enumerate() {
                let (row, column) = (at / n, at % n);
                let sum = scalar::dot((0..k).map(|i| (x[row * k + i], w[column * k + i])), MacRules::DEFAULT);
                let value = scalar::add(scalar::mul(sum, scale), bias[column]);
                let relu = |value| scalar::max(value, f16::ZERO);
                let want =
                    if before_activation { relu(scalar::add(value, residual[at])) } else { scalar::add(relu(value), residual[at]) };
                assert_eq!(found.to_bits(), want.to_bits());
            }
        }
    }
}

fn run(conv: &ExactConv2d, context: Context<'_>, input: &[f16], layout: Layout) -> Vec<f16> {
    let [height, width] = conv.output();
    let columns = conv.shape().channels_out;
    let mut out = vec![f16::ZERO; conv.shape().batch * height * width * columns];
    let mut scratch = vec![f32::NAN; conv.scratch_len()];
    let output = Output::dense(&mut out, columns);
    conv.run(context, input, layout, &Epilogue::default(), &mut scratch, output);
    out
}

#[test]
fn direct_convolutions_equal_the_twin() {
    let mut random = Random(9);
    for context in contexts() {
        for shape in conv_shapes() {
            for class in [CLASSES[0], CLASSES[3], CLASSES[8], CLASSES[11]] {
                let count = shape.batch * shape.input[0] * shape.input[1] * shape.channels_in;
                let x: Vec<f16> = (0..count).map(|_| class.0.value(&mut random)).collect();
                let taps = shape.channels_in / shape.groups * shape.kernel[0] * shape.kernel[1];
                let w: Vec<f16> = (0..shape.channels_out * taps).map(|_| class.1.value(&mut random)).collect();
                let conv = ExactConv2d::new(context.level, shape, &w, MacRules::DEFAULT, Form::Direct).unwrap();
                let [height, width] = conv.output();
                let mut sums = vec![Accumulator::default(); shape.batch * height * width * shape.channels_out];
                convolve(&shape, &x, &w, |at, x, w| sums[at].add(x, w, MacRules::DEFAULT));
                let mut channels_first = x.clone();
                let pixels = shape.input[0] * shape.input[1];
                super::super::spatial::transpose(context, shape.batch, pixels, shape.channels_in, &x, &mut channels_first);
                for (layout, input) in [(Layout::Nhwc, &x), (Layout::Nchw, &channels_first)] {
                    for (found, want) in run(&conv, context, input, layout).iter().zip(&sums) {
                        assert_eq!(found.to_bits(), want.round().to_bits(), "{} {class:?}", context.level);
                    }
                }
            }
        }
    }
}

/// The Winograd form written down per output, with the scalar twin.
fn winograd_twin(shape: &ConvShape, x: &[f16], w: &[f16]) -> Vec<f16> {
    let [height, width] = shape.input;
    let channels = shape.channels_in;
    let mut out = Vec::new();
    for image in 0..shape.batch {
        for y in 0..height {
            let mut row = vec![f16::ZERO; (width + 1) * shape.channels_out];
            for (t, column) in (0..width).step_by(2).enumerate() {
                for output in 0..shape.channels_out {
                    let mut m = [Accumulator::default(); 4];
                    for ky in 0..3 {
                        for channel in 0..channels {
                            let d = [0, 1, 2, 3].map(|i| {
                                let (y, x_in) = ((y + ky).wrapping_sub(1), (2 * t + i).wrapping_sub(1));
                                if y < height && x_in < width {
                                    x[((image * height + y) * width + x_in) * channels + channel]
                                } else {
                                    f16::ZERO
                                }
                            });
                            let at = (output * channels + channel) * 9 + ky * 3;
                            let u = transform_weights([w[at], w[at + 1], w[at + 2]]);
                            let v = transform_inputs(d);
                            for j in 0..4 {
                                m[j].add(v[j], u[j], MacRules::DEFAULT);
                            }
                        }
                    }
                    let pair = output_transform(m);
                    for odd in 0..2 {
                        row[(column + odd) * shape.channels_out + output] = scalar::round_units(i128::from(pair[odd]));
                    }
                }
            }
            out.extend_from_slice(&row[..width * shape.channels_out]);
        }
    }
    out
}

#[test]
fn winograd_convolutions_equal_their_twin_for_even_and_odd_widths() {
    let mut random = Random(10);
    for context in contexts() {
        for (width, channels_in, channels_out) in [(8, 16, 33), (7, 5, 40)] {
            let shape = ConvShape { input: [6, width], channels_in, channels_out, batch: 2, ..conv_shapes()[0] };
            for class in CLASSES {
                let x: Vec<f16> = (0..2 * 6 * width * channels_in).map(|_| class.0.value(&mut random)).collect();
                let w: Vec<f16> = (0..channels_out * channels_in * 9).map(|_| class.1.value(&mut random)).collect();
                let conv = ExactConv2d::new(context.level, shape, &w, MacRules::DEFAULT, Form::Winograd).unwrap();
                let want = winograd_twin(&shape, &x, &w);
                for (at, (found, want)) in run(&conv, context, &x, Layout::Nhwc).iter().zip(&want).enumerate() {
                    assert_eq!(found.to_bits(), want.to_bits(), "{} {class:?} at {at}: {found} instead of {want}", context.level);
                }
            }
        }
    }
}

#[test]
fn winograd_is_refused_where_it_does_not_apply() {
    let shape = ConvShape { stride: [2, 2], ..conv_shapes()[0] };
    let w = vec![f16::ONE; 37 * 10 * 9];
    assert!(ExactConv2d::new(Level::PORTABLE, shape, &w, MacRules::DEFAULT, Form::Winograd).is_err());
}

#[test]
fn batched_products_equal_the_twin_and_reuse_their_buffers() {
    let mut random = Random(11);
    for context in contexts() {
        let mut buffers = MatmulScratch::default();
        for (batch, m, n, k) in [([2, 3], 7, 35, 20), ([1, 1], 15, 40, 66)] {
            let shape = MatmulShape { batch, m, n, k };
            let count = batch[0] * batch[1];
            let (x, y) = (random.halves(count * m * k, 3.0), random.halves(count * k * n, 1.0));
            let a = Operand { data: &x, offset: 0, batch_strides: [batch[1] * m * k, m * k], row_stride: k, column_stride: 1 };
            // The right operand is stored transposed.
            let b = Operand { data: &y, offset: 0, batch_strides: [batch[1] * n * k, n * k], row_stride: 1, column_stride: k };
            let mut out = vec![f16::ZERO; count * m * n];
            let place = Place::dense(&shape);
            matmul(context, shape, a, b, MacRules::DEFAULT, &Epilogue::default(), &mut buffers, &mut out, place);
            for (at, found) in out.iter().enumerate() {
                let (matrix, row, column) = (at / (m * n), at / n % m, at % n);
                let pairs = (0..k).map(|i| (x[(matrix * m + row) * k + i], y[(matrix * n + column) * k + i]));
                assert_eq!(found.to_bits(), scalar::dot(pairs, MacRules::DEFAULT).to_bits());
            }
        }
    }
}
