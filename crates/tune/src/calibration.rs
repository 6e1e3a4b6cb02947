//! Inputs like those that a program will see.

use crate::TuneError;
use aneforge_core::{DType, HostArray};
use aneforge_mil::Body;

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
        let mut state = seed ^ 0x9e37_79b9_7f4a_7c15;
        let mut uniform = || {
            // Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        };
        // Box and Muller, "A Note on the Generation of Random Normal Deviates", 1958.
        let mut normal = || (-2.0 * (1.0 - uniform()).ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
        let mut samples = Vec::with_capacity(count);
        for _ in 0..count.max(1) {
            let mut sample = Vec::with_capacity(body.inputs.len());
            for &id in &body.inputs {
                let value = body.value(id);
                if !matches!(value.ty.dtype, DType::Fp16 | DType::Fp32) {
                    let problem = format!("input {:?} is {}: numbers for it cannot be made up, give samples", value.name, value.ty);
                    return Err(TuneError::Calibration { problem });
                }
                let values: Vec<f64> = (0..value.ty.count()).map(|_| normal()).collect();
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
