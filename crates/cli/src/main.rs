//! The `aneforge` command: parses its arguments, calls the library, prints.
//!
//! Data goes to standard output, everything else to standard error. Exit codes: 0 done, 1 a check failed, 2 wrong usage or bad
//! input, 3 not possible on this machine, 130 ended by a signal.
#![forbid(unsafe_code)]

mod commands;
mod compression;
mod failure;
mod interrupt;
mod model;
mod output;
mod package;
mod progress;

use clap::{Parser, Subcommand};
use failure::Failure;
use std::process::ExitCode;

/// Compute on the Apple Neural Engine without Core ML, or anywhere else with the same program.
#[derive(Parser)]
#[command(version, propagate_version = true)]
struct Command {
    #[command(subcommand)]
    name: Name,
}

#[derive(Subcommand)]
enum Name {
    Embed(commands::embed::Options),
    Run(commands::run::Options),
    Train(Box<commands::train::Options>),
    Compile(commands::compile::Options),
    Tune(commands::tune::Options),
    Check(commands::check::Options),
    Estimate(commands::estimate::Options),
    Inspect(commands::inspect::Options),
    Ops(commands::ops::Options),
    Chips(commands::chips::Options),
    Devices(commands::devices::Options),
    Doctor(commands::doctor::Options),
    Conform(commands::conform::Options),
    Fingerprint(commands::fingerprint::Options),
}

/// Leaves nothing half written behind. A command that ends by itself when asked to is asked once; the second signal ends it.
fn end_on_signal() {
    if interrupt::ask() {
        return;
    }
    aneforge::compile::bundle::discard_unfinished();
    std::process::exit(i32::from(Failure::Interrupted.code()));
}

fn main() -> ExitCode {
    // clap prints its own messages and ends with 2 for wrong usage, 0 for --help and --version.
    let command = Command::parse();
    // Where no handler can be set the default stays: the process ends at once, and a hidden folder may be left behind.
    let _ = ctrlc::set_handler(end_on_signal);
    let done = match &command.name {
        Name::Embed(options) => commands::embed::run(options),
        Name::Run(options) => commands::run::run(options),
        Name::Train(options) => commands::train::run(options),
        Name::Compile(options) => commands::compile::run(options),
        Name::Tune(options) => commands::tune::run(options),
        Name::Check(options) => commands::check::run(options),
        Name::Estimate(options) => commands::estimate::run(options),
        Name::Inspect(options) => commands::inspect::run(options),
        Name::Ops(options) => commands::ops::run(options),
        Name::Chips(options) => commands::chips::run(options),
        Name::Devices(options) => commands::devices::run(options),
        Name::Doctor(options) => commands::doctor::run(options),
        Name::Conform(options) => commands::conform::run(options),
        Name::Fingerprint(options) => commands::fingerprint::run(options),
    };
    match done {
        Ok(()) | Err(Failure::Pipe) => ExitCode::SUCCESS,
        Err(failure) => {
            if !matches!(failure, Failure::Interrupted) {
                output::note(&format!("error: {failure}"));
            }
            ExitCode::from(failure.code())
        }
    }
}
