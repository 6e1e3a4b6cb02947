//! Programs compiled in several ways: what each costs, how near its results are, how long it takes.

use crate::quality::{compare_loaded, run};
use crate::variant::Variant;
use crate::{Calibration, Quality, TuneError};
use aneforge_compile::{CompileOptions, Compiled, compile_body};
use aneforge_core::Target;
use aneforge_cost::body::{items, work};
use aneforge_cost::{ChipModel, HostClass, Model};
use aneforge_mil::Body;
use aneforge_runtime::{Device, Executable, Program};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Instant;

/// What is known of one way to compile a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The way.
    pub name: String,
    /// Operations of the program.
    pub operations: usize,
    /// Programs that run one after the other in a call.
    pub dispatches: usize,
    /// Milliseconds of a call by the cost model; absent where the target is no chip.
    pub estimated_ms: Option<f64>,
    /// Least milliseconds of a call on the device that measures.
    pub measured_ms: Option<f64>,
    /// Relative error of the results; absent where the program was not run.
    pub relative_error: Option<f64>,
    /// What became of it and why.
    pub outcome: String,
}

/// A program compiled one way.
pub(crate) struct Candidate {
    pub(crate) variant: Variant,
    pub(crate) compiled: Compiled,
    pub(crate) trial: Trial,
    pub(crate) quality: Option<Quality>,
}

impl Candidate {
    /// Milliseconds by which candidates are compared: measured, else estimated.
    pub(crate) fn milliseconds(&self) -> Option<f64> {
        self.trial.measured_ms.or(self.trial.estimated_ms)
    }
}

/// Compiles the variants; those that give the program of an earlier one are left out. The first is the usual way.
///
/// # Errors
/// What compiling the first reports. Others that cannot be compiled are told as trials in the second list.
pub(crate) fn compile_all(
    body: &Body,
    options: &CompileOptions,
    variants: Vec<Variant>,
) -> Result<(Vec<Candidate>, Vec<Trial>), TuneError> {
    let model = chip_model(&options.target)?;
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut refused = Vec::new();
    for variant in variants {
        let compiled = match compile_body(body.clone(), &variant.applied(options)) {
            Ok(compiled) => compiled,
            Err(error) if candidates.is_empty() => return Err(error.into()),
            Err(error) => {
                refused.push(Trial { outcome: format!("cannot be compiled: {error}"), ..unknown(&variant) });
                continue;
            }
        };
        let same =
            |other: &Candidate| other.variant.format == variant.format && other.compiled.body.same_computation(&compiled.body);
        if candidates.iter().any(same) {
            continue;
        }
        let dispatches = compiled.segments.as_ref().map_or(1, |segments| segments.parts.len());
        let estimated_ms = model.as_ref().map(|model| {
            let items = items(&compiled.body);
            model.estimate(&work(&compiled.body, &items, dispatches)).total_ms.value
        });
        let operations = compiled.body.operations.len();
        let trial = Trial { operations, dispatches, estimated_ms, ..unknown(&variant) };
        candidates.push(Candidate { variant, compiled, trial, quality: None });
    }
    Ok((candidates, refused))
}

fn unknown(variant: &Variant) -> Trial {
    Trial {
        name: variant.name.clone(),
        operations: 0,
        dispatches: 0,
        estimated_ms: None,
        measured_ms: None,
        relative_error: None,
        outcome: String::new(),
    }
}

/// The cost model of a target's chip; `None` where it has none.
pub(crate) fn chip_model(target: &Target) -> Result<Option<ChipModel>, TuneError> {
    let Some(chip) = target.chip() else { return Ok(None) };
    let model = Model::committed().map_err(|error| TuneError::Cost { problem: error.to_string() })?;
    Ok(Some(model.chip(chip, HostClass::Native)))
}

/// Loads a candidate's program. Engines load what stands in files, and so does what is in segments; others take the body as it is.
pub(crate) fn load(compiled: &Compiled, device: &dyn Device) -> Result<Arc<dyn Executable>, TuneError> {
    if compiled.segments.is_none() && device.chip().is_none() {
        let program = Program::from_body(compiled.body.name.clone(), compiled.body.clone());
        return Ok(device.load(&Arc::new(program))?);
    }
    let fail = |source| TuneError::Folder { source };
    let folder = tempfile::Builder::new().prefix("aneforge-tune-").tempdir().map_err(fail)?;
    let bundle = folder.path().join("bundle");
    compiled.write(&bundle)?;
    Ok(device.load(&Arc::new(Program::open(&bundle)?))?)
}

/// Compares a candidate's results with given ones.
pub(crate) fn judge(
    candidate: &mut Candidate,
    wanted: &[Vec<Vec<f32>>],
    calibration: &Calibration,
    device: &dyn Device,
) -> Result<Quality, TuneError> {
    let quality = compare_loaded(&load(&candidate.compiled, device)?, wanted, calibration)?;
    candidate.trial.relative_error = Some(quality.relative_error);
    candidate.quality = Some(quality);
    Ok(quality)
}

/// Calls before a program is timed: the first ones find caches cold and buffers untouched.
const WARM: usize = 3;

/// Least milliseconds of a call.
pub(crate) fn time(
    candidate: &mut Candidate,
    calibration: &Calibration,
    device: &dyn Device,
    calls: usize,
) -> Result<f64, TuneError> {
    let executable = load(&candidate.compiled, device)?;
    let mut least = f64::INFINITY;
    for (call, sample) in calibration.samples().iter().cycle().take(WARM + calls.max(1)).enumerate() {
        let start = Instant::now();
        run(&executable, sample)?;
        if call >= WARM {
            least = least.min(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    candidate.trial.measured_ms = Some(least);
    Ok(least)
}
