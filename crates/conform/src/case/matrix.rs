//! Matrix products: square sweep, shaped, batched, and the Fourier transform as two products.

use std::f64::consts::PI;
use std::ops::Range;
use std::sync::Arc;

use super::{Case, HalfTensor, Program};
use crate::random::Generator;
use crate::reference::{Host, chain_product, to_half, to_halves};

/// Rows that the square sweep compares; the engine's rows do not depend on each other (published as
/// batch invariance), so only these are computed.
const COMPARED_ROWS: usize = 256;

/// Rows of weights that are drawn, rounded and multiplied at a time: only their fp16 form is kept.
const BLOCK_ROWS: usize = 256;

pub(super) fn square_product(size: usize) -> Case {
    let mut generator = Generator::from_seed(0);
    let scale = (size as f64).sqrt() as f32;
    let rows = COMPARED_ROWS.min(size);
    let mut draw = |count, skipped| -> Vec<f64> {
        let values = generator.normals_f32(count).into_iter().map(|value| f64::from(value / scale)).collect();
        generator.skip_normals(skipped);
        values
    };
    let x = draw(rows * size, (size - rows) * size);
    linear_case(vec![rows, size], &x, size, size, &mut |rows| draw(rows.len() * size, 0))
}

pub(super) fn product(host: Host, rows: usize, depth: usize, columns: usize) -> Case {
    let mut generator = Generator::from_seed(0);
    let x = scaled(&mut generator, host, rows * depth, depth);
    linear_case(vec![rows, depth], &x, depth, columns, &mut |rows| scaled(&mut generator, host, rows.len() * depth, depth))
}

pub(super) fn batched_product(host: Host, batch: usize) -> Case {
    const ROWS: usize = 128;
    const WIDTH: usize = 1024;
    let mut generator = Generator::from_seed(0);
    let weights = scaled(&mut generator, host, WIDTH * WIDTH, WIDTH);
    for smaller in [1, 4, 16, 64, 256].into_iter().take_while(|&smaller| smaller < batch) {
        generator.skip_normals(smaller * ROWS * WIDTH);
    }
    let x = scaled(&mut generator, host, batch * ROWS * WIDTH, WIDTH);
    linear_case(vec![batch, ROWS, WIDTH], &x, WIDTH, WIDTH, &mut |rows| weights[rows.start * WIDTH..rows.end * WIDTH].to_vec())
}

pub(super) fn fourier_transform(size: usize) -> [Case; 2] {
    let x = Generator::from_seed(2).normals(size);
    let part = |part: usize, function: fn(f64) -> f64| {
        let mut weights = |rows: Range<usize>| {
            (rows.start * size..rows.end * size)
                .map(|index| function(-2.0 * PI * ((index / size) * (index % size)) as f64 / size as f64))
                .collect()
        };
        Case { part, ..linear_case(vec![1, size], &x, size, size, &mut weights) }
    };
    [part(0, f64::cos), part(1, f64::sin)]
}

/// `standard_normal(count).astype(float32) / np.sqrt(depth)`.
fn scaled(generator: &mut Generator, host: Host, count: usize, depth: usize) -> Vec<f64> {
    let divisor = (depth as f64).sqrt();
    generator.normals_f32(count).into_iter().map(|value| host.divide(value, divisor)).collect()
}

/// `x @ weights.T` with the reference in f64, from values that are not yet rounded to fp16. `weights`
/// gives rows of the `[columns, depth]` weights and is asked for them in order.
fn linear_case(
    shape: Vec<usize>,
    x: &[f64],
    depth: usize,
    columns: usize,
    weights: &mut dyn FnMut(Range<usize>) -> Vec<f64>,
) -> Case {
    let rows = x.len() / depth;
    let transposed = transpose(x, depth);
    let mut halves = Vec::with_capacity(columns * depth);
    let mut reference = vec![0.0; rows * columns];
    for first in (0..columns).step_by(BLOCK_ROWS) {
        let block = weights(first..columns.min(first + BLOCK_ROWS));
        let products = chain_product(&block, &transposed, depth);
        for (index, product) in products.into_iter().enumerate() {
            reference[index % rows * columns + first + index / rows] = product;
        }
        halves.extend(block.into_iter().map(to_half));
    }
    Case {
        part: 0,
        program: Arc::new(Program::Linear { weights: HalfTensor::new([columns, depth], halves) }),
        inputs: vec![HalfTensor::new(shape, to_halves(x))],
        reference,
    }
}

/// The transpose of a row-major matrix with the given number of columns.
pub(super) fn transpose<T: Copy>(values: &[T], columns: usize) -> Vec<T> {
    (0..columns).flat_map(|column| values.iter().skip(column).step_by(columns).copied()).collect()
}
