//! Inputs like those that a program will see.

use crate::TuneError;
use aneforge_core::{DType, HostArray};
use aneforge_mil::{Array, Body, TensorType};

/// Samples on which errors are measured, each with one array per input of the program.
#[derive(Clone, Debug)]
pub struct Calibration {
    samples: Vec<Vec<HostArray>>,
    generated: bool,
}

impl Calibration {
    /// The user's samples.
    ///
    /// # Errors
    /// [`TuneError::Calibration`] where there is none, or one has another number of arrays, type or shape than the inputs of `body`.
    pub fn given(body: &Body, samples: Vec<Vec<HostArray>>) -> Result<Self, TuneError> {
        let fail = |problem: String| Err(TuneError::Calibration { problem });
        if samples.is_empty() {
            return fail("no sample was given; give at least one, better ten that differ".to_string());
        }
        for (number, sample) in samples.iter().enumerate() {
            if sample.len() != body.inputs.len() {
                return fail(format!("sample {number} has {} arrays, the program takes {}", sample.len(), body.inputs.len()));
            }
            for (&id, array) in body.inputs.iter().zip(sample) {
                let value = body.value(id);
                if *array.ty() != value.ty {
                    return fail(format!("sample {number}: input {:?} is {}, got {}", value.name, value.ty, array.ty()));
                }
                if array.to_f32().iter().any(|value| !value.is_finite()) {
                    return fail(format!("sample {number}: input {:?} holds a value that is no number", value.name));
                }
            }
        }
        Ok(Self { samples, generated: false })
    }

    /// Normal numbers, mean 0 and deviation 1, for want of something better: right for normalised pictures, not for tokens.
    ///
    /// # Errors
    /// [`TuneError::Calibration`] for inputs that are no floats: which integers make sense only the model's maker knows.
    pub fn generated(body: &Body, count: usize, seed: u64) -> Result<Self, TuneError> {
        let count = count.max(1);
        let numbers = 2 * count * body.inputs.iter().map(|&id| body.ty(id).count()).sum::<usize>();
        let uniform = Array::seeded(TensorType::new(DType::Fp64, [numbers]), seed, (0.0, 1.0));
        // Box and Muller, "A Note on the Generation of Random Normal Deviates", 1958.
        let normal = |pair: &[f64]| (-2.0 * (1.0 - pair[0]).ln()).sqrt() * (std::f64::consts::TAU * pair[1]).cos();
        let mut normals = uniform.data.chunks_exact(2).map(normal);
        let mut samples = Vec::with_capacity(count);
        for _ in 0..count {
            let mut sample = Vec::with_capacity(body.inputs.len());
            for &id in &body.inputs {
                let value = body.value(id);
                if !matches!(value.ty.dtype, DType::Fp16 | DType::Fp32) {
                    let problem = format!("input {:?} is {}: numbers for it cannot be made up, give samples", value.name, value.ty);
                    return Err(TuneError::Calibration { problem });
                }
                let values: Vec<f64> = normals.by_ref().take(value.ty.count()).collect();
                sample.push(HostArray::from_f64(value.ty.dtype, value.ty.shape.clone(), &values)?);
            }
            samples.push(sample);
        }
        Ok(Self { samples, generated: true })
    }

    /// The samples.
    pub fn samples(&self) -> &[Vec<HostArray>] {
        &self.samples
    }

    /// Whether they were made up.
    pub fn is_generated(&self) -> bool {
        self.generated
    }
}
