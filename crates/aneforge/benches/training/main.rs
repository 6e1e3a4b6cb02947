//! Training steps on `cpu` side by side with PyTorch, in one run: forward, backward and update of an image net and of a transformer.
//!
//! Each side is a process that makes one step for each `run` on its standard input, so that steps can be interleaved and each side's
//! peak memory is its own. Without the environment that `make bench` sets, nothing is run; `-- profile NET` prints where our time goes.
#![allow(clippy::print_stdout, clippy::print_stderr)] // a benchmark talks to people

mod nets;
#[path = "../side/mod.rs"]
mod side;

use nets::Net;
use side::{Result, Side, answer};
use std::time::Instant;

/// Interleaved steps per row.
const STEPS: usize = 41;
/// The goal: ours takes at most so many times as long.
const GOAL: f64 = 1.5;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", name] => return serve(name),
        ["profile", name] => return nets::profile(Net::find(name).ok_or("no such net")?),
        _ => {}
    }
    println!("medians of {STEPS} interleaved steps, 2 threads; memory is each process's peak");
    println!("{:<34} {:>11} {:>11} {:>7} {:>7} {:>9} {:>9}", "", "ours", "PyTorch", "ratio", "goal", "our MB", "other MB");
    for net in Net::ALL {
        match Side::python("torch_step.py", &[net.name().into()])? {
            Some(other) => compare(net.title(), Side::ours(&["serve".into(), net.name().into()])?, other)?,
            None => println!("{}: not run (no PyTorch; use make bench)", net.title()),
        }
    }
    Ok(())
}

/// Makes steps in turn and prints a row.
fn compare(title: &str, mut ours: Side, mut other: Side) -> Result<()> {
    let (mut our_times, mut other_times) = (Vec::new(), Vec::new());
    for step in 0..STEPS + 3 {
        let times = (ours.run()?, other.run()?);
        // Before these, pages, caches and thread pools settle.
        if step >= 3 {
            our_times.push(times.0);
            other_times.push(times.1);
        }
    }
    let (our_memory, other_memory) = (ours.end()?, other.end()?);
    let (our_time, other_time) = (median(our_times), median(other_times));
    let ratio = our_time / other_time;
    println!("{title:<34} {our_time:>8.2} ms {other_time:>8.2} ms {ratio:>7.3} {GOAL:>7.2} {our_memory:>9.0} {other_memory:>9.0}");
    Ok(())
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Makes steps of a net until the input ends.
fn serve(name: &str) -> Result<()> {
    let (mut trainer, batch) = nets::trainer(Net::find(name).ok_or("no such net")?)?;
    answer(|| {
        let start = Instant::now();
        trainer.step(&batch)?;
        Ok(start.elapsed())
    })
}
