//! `aneforge conform`

use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;
use aneforge::conform::claims::{Claims, Evidence};
use aneforge::conform::report::{Outcome, Pending, Place, Report, page};
use aneforge::conform::suite::{DEFAULT_SEED, Options as Uses, Suite, SuiteError};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Run every operator's cases and generated ones on a device and compare with the definition and with what is claimed about the
/// chip; ends with 1 where something fails.
#[derive(clap::Args)]
pub struct Options {
    /// Device: reference, cpu, emulator:<chip>, ane or fake, also with a route.
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
    /// A second device that must give the same bits for every program: the emulator of an engine's chip.
    #[arg(long, value_name = "DEVICE")]
    twin: Option<String>,
    /// Where another process stopped: the operator and the use among its uses.
    #[arg(long, value_name = "OPERATOR:USE", hide = true, value_parser = place)]
    from: Option<Place>,
    /// Reports of runs on engines, whose results the page shows as measured.
    #[arg(long, value_name = "FILE")]
    evidence: Vec<PathBuf>,
}

/// Runs, writes, judges.
pub fn run(options: &Options) -> Result<(), Failure> {
    let evidence = options.evidence.iter().map(|path| Evidence::read(path)).collect::<Result<Vec<_>, _>>();
    let evidence = evidence.map_err(|error| Failure::input(&error))?;
    let uses = Uses {
        seed: options.seed,
        filter: options.filter.clone(),
        twin: options.twin.clone(),
        from: options.from.unwrap_or_default(),
        ..Uses::default()
    };
    // Before the run, which may take long.
    let html = options.html.as_deref().map(pending).transpose()?;
    let json = options.json.as_deref().filter(|path| path.as_os_str() != "-").map(pending).transpose()?;
    output::note(&format!("seed {}", options.seed));
    let mut bar: Option<(Progress, usize)> = None;
    let mut advance = |total: usize, done: usize| {
        let (bar, shown) = bar.get_or_insert_with(|| (Progress::new(total, "operators"), 0));
        bar.advance(done.saturating_sub(*shown));
        *shown = done;
        total
    };
    let mut total = 0;
    let report = Suite::builtin().run(&options.device, &uses, &mut |now| total = advance(now.total, now.done));
    let mut report = report.map_err(|error| match error {
        SuiteError::Device(error) => Failure::from(error),
        other => Failure::input(&other),
    })?;
    // A process that goes on for another one leaves the rest to that.
    while let (Some(next), None) = (report.next, options.from) {
        report.append(batch(options, next)?);
        advance(total, report.next.map_or(total, |place| place.operator));
    }
    drop(bar);
    if let Some((path, file)) = html {
        let claims = Claims::committed().map_err(|error| Failure::input(&error))?.clone().with_evidence(&evidence);
        file.finish(&page(&report, &claims)).map_err(|error| unwritten(path, &error))?;
    }
    match (json, &options.json) {
        (Some((path, file)), _) => {
            let text = serde_json::to_string_pretty(&report).map_err(|error| Failure::input(&error))?;
            file.finish(&text).map_err(|error| unwritten(path, &error))?;
        }
        (None, Some(_)) => output::bare_json(&report)?,
        (None, None) => output::data(&table(&report))?,
    }
    judge(&report)
}

fn place(text: &str) -> Result<Place, String> {
    let numbers = text.split_once(':').and_then(|(operator, usage)| Some((operator.parse().ok()?, usage.parse().ok()?)));
    numbers.map(|(operator, usage)| Place { operator, usage }).ok_or_else(|| "two numbers with a colon between them".to_string())
}

/// Runs what this process has no compilations left for in another one.
fn batch(options: &Options, from: Place) -> Result<Report, Failure> {
    let from = format!("{}:{}", from.operator, from.usage);
    let fail = |problem: String| Failure::Input(format!("the process that went on from {from} on {}: {problem}", options.device));
    let program = std::env::current_exe().map_err(|error| fail(error.to_string()))?;
    let mut command = Command::new(program);
    command.args(["conform", "--device", &options.device, "--json", "-", "--from", &from, "--seed", &options.seed.to_string()]);
    for (name, value) in [("--filter", &options.filter), ("--twin", &options.twin)] {
        command.args(value.iter().flat_map(|value| [name, value.as_str()]));
    }
    let done = command.stdin(Stdio::null()).output().map_err(|error| fail(error.to_string()))?;
    // What does not conform ends it with 1, and the report says so.
    serde_json::from_slice(&done.stdout).map_err(|_| {
        let told = String::from_utf8_lossy(&done.stderr);
        fail(format!("{}: {}", done.status, told.lines().last().unwrap_or("it said nothing")))
    })
}

fn pending(path: &Path) -> Result<(&Path, Pending), Failure> {
    Pending::at(path).map(|file| (path, file)).map_err(|error| unwritten(path, &error))
}

fn unwritten(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Input(format!("cannot write {}: {error}", path.display()))
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
