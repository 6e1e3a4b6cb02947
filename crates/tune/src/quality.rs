//! How near the results of a changed program are to the original's.

use crate::{Calibration, TuneError};
use aneforge_core::HostArray;
use aneforge_mil::Body;
use aneforge_runtime::{Device, Executable, Program};
use std::sync::Arc;

/// Worst agreement over all samples and outputs.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Quality {
    /// Lowest cosine of an output with the original's.
    pub cosine: f64,
    /// Largest norm of a difference over the norm of the original output.
    pub relative_error: f64,
}

impl Quality {
    /// Nothing changed.
    pub const SAME: Self = Self { cosine: 1.0, relative_error: 0.0 };

    /// The agreement of two arrays. A result that is no number agrees with nothing.
    pub fn of(changed: &[f32], original: &[f32]) -> Self {
        let (mut dot, mut ours, mut theirs, mut lost) = (0.0, 0.0, 0.0, 0.0);
        for (&a, &b) in changed.iter().zip(original) {
            let (a, b) = (f64::from(a), f64::from(b));
            dot += a * b;
            ours += a * a;
            theirs += b * b;
            lost += (a - b) * (a - b);
        }
        if !lost.is_finite() {
            return Self { cosine: -1.0, relative_error: f64::INFINITY };
        }
        if lost == 0.0 {
            return Self::SAME;
        }
        let cosine = if ours > 0.0 && theirs > 0.0 { dot / (ours * theirs).sqrt() } else { 0.0 };
        Self { cosine, relative_error: if theirs > 0.0 { (lost / theirs).sqrt() } else { f64::INFINITY } }
    }

    /// The worse of two.
    pub fn worse(self, other: Self) -> Self {
        Self { cosine: self.cosine.min(other.cosine), relative_error: self.relative_error.max(other.relative_error) }
    }
}

/// Compares the outputs of two programs with the same ports on every sample.
///
/// # Errors
/// [`TuneError::NotFinite`] where the original has no number to compare with; what the device reports.
pub fn quality(original: &Body, changed: &Body, calibration: &Calibration, device: &dyn Device) -> Result<Quality, TuneError> {
    let wanted = outputs(original, calibration, device)?;
    compare(changed, &wanted, calibration, device)
}

/// The original's outputs, sample by sample.
pub(crate) fn outputs(body: &Body, calibration: &Calibration, device: &dyn Device) -> Result<Vec<Vec<Vec<f32>>>, TuneError> {
    outputs_loaded(&load(body, device)?, calibration)
}

/// The outputs of a loaded program, sample by sample.
pub(crate) fn outputs_loaded(executable: &Arc<dyn Executable>, calibration: &Calibration) -> Result<Vec<Vec<Vec<f32>>>, TuneError> {
    let mut all = Vec::new();
    for (number, sample) in calibration.samples().iter().enumerate() {
        let results: Vec<Vec<f32>> = run(executable, sample)?.iter().map(HostArray::to_f32).collect();
        for (port, result) in executable.outputs().iter().zip(&results) {
            if let Some(&value) = result.iter().find(|value| !value.is_finite()) {
                return Err(TuneError::NotFinite { value_name: port.name.clone(), sample: number, value });
            }
        }
        all.push(results);
    }
    Ok(all)
}

/// The agreement of a program's outputs with given ones.
pub(crate) fn compare(
    body: &Body,
    wanted: &[Vec<Vec<f32>>],
    calibration: &Calibration,
    device: &dyn Device,
) -> Result<Quality, TuneError> {
    compare_loaded(&load(body, device)?, wanted, calibration)
}

/// The agreement of a loaded program's outputs with given ones.
pub(crate) fn compare_loaded(
    executable: &Arc<dyn Executable>,
    wanted: &[Vec<Vec<f32>>],
    calibration: &Calibration,
) -> Result<Quality, TuneError> {
    let mut worst = Quality::SAME;
    for (sample, wanted) in calibration.samples().iter().zip(wanted) {
        for (result, wanted) in run(executable, sample)?.iter().zip(wanted) {
            worst = worst.worse(Quality::of(&result.to_f32(), wanted));
        }
    }
    Ok(worst)
}

pub(crate) fn load(body: &Body, device: &dyn Device) -> Result<Arc<dyn Executable>, TuneError> {
    Ok(device.load(&Arc::new(Program::from_body(body.name.clone(), body.clone())))?)
}

pub(crate) fn run(executable: &Arc<dyn Executable>, sample: &[HostArray]) -> Result<Vec<HostArray>, TuneError> {
    let inputs: Vec<&HostArray> = sample.iter().collect();
    Ok(executable.run(&inputs)?)
}
