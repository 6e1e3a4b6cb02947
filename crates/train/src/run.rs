//! The run itself.

use crate::checkpoints::Checkpoints;
use crate::log::{EpochLine, Line, Log, StepLine};
use crate::{Config, DataSet, Net, Part, TrainError};
use aneforge_core::{HostArray, Target, Tensor};
use aneforge_nn::{
    CheckpointError, Evaluator, Hazard, NnError, Parameters, Pass, Progress, ResidentTrainer, Sampler, StepReport, Traffic,
    Training, hazards,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Test images in one call, at most.
const TEST_BATCH: usize = 250;
/// Images that are looked at for hazards.
const HAZARD_BATCH: usize = 16;

/// Who looks on. Every method has a body that does nothing.
pub trait Watch {
    /// The step is compiled and loaded, and a checkpoint read where there was one.
    fn started(&mut self, _start: &Start) {}
    /// A step is made.
    fn step(&mut self, _line: &StepLine) {}
    /// An epoch is over and the test images are classified.
    fn epoch(&mut self, _line: &EpochLine) {}
    /// Whether to stop before the next step: the run saves and ends.
    fn stops(&self) -> bool {
        false
    }
}

impl Watch for () {}

/// What is run.
#[derive(Clone, Debug)]
pub struct Start {
    /// The device's own name.
    pub device: String,
    /// What the program is compiled for.
    pub target: Target,
    /// Values that are trained.
    pub parameters: usize,
    /// Steps in all, and those made before.
    pub steps: (u64, u64),
    /// The checkpoint that it goes on from.
    pub resumed: Option<PathBuf>,
    /// Where the engine's arithmetic would hurt, by the first batch.
    pub hazards: Vec<Hazard>,
}

/// How a run ended.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The device's own name.
    pub device: String,
    /// Steps made, those before a resumption included.
    pub steps: u64,
    /// Whether [`Watch::stops`] ended it.
    pub interrupted: bool,
    /// The epochs that ended.
    pub epochs: Vec<EpochLine>,
    /// The last checkpoint.
    pub checkpoint: Option<PathBuf>,
    /// Programs executed for the steps of this process: one for each call.
    pub dispatches: u64,
    /// Bytes of state that steps moved between host and device: none.
    pub state_bytes_in_steps: u64,
    /// Images per second over all steps of this process, host and device together.
    pub images_per_second: f64,
    /// Milliseconds of the device for a step, on average.
    pub device_milliseconds: f64,
}

/// A run, ready to go.
#[derive(Debug)]
pub struct Run {
    config: Config,
    data: DataSet,
    parameters: Parameters,
    net: Net,
    trainer: ResidentTrainer,
    evaluator: Evaluator,
    sampler: Sampler,
    log: Option<Log>,
    checkpoints: Option<Checkpoints>,
    last: Option<PathBuf>,
    start: Start,
    epoch: Epoch,
    calls_per_epoch: u64,
}

impl Run {
    /// Builds model, step and test program, loads them on the device and resumes where the settings say so.
    ///
    /// # Errors
    /// [`TrainError`]: settings that make no sense, a device that is not here, a checkpoint that does not fit.
    pub fn new(config: &Config, data: DataSet) -> Result<Self, TrainError> {
        config.check()?;
        let sampler = Sampler::new(data.part(Part::Train).len(), config.batch, config.seed)?;
        let batches = (config.accumulate * config.unroll).max(1);
        let calls_per_epoch = (data.part(Part::Train).len() / config.batch / batches) as u64;
        if calls_per_epoch == 0 {
            let rule = format!("with accumulation and unrolling a call takes {batches} batches, more than an epoch has");
            return Err(TrainError::Setting { key: "batch", got: config.batch.to_string(), rule });
        }
        let whole = config.epochs * calls_per_epoch * config.unroll as u64;
        let steps = config.steps.map_or(whole, |steps| steps.min(whole));
        let recipe = config.recipe(whole);
        let device = aneforge_runtime::open(&config.device)?;
        let mut parameters = Parameters::new(config.seed);
        let net = Net::new(config.task, &mut parameters)?;
        let ports = data.ports(config.batch);
        let model = |pass: &Pass, batch: &[Tensor]| net.outcome(pass, batch, config.smoothing);
        let target = config.target()?;
        let training = Training { parameters: &parameters, recipe: &recipe, ports: &ports, model: &model, device: &device, target };
        let trainer = training.resident()?;
        let target = target.unwrap_or_else(|| device.target());
        let found = if target.chip().is_some() { look(config, &data, &parameters, &recipe, &net)? } else { Vec::new() };
        let test_batch = TEST_BATCH.min(data.part(Part::Test).len());
        let forward = |pass: &Pass, inputs: &[Tensor]| vec![("logits".to_string(), net.logits(pass, &inputs[0]))];
        let evaluator = trainer.evaluator(&parameters, &data.ports(test_batch)[..1], &forward, config.average.is_some())?;
        let start = Start {
            device: device.name().to_string(),
            target,
            parameters: parameters.trainable_count(),
            steps: (steps, 0),
            resumed: None,
            hazards: found,
        };
        let checkpoints = config.checkpoints.as_deref().map(Checkpoints::new).transpose()?;
        let (config, log, last, epoch) = (config.clone(), None, None, Epoch::default());
        let mut run = Self {
            config,
            data,
            parameters,
            net,
            trainer,
            evaluator,
            sampler,
            log,
            checkpoints,
            last,
            start,
            epoch,
            calls_per_epoch,
        };
        run.resume()?;
        Ok(run)
    }

    /// The model's parameters: their first values until [`Self::go`] ends, then the trained ones.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The model.
    pub fn net(&self) -> &Net {
        &self.net
    }

    /// What went between host and device so far.
    pub fn traffic(&self) -> Traffic {
        self.trainer.traffic()
    }

    /// Trains to the end, or until somebody stops it.
    ///
    /// # Errors
    /// [`TrainError::Stopped`] where the loss or the state is not a number any more, with the last good checkpoint;
    /// [`TrainError::Checkpoint`] and [`TrainError::File`] where something cannot be written.
    pub fn go(&mut self, watch: &mut dyn Watch) -> Result<Summary, TrainError> {
        watch.started(&self.start);
        let steps = self.start.steps.0;
        let (before, begun) = (self.trainer.traffic(), Instant::now());
        let (mut epochs, mut testing, mut moved) = (Vec::new(), Duration::ZERO, 0);
        let mut interrupted = false;
        while self.trainer.steps() < steps {
            if watch.stops() {
                interrupted = true;
                break;
            }
            let state = self.trainer.traffic().state_bytes;
            self.call(watch)?;
            moved += self.trainer.traffic().state_bytes - state;
            let made = self.trainer.steps();
            let unroll = self.config.unroll as u64;
            if made.is_multiple_of(self.calls_per_epoch * unroll) {
                let line = self.end_epoch()?;
                testing += Duration::from_secs_f64(line.test_milliseconds / 1e3);
                watch.epoch(&line);
                epochs.push(line);
                self.save()?;
            } else if made / self.config.every != (made - unroll) / self.config.every {
                self.save()?;
            }
        }
        self.save()?;
        self.trainer.sync(&mut self.parameters)?;
        let traffic = self.trainer.traffic();
        let made = self.trainer.steps() - self.start.steps.1;
        let images = made as usize * self.config.batch * self.config.accumulate;
        Ok(Summary {
            device: self.start.device.clone(),
            steps: self.trainer.steps(),
            interrupted,
            epochs,
            checkpoint: self.last.clone(),
            dispatches: traffic.dispatches - before.dispatches,
            state_bytes_in_steps: moved,
            images_per_second: images as f64 / begun.elapsed().saturating_sub(testing).as_secs_f64().max(1e-9),
            device_milliseconds: (traffic.device_time - before.device_time).as_secs_f64() * 1e3 / (made.max(1)) as f64,
        })
    }

    /// The share of all test images whose class the model names now.
    ///
    /// # Errors
    /// What the device reports.
    pub fn accuracy(&mut self) -> Result<f64, TrainError> {
        let count = self.data.part(Part::Test).len();
        let classes = self.data.source().classes();
        let size = TEST_BATCH.min(count);
        let mut hits = 0;
        for first in (0..count).step_by(size) {
            // The last call is filled up with images that were there before.
            let places: Vec<usize> = (0..size).map(|place| (first + place) % count).collect();
            let [images, labels] = self.data.batch(Part::Test, &places)?;
            let logits = self.evaluator.run(&[images])?.remove(0).to_f32();
            let labels = labels.to_array().data;
            let right = logits.chunks(classes).zip(labels).take(count - first).filter(|(row, label)| named(row) == *label as usize);
            hits += right.count();
        }
        Ok(hits as f64 / count as f64)
    }

    /// One dispatch and its lines of the log.
    fn call(&mut self, watch: &mut dyn Watch) -> Result<(), TrainError> {
        let begun = Instant::now();
        let per_call = self.config.accumulate * self.config.unroll;
        let mut arrays: Vec<HostArray> = Vec::with_capacity(2 * per_call);
        for _ in 0..per_call {
            arrays.extend(self.data.batch(Part::Train, &self.sampler.next_batch())?);
        }
        let device = self.trainer.traffic().device_time;
        let made = self.trainer.steps();
        let rates: Vec<f64> = (made..made + self.config.unroll as u64).map(|step| self.trainer.recipe().rate_at(step)).collect();
        let reports = self.trainer.step(&arrays).map_err(|error| match error {
            NnError::NotFinite { .. } => TrainError::Stopped { source: Box::new(error), last: self.last.clone() },
            other => other.into(),
        })?;
        let device = (self.trainer.traffic().device_time - device).as_secs_f64() * 1e3 / reports.len() as f64;
        let images = per_call * self.config.batch;
        for (StepReport { step, loss, kept, .. }, rate) in reports.into_iter().zip(rates) {
            let line = StepLine {
                step: step + 1,
                epoch: step / (self.calls_per_epoch * self.config.unroll as u64) + 1,
                loss: loss.is_finite().then_some(loss),
                kept,
                rate,
                images_per_second: images as f64 / begun.elapsed().as_secs_f64().max(1e-9),
                device_milliseconds: device,
            };
            self.epoch.count(&line);
            watch.step(&line);
            if let Some(log) = &mut self.log {
                log.write(&Line::Step(line))?;
            }
        }
        // What is left of an epoch is no whole call.
        if self.trainer.steps().is_multiple_of(self.calls_per_epoch * self.config.unroll as u64) {
            let batches = self.data.part(Part::Train).len() / self.config.batch;
            for _ in 0..batches % per_call {
                self.sampler.next_batch();
            }
        }
        Ok(())
    }

    fn end_epoch(&mut self) -> Result<EpochLine, TrainError> {
        let epoch = std::mem::take(&mut self.epoch);
        let begun = Instant::now();
        let accuracy = self.accuracy()?;
        let step = self.trainer.steps();
        let line = EpochLine {
            step,
            epoch: step / (self.calls_per_epoch * self.config.unroll as u64),
            loss: f64::from_bits(epoch.loss) / epoch.steps.max(1) as f64,
            accuracy,
            test_images: self.data.part(Part::Test).len(),
            skipped: epoch.skipped,
            test_milliseconds: begun.elapsed().as_secs_f64() * 1e3,
        };
        if let Some(log) = &mut self.log {
            log.write(&Line::Epoch(line.clone()))?;
        }
        Ok(line)
    }

    /// Writes a checkpoint of this step, where there is a folder for it and no such file yet.
    fn save(&mut self) -> Result<(), TrainError> {
        let Some(checkpoints) = &self.checkpoints else { return Ok(()) };
        let path = checkpoints.path(self.trainer.steps());
        if self.last.as_ref() == Some(&path) {
            return Ok(());
        }
        if let Some(log) = &mut self.log {
            log.flush()?;
        }
        let progress =
            Progress { sampler: Some(self.sampler.clone()), config: json!({ "run": self.identity(), "epoch": self.epoch }) };
        self.trainer.save(&path, &self.parameters, &progress).map_err(|source| match source {
            CheckpointError::NotFinite { .. } => TrainError::Stopped { source: Box::new(source), last: self.last.clone() },
            source => TrainError::Checkpoint { source, last: self.last.clone() },
        })?;
        self.last = Some(path);
        checkpoints.prune()
    }

    /// What a resumed run must share with the one that it goes on with, beside the recipe.
    fn identity(&self) -> Value {
        json!({
            "task": self.config.task, "device": self.start.device, "target": self.start.target.to_string(), "batch": self.config.batch,
            "smoothing": self.config.smoothing, "seed": self.config.seed, "data": self.data.digest(),
        })
    }

    fn resume(&mut self) -> Result<(), TrainError> {
        let start = Line::Start {
            schema: Line::SCHEMA,
            config: serde_json::to_value(&self.config)
                .map_err(|error| TrainError::Settings { place: "settings".to_string(), problem: error.to_string() })?,
        };
        let newest = self.checkpoints.as_ref().map(Checkpoints::newest).transpose()?.flatten();
        if !self.config.resume {
            if let Some(path) = newest {
                return Err(TrainError::InTheWay { path });
            }
            self.log = self.config.log.as_deref().map(|path| Log::create(path, &start)).transpose()?;
            return Ok(());
        }
        if let Some(path) = newest {
            let fail = |source| {
                let others = self.checkpoints.as_ref().and_then(|all| all.all().ok()).unwrap_or_default();
                let last = others.into_iter().map(|(_, other)| other).rfind(|other| *other != path);
                TrainError::Checkpoint { source, last }
            };
            // The settings first: the recipe's difference would say less.
            let progress = ResidentTrainer::progress(&path).map_err(fail)?;
            let identity = self.identity();
            let differs =
                identity.as_object().and_then(|own| own.iter().find(|(key, value)| progress.config["run"].get(key) != Some(value)));
            if let Some((key, value)) = differs {
                let there = progress.config["run"][key].clone();
                let problem = format!("its setting {key:?} is {there}, this run's is {value}");
                return Err(fail(CheckpointError::Mismatch { path: path.clone(), problem }));
            }
            let progress = self.trainer.resume(&path).map_err(|source| TrainError::Checkpoint { source, last: None })?;
            self.epoch = serde_json::from_value(progress.config["epoch"].clone()).unwrap_or_default();
            if let Some(sampler) = progress.sampler {
                self.sampler = sampler;
            }
            self.start.resumed = Some(path.clone());
            self.last = Some(path);
        }
        let made = self.trainer.steps();
        self.start.steps.1 = made;
        self.log = self.config.log.as_deref().map(|path| Log::resume(path, made, &start)).transpose()?;
        Ok(())
    }
}

/// Sums over the steps of an epoch, kept in checkpoints.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Epoch {
    steps: u64,
    /// The sum's bits: JSON does not keep the last one of a number.
    loss: u64,
    skipped: u64,
}

impl Epoch {
    fn count(&mut self, line: &StepLine) {
        if let Some(loss) = line.loss {
            self.steps += 1;
            self.loss = (f64::from_bits(self.loss) + f64::from(loss)).to_bits();
        }
        self.skipped += u64::from(!line.kept);
    }
}

/// The class of the largest logit.
fn named(row: &[f32]) -> usize {
    (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap_or(0)
}

/// Hazards of range, by the first images of the set.
fn look(
    config: &Config,
    data: &DataSet,
    parameters: &Parameters,
    recipe: &aneforge_nn::Recipe,
    net: &Net,
) -> Result<Vec<Hazard>, TrainError> {
    let size = HAZARD_BATCH.min(config.batch);
    let places: Vec<usize> = (0..size).collect();
    let batch = data.batch(Part::Train, &places)?;
    let model = |pass: &Pass, batch: &[Tensor]| net.outcome(pass, batch, config.smoothing);
    let recipe = aneforge_nn::Recipe { accumulate: 1, unroll: 1, ..recipe.clone() };
    Ok(hazards(parameters, &recipe, &data.ports(size), &model, &batch)?)
}
