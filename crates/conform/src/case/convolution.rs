//! 3x3 convolutions: the channel sweep, the deep stack, and the five-point stencil.

use std::sync::Arc;

use half::f16;

use super::{Case, HalfTensor, Program};
use crate::random::Generator;
use crate::reference::{Host, Image, Stride1, to_halves};

/// Height and width of the channel sweep's images.
const SWEEP_SIZE: usize = 64;
/// Height and width of the stack's image.
const STACK_SIZE: usize = 32;

pub(super) fn sweep(host: Host, channels: usize, batch: usize) -> Case {
    let mut generator = Generator::from_seed(1);
    let pixels = channels * SWEEP_SIZE * SWEEP_SIZE;
    // The error is taken over the first image, and the engine's images do not depend on each other
    // (published as batch invariance): the others are drawn and dropped.
    let image = generator.normals_f32(pixels);
    generator.skip_normals((batch - 1) * pixels);
    let kernels = he_kernels(&mut generator, host, channels, channels);
    stack_case(host, image, [channels, SWEEP_SIZE, SWEEP_SIZE], &[kernels], false)
}

pub(super) fn stack(host: Host, input_channels: usize, channels: usize, depth: usize) -> Case {
    let mut generator = Generator::from_seed(1);
    let image = generator.normals_f32(input_channels * STACK_SIZE * STACK_SIZE);
    let kernels: Vec<_> = (0..depth)
        .map(|layer| he_kernels(&mut generator, host, if layer == 0 { input_channels } else { channels }, channels))
        .collect();
    stack_case(host, image, [input_channels, STACK_SIZE, STACK_SIZE], &kernels, true)
}

pub(super) fn stencil(size: usize, steps: usize) -> Case {
    let start = Generator::from_seed(3).normals_f32(size * size);
    let step = 0.1f32;
    let mut kernel = [0.0, 1.0, 0.0, 1.0, -4.0, 1.0, 0.0, 1.0, 0.0].map(|weight: f32| step * weight);
    kernel[4] += 1.0;
    let kernels = vec![kernel.map(f64::from).to_vec(); steps];
    // The kernel is float32 from the start, whatever the numpy: the reference runs in f32 throughout.
    stack_case(Host::NumPy1, start, [1, size, size], &kernels, false)
}

/// `standard_normal([outputs, inputs, 3, 3]).astype(float32) * np.sqrt(2 / (inputs * 9))`.
pub(super) fn he_kernels(generator: &mut Generator, host: Host, inputs: usize, outputs: usize) -> Vec<f64> {
    let fan_in = inputs * 9;
    let scale = (2.0 / fan_in as f64).sqrt();
    generator.normals_f32(outputs * fan_in).into_iter().map(|value| host.scale(value, scale)).collect()
}

/// A chain of convolutions on one image, with the host's reference: each layer's input is float32
/// (the buffer that einsum reads), its kernels and sums are float32 under NumPy 1 and float64 under
/// NumPy 2.
fn stack_case(host: Host, image: Vec<f32>, shape: [usize; 3], kernels: &[Vec<f64>], relu: bool) -> Case {
    let [channels, height, width] = shape;
    let mut layers: Vec<Arc<HalfTensor>> = Vec::with_capacity(kernels.len());
    let mut current = Image { shape, values: image.iter().copied().map(f64::from).collect() };
    for (index, kernels_of_layer) in kernels.iter().enumerate() {
        let inputs = current.shape[0];
        let outputs = kernels_of_layer.len() / (inputs * 9);
        let repeated = index > 0 && kernels[index - 1] == *kernels_of_layer;
        layers.push(match layers.last() {
            Some(last) if repeated => Arc::clone(last),
            _ => Arc::new(HalfTensor::new([outputs, inputs, 3, 3], to_halves(kernels_of_layer))),
        });
        current = layer_reference(host, &current, kernels_of_layer);
        if relu {
            current.values.iter_mut().for_each(|value| *value = value.max(0.0));
        }
    }
    let input = HalfTensor::new(vec![1, channels, height, width], image.into_iter().map(f16::from_f32).collect());
    Case { part: 0, program: Arc::new(Program::Convolutions { layers, relu }), inputs: vec![input], reference: current.values }
}

/// One layer on the host: its input is float32, kernels and sums are float32 under NumPy 1 and float64 under NumPy 2.
pub(super) fn layer_reference(host: Host, input: &Image<f64>, kernels: &[f64]) -> Image<f64> {
    let narrow = Image { shape: input.shape, values: input.values.iter().map(|&value| value as f32).collect::<Vec<_>>() };
    match host {
        Host::NumPy1 => {
            let kernels: Vec<f32> = kernels.iter().map(|&value| value as f32).collect();
            let output = Stride1 { kernels: &kernels }.convolve(&narrow);
            Image { shape: output.shape, values: output.values.into_iter().map(f64::from).collect() }
        }
        Host::NumPy2 => {
            let wide = Image { shape: input.shape, values: narrow.values.into_iter().map(f64::from).collect() };
            Stride1 { kernels }.convolve(&wide)
        }
    }
}
