//! Multi-head self-attention, projections included: alone and as served in batches.

use std::sync::Arc;

use super::{Case, HalfTensor, Program, Projection, matrix::transpose};
use crate::random::Generator;
use crate::reference::{Host, chain_product, to_halves};

pub(super) const WIDTH: usize = 768;
const HEADS: usize = 12;
const HEAD_WIDTH: usize = WIDTH / HEADS;
/// The batches of the serving sweep; each draws its inputs after those of the smaller ones.
pub(super) const BATCHES: [usize; 5] = [1, 4, 16, 64, 256];
/// Sequence length of the serving sweep.
pub(super) const SERVING_SEQUENCE: usize = 128;

/// The vit and longseq attention workloads; the reference is f64 throughout.
pub(super) fn attention(host: Host, sequence: usize) -> Case {
    let mut generator = Generator::from_seed(5);
    let block = Block::draw(&mut generator, host);
    let x: Vec<f64> = generator.normals_f32(sequence * WIDTH).into_iter().map(f64::from).collect();
    block.case(vec![sequence, WIDTH], &x, sequence)
}

/// The attention block of the serving sweep.
pub(super) fn serving(host: Host, batch: usize) -> Case {
    let mut generator = Generator::from_seed(7);
    let block = Block::draw(&mut generator, host);
    let x = serving_input(&mut generator, batch);
    block.case(vec![batch, SERVING_SEQUENCE, WIDTH], &x, SERVING_SEQUENCE)
}

/// The input of a batch of the serving sweep.
pub(super) fn serving_input(generator: &mut Generator, batch: usize) -> Vec<f64> {
    const ELEMENTS: usize = SERVING_SEQUENCE * WIDTH;
    BATCHES.into_iter().take_while(|&smaller| smaller < batch).for_each(|smaller| generator.skip_normals(smaller * ELEMENTS));
    generator.normals_f32(batch * ELEMENTS).into_iter().map(f64::from).collect()
}

/// Query, key, value and output projection.
pub(super) struct Block {
    weights: [Vec<f64>; 4],
    biases: [Vec<f64>; 4],
}

impl Block {
    pub(super) fn draw(generator: &mut Generator, host: Host) -> Self {
        Self {
            weights: std::array::from_fn(|_| draw_weights(generator, host, WIDTH * WIDTH)),
            biases: std::array::from_fn(|_| draw_bias(generator, WIDTH)),
        }
    }

    /// Attention of sequences one after the other.
    pub(super) fn reference(&self, x: &[f64], sequence: usize) -> Vec<f64> {
        x.chunks_exact(sequence * WIDTH).flat_map(|x| self.reference_of_one(x, sequence)).collect()
    }

    fn reference_of_one(&self, x: &[f64], sequence: usize) -> Vec<f64> {
        let [query, key, value] = [0, 1, 2].map(|index| linear(x, &self.weights[index], &self.biases[index]));
        let mut mixed = vec![0.0; sequence * WIDTH];
        for head in 0..HEADS {
            let [query, key, value] = [&query, &key, &value].map(|all| head_columns(all, head));
            let mut scores = chain_product(&query, &transpose(&key, HEAD_WIDTH), HEAD_WIDTH);
            for row in scores.chunks_exact_mut(sequence) {
                softmax(row);
            }
            let output = chain_product(&scores, &value, sequence);
            for (row, line) in output.chunks_exact(HEAD_WIDTH).enumerate() {
                mixed[row * WIDTH + head * HEAD_WIDTH..][..HEAD_WIDTH].copy_from_slice(line);
            }
        }
        linear(&mixed, &self.weights[3], &self.biases[3])
    }

    pub(super) fn projections(&self) -> Vec<Projection> {
        self.weights.iter().zip(&self.biases).map(|(weights, bias)| projection(weights, bias)).collect()
    }

    fn case(&self, shape: Vec<usize>, x: &[f64], sequence: usize) -> Case {
        Case {
            part: 0,
            program: Arc::new(Program::Attention { projections: self.projections(), heads: HEADS }),
            reference: self.reference(x, sequence),
            inputs: vec![HalfTensor::new(shape, to_halves(x))],
        }
    }
}

pub(super) fn draw_weights(generator: &mut Generator, host: Host, count: usize) -> Vec<f64> {
    let scale = 1.0 / (WIDTH as f64).sqrt();
    generator.normals_f32(count).into_iter().map(|value| host.scale(value, scale)).collect()
}

/// A Python float keeps float32 under either numpy.
pub(super) fn draw_bias(generator: &mut Generator, count: usize) -> Vec<f64> {
    generator.normals_f32(count).into_iter().map(|value| f64::from(value * 0.01)).collect()
}

pub(super) fn projection(weights: &[f64], bias: &[f64]) -> Projection {
    Projection {
        weights: HalfTensor::new([bias.len(), weights.len() / bias.len()], to_halves(weights)),
        bias: HalfTensor::new([bias.len()], to_halves(bias)),
    }
}

/// `x @ weights.T + bias`; the weights have as many rows as the bias has elements.
pub(super) fn linear(x: &[f64], weights: &[f64], bias: &[f64]) -> Vec<f64> {
    let depth = weights.len() / bias.len();
    let mut result = chain_product(x, &transpose(weights, depth), depth);
    for row in result.chunks_exact_mut(bias.len()) {
        row.iter_mut().zip(bias).for_each(|(value, bias)| *value += bias);
    }
    result
}

fn head_columns(all: &[f64], head: usize) -> Vec<f64> {
    all.chunks_exact(WIDTH).flat_map(|row| &row[head * HEAD_WIDTH..][..HEAD_WIDTH]).copied().collect()
}

/// With the 1 / sqrt(head width) scale and the row's maximum taken off first.
fn softmax(row: &mut [f64]) {
    let scale = 1.0 / (HEAD_WIDTH as f64).sqrt();
    row.iter_mut().for_each(|score| *score *= scale);
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    row.iter_mut().for_each(|score| *score = (*score - largest).exp());
    let total: f64 = row.iter().sum();
    row.iter_mut().for_each(|score| *score /= total);
}
