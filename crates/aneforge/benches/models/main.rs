//! Whole models side by side with onnxruntime and with the Python package aneforge 0.4, in one run.
//!
//! Each side is a process that waits for `run` on its standard input and answers with its time, so that runs can be interleaved
//! and each side's peak memory is its own. Without the environment that `make bench` sets, only what needs no Python is run.
#![allow(clippy::print_stdout, clippy::print_stderr)] // a benchmark talks to people

mod encoder;
mod ours;
#[path = "../side/mod.rs"]
mod side;

use side::{Result, Side, path};
use std::time::{Duration, Instant};

/// Fewest interleaved runs per row; the best counts, because a shared machine only ever makes runs slower.
const RUNS: usize = 9;
/// Short runs are repeated for this long, so that both sides have met a quiet moment.
const SPAN: Duration = Duration::from_secs(5);

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [serve, bundle, device] = &arguments[..]
        && serve == "serve"
    {
        return ours::serve(bundle, device);
    }
    println!("best of at least {RUNS} interleaved runs, batch 1, 2 threads; memory is each process's peak");
    println!("{:<34} {:>11} {:>11} {:>7} {:>7} {:>9} {:>9}", "", "ours", "other", "ratio", "goal", "our MB", "other MB");
    let folder = tempfile::tempdir()?;
    for (model, goal) in [("resnet18", 1.15), ("vit_b_16", 1.25), ("minilm_128", 1.25)] {
        match (ours::side(model, "cpu", folder.path())?, onnxruntime(model)?) {
            (Some(ours), Some(other)) => compare(&format!("{model}: cpu / onnxruntime"), ours, other, goal)?,
            _ => println!("{model}: not run (no fixtures; use make bench)"),
        }
    }
    for chip in ["emulator:m1", "emulator:m5"] {
        let sides = (ours::side("resnet18", chip, folder.path())?, ours::side("resnet18", "cpu", folder.path())?);
        if let (Some(emulator), Some(cpu)) = sides {
            compare(&format!("resnet18: {chip} / cpu"), emulator, cpu, 3.0)?;
        }
    }
    match upstream()? {
        Some(other) => {
            let ours = Side::ours(&["serve".into(), ours::ENCODER.into(), "none".into()])?;
            compare("12-layer encoder to files / aneforge 0.4", ours, other, 0.1)?;
        }
        None => println!("lowering: not run (no Python package; use make bench)"),
    }
    println!("one dispatch of a tiny program on null: {:.0} ns (goal 2000)", ours::dispatch_nanoseconds()?);
    Ok(())
}

/// Runs both in turn and prints a row.
fn compare(title: &str, mut ours: Side, mut other: Side, goal: f64) -> Result<()> {
    // Two rounds first: pages, caches and thread pools settle.
    for _ in 0..2 {
        ours.run()?;
        other.run()?;
    }
    let (mut best_ours, mut best_other) = (f64::INFINITY, f64::INFINITY);
    let (start, mut runs) = (Instant::now(), 0);
    while runs < RUNS || start.elapsed() < SPAN {
        runs += 1;
        best_ours = best_ours.min(ours.run()?);
        best_other = best_other.min(other.run()?);
    }
    let (our_memory, other_memory) = (ours.end()?, other.end()?);
    let ratio = best_ours / best_other;
    println!("{title:<34} {best_ours:>8.2} ms {best_other:>8.2} ms {ratio:>7.3} {goal:>7.2} {our_memory:>9.0} {other_memory:>9.0}");
    Ok(())
}

fn onnxruntime(model: &str) -> Result<Option<Side>> {
    let Some(models) = path("ANEFORGE_BENCH_MODELS") else { return Ok(None) };
    Side::python("ort_time.py", &[models.join(format!("{model}.onnx")).into()])
}

fn upstream() -> Result<Option<Side>> {
    let (Some(scripts), Some(python)) = (path("ANEFORGE_PYTHON_SCRIPTS"), path("ANEFORGE_UPSTREAM_PYTHON")) else {
        return Ok(None);
    };
    Side::start(&python, &[scripts.join("upstream_mil.py").into(), "time".into()]).map(Some)
}
