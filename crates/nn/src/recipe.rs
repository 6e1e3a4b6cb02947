//! How a model is trained.

use crate::{NnError, Optimizer, Schedule};
use serde::{Deserialize, Serialize};

/// The factor that a loss is multiplied with before it is differentiated, so that small gradients are numbers of fp16.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum LossScale {
    /// One factor for ever. A step whose gradients are not numbers is skipped.
    Fixed(f64),
    /// A factor that lives on the device: halved, and the step skipped, where gradients are not numbers; doubled after `interval`
    /// good steps in a row, up to `largest`.
    Dynamic {
        /// The first factor.
        initial: f64,
        /// Good steps before it grows.
        interval: u32,
        /// The largest factor.
        largest: f64,
    },
}

impl Default for LossScale {
    fn default() -> Self {
        Self::Dynamic { initial: 1024.0, interval: 200, largest: 16384.0 }
    }
}

/// Settings of the parameters of one group, in place of the recipe's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Its name, as in [`Parameters::assign_group`](crate::Parameters::assign_group).
    pub name: String,
    /// Factor of the learning rate.
    pub rate: f64,
    /// Another decay.
    pub weight_decay: Option<f64>,
}

/// How a model is trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// The rule of the updates.
    pub optimizer: Optimizer,
    /// The learning rate.
    pub rate: f64,
    /// Its course over the steps.
    pub schedule: Schedule,
    /// Groups with settings of their own.
    pub groups: Vec<Group>,
    /// The loss scale.
    pub loss_scale: LossScale,
    /// The largest Euclidean norm of all gradients together.
    pub clip: Option<f64>,
    /// Whether weights are kept with twice the precision of fp16, as a sum of two.
    pub master: bool,
    /// The share that stays of an exponential moving average of the weights, which is kept beside them.
    pub average: Option<f64>,
    /// Batches whose gradients are averaged for one step.
    pub accumulate: usize,
    /// Steps in one program.
    pub unroll: usize,
}

impl Recipe {
    /// A constant learning rate, the dynamic loss scale, weights of double precision; one batch and one step a call.
    pub fn new(optimizer: Optimizer, rate: f64) -> Self {
        Self {
            optimizer,
            rate,
            schedule: Schedule::Constant,
            groups: Vec::new(),
            loss_scale: LossScale::default(),
            clip: None,
            master: true,
            average: None,
            accumulate: 1,
            unroll: 1,
        }
    }

    /// Number of batches that one call takes.
    pub fn batches(&self) -> usize {
        self.accumulate * self.unroll
    }

    /// The learning rate of a step, counted from 0, for parameters without a group.
    pub fn rate_at(&self, step: u64) -> f64 {
        self.rate * self.schedule.factor(step)
    }

    /// The loss scale before the first step.
    pub(crate) fn first_scale(&self) -> f64 {
        match self.loss_scale {
            LossScale::Fixed(scale) => scale,
            LossScale::Dynamic { initial, .. } => initial,
        }
    }

    /// The optimizer of a group.
    pub(crate) fn optimizer_of(&self, group: &str) -> Optimizer {
        match self.groups.iter().find(|known| known.name == group).and_then(|known| known.weight_decay) {
            Some(decay) => self.optimizer.with_weight_decay(decay),
            None => self.optimizer,
        }
    }

    /// The place of a group among the learning rates.
    pub(crate) fn group_place(&self, group: &str) -> Option<usize> {
        if group.is_empty() { Some(0) } else { self.groups.iter().position(|known| known.name == group).map(|place| place + 1) }
    }

    /// Learning rates at a step, times the optimizer's factor: the default group's first, then the groups'.
    pub(crate) fn rates(&self, step: u64) -> Vec<f64> {
        let rate = self.rate_at(step) * self.optimizer.rate_scale();
        std::iter::once(rate).chain(self.groups.iter().map(|group| rate * group.rate)).collect()
    }

    /// Whether all settings make sense in fp16.
    pub(crate) fn check(&self) -> Result<(), NnError> {
        let refuse = |what, got: String, rule| Err(NnError::Setting { what, got, rule });
        self.optimizer.rounded()?;
        for group in &self.groups {
            self.optimizer_of(&group.name).rounded()?;
        }
        let (first, largest) = match self.loss_scale {
            LossScale::Fixed(scale) => (scale, scale),
            LossScale::Dynamic { initial, largest, .. } => (initial, largest),
        };
        if !(1.0..=16384.0).contains(&first) || !(first..=16384.0).contains(&largest) {
            let rule = "it lies from 1 to 16384, and the first is not above the largest: from 2^15 on the engine has infinity";
            return refuse("loss scale", format!("{first} to {largest}"), rule);
        }
        if let LossScale::Dynamic { interval, .. } = self.loss_scale
            && !(1..=2000).contains(&interval)
        {
            return refuse("interval of the loss scale", interval.to_string(), "it lies from 1 to 2000: fp16 counts to 2048");
        }
        if self.accumulate == 0 || self.unroll == 0 {
            let got = format!("accumulate {} and unroll {}", self.accumulate, self.unroll);
            return refuse("number of batches", got, "both are at least 1");
        }
        if self.clip.is_some_and(|limit| !(limit > 0.0 && limit <= 31.0)) {
            return refuse(
                "clip",
                format!("{:?}", self.clip),
                "the largest norm is above 0 and at most 31, what fp16 holds at the scale of the moments",
            );
        }
        if self.average.is_some_and(|share| !(0.0..=0.9999).contains(&share)) {
            return refuse("average", format!("{:?}", self.average), "the share that stays lies from 0 to 0.9999");
        }
        let rates = std::iter::once(1.0).chain(self.groups.iter().map(|group| group.rate));
        if rates.map(|factor| factor * self.rate).any(|rate| !(0.0..8.0).contains(&rate)) {
            return refuse("learning rate", self.rate.to_string(), "with each group's factor it is at least 0 and below 8");
        }
        Ok(())
    }
}
