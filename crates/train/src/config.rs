//! The settings of a run, from a TOML file or from code.

use crate::{Task, TrainError};
use aneforge_core::Target;
use aneforge_nn::{LossScale, Optimizer, Recipe, Schedule};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// All settings of a run. In TOML every key but `task` may be left out; keys are written with hyphens, and one that is not known is
/// an error.
///
/// ```
/// use aneforge_train::{Config, Task};
///
/// let config = Config::parse("here", "task = 'fashion-cnn'\nrate = 0.002\n[schedule]\nname = 'warmup-cosine'\nwarmup = 100\n")?;
/// assert_eq!((config.task, config.rate, config.batch), (Task::FashionCnn, 0.002, 100));
/// let error = Config::parse("here", "task = 'fashion-cnn'\nbatchsize = 4").unwrap_err();
/// assert!(error.to_string().contains("batchsize"));
/// # Ok::<(), aneforge_train::TrainError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// Model and data.
    pub task: Task,
    /// Name of the device, as for [`aneforge_runtime::open`].
    #[serde(default = "defaults::device")]
    pub device: String,
    /// What the program is compiled for, `m1` or `m1:in-memory`; the device's own target where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Passes over the training images.
    #[serde(default = "defaults::epochs")]
    pub epochs: u64,
    /// Steps after which the run ends, where that is before the last epoch does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Images in a batch.
    #[serde(default = "defaults::batch")]
    pub batch: usize,
    /// The rule of the updates.
    #[serde(default = "defaults::optimizer")]
    pub optimizer: Rule,
    /// The learning rate.
    #[serde(default = "defaults::rate")]
    pub rate: f64,
    /// Its course.
    #[serde(default = "defaults::schedule")]
    pub schedule: Timetable,
    /// The loss scale.
    #[serde(default = "defaults::loss_scale")]
    pub loss_scale: LossScaling,
    /// Batches whose gradients are averaged for one step.
    #[serde(default = "defaults::one")]
    pub accumulate: usize,
    /// Steps in one program.
    #[serde(default = "defaults::one")]
    pub unroll: usize,
    /// The largest Euclidean norm of all gradients together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip: Option<f64>,
    /// The share that stays of a moving average of the weights; where it is given, that average is what the test images see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average: Option<f64>,
    /// The share of a label that is spread over all classes.
    #[serde(default)]
    pub smoothing: f64,
    /// Whether weights have twice the precision of fp16.
    #[serde(default = "defaults::yes")]
    pub master: bool,
    /// Where first weights and the order of images come from.
    #[serde(default = "defaults::seed")]
    pub seed: u64,
    /// Folder of the data set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<PathBuf>,
    /// Folder of checkpoints; none are written without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoints: Option<PathBuf>,
    /// Steps between checkpoints; one is written at the end of each epoch as well.
    #[serde(default = "defaults::every")]
    pub every: u64,
    /// File that gets a line of JSON for each step and epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<PathBuf>,
    /// Whether to go on from the newest checkpoint, where there is one.
    #[serde(default)]
    pub resume: bool,
}

/// An optimizer by name, with the settings that it has.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", deny_unknown_fields, rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Rule {
    /// Stochastic gradient descent.
    Sgd {
        /// Share of the velocity that stays.
        #[serde(default)]
        momentum: f64,
        /// Whether the step looks ahead.
        #[serde(default)]
        nesterov: bool,
        /// L2 penalty.
        #[serde(default)]
        weight_decay: f64,
    },
    /// Adam.
    Adam {
        /// Shares of both moments that stay.
        #[serde(default = "defaults::betas")]
        betas: (f64, f64),
        /// Added to the root of the second moment.
        #[serde(default = "defaults::epsilon")]
        epsilon: f64,
        /// L2 penalty.
        #[serde(default)]
        weight_decay: f64,
    },
    /// Adam with decay apart from the gradient.
    Adamw {
        /// Shares of both moments that stay.
        #[serde(default = "defaults::betas")]
        betas: (f64, f64),
        /// Added to the root of the second moment.
        #[serde(default = "defaults::epsilon")]
        epsilon: f64,
        /// Decay.
        #[serde(default = "defaults::decay")]
        weight_decay: f64,
    },
    /// Lion.
    Lion {
        /// Share of the momentum in the step, and in the next momentum.
        #[serde(default = "defaults::lion_betas")]
        betas: (f64, f64),
        /// Decay.
        #[serde(default)]
        weight_decay: f64,
    },
}

/// A schedule of the learning rate by name.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", deny_unknown_fields, rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Timetable {
    /// The same throughout.
    Constant {},
    /// A linear rise, then half a cosine to the end of the last epoch.
    WarmupCosine {
        /// Steps of the rise.
        #[serde(default)]
        warmup: u64,
        /// The factor at the end.
        #[serde(default)]
        last: f64,
    },
    /// Multiplied by a factor now and then.
    Step {
        /// Steps between changes.
        every: u64,
        /// The factor.
        factor: f64,
    },
}

/// A loss scale by name.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", deny_unknown_fields, rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum LossScaling {
    /// One factor.
    Fixed {
        /// The factor.
        scale: f64,
    },
    /// A factor that follows the gradients.
    Dynamic {
        /// The first factor.
        #[serde(default = "defaults::initial")]
        initial: f64,
        /// Good steps before it grows.
        #[serde(default = "defaults::interval")]
        interval: u32,
        /// The largest factor.
        #[serde(default = "defaults::largest")]
        largest: f64,
    },
}

mod defaults {
    use super::{LossScaling, Rule, Timetable};

    pub fn device() -> String {
        "auto".to_string()
    }
    pub fn epochs() -> u64 {
        3
    }
    pub fn batch() -> usize {
        100
    }
    pub fn optimizer() -> Rule {
        Rule::Adam { betas: betas(), epsilon: epsilon(), weight_decay: 0.0 }
    }
    pub fn rate() -> f64 {
        1e-3
    }
    pub fn schedule() -> Timetable {
        Timetable::Constant {}
    }
    pub fn loss_scale() -> LossScaling {
        LossScaling::Dynamic { initial: initial(), interval: interval(), largest: largest() }
    }
    pub fn one() -> usize {
        1
    }
    pub fn yes() -> bool {
        true
    }
    pub fn seed() -> u64 {
        1
    }
    pub fn every() -> u64 {
        200
    }
    pub fn betas() -> (f64, f64) {
        (0.9, 0.999)
    }
    pub fn lion_betas() -> (f64, f64) {
        (0.9, 0.99)
    }
    pub fn epsilon() -> f64 {
        1e-8
    }
    pub fn decay() -> f64 {
        0.01
    }
    pub fn initial() -> f64 {
        1024.0
    }
    pub fn interval() -> u32 {
        200
    }
    pub fn largest() -> f64 {
        16384.0
    }
}

impl Config {
    /// The settings of a task where nothing else is said.
    pub fn new(task: Task) -> Self {
        Self {
            task,
            device: defaults::device(),
            target: None,
            epochs: defaults::epochs(),
            steps: None,
            batch: defaults::batch(),
            optimizer: defaults::optimizer(),
            rate: defaults::rate(),
            schedule: defaults::schedule(),
            loss_scale: defaults::loss_scale(),
            accumulate: 1,
            unroll: 1,
            clip: None,
            average: None,
            smoothing: 0.0,
            master: true,
            seed: defaults::seed(),
            data: None,
            checkpoints: None,
            every: defaults::every(),
            log: None,
            resume: false,
        }
    }

    /// Reads settings from a TOML file. Paths in it are taken from the working folder.
    ///
    /// # Errors
    /// [`TrainError::Settings`] with the place and the key.
    pub fn open(path: &Path) -> Result<Self, TrainError> {
        let text = std::fs::read_to_string(path).map_err(TrainError::file("read", path))?;
        Self::parse(&path.display().to_string(), &text)
    }

    /// Reads settings from the text of `place`.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn parse(place: &str, text: &str) -> Result<Self, TrainError> {
        toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            let line = line.map_or_else(String::new, |line| format!("line {line}: "));
            TrainError::Settings { place: place.to_string(), problem: format!("{line}{}", error.message()) }
        })
    }

    /// The target, where one is given.
    ///
    /// # Errors
    /// [`TrainError::Setting`] for a name that is none.
    pub fn target(&self) -> Result<Option<Target>, TrainError> {
        let parse = |name: &String| {
            name.parse::<Target>().map_err(|error| TrainError::Setting {
                key: "target",
                got: format!("{name:?}"),
                rule: error.to_string(),
            })
        };
        self.target.as_ref().map(parse).transpose()
    }

    /// The recipe of a run of that many steps.
    pub fn recipe(&self, steps: u64) -> Recipe {
        let optimizer = match self.optimizer {
            Rule::Sgd { momentum, nesterov, weight_decay } => Optimizer::Sgd { momentum, nesterov, weight_decay },
            Rule::Adam { betas, epsilon, weight_decay } => Optimizer::Adam { betas, epsilon, weight_decay },
            Rule::Adamw { betas, epsilon, weight_decay } => Optimizer::AdamW { betas, epsilon, weight_decay },
            Rule::Lion { betas, weight_decay } => Optimizer::Lion { betas, weight_decay },
        };
        let schedule = match self.schedule {
            Timetable::Constant {} => Schedule::Constant,
            Timetable::WarmupCosine { warmup, last } => Schedule::WarmupCosine { warmup, total: steps, last },
            Timetable::Step { every, factor } => Schedule::Step { every, factor },
        };
        let loss_scale = match self.loss_scale {
            LossScaling::Fixed { scale } => LossScale::Fixed(scale),
            LossScaling::Dynamic { initial, interval, largest } => LossScale::Dynamic { initial, interval, largest },
        };
        Recipe {
            schedule,
            loss_scale,
            clip: self.clip,
            master: self.master,
            average: self.average,
            accumulate: self.accumulate,
            unroll: self.unroll,
            ..Recipe::new(optimizer, self.rate)
        }
    }

    /// Holds what neither the recipe nor the trainer looks at.
    pub(crate) fn check(&self) -> Result<(), TrainError> {
        let refuse = |key, got: String, rule: &str| Err(TrainError::Setting { key, got, rule: rule.to_string() });
        if self.epochs == 0 {
            return refuse("epochs", self.epochs.to_string(), "a run has at least one");
        }
        if self.every == 0 {
            return refuse("every", self.every.to_string(), "there is at least one step from checkpoint to checkpoint");
        }
        if !(0.0..1.0).contains(&self.smoothing) {
            return refuse("smoothing", self.smoothing.to_string(), "it is 0 or more and below 1");
        }
        if self.resume && self.checkpoints.is_none() {
            return refuse("resume", "true".to_string(), "name the folder of the run's checkpoints, \"checkpoints\"");
        }
        Ok(())
    }
}
