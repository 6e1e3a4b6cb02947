//! A 12-layer transformer encoder with weights in memory, from graph to files: what `upstream_mil.py time` does as well.

use crate::side::Result;
use aneforge::{CompileOptions, DType, Graph, Tensor, Weight, compile};
use std::path::Path;
use std::time::{Duration, Instant};

const LAYERS: usize = 12;
const LENGTH: usize = 128;
const WIDTH: usize = 768;
const INNER: usize = 3072;
const HEADS: usize = 12;

/// One layer's matrices and vectors in the order in which [`layer`] takes them.
pub struct Weights {
    layers: Vec<Vec<Weight>>,
}

impl Weights {
    /// Small numbers that differ everywhere, so that nothing is stored once for many; fp32, as a checkpoint holds them.
    pub fn random() -> Result<Self> {
        let mut state = 1u32;
        let mut draw = |shape: &[usize]| {
            let draw_one = |_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                // The state's best bits; between -1/16 and 1/16.
                (state as i32 >> 8) as f32 / 2f32.powi(27)
            };
            Weight::from_fp32(shape, (0..shape.iter().product()).map(draw_one).collect())
        };
        let square: &[usize] = &[WIDTH, WIDTH];
        let vector: &[usize] = &[WIDTH];
        let shapes = [
            vector,
            vector,
            square,
            vector,
            square,
            vector,
            square,
            vector,
            square,
            vector,
            vector,
            vector,
            &[INNER, WIDTH],
            &[INNER],
            &[WIDTH, INNER],
            vector,
        ];
        let layers = (0..LAYERS)
            .map(|_| shapes.iter().map(|shape| draw(shape)).collect::<std::result::Result<Vec<_>, _>>())
            .collect::<std::result::Result<Vec<_>, _>>()?;
        Ok(Self { layers })
    }
}

/// Builds the graph, then times its way to a bundle on disk.
pub fn to_files(weights: &Weights, bundle: &Path) -> Result<Duration> {
    let graph = Graph::new();
    let mut x = graph.input("x", DType::Fp16, &[LENGTH, WIDTH]);
    for layer_weights in &weights.layers {
        let tensors: Vec<Tensor> = layer_weights.iter().map(|weight| graph.weight(weight.clone())).collect();
        x = layer(&x, &tensors);
    }
    let start = Instant::now();
    compile(&[("y", &x)], &CompileOptions::default())?.write(bundle)?;
    Ok(start.elapsed())
}

fn layer(x: &Tensor, w: &[Tensor]) -> Tensor {
    let normal = x.layer_norm(-1, Some(&w[0]), Some(&w[1]), 1e-5);
    let depth = WIDTH / HEADS;
    let heads = |matrix: &Tensor, bias: &Tensor| {
        let split = [LENGTH as i64, HEADS as i64, depth as i64];
        normal.linear(matrix, Some(bias)).reshape(&split).transpose(&[1, 0, 2])
    };
    let (query, key, value) = (heads(&w[2], &w[3]), heads(&w[4], &w[5]), heads(&w[6], &w[7]));
    let scores = query.matmul(&key.transpose(&[0, 2, 1])) * (1.0 / (depth as f64).sqrt());
    let mixed = scores.softmax(-1).matmul(&value).transpose(&[1, 0, 2]).reshape(&[LENGTH as i64, WIDTH as i64]);
    let x = x + &mixed.linear(&w[8], Some(&w[9]));
    let normal = x.layer_norm(-1, Some(&w[10]), Some(&w[11]), 1e-5);
    &x + &normal.linear(&w[12], Some(&w[13])).gelu("EXACT").linear(&w[14], Some(&w[15]))
}
