//! Differential fuzzing: random graphs over the operator table, compared on all devices.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use aneforge_conform::generate::{Campaign, Failure, Progress, Tally};
use aneforge_core::op::builtin;
use clap::Parser;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

/// A graph that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// Compares random graphs on all devices.
#[derive(Parser)]
struct Options {
    /// How many graphs.
    #[arg(long, default_value_t = 100_000)]
    graphs: u64,
    /// Seed of the first graph; the others follow. Taken from the clock where it is left out.
    #[arg(long, env = "ANEFORGE_FUZZ_SEED")]
    seed: Option<u64>,
    /// Threads.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Where the smallest cases of what fails are written.
    #[arg(long, default_value = ".cache/fuzz/graphs-findings")]
    findings: PathBuf,
    /// Check these cases instead.
    #[arg(long)]
    case: Vec<PathBuf>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    // Native layers stand in networks of their own, which these graphs do not go through.
    let operators: Vec<_> = builtin().iter().copied().filter(|op| !op.is_native()).collect();
    let campaign = Campaign::new(&operators);
    if !options.case.is_empty() {
        let failed = options.case.iter().filter(|path| !passes(&campaign, path)).count();
        return if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let clock = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |time| time.as_nanos() as u64 >> 10);
    let seed = options.seed.unwrap_or_else(clock);
    println!(
        "{} graphs from seed {seed} on {} threads; ANEFORGE_FUZZ_SEED={seed} runs the same again",
        options.graphs, options.threads
    );
    let (start, mut shown) = (Instant::now(), Instant::now());
    let mut watch = |progress: Progress| {
        if let Some((seed, time)) = progress.longest.filter(|(_, time)| *time > PATIENCE) {
            eprintln!("the graph of seed {seed} has run for {} s: it hangs", time.as_secs());
            std::process::exit(1);
        }
        if shown.elapsed() > Duration::from_secs(10) {
            shown = Instant::now();
            let rate = progress.started as f64 / start.elapsed().as_secs_f64();
            let left = (options.graphs - progress.started) as f64 / rate;
            eprintln!("{} graphs, {rate:.0} per second, {left:.0} s left, {} findings", progress.started, progress.failures);
        }
        true
    };
    let (tally, failures) = campaign.run(seed, options.graphs, options.threads, &mut watch);
    let seconds = start.elapsed().as_secs_f64();
    print!("{}", tally.report());
    println!("{:.1} graphs per second", options.graphs as f64 / seconds);
    let unreached = tally.unreached(campaign.operators());
    if !unreached.is_empty() {
        println!("operators that no graph used: {}", unreached.join(", "));
    }
    report(&failures, &options.findings);
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn report(failures: &[Failure], folder: &Path) {
    for Failure { seed, finding, case } in failures {
        println!("seed {seed}: {}: {}", finding.stage, finding.problem.lines().next().unwrap_or(""));
        println!("  again: scripts/fuzz.sh --seed {seed} --graphs 1");
        let Some(case) = case else { continue };
        let path = folder.join(format!("{seed}.graph"));
        match std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, case)) {
            Ok(()) => println!("  smallest case: {}", path.display()),
            Err(error) => println!("  smallest case, which cannot be written to {} ({error}):\n{case}", path.display()),
        }
    }
    println!("{} findings", failures.len());
}

fn passes(campaign: &Campaign, path: &Path) -> bool {
    let mut tally = Tally::default();
    let result = std::fs::read_to_string(path).map_err(|error| error.to_string());
    let result =
        result.and_then(|text| campaign.case(&text, &mut tally).map_err(|found| format!("{}: {}", found.stage, found.problem)));
    match &result {
        Ok(()) => println!("{}: passes", path.display()),
        Err(problem) => println!("{}: {problem}", path.display()),
    }
    result.is_ok()
}
