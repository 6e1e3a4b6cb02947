//! One run of the comparison with PyTorch: what `scripts/parity.sh` starts.
//!
//! `parity start TASK SEED EPOCHS DATA` prints what both sides begin with: first weights, the places of every batch, mean and deviation
//! of the pixels. `parity run TASK SEED EPOCHS DATA DEVICE [STEPS]` trains and prints accuracies and how long it took. Both print JSON.

use aneforge_nn::{Parameters, Sampler};
use aneforge_train::{Config, DataSet, Net, Part, Run, StepLine, Task, Watch};
use serde_json::{Map, Value, json};
use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// Steps whose mean loss is one number of the report.
const WINDOW: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, task, seed, epochs, data, rest @ ..] = arguments.as_slice() else {
        return Err("usage: parity start|run TASK SEED EPOCHS DATA [DEVICE [STEPS]]".into());
    };
    let task = Task::find(task).ok_or("no such task")?;
    let config = Config { seed: seed.parse()?, epochs: epochs.parse()?, ..Config::new(task) };
    let data = DataSet::open(task.source(), Some(Path::new(data)))?;
    let answer = match (what.as_str(), rest) {
        ("start", []) => start(&config, &data)?,
        ("run", [device, steps @ ..]) => {
            let steps = steps.first().map(|steps| steps.parse()).transpose()?;
            run(&Config { device: device.clone(), steps, ..config }, data)?
        }
        _ => return Err("say start, or run with a device".into()),
    };
    std::io::stdout().write_all(answer.to_string().as_bytes())?;
    Ok(())
}

fn start(config: &Config, data: &DataSet) -> Result<Value, Box<dyn Error>> {
    let mut parameters = Parameters::new(config.seed);
    Net::new(config.task, &mut parameters)?;
    let named = parameters.entries().iter().map(|entry| {
        let value = json!({ "shape": entry.shape(), "values": entry.values() });
        (entry.name().to_string(), value)
    });
    let images = data.part(Part::Train).len();
    let mut sampler = Sampler::new(images, config.batch, config.seed)?;
    let steps = config.epochs as usize * (images / config.batch);
    let batches: Vec<Vec<usize>> = (0..steps).map(|_| sampler.next_batch()).collect();
    let (mean, deviation) = data.statistics();
    Ok(json!({
        "parameters": named.collect::<Map<_, _>>(), "batches": batches, "steps_per_epoch": images / config.batch,
        "rate": config.rate, "mean": mean, "deviation": deviation,
    }))
}

/// Keeps the losses.
#[derive(Default)]
struct Losses(Vec<f64>);

impl Watch for Losses {
    fn step(&mut self, line: &StepLine) {
        self.0.push(line.loss.map_or(f64::NAN, f64::from));
    }
}

fn run(config: &Config, data: DataSet) -> Result<Value, Box<dyn Error>> {
    let mut losses = Losses::default();
    let mut run = Run::new(config, data)?;
    let begun = Instant::now();
    let summary = run.go(&mut losses)?;
    let seconds = begun.elapsed().as_secs_f64();
    let accuracy: Vec<f64> = match summary.epochs.as_slice() {
        [] => vec![run.accuracy()?],
        epochs => epochs.iter().map(|line| line.accuracy).collect(),
    };
    let windows: Vec<f64> = losses.0.chunks(WINDOW).map(|part| part.iter().sum::<f64>() / part.len() as f64).collect();
    Ok(json!({
        "accuracy": accuracy, "losses": windows, "steps": summary.steps, "seconds": seconds,
        "milliseconds_per_step": summary.device_milliseconds, "dispatches": summary.dispatches,
        "state_bytes_in_steps": summary.state_bytes_in_steps,
    }))
}
