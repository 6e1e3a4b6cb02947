//! `aneforge tune`

use crate::compression::failure;
use crate::failure::Failure;
use crate::model::ModelOptions;
use crate::output;
use aneforge::io::cache::cache_folder;
use aneforge::tune::{AttentionShape, Bench, Store, Trial, TuneOptions, Wanted, tune, tune_attention, tune_precision};
use aneforge::{CompileOptions, Device, Target, open};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;

/// Find the fastest of the equivalent ways to compile a model: rank them by the cost model, run the best, time them where there is an engine.
#[derive(clap::Args)]
pub struct Options {
    #[command(flatten)]
    model: ModelOptions,
    /// Bundle to write with what was chosen.
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// What to compile for: a chip such as m1 or m5, or generic. Absent: the chip of the device that times.
    #[arg(long)]
    target: Option<String>,
    /// Where to time programs: ane, cpu, emulator:<chip>; none leaves it to the cost model. Absent: the engine where there is one.
    #[arg(long)]
    device: Option<String>,
    /// Samples of the inputs, as compile takes them.
    #[arg(long, value_name = "FOLDER")]
    calibration: Option<PathBuf>,
    /// Most programs that are run.
    #[arg(long, default_value_t = TuneOptions::default().budget)]
    budget: usize,
    /// Largest relative error of results against the usual program's.
    #[arg(long, default_value_t = TuneOptions::default().gate)]
    gate: f64,
    /// Timed calls of each program.
    #[arg(long, default_value_t = TuneOptions::default().calls)]
    calls: usize,
    /// Weigh exactness instead: exact, error=E for the fastest within a relative error, ms=T for the most exact within a time.
    #[arg(long, value_name = "WISH", value_parser = wish)]
    precision: Option<Wanted>,
    /// Choose tiles for attention of HEADS,QUERIES,KEYS,WIDTH beside the model.
    #[arg(long, value_name = "SHAPE", value_parser = shape)]
    attention: Option<AttentionShape>,
    /// Choose anew, whatever an earlier run chose.
    #[arg(long)]
    fresh: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    description: String,
    target: String,
    judge: String,
    timer: Option<String>,
    chosen: String,
    /// Whether an earlier run had chosen.
    from_store: bool,
    trials: Vec<Trial>,
    /// Tiles for the attention that was asked about.
    attention_tiles: Option<usize>,
    attention_trials: Vec<Trial>,
    bundle: Option<PathBuf>,
}

fn wish(text: &str) -> Result<Wanted, String> {
    let number = |text: &str| text.parse().map_err(|_| format!("{text:?} is no number"));
    match text.split_once('=') {
        None if text == "exact" => Ok(Wanted::Exact),
        Some(("error", most)) => Ok(Wanted::Error(number(most)?)),
        Some(("ms", most)) => Ok(Wanted::Milliseconds(number(most)?)),
        _ => Err("expected exact, error=E or ms=T".to_string()),
    }
}

fn shape(text: &str) -> Result<AttentionShape, String> {
    let numbers: Result<Vec<usize>, _> = text.split(',').map(|number| number.trim().parse()).collect();
    match numbers.as_deref() {
        Ok(&[heads, queries, keys, width]) if ![heads, queries, keys, width].contains(&0) => {
            Ok(AttentionShape { heads, queries, keys, width })
        }
        _ => Err("expected four positive numbers: heads,queries,keys,width".to_string()),
    }
}

/// The device that times: the one that was named, else the engine where there is one.
fn timer(name: Option<&str>) -> Result<Option<Arc<dyn Device>>, Failure> {
    match name {
        Some("none") => Ok(None),
        Some(name) => Ok(Some(open(name)?)),
        None => Ok(open("ane").ok()),
    }
}

/// Tunes and tells.
pub fn run(options: &Options) -> Result<(), Failure> {
    let timer = timer(options.device.as_deref())?;
    let target: Target = match (&options.target, &timer) {
        (Some(name), _) => name.parse().map_err(|error: aneforge::TargetError| Failure::input(&error))?,
        (None, Some(timer)) => timer.target(),
        (None, None) => return Err(Failure::Input("there is no engine here: name a chip with --target".to_string())),
    };
    let (description, body, from) = options.model.source(target)?;
    let calibration = from.read(&body, options.calibration.as_deref())?;
    let how = CompileOptions { target, ..CompileOptions::default() };
    let limits = TuneOptions { budget: options.budget, gate: options.gate, calls: options.calls, ..TuneOptions::default() };
    let judge = open("cpu")?;
    let bench = Bench { judge: judge.as_ref(), timer: timer.as_deref() };
    let tuned = match options.precision {
        Some(wanted) => tune_precision(&body, &how, wanted, &limits, &calibration, bench, open("reference")?.as_ref()),
        None => {
            let store = Store::new(cache_folder().join("tune"));
            tune(&body, &how, &limits, &calibration, bench, (!options.fresh).then_some(&store))
        }
    };
    let tuned = tuned.map_err(failure)?;
    let attention = options.attention.map(|shape| tune_attention(shape, &how, &limits, bench)).transpose();
    let attention = attention.map_err(failure)?;
    if let Some(folder) = &options.output {
        tuned.compiled.write(folder)?;
    }
    let report = Report {
        description,
        target: target.to_string(),
        judge: judge.name().to_string(),
        timer: timer.as_ref().map(|timer| timer.name().to_string()),
        chosen: tuned.variant.name,
        from_store: tuned.from_store,
        trials: tuned.trials,
        attention_tiles: attention.as_ref().map(|attention| attention.tiles),
        attention_trials: attention.map(|attention| attention.trials).unwrap_or_default(),
        bundle: options.output.clone(),
    };
    if options.json { output::json(&report) } else { output::data(&text(&report)) }
}

fn text(report: &Report) -> String {
    let timed = report.timer.as_ref().map_or_else(|| "estimated alone".to_string(), |timer| format!("timed on {timer}"));
    let known = if report.from_store { ", as chosen before" } else { "" };
    let mut text =
        format!("{}: {} for {}, {timed}{known}\n{}", report.description, report.chosen, report.target, table(&report.trials));
    if let Some(tiles) = report.attention_tiles {
        text += &format!("attention: {tiles} tile(s)\n{}", table(&report.attention_trials));
    }
    if let Some(bundle) = &report.bundle {
        text += &format!("written to {}\n", bundle.display());
    }
    text.trim_end().to_string()
}

fn table(trials: &[Trial]) -> String {
    let number = |value: Option<f64>, unit: &str| value.map_or_else(|| "-".to_string(), |value| format!("{value:.3}{unit}"));
    let error = |value: Option<f64>| value.map_or_else(|| "-".to_string(), |value| format!("{value:.1e}"));
    let heads = ["way", "operations", "dispatches", "estimate", "measured", "error", "outcome"].map(str::to_string).to_vec();
    let rows = trials.iter().map(|trial| {
        vec![
            trial.name.clone(),
            trial.operations.to_string(),
            trial.dispatches.to_string(),
            number(trial.estimated_ms, " ms"),
            number(trial.measured_ms, " ms"),
            error(trial.relative_error),
            trial.outcome.clone(),
        ]
    });
    output::table(&std::iter::once(heads).chain(rows).collect::<Vec<_>>(), &[1, 2, 3, 4, 5])
}
