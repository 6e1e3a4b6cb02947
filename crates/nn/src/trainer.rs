//! Training with all state on the device: one program and one dispatch a call.

use crate::loaded::Loaded;
use crate::pair::LOW;
use crate::step::{DataPort, Kept, Step};
use crate::training::ports_for;
use crate::{LossScale, NnError, Parameters, Recipe, Training};
use aneforge_core::{DType, HostArray, Target};
use aneforge_runtime::Device;
use std::sync::Arc;
use std::time::Duration;

/// Steps skipped in a row at the smallest loss scale, or at a fixed one, after which training has failed.
const MOST_SKIPPED: u32 = 8;

/// What one step reports.
#[derive(Clone, Debug, PartialEq)]
pub struct StepReport {
    /// Number of the step, from 0.
    pub step: u64,
    /// The loss before the update.
    pub loss: f32,
    /// Whether the update was made; false where gradients were not numbers.
    pub kept: bool,
    /// The model's metrics, in order.
    pub metrics: Vec<(String, f32)>,
}

/// What went between host and device so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Programs executed.
    pub dispatches: u64,
    /// Bytes of batches and learning rates written.
    pub data_bytes: u64,
    /// Bytes of reports read.
    pub report_bytes: u64,
    /// Bytes of state read or written.
    pub state_bytes: u64,
    /// Time that the device took for the dispatches.
    pub device_time: Duration,
}

/// A trainer whose weights, moments and loss scale stay on the device.
///
/// Each call of [`Self::step`] is one dispatch of one program, which makes [`Recipe::unroll`] steps. Each state's output is bound to
/// the memory of its input, so nothing of it passes the host until [`Self::sync`] asks.
///
/// On `reference`, which rounds at the end of a program alone, weights have the precision of fp16 even as pairs.
#[derive(Debug)]
pub struct ResidentTrainer {
    recipe: Recipe,
    ports: Vec<DataPort>,
    pub(crate) device: Arc<dyn Device>,
    pub(crate) target: Target,
    pub(crate) loaded: Loaded,
    pub(crate) weights: Vec<Kept>,
    steps: u64,
    skipped: u32,
}

impl ResidentTrainer {
    /// Builds, compiles and loads the step, and puts the parameters on the device.
    pub(crate) fn new(training: &Training<'_>) -> Result<Self, NnError> {
        let Training { parameters, recipe, ports, model, device, .. } = training;
        let target = training.target();
        let step = Step::build(parameters, recipe, &ports_for(ports, target)?, model)?;
        let loaded = Loaded::new(&step, &[], true, device.as_ref(), target)?;
        let (recipe, ports, device, weights) = ((*recipe).clone(), ports.to_vec(), Arc::clone(device), step.weights);
        Ok(Self { recipe, ports, device, target, loaded, weights, steps: 0, skipped: 0 })
    }

    /// Takes the batches of one call, the arrays of each batch one after the other in the order of the ports, and makes
    /// [`Recipe::unroll`] steps with them in one dispatch.
    ///
    /// # Errors
    /// [`NnError::Count`], [`NnError::Batch`], [`NnError::Range`] and [`NnError::Label`] for data that does not fit, is not a number or
    /// no class, before anything is executed; [`NnError::NotFinite`] where no loss scale gives gradients that are numbers; what the
    /// device reports.
    pub fn step(&mut self, batches: &[HostArray]) -> Result<Vec<StepReport>, NnError> {
        check_batches(batches, &self.ports, self.loaded.data.len())?;
        let turns = self.recipe.unroll;
        self.loaded.write_data(batches)?;
        let rates: Vec<f64> = (0..turns as u64).flat_map(|turn| self.recipe.rates(self.steps + turn)).collect();
        self.loaded.write_rates(rates.into_iter())?;
        self.loaded.execute()?;
        let columns = self.loaded.read_reports(turns)?;
        let mut reports = Vec::with_capacity(turns);
        for turn in 0..turns {
            let metrics = columns[2..].iter().map(|(name, column)| (name.clone(), column[turn])).collect();
            let (loss, kept) = (columns[0].1[turn], columns[1].1[turn] != 0.0);
            reports.push(StepReport { step: self.steps + turn as u64, loss, kept, metrics });
            self.skipped = if kept { 0 } else { self.skipped + 1 };
        }
        self.steps += turns as u64;
        if let Some(last) = reports.last().filter(|_| self.skipped >= MOST_SKIPPED) {
            let scale = self.loss_scale()?;
            give_up(last, self.skipped, scale, self.recipe.loss_scale)?;
        }
        Ok(reports)
    }

    /// Copies the weights and statistics to the host, in fp32.
    ///
    /// # Errors
    /// What the device reports, and [`NnError::UnknownName`] for parameters of another model.
    pub fn sync(&mut self, parameters: &mut Parameters) -> Result<(), NnError> {
        self.copy_back(parameters, "")
    }

    /// Copies the moving average of the weights to the host in place of the weights.
    ///
    /// # Errors
    /// As [`Self::sync`], and [`NnError::UnknownName`] where the recipe keeps no average.
    pub fn sync_average(&mut self, parameters: &mut Parameters) -> Result<(), NnError> {
        self.copy_back(parameters, ".average")
    }

    /// Steps made or skipped so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// What went between host and device so far.
    pub fn traffic(&self) -> Traffic {
        self.loaded.traffic
    }

    /// The recipe.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// The loss scale; reads it from the device where it is dynamic.
    ///
    /// # Errors
    /// What the device reports.
    pub fn loss_scale(&mut self) -> Result<f32, NnError> {
        match self.recipe.loss_scale {
            LossScale::Fixed(scale) => Ok(scale as f32),
            LossScale::Dynamic { .. } => Ok(self.slot("loss_scale")?.to_f32()[0]),
        }
    }

    /// Names of all state, in order.
    pub fn slot_names(&self) -> impl Iterator<Item = &str> {
        self.loaded.slot_names()
    }

    /// What a state holds, read from the device.
    ///
    /// # Errors
    /// [`NnError::UnknownName`], and what the device reports.
    pub fn slot(&mut self, name: &str) -> Result<HostArray, NnError> {
        self.loaded.read_slot(name)
    }

    /// Replaces what a state holds.
    ///
    /// # Errors
    /// [`NnError::UnknownName`], [`NnError::Batch`] for an array of another type, and what the device reports.
    pub fn set_slot(&mut self, name: &str, array: &HostArray) -> Result<(), NnError> {
        let needed = self.loaded.slot_type(name)?;
        if array.ty() != needed {
            return Err(NnError::Batch { name: name.to_string(), needed: needed.clone(), given: array.ty().clone() });
        }
        self.loaded.write_slot(name, array.bytes())
    }

    pub(crate) fn set_steps(&mut self, steps: u64) {
        self.steps = steps;
        self.skipped = 0;
    }

    fn copy_back(&mut self, parameters: &mut Parameters, suffix: &str) -> Result<(), NnError> {
        let names: Vec<String> = parameters.entries().iter().map(|entry| entry.name().to_string()).collect();
        for (name, kept) in names.iter().zip(self.weights.clone()) {
            let values = match kept {
                Kept::Frozen => continue,
                Kept::Statistic(_) => self.slot(name)?.to_f32(),
                Kept::Trained(_) => {
                    let name = format!("{name}{suffix}");
                    let mut values = self.slot(&name)?.to_f32();
                    if self.loaded.has_slot(&format!("{name}.low")) {
                        let low = self.slot(&format!("{name}.low"))?.to_f32();
                        values.iter_mut().zip(low).for_each(|(value, low)| *value += low / LOW as f32);
                    }
                    values
                }
            };
            parameters.set(name, &values)?;
        }
        Ok(())
    }
}

/// Stops training that no loss scale can save.
pub(crate) fn give_up(last: &StepReport, skipped: u32, scale: f32, rule: LossScale) -> Result<(), NnError> {
    let falls = scale > 1.0 && matches!(rule, LossScale::Dynamic { .. });
    if skipped < MOST_SKIPPED || falls {
        return Ok(());
    }
    let remedy = "lower the learning rate or the loss scale, or clip by norm, and return to the last checkpoint".to_string();
    Err(NnError::NotFinite { step: last.step, loss: last.loss, skipped, scale, remedy })
}

/// Whether the arrays of a call fit the ports, batch by batch.
pub(crate) fn check_batches(batches: &[HostArray], ports: &[DataPort], needed: usize) -> Result<(), NnError> {
    if batches.len() != needed {
        return Err(NnError::Count { name: "batches".to_string(), needed, given: batches.len() });
    }
    batches.iter().zip(ports.iter().cycle()).try_for_each(|(array, port)| check(array, port))
}

/// Whether a batch fits its port and holds numbers, or classes.
fn check(array: &HostArray, port: &DataPort) -> Result<(), NnError> {
    if *array.ty() != port.ty {
        let (name, needed, given) = (port.name.clone(), port.ty.clone(), array.ty().clone());
        return Err(NnError::Batch { name, needed, given });
    }
    if port.ty.dtype == DType::Fp16 {
        let bad = array.fp16()?.iter().position(|value| !value.is_finite());
        if let Some(index) = bad {
            let value = array.fp16()?[index].to_f64();
            return Err(NnError::Range { name: port.name.clone(), index, value });
        }
    }
    if let Some(classes) = port.classes {
        let labels = array.to_array().data;
        if let Some(index) = labels.iter().position(|&label| !(0.0..classes as f64).contains(&label)) {
            let (name, label) = (port.name.clone(), labels[index] as i64);
            return Err(NnError::Label { name, index, label, last: classes - 1 });
        }
    }
    Ok(())
}
