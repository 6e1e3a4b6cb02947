//! `aneforge conform`

use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;
use aneforge::conform::claims::{Claims, Evidence};
use aneforge::conform::report::{Outcome, Report, page, write_atomically};
use aneforge::conform::suite::{DEFAULT_SEED, Options as Uses, Suite, SuiteError};
use std::path::{Path, PathBuf};

/// Run every operator's cases and generated ones on a device and compare with the definition and with what is claimed about the
/// chip; ends with 1 where something fails.
#[derive(clap::Args)]
pub struct Options {
    /// Device: reference, cpu, emulator:<chip> or ane.
    #[arg(long)]
    device: String,
    /// Only operators with this in their name.
    #[arg(long)]
    filter: Option<String>,
    /// Write the report as JSON to this file; `-` prints it.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the page with the matrix of operators and chips to this file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Seed of the generated cases.
    #[arg(long, default_value_t = DEFAULT_SEED)]
    seed: u64,
    /// Reports of runs on engines, whose results the page shows as measured.
    #[arg(long, value_name = "FILE")]
    evidence: Vec<PathBuf>,
}

/// Runs, writes, judges.
pub fn run(options: &Options) -> Result<(), Failure> {
    let evidence = options.evidence.iter().map(|path| Evidence::read(path)).collect::<Result<Vec<_>, _>>();
    let evidence = evidence.map_err(|error| Failure::input(&error))?;
    let uses = Uses { seed: options.seed, filter: options.filter.clone(), ..Uses::default() };
    output::note(&format!("seed {}", options.seed));
    let mut bar: Option<(Progress, usize)> = None;
    let report = Suite::builtin().run(&options.device, &uses, &mut |now| {
        let (bar, shown) = bar.get_or_insert_with(|| (Progress::new(now.total, "operators"), 0));
        bar.advance(now.done - *shown);
        *shown = now.done;
    });
    drop(bar);
    let report = report.map_err(|error| match error {
        SuiteError::Device(error) => Failure::from(error),
        other => Failure::input(&other),
    })?;
    if let Some(path) = &options.html {
        let claims = Claims::committed().map_err(|error| Failure::input(&error))?.clone().with_evidence(&evidence);
        write(path, &page(&report, &claims))?;
    }
    match &options.json {
        Some(path) if path.as_os_str() == "-" => output::bare_json(&report)?,
        Some(path) => write(path, &serde_json::to_string_pretty(&report).map_err(|error| Failure::input(&error))?)?,
        None => output::data(&table(&report))?,
    }
    judge(&report)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    write_atomically(path, text).map_err(|error| Failure::Input(format!("cannot write {}: {error}", path.display())))
}

/// One line per operator; below it what did not pass.
fn table(report: &Report) -> String {
    let mut rows = vec![["table", "operator", "outcome", "uses", "error", "time"].map(String::from).to_vec()];
    for operator in &report.operators {
        rows.push(vec![
            operator.table.word().to_string(),
            operator.name.clone(),
            operator.outcome.word().to_string(),
            operator.totals.uses().to_string(),
            format!("{:.1e}", operator.worst_error),
            format!("{:.0} us", operator.micros),
        ]);
    }
    output::table(&rows, &[3, 4, 5])
}

fn judge(report: &Report) -> Result<(), Failure> {
    for operator in &report.operators {
        let bad = operator.uses.iter().filter(|usage| matches!(usage.outcome, Outcome::Fail | Outcome::Refused));
        for usage in bad {
            let reason = usage.reason.as_deref().unwrap_or("no reason given");
            let origin = format!("{:?}", usage.origin).to_lowercase();
            let (table, outcome) = (operator.table.word(), usage.outcome.word());
            output::note(&format!("{outcome}: {table} {}, {} ({origin}): {reason}", operator.name, usage.case));
        }
    }
    let totals = report.totals;
    let summary = format!(
        "{} uses of {} operators on {}: {} passed, {} failed, {} refused, {} not on the chip; {:.1} s",
        totals.uses(),
        report.operators.len(),
        report.device,
        totals.passed,
        totals.failed,
        totals.refused,
        totals.unsupported,
        report.seconds
    );
    output::note(&summary);
    if report.is_green() { Ok(()) } else { Err(Failure::Check(format!("{} does not conform", report.device))) }
}
