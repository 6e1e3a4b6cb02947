//! The pre-norm transformer block of the serving sweep.

use std::sync::Arc;

use super::attention::{Block, SERVING_SEQUENCE, WIDTH, draw_bias, draw_weights, linear, projection, serving_input};
use super::row::gelu;
use super::{Affine, Case, EncoderBlock, HalfTensor, Program};
use crate::random::Generator;
use crate::reference::{Host, to_halves};

/// Width of the block's inner layer.
const INNER: usize = 3072;
/// What the norms add to the variance.
const EPSILON: f64 = 1e-5;

/// `x + attention(norm(x))`, then `x + mlp(norm(x))`; the reference is f64 throughout.
pub(super) fn serving(host: Host, batch: usize) -> Case {
    let mut generator = Generator::from_seed(5);
    let attention = Block::draw(&mut generator, host);
    let widen = (draw_weights(&mut generator, host, INNER * WIDTH), draw_bias(&mut generator, INNER));
    let narrow = (draw_weights(&mut generator, host, WIDTH * INNER), draw_bias(&mut generator, WIDTH));
    let norms = [Norm::draw(&mut generator), Norm::draw(&mut generator)];
    let x = serving_input(&mut generator, batch);

    let mut reference = x.clone();
    add(&mut reference, &attention.reference(&norms[0].of(&x), SERVING_SEQUENCE));
    let mut inner = linear(&norms[1].of(&reference), &widen.0, &widen.1);
    inner.iter_mut().for_each(|value| *value = gelu(*value));
    add(&mut reference, &linear(&inner, &narrow.0, &narrow.1));

    let program = EncoderBlock {
        projections: attention.projections(),
        mlp: [projection(&widen.0, &widen.1), projection(&narrow.0, &narrow.1)],
        norms: norms.map(|norm| norm.halves()),
    };
    Case {
        part: 0,
        program: Arc::new(Program::Encoder(Box::new(program))),
        inputs: vec![HalfTensor::new([batch, SERVING_SEQUENCE, WIDTH], to_halves(&x))],
        reference,
    }
}

fn add(values: &mut [f64], others: &[f64]) {
    values.iter_mut().zip(others).for_each(|(value, other)| *value += other);
}

/// Gain and bias of a layer norm.
struct Norm {
    gain: Vec<f64>,
    bias: Vec<f64>,
}

impl Norm {
    fn draw(generator: &mut Generator) -> Self {
        let mut draw = |offset: f32| -> Vec<f64> {
            generator.normals_f32(WIDTH).into_iter().map(|value| f64::from(value * 0.1 + offset)).collect()
        };
        Self { gain: draw(1.0), bias: draw(0.0) }
    }

    fn of(&self, x: &[f64]) -> Vec<f64> {
        let mut result = Vec::with_capacity(x.len());
        for row in x.chunks_exact(WIDTH) {
            let mean = row.iter().sum::<f64>() / WIDTH as f64;
            let variance = row.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / WIDTH as f64;
            let deviation = (variance + EPSILON).sqrt();
            let affine = self.gain.iter().zip(&self.bias);
            result.extend(row.iter().zip(affine).map(|(value, (gain, bias))| (value - mean) / deviation * gain + bias));
        }
        result
    }

    fn halves(&self) -> Affine {
        let tensor = |values: &[f64]| HalfTensor::new([WIDTH], to_halves(values));
        Affine { gain: tensor(&self.gain), bias: tensor(&self.bias) }
    }
}
