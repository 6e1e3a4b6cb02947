//! A small classifier and its data, shared by the tests of trainers.
#![allow(dead_code, clippy::unwrap_used)]

pub mod llama;

use aneforge_core::{DType, HostArray, Tensor, Window};
use aneforge_nn::{
    BatchNorm, Conv2d, DataPort, Linear, NnError, Outcome, Parameters, Pass, Recipe, ResidentTrainer, Sampler, StepReport,
    Training, loss,
};
use aneforge_runtime::Device;
use aneforge_testkit::Random;
use std::sync::Arc;

pub const BATCH: usize = 16;
pub const CLASSES: usize = 4;
pub const SIDE: usize = 8;
pub const COUNT: usize = 128;

/// conv, batch norm, relu, pool, conv, relu, pool, dense.
pub struct Net {
    first: Conv2d,
    norm: BatchNorm,
    second: Conv2d,
    dense: Linear,
}

impl Net {
    pub fn new(parameters: &mut Parameters) -> Result<Self, NnError> {
        let mut root = parameters.root();
        let padded = Window::default().padding(1);
        Ok(Self {
            first: Conv2d::new(&mut root.scope("conv1"), (1, 8), 3, &padded, true)?,
            norm: BatchNorm::new(&mut root.scope("norm"), 8)?,
            second: Conv2d::new(&mut root.scope("conv2"), (8, 16), 3, &padded, true)?,
            dense: Linear::new(&mut root.scope("dense"), 16 * (SIDE / 4) * (SIDE / 4), CLASSES, true)?,
        })
    }

    pub fn logits(&self, pass: &Pass, x: &Tensor) -> Tensor {
        let pool = Window::square(2);
        let x = self.norm.apply(pass, &self.first.apply(pass, x)).relu().max_pool(&pool);
        let x = self.second.apply(pass, &x).relu().max_pool(&pool);
        let batch = x.shape().map_or(1, |shape| shape[0]) as i64;
        self.dense.apply(pass, &x.reshape(&[batch, -1]))
    }

    pub fn outcome(&self, pass: &Pass, inputs: &[Tensor]) -> Outcome {
        let logits = self.logits(pass, &inputs[0]);
        let metrics = vec![("accuracy".to_string(), loss::accuracy(&logits, &inputs[1]))];
        Outcome { loss: loss::cross_entropy(&logits, &inputs[1], 0.0), metrics }
    }
}

pub fn ports() -> Vec<DataPort> {
    vec![DataPort::values("images", &[BATCH, 1, SIDE, SIDE]), DataPort::labels("labels", &[BATCH], CLASSES)]
}

/// Images of one pattern per class under noise as large as the pattern.
pub struct Data {
    pub images: Vec<f64>,
    pub labels: Vec<usize>,
}

impl Data {
    pub fn new() -> Self {
        let mut random = Random::new(77);
        let pixels = SIDE * SIDE;
        let patterns: Vec<Vec<f64>> = (0..CLASSES).map(|_| random.values(pixels, -1.0, 1.0)).collect();
        let labels: Vec<usize> = (0..COUNT).map(|_| random.below(CLASSES)).collect();
        let mut images = Vec::new();
        for &label in &labels {
            let noise = random.values(pixels, -2.0, 2.0);
            let pixel = patterns[label].iter().zip(noise).map(|(pattern, noise)| 0.5 * pattern + 0.5 * noise);
            images.extend(pixel.map(|value| aneforge_core::round_to_fp16(value).to_f64()));
        }
        Self { images, labels }
    }

    /// The arrays of a batch.
    pub fn batch(&self, places: &[usize]) -> Vec<HostArray> {
        let pixels = SIDE * SIDE;
        let images: Vec<f64> = places.iter().flat_map(|&place| self.images[place * pixels..][..pixels].iter().copied()).collect();
        let labels: Vec<i32> = places.iter().map(|&place| self.labels[place] as i32).collect();
        vec![
            HostArray::from_f64(DType::Fp16, [places.len(), 1, SIDE, SIDE], &images).unwrap(),
            HostArray::from_i32([places.len()], &labels).unwrap(),
        ]
    }
}

pub fn sampler() -> Sampler {
    Sampler::new(COUNT, BATCH, 5).unwrap()
}

/// A trainer of the net for a device by name.
pub fn trainer(device: &str, parameters: &Parameters, net: &Net, recipe: &Recipe) -> ResidentTrainer {
    trainer_on(&aneforge_runtime::open(device).unwrap(), parameters, net, recipe)
}

/// A trainer of the net for a device.
pub fn trainer_on(device: &Arc<dyn Device>, parameters: &Parameters, net: &Net, recipe: &Recipe) -> ResidentTrainer {
    let model = |pass: &Pass, inputs: &[Tensor]| net.outcome(pass, inputs);
    Training { parameters, recipe, ports: &ports(), model: &model, device, target: None }.resident().unwrap()
}

/// Runs a number of calls.
pub fn run(trainer: &mut ResidentTrainer, data: &Data, sampler: &mut Sampler, calls: usize) -> Vec<StepReport> {
    let mut reports = Vec::new();
    for _ in 0..calls {
        let batches: Vec<HostArray> = (0..trainer.recipe().batches()).flat_map(|_| data.batch(&sampler.next_batch())).collect();
        reports.extend(trainer.step(&batches).unwrap());
    }
    reports
}
