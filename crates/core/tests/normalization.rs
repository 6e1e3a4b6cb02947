//! Normalisations at the edges of fp16: huge deviations, rows without any, epsilons that fp16 cannot hold. Each program runs here
//! with every intermediate rounded to fp16, which is harsher than any device.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

#[path = "support/rounded.rs"]
mod rounded;

use aneforge_core::{Array, DType, Graph, Target, Tensor, lower};

fn run_in_fp16(output: &Tensor, input: &Array) -> Vec<f64> {
    let body = lower(&[("y".to_string(), output.clone())], Target::Generic).unwrap();
    rounded::run(&body, std::slice::from_ref(input))
}

/// x minus its mean, over the root of variance plus epsilon, in f64.
fn standardised(x: &[f64], epsilon: f64) -> Vec<f64> {
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    let variance = x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / x.len() as f64;
    x.iter().map(|x| if variance + epsilon == 0.0 { 0.0 } else { (x - mean) / (variance + epsilon).sqrt() }).collect()
}

/// Rows of eight: usual, deviations past the root of 65504, the whole range, tiny, constant, constant and huge, smallest numbers.
const ROWS: [[f64; 8]; 7] = [
    [0.5, -1.0, 2.0, 0.25, -0.75, 1.5, -2.0, 0.125],
    [400.0, -300.0, 350.0, -500.0, 256.0, -256.0, 1000.0, -1000.0],
    [65504.0, -65504.0, 30000.0, -30000.0, 0.0, 1.0, -1.0, 50000.0],
    [0.0001220703125, 0.0, -0.0001220703125, 0.000244140625, 0.0, 0.0, 0.0001220703125, -0.000244140625],
    [3.0; 8],
    [60000.0; 8],
    [5.960464477539063e-8, 0.0, 0.0, 0.0, -5.960464477539063e-8, 0.0, 0.0, 0.0],
];

fn edges() -> Array {
    Array::new(DType::Fp16, [7, 8], ROWS.concat()).rounded()
}

#[test]
fn layer_norm_is_right_at_the_edges_of_fp16() {
    for epsilon in [1e-12, 1e-7, 1e-6, 1e-5, 1e-3] {
        let graph = Graph::new();
        let x = graph.input("x", DType::Fp16, &[7, 8]);
        let y = run_in_fp16(&x.layer_norm(-1, None, None, epsilon), &edges());
        for (index, (row, got)) in edges().data.chunks(8).zip(y.chunks(8)).enumerate() {
            // 1e-6 is held by fp16 with an error of 1.3 %, which shows where the variance is as small.
            let slack = if epsilon == 1e-6 || epsilon == 1e-7 { 2e-2 } else { 4e-3 };
            for (got, want) in got.iter().zip(standardised(row, epsilon)) {
                assert!((got - want).abs() <= slack * (1.0 + want.abs()), "epsilon {epsilon}, row {index}: {got}, expected {want}");
            }
        }
    }
}

#[test]
fn rms_norm_is_right_at_the_edges_of_fp16() {
    for epsilon in [1e-12, 1e-6, 1e-5] {
        let graph = Graph::new();
        let x = graph.input("x", DType::Fp16, &[7, 8]);
        let y = run_in_fp16(&x.rms_norm(-1, None, epsilon), &edges());
        for (index, (row, got)) in edges().data.chunks(8).zip(y.chunks(8)).enumerate() {
            let square = row.iter().map(|x| x * x).sum::<f64>() / 8.0;
            for (got, x) in got.iter().zip(row) {
                let want = x / (square + epsilon).sqrt();
                // The last row consists of the smallest fp16 number, whose eighth root mean square fp16 cannot hold.
                let slack = if index == 6 { 1.0 } else { 5e-3 };
                assert!(
                    got.is_finite() && (got - want).abs() <= slack * (1.0 + want.abs()),
                    "epsilon {epsilon}, row {index}: {got}, expected {want}"
                );
            }
        }
    }
}

#[test]
fn group_and_instance_norm_share_that() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[1, 7, 8]);
    let edges = Array { ty: aneforge_core::TensorType::new(DType::Fp16, [1, 7, 8]), ..edges() };
    for y in [x.instance_norm(None, None, 1e-12), x.group_norm(7, None, None, 1e-12)] {
        for (row, got) in edges.data.chunks(8).zip(run_in_fp16(&y, &edges).chunks(8)) {
            for (got, want) in got.iter().zip(standardised(row, 1e-12)) {
                assert!((got - want).abs() <= 4e-3 * (1.0 + want.abs()), "{got}, expected {want}");
            }
        }
    }
}

#[test]
fn normalising_zeros_gives_zeros() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[2, 3]);
    let zeros = Array::new(DType::Fp16, [2, 3], vec![0.0; 6]);
    for y in [x.l2_norm(-1, 1e-12), x.l2_norm(-1, 0.0), x.rms_norm(-1, None, 0.0), x.layer_norm(-1, None, None, 1e-12)] {
        assert_eq!(run_in_fp16(&y, &zeros), [0.0; 6]);
    }
}

#[test]
fn a_variance_of_zero_does_not_make_batch_norm_infinite() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[1, 1, 2]);
    let (mean, variance) = (graph.values(DType::Fp16, &[1], &[1.0]), graph.values(DType::Fp16, &[1], &[0.0]));
    let y = x.batch_norm(&mean, &variance, None, None, 1e-12);
    let values = run_in_fp16(&y, &Array::new(DType::Fp16, [1, 1, 2], vec![1.0, 1.5]));
    assert_eq!(values[0], 0.0);
    assert!(values[1].is_finite());
}
