//! A run that is killed at random moments and resumed ends where an uninterrupted one ends, bit for bit.
#![allow(clippy::unwrap_used)]

mod common;

use aneforge_nn::{Optimizer, Parameters, Progress, Recipe, StepReport};
use aneforge_testkit::Random;
use common::{Data, Net, run, sampler, trainer};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Names the folder of the run in the process that is to be killed.
const FOLDER: &str = "ANEFORGE_TEST_KILLED_RUN";
const STEPS: u64 = 90;
const EVERY: u64 = 3;
const KILLS: usize = 20;

/// Trains to the end from the checkpoint, where there is one, and gives the bytes of all state; writes a line for each step.
fn train(folder: &Path) -> Vec<u8> {
    let (checkpoint, log) = (folder.join("run.safetensors"), folder.join("log"));
    let mut parameters = Parameters::new(9);
    let net = Net::new(&mut parameters).unwrap();
    let recipe = Recipe { clip: Some(1.0), ..Recipe::new(Optimizer::adam(), 0.01) };
    let mut trainer = trainer("cpu", &parameters, &net, &recipe);
    let (data, mut order) = (Data::new(), sampler());
    if checkpoint.exists() {
        order = trainer.resume(&checkpoint).unwrap().sampler.unwrap();
    }
    // What was logged after the checkpoint belongs to steps that are made again.
    let text = fs::read_to_string(&log).unwrap_or_default();
    let mut lines: Vec<String> = text.lines().take(trainer.steps() as usize).map(str::to_string).collect();
    while trainer.steps() < STEPS {
        let StepReport { step, loss, kept, .. } = run(&mut trainer, &data, &mut order, 1).remove(0);
        lines.push(format!("{step} {:08x} {kept}", loss.to_bits()));
        // Renamed, so that a killed run leaves no half of it.
        fs::write(folder.join("log.new"), lines.join("\n")).unwrap();
        fs::rename(folder.join("log.new"), &log).unwrap();
        if trainer.steps().is_multiple_of(EVERY) {
            trainer
                .save(&checkpoint, &parameters, &Progress { sampler: Some(order.clone()), config: serde_json::Value::Null })
                .unwrap();
        }
    }
    let names: Vec<String> = trainer.slot_names().map(str::to_string).collect();
    names.iter().flat_map(|name| trainer.slot(name).unwrap().into_bytes()).collect()
}

#[test]
fn a_run_killed_twenty_times_equals_one_that_was_not() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        fs::write(Path::new(&folder).join("result"), train(Path::new(&folder))).unwrap();
        return;
    }
    let (whole, pieces) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let expected = train(whole.path());
    let start = || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "a_run_killed_twenty_times_equals_one_that_was_not"]).env(FOLDER, pieces.path());
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut random = Random::new(u64::from(std::process::id()));
    let steps = || fs::read_to_string(pieces.path().join("log")).map_or(0, |text| text.lines().count());
    let mut killed = 0;
    while killed < KILLS {
        let mut child = start();
        // It is killed after the first sign of life and some time, so that each run gets on, now and then past a checkpoint.
        let (begun, before) = (Instant::now(), steps());
        while steps() == before && begun.elapsed() < Duration::from_secs(20) && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(Duration::from_millis(random.below(30) as u64));
        child.kill().unwrap();
        child.wait().unwrap();
        killed += 1;
    }
    let status = start().wait().unwrap();
    assert!(status.success());
    assert!(fs::read(pieces.path().join("result")).unwrap() == expected, "the state differs");
    let log = |folder: &Path| fs::read_to_string(folder.join("log")).unwrap();
    assert_eq!(log(pieces.path()), log(whole.path()));
}
