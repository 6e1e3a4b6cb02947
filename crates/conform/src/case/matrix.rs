//! Matrix products: square sweep, shaped, batched, and the Fourier transform as two products.

use std::f64::consts::PI;
use std::sync::Arc;

use super::{Case, HalfTensor, Program};
use crate::random::Generator;
use crate::reference::{Host, chain_product, to_halves};

/// Rows that the square sweep compares; the engine's rows do not depend on each other (published as
/// batch invariance), so only these are computed.
const COMPARED_ROWS: usize = 256;

pub(super) fn square_product(size: usize) -> Case {
    let mut generator = Generator::from_seed(0);
    let scale = (size as f64).sqrt() as f32;
    let rows = COMPARED_ROWS.min(size);
    let draw = |generator: &mut Generator, count| -> Vec<f64> {
        generator.normals_f32(count).into_iter().map(|value| f64::from(value / scale)).collect()
    };
    let x = draw(&mut generator, rows * size);
    generator.skip_normals((size - rows) * size);
    let weights = draw(&mut generator, size * size);
    linear_case(vec![rows, size], &x, &weights, size)
}

pub(super) fn product(host: Host, rows: usize, depth: usize, columns: usize) -> Case {
    let mut generator = Generator::from_seed(0);
    let x = scaled(&mut generator, host, rows * depth, depth);
    let weights = scaled(&mut generator, host, columns * depth, depth);
    linear_case(vec![rows, depth], &x, &weights, depth)
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
    linear_case(vec![batch, ROWS, WIDTH], &x, &weights, WIDTH)
}

pub(super) fn fourier_transform(size: usize) -> [Case; 2] {
    let x = Generator::from_seed(2).normals(size);
    let part = |part: usize, function: fn(f64) -> f64| {
        let weights: Vec<f64> =
            (0..size * size).map(|index| function(-2.0 * PI * ((index / size) * (index % size)) as f64 / size as f64)).collect();
        Case { part, ..linear_case(vec![1, size], &x, &weights, size) }
    };
    [part(0, f64::cos), part(1, f64::sin)]
}

/// `standard_normal(count).astype(float32) / np.sqrt(depth)`.
fn scaled(generator: &mut Generator, host: Host, count: usize, depth: usize) -> Vec<f64> {
    let divisor = (depth as f64).sqrt();
    generator.normals_f32(count).into_iter().map(|value| host.divide(value, divisor)).collect()
}

/// `x @ weights.T` with the reference in f64, from values that are not yet rounded to fp16.
fn linear_case(shape: Vec<usize>, x: &[f64], weights: &[f64], depth: usize) -> Case {
    let columns = weights.len() / depth;
    let reference = transpose(&chain_product(weights, &transpose(x, depth), depth), x.len() / depth);
    Case {
        part: 0,
        program: Arc::new(Program::Linear { weights: HalfTensor::new([columns, depth], to_halves(weights)) }),
        inputs: vec![HalfTensor::new(shape, to_halves(x))],
        reference,
    }
}

/// The transpose of a row-major matrix with the given number of columns.
pub(super) fn transpose<T: Copy>(values: &[T], columns: usize) -> Vec<T> {
    (0..columns).flat_map(|column| values.iter().skip(column).step_by(columns).copied()).collect()
}
