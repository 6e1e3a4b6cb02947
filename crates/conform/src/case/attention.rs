//! Multi-head self-attention, projections included.

use std::sync::Arc;

use super::{Case, HalfTensor, Program, Projection, matrix::transpose};
use crate::random::Generator;
use crate::reference::{Host, chain_product, to_halves};

const WIDTH: usize = 768;
const HEADS: usize = 12;
const HEAD_WIDTH: usize = WIDTH / HEADS;

/// The vit and longseq attention workloads; the reference is f64 throughout.
pub(super) fn attention(host: Host, sequence: usize) -> Case {
    let mut generator = Generator::from_seed(5);
    let scale = 1.0 / (WIDTH as f64).sqrt();
    let weights: [Vec<f64>; 4] =
        std::array::from_fn(|_| generator.normals_f32(WIDTH * WIDTH).into_iter().map(|value| host.scale(value, scale)).collect());
    // A Python float keeps float32 under either numpy.
    let biases: [Vec<f64>; 4] =
        std::array::from_fn(|_| generator.normals_f32(WIDTH).into_iter().map(|value| f64::from(value * 0.01)).collect());
    let x: Vec<f64> = generator.normals_f32(sequence * WIDTH).into_iter().map(f64::from).collect();

    let [query, key, value] = [0, 1, 2].map(|index| linear(&x, &weights[index], &biases[index]));
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
    let reference = linear(&mixed, &weights[3], &biases[3]);

    let projections = weights.iter().zip(&biases).map(|(weights, bias)| Projection {
        weights: HalfTensor::new([WIDTH, WIDTH], to_halves(weights)),
        bias: HalfTensor::new([WIDTH], to_halves(bias)),
    });
    Case {
        part: 0,
        program: Arc::new(Program::Attention { projections: projections.collect(), heads: HEADS }),
        inputs: vec![HalfTensor::new([sequence, WIDTH], to_halves(&x))],
        reference,
    }
}

fn linear(x: &[f64], weights: &[f64], bias: &[f64]) -> Vec<f64> {
    let mut result = chain_product(x, &transpose(weights, WIDTH), WIDTH);
    for row in result.chunks_exact_mut(WIDTH) {
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
