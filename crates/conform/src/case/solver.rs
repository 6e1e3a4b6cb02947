//! The Jacobi solver.

use std::sync::Arc;

use half::f16;

use super::{Case, HalfTensor, Program, matrix};
use crate::random::Generator;
use crate::reference::chain_product;

pub(super) fn jacobi(size: usize, iterations: usize) -> Case {
    let mut generator = Generator::from_seed(8);
    let basis = generator.normals_f32(size * size);
    // The hosts' sgemm: one f32 fused multiply-add chain per element (Accelerate on M4 and M5 matches
    // this to the last digit; the order that the M1 and M2 hosts summed in is not known).
    let mut matrix = chain_product(&basis, &matrix::transpose(&basis, size), size);
    for (index, value) in matrix.iter_mut().enumerate() {
        *value /= size as f32;
        if index % size == index / size {
            *value += size as f32;
        }
    }
    let right_side = generator.normals_f32(size);
    let diagonal: Vec<f32> = (0..size).map(|index| matrix[index * size + index]).collect();
    for index in 0..size {
        matrix[index * size + index] = 0.0;
    }
    let inverse: Vec<f32> = diagonal.iter().map(|&value| 1.0 / value).collect();

    let mut solution = vec![0.0f64; size];
    for _ in 0..iterations {
        solution = (0..size)
            .map(|row| {
                let line = &matrix[row * size..][..size];
                let product: f64 = line.iter().zip(&solution).map(|(&left, right)| f64::from(left) * right).sum();
                (f64::from(right_side[row]) - product) / f64::from(diagonal[row])
            })
            .collect();
    }

    let halves = |values: &[f32]| values.iter().map(|&value| f16::from_f32(value)).collect::<Vec<_>>();
    Case {
        part: 0,
        program: Arc::new(Program::Jacobi { weights: HalfTensor::new([size, size], halves(&matrix)), iterations }),
        inputs: vec![
            HalfTensor::zeros([1, size]),
            HalfTensor::new([1, size], halves(&right_side)),
            HalfTensor::new([1, size], halves(&inverse)),
        ],
        reference: solution,
    }
}
