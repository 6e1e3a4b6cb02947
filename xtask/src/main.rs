//! Jobs of the repository: `cargo xtask cost fit --data FILE`.
#![forbid(unsafe_code)]

mod cost;

use clap::{Parser, Subcommand};
use std::io::Write;
use std::process::ExitCode;

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    job: Job,
}

#[derive(Subcommand)]
enum Job {
    /// The cost model.
    #[command(subcommand)]
    Cost(cost::Job),
}

fn main() -> ExitCode {
    let Job::Cost(job) = Arguments::parse().job;
    match cost::run(&job) {
        Ok((report, agrees)) => {
            let written = std::io::stdout().write_all(report.as_bytes());
            if agrees && written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::from(2)
        }
    }
}
