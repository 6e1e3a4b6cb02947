//! Training with the optimizer on the host: the device computes gradients, the update runs in f64 beside it.

use crate::clip::CEILING;
use crate::loaded::Loaded;
use crate::optimizer::MOMENT_SCALE;
use crate::state::Slots;
use crate::step::{self, DataPort, SCALE, Step, keep};
use crate::trainer::{check_batches, give_up};
use crate::training::ports_for;
use crate::{LossScale, NnError, Parameter, Parameters, Recipe, StepReport, Traffic, Training};
use aneforge_core::{Array, Body, DType, Graph, HostArray, LowerOptions, Target, TensorType, evaluate, lower_with};
use half::f16;

/// A trainer that reads gradients from the device, updates in f64 by the same graph that a
/// [`ResidentTrainer`](crate::ResidentTrainer) runs there, and writes the weights back, rounded to fp16.
///
/// It is the yardstick for the resident one, and serves where an optimizer's state does not fit beside the program.
#[derive(Debug)]
pub struct HostTrainer {
    recipe: Recipe,
    ports: Vec<DataPort>,
    loaded: Loaded,
    /// Gradients among the outputs, behind the reports.
    gradients: Vec<Parameter>,
    update: Body,
    update_inputs: Vec<Input>,
    /// The update's state.
    slots: Slots,
    held: Vec<Array>,
    scale: f64,
    good: u32,
    steps: u64,
    skipped: u32,
}

/// What stands at an input of the update.
#[derive(Clone, Copy, Debug)]
enum Input {
    Gradient(usize),
    Rate(usize),
    Slot(usize),
}

impl HostTrainer {
    /// Builds, compiles and loads forward and backward passes, and builds the update.
    pub(crate) fn new(training: &Training<'_>) -> Result<Self, NnError> {
        let &Training { parameters, recipe, ports, model, device, .. } = training;
        if recipe.unroll != 1 {
            let rule = "an optimizer on the host makes one step a call: leave it at 1";
            return Err(NnError::Setting { what: "unroll", got: recipe.unroll.to_string(), rule });
        }
        let target = training.target();
        let (step, sums) = Step::build_gradients(parameters, recipe, &ports_for(ports, target)?, model)?;
        let more: Vec<_> = sums.iter().enumerate().map(|(index, (_, sum))| (format!("gradient.{index}"), sum.clone())).collect();
        let loaded = Loaded::new(&step, &more, false, device.as_ref(), target)?;

        let graph = Graph::new();
        let gradients: Vec<Parameter> = sums.iter().map(|(parameter, _)| *parameter).collect();
        let mut given = Vec::with_capacity(gradients.len());
        for (index, &parameter) in gradients.iter().enumerate() {
            let shape = parameters.entries()[parameter.0].shape();
            given.push((parameter, graph.input(&format!("gradient.{index}"), DType::Fp16, shape)));
        }
        let rates = step::rates(&graph, recipe, 0);
        let mut slots = Slots::new(&graph);
        // In f64 one number is all of a weight.
        let (weights, _) = keep(parameters, &Recipe { master: false, ..recipe.clone() }, &mut slots)?;
        let scale = graph.values(DType::Fp16, &[1], &[MOMENT_SCALE]);
        let scaled = step::moment_gradients(given.clone(), recipe, &scale).scaled;
        step::update(&mut slots, &weights, parameters, recipe, &scaled, &rates)?;
        let outputs: Vec<_> = slots.all().iter().map(|slot| (format!("{}.next", slot.name), slot.current.clone())).collect();
        let update = lower_with(&outputs, LowerOptions { target: Target::Generic, keep_unused_inputs: true })?;
        let mut update_inputs = Vec::new();
        for input in graph.inputs() {
            let slot = slots.all().iter().position(|slot| slot.input.is_same(&input)).map(Input::Slot);
            let rate = rates.iter().position(|rate| rate.is_same(&input)).map(Input::Rate);
            let gradient = given.iter().position(|(_, tensor)| tensor.is_same(&input)).map(Input::Gradient);
            update_inputs.extend(slot.or(rate).or(gradient));
        }
        let exact =
            |name: &str| parameters.get(name).ok().map(|entry| entry.values().iter().map(|&value| f64::from(value)).collect());
        let array = |slot: &crate::state::Slot| {
            let initial = slot.initial.to_array();
            Array { data: exact(&slot.name).unwrap_or(initial.data), ty: initial.ty }
        };
        let held = slots.all().iter().map(array).collect();
        let (recipe, ports, scale) = (recipe.clone(), ports.to_vec(), recipe.first_scale());
        let (good, steps, skipped) = (0, 0, 0);
        Ok(Self { recipe, ports, loaded, gradients, update, update_inputs, slots, held, scale, good, steps, skipped })
    }

    /// Takes the batches of one step, as [`ResidentTrainer::step`](crate::ResidentTrainer::step) does, and makes it.
    ///
    /// # Errors
    /// As there.
    pub fn step(&mut self, batches: &[HostArray]) -> Result<StepReport, NnError> {
        check_batches(batches, &self.ports, self.loaded.data.len())?;
        self.loaded.write_data(batches)?;
        self.loaded.write_slot(SCALE, &f16::from_f64(self.scale).to_le_bytes())?;
        self.loaded.execute()?;
        let columns = self.loaded.read_reports(1)?;
        let mut gradients = Vec::with_capacity(self.gradients.len());
        for index in 0..self.gradients.len() {
            gradients.push(self.loaded.read_more(index)?.to_array());
        }
        let loss = columns[0].1[0];
        let usable = |value: &f64| value.abs() < CEILING;
        let kept = gradients.iter().all(|array| array.data.iter().all(usable)) && usable(&f64::from(loss));
        if kept {
            let factor = MOMENT_SCALE / self.recipe.accumulate as f64 / self.scale;
            gradients.iter_mut().flat_map(|array| &mut array.data).for_each(|value| *value *= factor);
            self.apply(&gradients)?;
        }
        self.rescale(kept);
        let metrics = columns[1..].iter().map(|(name, column)| (name.clone(), column[0])).collect();
        let report = StepReport { step: self.steps, loss, kept, metrics };
        self.steps += 1;
        self.skipped = if kept { 0 } else { self.skipped + 1 };
        give_up(&report, self.skipped, self.scale as f32, self.recipe.loss_scale)?;
        Ok(report)
    }

    /// Copies the weights and statistics into the parameters, as exact as they are kept.
    ///
    /// # Errors
    /// [`NnError::UnknownName`] for parameters of another model.
    pub fn sync(&self, parameters: &mut Parameters) -> Result<(), NnError> {
        for (slot, array) in self.slots.all().iter().zip(&self.held) {
            if parameters.get(&slot.name).is_ok() {
                let values: Vec<f32> = array.data.iter().map(|&value| value as f32).collect();
                parameters.set(&slot.name, &values)?;
            }
        }
        Ok(())
    }

    /// What went between host and device so far.
    pub fn traffic(&self) -> Traffic {
        self.loaded.traffic
    }

    /// The loss scale.
    pub fn loss_scale(&self) -> f32 {
        self.scale as f32
    }

    /// Updates in f64 and sends the new weights, and statistics of the pass, to the device.
    fn apply(&mut self, gradients: &[Array]) -> Result<(), NnError> {
        let rates = self.recipe.rates(self.steps);
        let input = |input: &Input| match *input {
            Input::Gradient(place) => {
                Array { ty: TensorType::new(DType::Fp16, gradients[place].shape()), data: gradients[place].data.clone() }
            }
            Input::Rate(place) => Array::new(DType::Fp16, [1], vec![rates[place]]),
            Input::Slot(place) => self.held[place].clone(),
        };
        let inputs: Vec<Array> = self.update_inputs.iter().map(input).collect();
        self.held = evaluate(&self.update, &inputs)?;
        let names: Vec<String> = self.slots.all().iter().map(|slot| slot.name.clone()).collect();
        for (place, name) in names.iter().enumerate() {
            if let Some(next) = self.loaded.read_changed(name)? {
                self.held[place] = next.to_array();
                self.loaded.write_slot(name, next.bytes())?;
            } else if self.loaded.has_slot(name) {
                let rounded = HostArray::from_array(&self.held[place])?;
                self.loaded.write_slot(name, rounded.bytes())?;
            }
        }
        Ok(())
    }

    fn rescale(&mut self, kept: bool) {
        let LossScale::Dynamic { interval, largest, .. } = self.recipe.loss_scale else { return };
        self.good = if kept { self.good + 1 } else { 0 };
        if !kept {
            self.scale = (self.scale / 2.0).max(1.0);
        } else if self.good >= interval {
            (self.scale, self.good) = ((self.scale * 2.0).min(largest), 0);
        }
    }
}
