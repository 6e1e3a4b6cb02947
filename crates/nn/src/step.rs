//! One training step as a graph: forward, backward, scaling, clipping and update.

use crate::clip::{are_numbers, clip_by_norm, whole};
use crate::optimizer::MOMENT_SCALE;
use crate::pair::{LOW, Pair};
use crate::pass::constant;
use crate::state::Slots;
use crate::{LossScale, NnError, Parameter, Parameters, Pass, Recipe};
use aneforge_core::{DType, Graph, Tensor, TensorType, backward, concat};

/// An input that each batch fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataPort {
    /// Its name.
    pub name: String,
    /// Element type and shape.
    pub ty: TensorType,
    /// For labels, the number of classes: others are refused before they reach the device.
    pub classes: Option<usize>,
}

impl DataPort {
    /// Numbers in fp16.
    pub fn values(name: &str, shape: &[usize]) -> Self {
        Self { name: name.to_string(), ty: TensorType::new(DType::Fp16, shape), classes: None }
    }

    /// Labels in int32.
    pub fn labels(name: &str, shape: &[usize], classes: usize) -> Self {
        Self { name: name.to_string(), ty: TensorType::new(DType::Int32, shape), classes: Some(classes) }
    }
}

/// What a model gives for a batch.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The loss, one element.
    pub loss: Tensor,
    /// Other numbers to report, one element each.
    pub metrics: Vec<(String, Tensor)>,
}

impl From<Tensor> for Outcome {
    fn from(loss: Tensor) -> Self {
        Self { loss, metrics: Vec::new() }
    }
}

/// A model with its loss: from the batch's tensors, in the order of the ports.
pub type Model<'a> = dyn Fn(&Pass, &[Tensor]) -> Outcome + 'a;

/// A training step, built.
///
/// Its inputs stand in this order: learning rates of a turn, then the data of its batches, turn by turn; slots where they are first
/// used. Outputs: `loss`, `kept` (1 where a step was made, 0 where it was skipped) and the metrics, each with one element per turn;
/// then the changed slots.
#[derive(Clone, Debug)]
pub struct Step {
    pub(crate) slots: Slots,
    pub(crate) data: Vec<Tensor>,
    pub(crate) rates: Vec<Tensor>,
    pub(crate) reports: Vec<(String, Tensor)>,
    pub(crate) weights: Vec<Kept>,
}

/// Where a parameter's values are during training.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kept {
    /// In the program, unchanged.
    Frozen,
    /// In a slot that passes update.
    Statistic(usize),
    /// In a slot that the optimizer updates.
    Trained(Pair),
}

/// What the forward and backward passes of a step give.
struct Gradients {
    sums: Vec<(Parameter, Tensor)>,
    reports: Vec<(String, Tensor)>,
}

pub(crate) const SCALE: &str = "loss_scale";
const GOOD: &str = "loss_scale.good_steps";

impl Step {
    /// Builds the step of a model.
    ///
    /// # Errors
    /// [`NnError::Setting`] for a recipe that fp16 cannot follow, and every broken rule of the graph.
    pub fn build(parameters: &Parameters, recipe: &Recipe, ports: &[DataPort], model: &Model<'_>) -> Result<Self, NnError> {
        check(parameters, recipe)?;
        let mut slots = Slots::new(&Graph::new());
        let (weights, frozen) = keep(parameters, recipe, &mut slots)?;
        let mut step = Self { slots, data: Vec::new(), rates: Vec::new(), reports: Vec::new(), weights };
        let mut turns = Vec::with_capacity(recipe.unroll);
        for turn in 0..recipe.unroll {
            turns.push(step.turn(turn, parameters, &frozen, recipe, ports, model)?);
        }
        let names: Vec<String> =
            turns.first().map(|reports| reports.iter().map(|(name, _)| name.clone()).collect()).unwrap_or_default();
        for (index, name) in names.into_iter().enumerate() {
            let all: Vec<Tensor> =
                turns.iter().filter_map(|reports| reports.get(index)).map(|(_, tensor)| tensor.clone()).collect();
            let joined = if all.len() == 1 { all[0].clone() } else { concat(&all, 0) };
            step.reports.push((name, joined.check()?.clone()));
        }
        Ok(step)
    }

    /// The state of the step.
    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// Outputs by name, in order: reports, then changed slots.
    pub fn outputs(&self) -> Vec<(String, Tensor)> {
        let changed = self.slots.all().iter().filter(|slot| slot.is_changed());
        self.reports.iter().cloned().chain(changed.map(|slot| (format!("{}.next", slot.name), slot.current.clone()))).collect()
    }

    /// The forward and backward half of a step alone, for an optimizer elsewhere: its loss scale is a slot, and gradients are
    /// outputs behind the reports.
    pub(crate) fn build_gradients(
        parameters: &Parameters,
        recipe: &Recipe,
        ports: &[DataPort],
        model: &Model<'_>,
    ) -> Result<(Self, Vec<(Parameter, Tensor)>), NnError> {
        check(parameters, recipe)?;
        let mut slots = Slots::new(&Graph::new());
        let (weights, frozen) = keep(parameters, &Recipe { master: false, ..recipe.clone() }, &mut slots)?;
        let mut step = Self { slots, data: Vec::new(), rates: Vec::new(), reports: Vec::new(), weights };
        let slot = step.slots.slot(SCALE, &[1], || vec![recipe.first_scale()])?;
        let scale = step.slots.get(slot);
        let Gradients { sums, reports } = step.gradients(0, &frozen, recipe, ports, model, &scale)?;
        step.reports = reports;
        Ok((step, sums))
    }

    /// One step: the reports it makes.
    fn turn(
        &mut self,
        turn: usize,
        parameters: &Parameters,
        frozen: &[Option<Tensor>],
        recipe: &Recipe,
        ports: &[DataPort],
        model: &Model<'_>,
    ) -> Result<Vec<(String, Tensor)>, NnError> {
        let before = self.slots.snapshot();
        let rates = rates(self.slots.graph(), recipe, turn);
        self.rates.extend(rates.iter().cloned());
        let scale = self.scale(recipe)?;
        let Gradients { sums, mut reports } = self.gradients(turn, frozen, recipe, ports, model, &scale)?;
        let total = scale.muls(recipe.accumulate as f64);
        let gradients = moment_gradients(sums, recipe, &total);
        // What is not a number stays so times the factor; clipping alone hides it, so what goes into that is judged.
        let mut judged =
            if recipe.clip.is_some() { gradients.raw } else { gradients.scaled.iter().map(|(_, g)| g.clone()).collect() };
        judged.push(reports[0].1.clone());
        // A velocity may overflow where gradients do not; the increment shows it.
        judged.extend(update(&mut self.slots, &self.weights, parameters, recipe, &gradients.scaled, &rates)?);
        let kept = are_numbers(&judged).unwrap_or_else(|| scale.clone());
        self.slots.keep_if(&kept, &before);
        self.rescale(recipe, &kept)?;
        reports.insert(1, ("kept".to_string(), kept.cast(DType::Fp16)));
        Ok(reports)
    }

    /// Scaled gradients, summed over the batches of a step, and reports, averaged over them.
    fn gradients(
        &mut self,
        turn: usize,
        frozen: &[Option<Tensor>],
        recipe: &Recipe,
        ports: &[DataPort],
        model: &Model<'_>,
        scale: &Tensor,
    ) -> Result<Gradients, NnError> {
        let graph = self.slots.graph().clone();
        let trained: Vec<usize> = (0..self.weights.len()).filter(|&i| matches!(self.weights[i], Kept::Trained(_))).collect();
        let mut sums: Vec<(Parameter, Tensor)> = Vec::new();
        let mut reports: Vec<(String, Tensor)> = Vec::new();
        for batch in 0..recipe.accumulate {
            let name = |port: &DataPort| numbered(&port.name, turn * recipe.accumulate + batch, recipe.batches());
            let inputs: Vec<Tensor> = ports.iter().map(|port| graph.input(&name(port), port.ty.dtype, &port.ty.shape)).collect();
            self.data.extend(inputs.iter().cloned());
            let tensors: Vec<Tensor> = self.tensors(frozen, &graph);
            let pass = Pass::new(&graph, tensors.clone(), true);
            let outcome = model(&pass, &inputs);
            let (ty, loss) = (outcome.loss.ty()?, whole(&outcome.loss, Tensor::reduce_sum));
            if ty.count() != 1 {
                let rule = "a model gives a loss with one element: take its mean";
                return Err(NnError::Setting { what: "loss", got: ty.to_string(), rule });
            }
            let wrt: Vec<Tensor> = trained.iter().map(|&place| tensors[place].clone()).collect();
            for (index, grad) in backward(&loss.mul(scale), &wrt).into_iter().enumerate() {
                grad.check()?;
                match sums.get_mut(index) {
                    Some((_, sum)) => *sum = sum.add(&grad),
                    None => sums.push((Parameter(trained[index]), grad)),
                }
            }
            for (parameter, value) in pass.updates() {
                if let Some(Kept::Statistic(slot)) = self.weights.get(parameter.0) {
                    self.slots.set(*slot, value.check()?.clone());
                }
            }
            let own = outcome.metrics.into_iter().map(|(name, value)| (name, whole(&value, Tensor::reduce_sum)));
            for (index, (name, value)) in std::iter::once(("loss".to_string(), loss)).chain(own).enumerate() {
                match reports.get_mut(index) {
                    Some((_, sum)) => *sum = sum.add(&value),
                    None => reports.push((name, value)),
                }
            }
        }
        if recipe.accumulate > 1 {
            reports.iter_mut().for_each(|(_, value)| *value = value.muls(1.0 / recipe.accumulate as f64));
        }
        Ok(Gradients { sums, reports })
    }

    /// Parameters as they are at this point.
    fn tensors(&self, frozen: &[Option<Tensor>], graph: &Graph) -> Vec<Tensor> {
        let tensor = |(kept, frozen): (&Kept, &Option<Tensor>)| match kept {
            Kept::Trained(pair) => pair.value(&self.slots),
            Kept::Statistic(slot) => self.slots.get(*slot),
            Kept::Frozen => frozen.clone().unwrap_or_else(|| graph.scalar(0.0)),
        };
        self.weights.iter().zip(frozen).map(tensor).collect()
    }

    /// The loss scale at this point, `[1]`.
    fn scale(&mut self, recipe: &Recipe) -> Result<Tensor, NnError> {
        match recipe.loss_scale {
            LossScale::Fixed(scale) => Ok(self.slots.graph().values(DType::Fp16, &[1], &[scale])),
            LossScale::Dynamic { initial, .. } => {
                let slot = self.slots.slot(SCALE, &[1], || vec![initial])?;
                self.slots.slot(GOOD, &[1], || vec![0.0])?;
                Ok(self.slots.get(slot))
            }
        }
    }

    /// Moves a dynamic scale: down where the step was skipped, up after enough good ones.
    fn rescale(&mut self, recipe: &Recipe, kept: &Tensor) -> Result<(), NnError> {
        let LossScale::Dynamic { interval, largest, .. } = recipe.loss_scale else { return Ok(()) };
        let (scale, good) = (self.slots.slot(SCALE, &[1], Vec::new)?, self.slots.slot(GOOD, &[1], Vec::new)?);
        let (now, count) = (self.slots.get(scale), self.slots.get(good).adds(1.0));
        let grows = count.greater_equal(&count.constant_like(f64::from(interval)));
        let more = now.muls(2.0).minimum(&now.constant_like(largest));
        let less = now.muls(0.5).maximum(&now.constant_like(1.0));
        let none = count.muls(0.0);
        self.slots.set(scale, kept.select(&grows.select(&more, &now), &less));
        self.slots.set(good, kept.select(&grows.select(&none, &count), &none));
        Ok(())
    }
}

/// Slots of parameters that change, weights of the program for those that do not.
pub(crate) fn keep(
    parameters: &Parameters,
    recipe: &Recipe,
    slots: &mut Slots,
) -> Result<(Vec<Kept>, Vec<Option<Tensor>>), NnError> {
    let mut kept = Vec::with_capacity(parameters.entries().len());
    let mut frozen = Vec::with_capacity(kept.capacity());
    for entry in parameters.entries() {
        let values = || entry.values().iter().map(|&value| f64::from(value)).collect::<Vec<f64>>();
        let place = if entry.is_statistic() {
            Kept::Statistic(slots.slot(entry.name(), entry.shape(), values)?)
        } else if entry.is_trainable() {
            Kept::Trained(Pair::slot(slots, entry.name(), entry.shape(), recipe.master, values)?)
        } else {
            Kept::Frozen
        };
        frozen.push(if matches!(place, Kept::Frozen) { Some(constant(slots.graph(), entry)?) } else { None });
        kept.push(place);
    }
    Ok((kept, frozen))
}

/// Whether a recipe can be followed for these parameters.
fn check(parameters: &Parameters, recipe: &Recipe) -> Result<(), NnError> {
    recipe.check()?;
    if parameters.trainable_count() == 0 {
        let rule = "unfreeze a module: a step needs something to change";
        return Err(NnError::Setting { what: "number of trainable parameters", got: "0".to_string(), rule });
    }
    if let Some(entry) = parameters.entries().iter().find(|entry| recipe.group_place(entry.group()).is_none()) {
        let rule = "each group of a parameter is the empty one or one of the recipe's";
        return Err(NnError::Setting { what: "group", got: format!("{:?} of {}", entry.group(), entry.name()), rule });
    }
    Ok(())
}

/// The learning rates of a turn as inputs, `[1]` each: the default group's, then the groups'.
pub(crate) fn rates(graph: &Graph, recipe: &Recipe, turn: usize) -> Vec<Tensor> {
    let groups = std::iter::once("default").chain(recipe.groups.iter().map(|group| group.name.as_str()));
    groups.map(|group| graph.input(&numbered(&format!("rate.{group}"), turn, recipe.unroll), DType::Fp16, &[1])).collect()
}

/// Gradients at the scale of the moments, and as they came.
pub(crate) struct MomentGradients {
    raw: Vec<Tensor>,
    pub(crate) scaled: Vec<(Parameter, Tensor)>,
}

/// Clips gradients that come times `scale`, `[1]`, and brings them to the scale of the moments: in this order, since a gradient that
/// clipping brings down may be too large for fp16 at that scale.
pub(crate) fn moment_gradients(sums: Vec<(Parameter, Tensor)>, recipe: &Recipe, scale: &Tensor) -> MomentGradients {
    let (parameters, raw): (Vec<Parameter>, Vec<Tensor>) = sums.into_iter().unzip();
    let clipped = recipe.clip.map_or_else(|| raw.clone(), |limit| clip_by_norm(&raw, limit, scale));
    let factor = scale.constant_like(MOMENT_SCALE).real_div(scale);
    MomentGradients { raw, scaled: parameters.into_iter().zip(clipped.iter().map(|gradient| gradient.mul(&factor))).collect() }
}

/// Changes parameters and their averages by gradients that come times [`MOMENT_SCALE`]; gives the increments.
pub(crate) fn update(
    slots: &mut Slots,
    weights: &[Kept],
    parameters: &Parameters,
    recipe: &Recipe,
    gradients: &[(Parameter, Tensor)],
    rates: &[Tensor],
) -> Result<Vec<Tensor>, NnError> {
    let mut increments = Vec::with_capacity(gradients.len());
    recipe.optimizer.begin(slots)?;
    for (parameter, gradient) in gradients {
        let entry = &parameters.entries()[parameter.0];
        let Kept::Trained(pair) = weights[parameter.0] else { continue };
        let rate = &rates[recipe.group_place(entry.group()).unwrap_or(0)];
        increments.push(recipe.optimizer_of(entry.group()).update(slots, entry.name(), &pair, gradient, rate)?);
        if let Some(stays) = recipe.average {
            let start = || entry.values().iter().map(|&value| f64::from(value)).collect();
            let average = Pair::slot(slots, &format!("{}.average", entry.name()), entry.shape(), true, start)?;
            let way = pair.value(slots).sub(&average.value(slots));
            average.add(slots, &way.muls((1.0 - stays) * LOW));
        }
    }
    Ok(increments)
}

/// A name with a number where there are several of the kind.
fn numbered(name: &str, index: usize, count: usize) -> String {
    if count == 1 { name.to_string() } else { format!("{name}.{index}") }
}
