//! Operators over rows: the streaming sweep and the stand-alone normalisations.
//!
//! References are in f64. The scripts use float32, which shows in the last digits of the figures
//! only; every figure here but relu's (whose reference is exact) is modelled anyway.

use std::sync::Arc;

use half::f16;

use super::{Case, HalfTensor, Program};
use crate::random::Generator;

/// Columns of the streaming sweep.
const COLUMNS: usize = 4096;
/// Rows handed to the engine at once: rows do not depend on each other, and the largest sweep (64
/// million elements) need not be held whole.
const PIECE_ROWS: usize = 1024;
/// What the norms add to a variance or mean square.
const EPSILON: f64 = 1e-5;

/// An operator that works on each row (or element) alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowOperation {
    /// `max(x, 0)`.
    Relu,
    /// Gelu, tanh form in the reference.
    Gelu,
    /// The sum of the row.
    Sum,
    /// Softmax over the row.
    Softmax,
    /// Layer norm with gain and bias.
    LayerNorm,
    /// Root-mean-square norm with gain.
    RmsNorm,
}

impl RowOperation {
    /// MIL operators that compute it, apart from those that only move elements.
    pub fn operators(self) -> &'static [&'static str] {
        match self {
            Self::Relu => &["relu"],
            Self::Gelu => &["gelu"],
            Self::Sum => &["reduce_sum"],
            Self::Softmax => &["softmax"],
            Self::LayerNorm => &["layer_norm"],
            Self::RmsNorm => &["mul", "reduce_mean", "rsqrt"],
        }
    }
}

/// The rows of the streaming sweep's sizes; all are drawn from one generator, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sizes {
    /// The short list.
    Quick,
    /// The long list.
    Full,
}

impl Sizes {
    fn rows(self) -> &'static [usize] {
        match self {
            Self::Quick => &[256, 2048, 8192],
            Self::Full => &[64, 256, 1024, 2048, 4096, 8192, 16384],
        }
    }
}

pub(super) fn streaming<E>(
    operation: RowOperation,
    sizes: Sizes,
    rows: usize,
    visit: &mut dyn FnMut(Case) -> Result<(), E>,
) -> Result<(), E> {
    let mut generator = Generator::from_seed(11);
    let before: usize = sizes.rows().iter().take_while(|&&earlier| earlier != rows).sum();
    generator.skip_normals(before * COLUMNS);
    let affine = Drawn::draw(&mut Generator::from_seed(13), operation, COLUMNS);
    let program = Arc::new(affine.program(operation));
    for first in (0..rows).step_by(PIECE_ROWS) {
        let x = generator.normals_f32(PIECE_ROWS.min(rows - first) * COLUMNS);
        visit(affine.case(operation, &program, &x))?;
    }
    Ok(())
}

pub(super) fn normalisation(operation: RowOperation) -> Case {
    const ROWS: usize = 197;
    const WIDTH: usize = 768;
    let mut generator = Generator::from_seed(7);
    let x = generator.normals_f32(ROWS * WIDTH);
    let affine = Drawn::draw(&mut generator, operation, WIDTH);
    affine.case(operation, &Arc::new(affine.program(operation)), &x)
}

/// The gain and bias of the norms; empty for the other operators.
struct Drawn {
    columns: usize,
    gain: Vec<f32>,
    bias: Vec<f32>,
}

impl Drawn {
    fn draw(generator: &mut Generator, operation: RowOperation, columns: usize) -> Self {
        let (gains, biases) = match operation {
            RowOperation::LayerNorm => (columns, columns),
            RowOperation::RmsNorm => (columns, 0),
            _ => (0, 0),
        };
        let mut draw =
            |count, offset| -> Vec<f32> { generator.normals_f32(count).into_iter().map(|value| value * 0.1 + offset).collect() };
        let gain = draw(gains, 1.0);
        Self { columns, gain, bias: draw(biases, 0.0) }
    }

    fn program(&self, operation: RowOperation) -> Program {
        let tensor = |values: &[f32]| (!values.is_empty()).then(|| HalfTensor::new([values.len()], halves(values)));
        Program::Row { operation, gain: tensor(&self.gain), bias: tensor(&self.bias) }
    }

    fn case(&self, operation: RowOperation, program: &Arc<Program>, x: &[f32]) -> Case {
        let mut reference = Vec::with_capacity(x.len());
        for row in x.chunks_exact(self.columns) {
            self.reference(operation, row, &mut reference);
        }
        Case {
            part: 0,
            program: Arc::clone(program),
            inputs: vec![HalfTensor::new([x.len() / self.columns, self.columns], halves(x))],
            reference,
        }
    }

    fn reference(&self, operation: RowOperation, row: &[f32], output: &mut Vec<f64>) {
        let count = row.len() as f64;
        let values = || row.iter().map(|&value| f64::from(value));
        match operation {
            RowOperation::Relu => output.extend(values().map(|value| value.max(0.0))),
            RowOperation::Gelu => output.extend(values().map(gelu)),
            RowOperation::Sum => output.push(values().sum()),
            RowOperation::Softmax => {
                let largest = values().fold(f64::NEG_INFINITY, f64::max);
                let total: f64 = values().map(|value| (value - largest).exp()).sum();
                output.extend(values().map(|value| (value - largest).exp() / total));
            }
            RowOperation::LayerNorm => {
                let mean = values().sum::<f64>() / count;
                let variance = values().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count;
                let deviation = (variance + EPSILON).sqrt();
                let affine = self.gain.iter().zip(&self.bias);
                output.extend(
                    values()
                        .zip(affine)
                        .map(|(value, (&gain, &bias))| (value - mean) / deviation * f64::from(gain) + f64::from(bias)),
                );
            }
            RowOperation::RmsNorm => {
                let mean_square = values().map(|value| value * value).sum::<f64>() / count;
                let scale = (mean_square + EPSILON).sqrt();
                output.extend(values().zip(&self.gain).map(|(value, &gain)| value / scale * f64::from(gain)));
            }
        }
    }
}

/// Gelu in its tanh form, as the scripts write it.
pub(super) fn gelu(x: f64) -> f64 {
    let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
    x * 0.5 * (1.0 + inner.tanh())
}

fn halves(values: &[f32]) -> Vec<f16> {
    values.iter().map(|&value| f16::from_f32(value)).collect()
}
