//! `aneforge train`

use crate::failure::Failure;
use crate::progress::Progress;
use crate::{interrupt, output};
use aneforge::train::{Config, DataSet, EpochLine, Run, Start, StepLine, Summary, Task, Watch};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Train a model: forward pass, backward pass and update in one program, with all state on the device.
///
/// Ctrl-C ends after the step under way and saves where there is a folder of checkpoints; the exit code is 130 then.
#[derive(clap::Args)]
pub struct Options {
    /// fashion-mlp, fashion-cnn-small, fashion-cnn, cifar10-cnn, or a file of settings with the ending .toml.
    task: String,
    /// Where to train: auto, cpu, ane, fake, emulator:<chip>, reference.
    #[arg(long)]
    device: Option<String>,
    /// What the program is compiled for; the device's own target without it.
    #[arg(long)]
    target: Option<String>,
    /// Passes over the training images.
    #[arg(long)]
    epochs: Option<u64>,
    /// End after this many steps.
    #[arg(long)]
    steps: Option<u64>,
    /// Images in a batch.
    #[arg(long)]
    batch: Option<usize>,
    /// Learning rate.
    #[arg(long)]
    rate: Option<f64>,
    /// Seed of the first weights and of the order of images.
    #[arg(long)]
    seed: Option<u64>,
    /// Folder of the data set. Without it Fashion-MNIST is fetched once with apt-get, as a package that is unpacked into the cache.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Folder of checkpoints.
    #[arg(long)]
    checkpoints: Option<PathBuf>,
    /// Steps between checkpoints.
    #[arg(long)]
    every: Option<u64>,
    /// File that gets a line of JSON for each step and epoch.
    #[arg(long)]
    log: Option<PathBuf>,
    /// Go on from the newest checkpoint.
    #[arg(long)]
    resume: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Trains, prints.
pub fn run(options: &Options) -> Result<(), Failure> {
    let config = config(options)?;
    let data = DataSet::open(config.task.source(), config.data.as_deref())?;
    let mut run = Run::new(&config, data)?;
    interrupt::listen();
    let mut screen = Screen { task: config.task, progress: None };
    let summary = run.go(&mut screen)?;
    drop(screen);
    report(options, &config, &summary)?;
    if summary.interrupted { Err(Failure::Interrupted) } else { Ok(()) }
}

/// Settings of the file or the task, with those of the command line in their place.
fn config(options: &Options) -> Result<Config, Failure> {
    let path = Path::new(&options.task);
    let mut config = if path.extension().is_some_and(|extension| extension == "toml") {
        Config::open(path)?
    } else {
        let names = || Task::ALL.map(Task::name).join(", ");
        let unknown = || Failure::Input(format!("no task {:?}: there are {}, or a file .toml", options.task, names()));
        Config::new(Task::find(&options.task).ok_or_else(unknown)?)
    };
    fn put<T: Clone>(place: &mut T, given: &Option<T>) {
        if let Some(value) = given {
            *place = value.clone();
        }
    }
    put(&mut config.device, &options.device);
    put(&mut config.epochs, &options.epochs);
    put(&mut config.batch, &options.batch);
    put(&mut config.rate, &options.rate);
    put(&mut config.seed, &options.seed);
    put(&mut config.every, &options.every);
    config.target = options.target.clone().or(config.target);
    config.steps = options.steps.or(config.steps);
    config.data = options.data.clone().or(config.data);
    config.checkpoints = options.checkpoints.clone().or(config.checkpoints);
    config.log = options.log.clone().or(config.log);
    config.resume |= options.resume;
    Ok(config)
}

/// Shows how it goes on standard error.
struct Screen {
    task: Task,
    progress: Option<Progress>,
}

impl Watch for Screen {
    fn started(&mut self, start: &Start) {
        let Start { device, target, parameters, steps: (steps, made), .. } = start;
        output::note(&format!("{} on {device} (target {target}): {parameters} trained values, {steps} steps", self.task.name()));
        if let Some(path) = &start.resumed {
            output::note(&format!("resumed from {} after step {made}", path.display()));
        }
        for hazard in &start.hazards {
            output::note(&format!("warning: {hazard}"));
        }
        let progress = Progress::new(*steps as usize, "training");
        progress.advance(*made as usize);
        self.progress = Some(progress);
    }

    fn step(&mut self, line: &StepLine) {
        if let Some(progress) = &self.progress {
            let loss = line.loss.map_or("no number".to_string(), |loss| format!("{loss:.4}"));
            progress.say(format!(
                "epoch {} loss {loss} rate {:.2e} {:.0} images/s device {:.1} ms",
                line.epoch, line.rate, line.images_per_second, line.device_milliseconds
            ));
            progress.advance(1);
        }
    }

    fn epoch(&mut self, line: &EpochLine) {
        let EpochLine { epoch, loss, accuracy, test_images, .. } = line;
        output::note(&format!("epoch {epoch}: mean loss {loss:.4}, accuracy {:.2} % of {test_images}", accuracy * 100.0));
    }

    fn stops(&self) -> bool {
        interrupt::asked()
    }
}

#[derive(Serialize)]
struct Report<'a> {
    config: &'a Config,
    #[serde(flatten)]
    summary: &'a Summary,
}

fn report(options: &Options, config: &Config, summary: &Summary) -> Result<(), Failure> {
    if options.json {
        return output::json(&Report { config, summary });
    }
    let mut rows = vec![["epoch", "steps", "loss", "accuracy", "skipped"].map(String::from).to_vec()];
    for line in &summary.epochs {
        let accuracy = format!("{:.2} %", line.accuracy * 100.0);
        let loss = format!("{:.4}", line.loss);
        rows.push(vec![line.epoch.to_string(), line.step.to_string(), loss, accuracy, line.skipped.to_string()]);
    }
    output::data(&output::table(&rows, &[0, 1, 2, 3, 4]))?;
    output::note(&format!(
        "{} steps on {}: {:.0} images/s, {:.2} ms of the device per step, {} dispatches, {} bytes of state moved by steps",
        summary.steps,
        summary.device,
        summary.images_per_second,
        summary.device_milliseconds,
        summary.dispatches,
        summary.state_bytes_in_steps
    ));
    if let Some(path) = &summary.checkpoint {
        let how = if summary.interrupted { "interrupted; go on with --resume from" } else { "last checkpoint" };
        output::note(&format!("{how} {}", path.display()));
    } else if summary.interrupted {
        output::note("interrupted; nothing is saved without --checkpoints");
    }
    Ok(())
}
