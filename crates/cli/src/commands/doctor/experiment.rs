//! `aneforge doctor --experiment N`: one question that nobody has answered, in a process that may hang or die.

use super::Options;
use crate::failure::Failure;
use crate::output;
use aneforge::conform::engine::experiment::{self, EXPERIMENTS, Experiment};
use aneforge::runtime::ane::Source;
use serde::Serialize;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What came of an experiment.
#[derive(Serialize)]
struct Outcome<'a> {
    experiment: &'a Experiment,
    /// `done`, `refused`, `died` or `ended at the time limit`.
    outcome: String,
    seconds: f64,
    result: Option<serde_json::Value>,
    /// What the process told beside its result.
    words: String,
}

/// Tells the risks and, where they are accepted, runs the experiment in a process of its own.
pub(super) fn run(number: u32, options: &Options) -> Result<(), Failure> {
    if number == 0 {
        let rows = EXPERIMENTS.iter().map(|one| {
            let state = one.not_run.map_or(String::new(), |reason| format!("not run: {reason}"));
            vec![one.number.to_string(), one.question.to_string(), state]
        });
        return output::data(&output::table(&rows.collect::<Vec<_>>(), &[0]));
    }
    let Some(chosen) = experiment::find(number) else {
        return Err(Failure::Input(format!("there is no experiment {number}; they are 1 to {}, 0 lists them", EXPERIMENTS.len())));
    };
    output::note(&format!("experiment {number}: {}", chosen.question));
    output::note(&format!("known risks: {}", chosen.risks));
    output::note("no experiment is known to be safe: the process may hang, and the system's daemon may want a restart");
    if let Some(reason) = chosen.not_run {
        return Err(Failure::NotHere(format!("experiment {number} is not run: {reason}")));
    }
    if !options.yes {
        return Err(Failure::Input("add --yes to run it".to_string()));
    }
    let outcome = in_process(chosen, options)?;
    let failed = outcome.outcome != "done";
    let words = format!("experiment {number}: {}", outcome.outcome);
    output::json(&outcome)?;
    if failed { Err(Failure::Check(words)) } else { Ok(()) }
}

/// Runs the experiment in a child and ends it at the limit.
fn in_process<'a>(chosen: &'a Experiment, options: &Options) -> Result<Outcome<'a>, Failure> {
    let fault = |error: std::io::Error| Failure::NotHere(format!("the experiment's process cannot be started: {error}"));
    let mut command = Command::new(std::env::current_exe().map_err(fault)?);
    command.args(["doctor", "--experiment-here", &chosen.number.to_string()]);
    if let Some(device) = &options.device {
        command.args(["--device", device]);
    }
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(fault)?;
    let start = Instant::now();
    // Pipes are emptied as they fill, so that a talkative child does not stand still.
    let (out, err) = (drain(child.stdout.take()), drain(child.stderr.take()));
    let limit = Duration::from_secs(options.limit);
    let status = loop {
        match child.try_wait().map_err(fault)? {
            Some(status) => break Some(status),
            None if start.elapsed() >= limit => break None,
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    if status.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    let (out, words) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
    let outcome = match status {
        None => "ended at the time limit".to_string(),
        Some(status) if status.success() => "done".to_string(),
        Some(status) if status.code().is_some() => "refused".to_string(),
        Some(status) => format!("died: {status}"),
    };
    let result = serde_json::from_str(&out).ok();
    Ok(Outcome { experiment: chosen, outcome, seconds: start.elapsed().as_secs_f64(), result, words })
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before a broken pipe is kept.
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Runs an experiment in this process and prints what it finds.
pub(super) fn here(number: u32, source: &Source) -> Result<(), Failure> {
    let found = experiment::run(number, source).map_err(Failure::NotHere)?;
    output::bare_json(&found)
}
