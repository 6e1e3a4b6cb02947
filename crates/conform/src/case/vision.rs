//! Maps of an image: the classifier of the serving sweep and the group norm.

use std::sync::Arc;

use half::f16;

use super::attention::BATCHES;
use super::convolution::{he_kernels, layer_reference};
use super::{Affine, Case, HalfTensor, Program};
use crate::random::Generator;
use crate::reference::{Host, Image, chain_product, to_halves};

/// Channels of the images, of every layer, and classes.
const INPUT_CHANNELS: usize = 16;
const CHANNELS: usize = 64;
const CLASSES: usize = 100;
/// Height and width of the images.
const SIZE: usize = 32;
/// Convolutions.
const DEPTH: usize = 6;
/// What the group norm adds to the variance.
const EPSILON: f64 = 1e-5;

/// Six 3x3 convolutions with ReLU, the mean of each map, one linear layer.
pub(super) fn serving(host: Host, batch: usize) -> Case {
    let mut generator = Generator::from_seed(1);
    let kernels: Vec<Vec<f64>> = (0..DEPTH)
        .map(|layer| he_kernels(&mut generator, host, if layer == 0 { INPUT_CHANNELS } else { CHANNELS }, CHANNELS))
        .collect();
    let divisor = (CHANNELS as f64).sqrt();
    let classifier: Vec<f64> =
        generator.normals_f32(CLASSES * CHANNELS).into_iter().map(|value| host.divide(value, divisor)).collect();
    let pixels = INPUT_CHANNELS * SIZE * SIZE;
    BATCHES.into_iter().take_while(|&smaller| smaller < batch).for_each(|smaller| generator.skip_normals(smaller * pixels));
    let images = generator.normals_f32(batch * pixels);

    let mut reference = Vec::with_capacity(batch * CLASSES);
    for image in images.chunks_exact(pixels) {
        let values = image.iter().copied().map(f64::from).collect();
        let mut current = Image { shape: [INPUT_CHANNELS, SIZE, SIZE], values };
        for kernels in &kernels {
            current = layer_reference(host, &current, kernels);
            current.values.iter_mut().for_each(|value| *value = value.max(0.0));
        }
        let means: Vec<f64> =
            current.values.chunks_exact(SIZE * SIZE).map(|map| map.iter().sum::<f64>() / map.len() as f64).collect();
        reference.extend(chain_product(&classifier, &means, CHANNELS));
    }

    let mut inputs = INPUT_CHANNELS;
    let layers = kernels.iter().map(|kernels| {
        let tensor = HalfTensor::new([CHANNELS, inputs, 3, 3], to_halves(kernels));
        inputs = CHANNELS;
        Arc::new(tensor)
    });
    let program =
        Program::Classifier { layers: layers.collect(), weights: HalfTensor::new([CLASSES, CHANNELS], to_halves(&classifier)) };
    let halves = images.into_iter().map(f16::from_f32).collect();
    let inputs = vec![HalfTensor::new([batch, INPUT_CHANNELS, SIZE, SIZE], halves)];
    Case { part: 0, program: Arc::new(program), inputs, reference }
}

/// The group norm of `[1, channels, size, size]`; the script's reference is float32, this one f64.
pub(super) fn group_norm(channels: usize, size: usize, groups: usize) -> Case {
    let mut generator = Generator::from_seed(7);
    let x = generator.normals_f32(channels * size * size);
    let mut draw =
        |offset: f32| -> Vec<f32> { generator.normals_f32(channels).into_iter().map(|value| value * 0.1 + offset).collect() };
    let (gain, bias) = (draw(1.0), draw(0.0));

    let mut reference = Vec::with_capacity(x.len());
    let per_group = x.len() / groups;
    for (group, values) in x.chunks_exact(per_group).enumerate() {
        let mean = values.iter().map(|&value| f64::from(value)).sum::<f64>() / per_group as f64;
        let variance = values.iter().map(|&value| (f64::from(value) - mean).powi(2)).sum::<f64>() / per_group as f64;
        let deviation = (variance + EPSILON).sqrt();
        reference.extend(values.iter().enumerate().map(|(index, &value)| {
            let channel = group * (channels / groups) + index / (size * size);
            (f64::from(value) - mean) / deviation * f64::from(gain[channel]) + f64::from(bias[channel])
        }));
    }

    let halves = |values: &[f32]| values.iter().map(|&value| f16::from_f32(value)).collect();
    let tensor = |values: &[f32]| HalfTensor::new([channels], halves(values));
    Case {
        part: 0,
        program: Arc::new(Program::GroupNorm { groups, affine: Affine { gain: tensor(&gain), bias: tensor(&bias) } }),
        inputs: vec![HalfTensor::new([1, channels, size, size], halves(&x))],
        reference,
    }
}
