//! Where fp16 on the engine would hurt a model, told before training starts.
//!
//! One batch goes through a whole step in f64, and every operation's values are held against two limits of the engine's
//! multiply-accumulate array (figures of arXiv 2606.17090, which its published errors reproduce): a result of 2^15 or more is
//! infinite, and a product is dropped where the exponents of its factors sum to less than -16. Every result is held against the range
//! of fp16 as well.

use crate::step::{DataPort, Model, Step};
use crate::{NnError, Parameters, Recipe};
use aneforge_core::{Array, DType, HostArray, LowerOptions, Target, evaluate_with, lower_with};
use std::fmt;

/// Results from here on are infinite behind a product.
const PRODUCT_CEILING: f64 = 32768.0;
/// Largest number of fp16.
const LARGEST: f64 = 65504.0;
/// Below half of the smallest number of fp16 a result is 0.
const VANISHES: f64 = 1.0 / (1u64 << 25) as f64;
/// The smallest sum of exponents of a product that counts.
const LOWEST_PRODUCT: i32 = -16;
/// The share of all magnitude that may be lost without a word.
const TOLERATED: f64 = 0.01;
/// The share of results that may vanish without a word.
const VANISHED: f64 = 0.5;

/// What can go wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HazardKind {
    /// The largest result lies beyond what the engine or fp16 holds.
    Overflow {
        /// The largest magnitude.
        largest: f64,
        /// The limit.
        limit: f64,
    },
    /// Products of small factors are dropped.
    SmallProducts {
        /// The expected share of the magnitude of all products that is lost, as if factors met at random.
        lost: f64,
    },
    /// Results are rounded to 0.
    Vanishes {
        /// The share of results that are not 0 and become it.
        share: f64,
    },
}

/// A warning about one operation of a training step.
#[derive(Clone, Debug, PartialEq)]
pub struct Hazard {
    /// Name of its result in the program.
    pub name: String,
    /// The operator.
    pub operator: &'static str,
    /// What can go wrong.
    pub kind: HazardKind,
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): ", self.name, self.operator)?;
        match self.kind {
            HazardKind::Overflow { largest, limit } => write!(
                f,
                "its results reach {largest:.3e} and end at {limit}; scale its inputs down, or lower the loss scale for a gradient"
            ),
            HazardKind::SmallProducts { lost } => write!(
                f,
                "about {:.1} % of its products' magnitude is dropped on the engine; scale an input up and the result down",
                100.0 * lost
            ),
            HazardKind::Vanishes { share } => {
                write!(
                    f,
                    "{:.0} % of its results that are not 0 become 0; scale its inputs, or raise the loss scale",
                    100.0 * share
                )
            }
        }
    }
}

/// Sends a batch through the step that a recipe makes of a model, in f64, and gives what fp16 on the engine would lose, in the
/// program's order. `batches` are those of one call of [`ResidentTrainer::step`](crate::ResidentTrainer::step).
///
/// # Errors
/// What [`Step::build`] reports, and [`NnError::Evaluate`] for batches that do not fit the ports.
pub fn hazards(
    parameters: &Parameters,
    recipe: &Recipe,
    ports: &[DataPort],
    model: &Model<'_>,
    batches: &[HostArray],
) -> Result<Vec<Hazard>, NnError> {
    let step = Step::build(parameters, recipe, ports, model)?;
    let body = lower_with(&step.outputs(), LowerOptions { target: Target::Generic, keep_unused_inputs: true })?;
    let rates: Vec<f64> = (0..recipe.unroll as u64).flat_map(|turn| recipe.rates(turn)).collect();
    let mut inputs = Vec::new();
    for input in step.slots.graph().inputs() {
        let same = |tensors: &[aneforge_core::Tensor]| tensors.iter().position(|tensor| tensor.is_same(&input));
        let slot = step.slots.all().iter().find(|slot| slot.input.is_same(&input));
        let array = match (slot, same(&step.rates), same(&step.data)) {
            (Some(slot), ..) => Some(slot.initial.to_array()),
            (_, Some(place), _) => rates.get(place).map(|&rate| Array::new(DType::Fp16, [1], vec![rate])),
            (.., place) => place.and_then(|place| batches.get(place)).map(HostArray::to_array),
        };
        let name = || input.name().unwrap_or_default();
        inputs.push(array.ok_or_else(|| NnError::Count { name: name(), needed: step.data.len(), given: batches.len() })?);
    }
    let mut found = Vec::new();
    evaluate_with(&body, &inputs, &mut |operation, arguments, results| {
        let Some(result) = results.first().filter(|result| result.ty.dtype == DType::Fp16) else { return };
        let name = operation.outputs.first().map(|&id| body.value(id).name.clone()).unwrap_or_default();
        let operator = operation.op.name;
        // What follows a skipped step or an unscaled moment is judged where it arises.
        let mut add = |kind| found.push(Hazard { name: name.clone(), operator, kind });
        let product = matches!(operator, "matmul" | "linear" | "conv" | "conv_transpose");
        let limit = if product { PRODUCT_CEILING } else { LARGEST };
        let largest = result.data.iter().fold(0.0f64, |top, value| top.max(value.abs()));
        if largest >= limit {
            add(HazardKind::Overflow { largest, limit });
        }
        if product && let [x, weight, ..] = arguments {
            let lost = lost_products(&x.data, &weight.data);
            if lost > TOLERATED {
                add(HazardKind::SmallProducts { lost });
            }
            let alive = result.data.iter().filter(|value| **value != 0.0).count();
            let gone = result.data.iter().filter(|value| **value != 0.0 && value.abs() < VANISHES).count();
            let share = gone as f64 / alive.max(1) as f64;
            if share > VANISHED {
                add(HazardKind::Vanishes { share });
            }
        }
    })?;
    Ok(found)
}

/// The share of the magnitude of products that are dropped, if every factor on the left met every one on the right.
fn lost_products(left: &[f64], right: &[f64]) -> f64 {
    const LOWEST: i32 = -14;
    const CLASSES: usize = 31;
    // Magnitude by exponent; subnormal numbers have the smallest.
    let masses = |values: &[f64]| {
        let mut masses = [0.0; CLASSES];
        for value in values.iter().map(|value| value.abs()).filter(|value| *value > 0.0 && value.is_finite()) {
            let place = (value.log2().floor() as i32 - LOWEST).clamp(0, CLASSES as i32 - 1);
            masses[place as usize] += value;
        }
        masses
    };
    let (left, right) = (masses(left), masses(right));
    let (mut all, mut lost) = (0.0, 0.0);
    for (i, a) in left.iter().enumerate() {
        for (j, b) in right.iter().enumerate() {
            all += a * b;
            if i as i32 + j as i32 + 2 * LOWEST < LOWEST_PRODUCT {
                lost += a * b;
            }
        }
    }
    if all > 0.0 { lost / all } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_lost_by_the_sum_of_their_exponents() {
        assert_eq!(lost_products(&[1.0, 0.5], &[1.0]), 0.0);
        // 2^-9 times 2^-8 is dropped, 2^-8 times 2^-8 is not.
        assert_eq!(lost_products(&[0.5f64.powi(9)], &[0.5f64.powi(8)]), 1.0);
        assert_eq!(lost_products(&[0.5f64.powi(8)], &[0.5f64.powi(8)]), 0.0);
        let half = lost_products(&[0.5f64.powi(9); 2], &[0.5f64.powi(8), 0.5f64.powi(7)]);
        assert!((half - 1.0 / 3.0).abs() < 1e-12, "{half}");
        assert_eq!(lost_products(&[0.0], &[]), 0.0);
    }
}
