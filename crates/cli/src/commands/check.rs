//! `aneforge check`

use crate::failure::Failure;
use crate::model::ModelOptions;
use crate::{compression::Samples, output};
use aneforge::compile::check::{
    Assumptions, Finding, Range, Risk, RiskKind, TargetCheck, Verdict, all_targets, check, ranges, risks,
};
use aneforge::core::CompilerTarget;
use aneforge::mil::{Body, DType, Output, ValueId};
use aneforge::{Chip, CompileOptions, IntoProgram, Target, compile, open};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

/// Say, for each target, which operators of a model run natively, are written as others, are refused or too large, and where fp16 may
/// lose what the model means.
#[derive(clap::Args)]
pub struct Options {
    #[command(flatten)]
    model: ModelOptions,
    /// Targets: all, or names of chips (m2pro) and of the compiler's targets (h16s), separated by commas. With names the command fails
    /// where one of them refuses an operator.
    #[arg(long, default_value = "all")]
    target: String,
    /// Bounds of the inputs that the risks are told for, as -4,4.
    #[arg(long, default_value = "-4,4", value_parser = bounds, allow_hyphen_values = true)]
    range: (f64, f64),
    /// Run the model on samples and judge by what its values were, not by bounds: a folder or file of samples as for compile, or nothing
    /// for made-up ones.
    #[arg(long, value_name = "FOLDER", num_args = 0..=1)]
    samples: Option<Option<PathBuf>>,
    /// Relative error of a product from which it is told.
    #[arg(long, default_value_t = 0.01)]
    threshold: f64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    description: String,
    targets: Vec<TargetCheck>,
    /// How ranges were told: bounds or samples.
    ranges: &'static str,
    risks: Vec<Risk>,
}

/// Checks and tells.
pub fn run(options: &Options) -> Result<(), Failure> {
    let targets = targets(&options.target)?;
    let (description, body, samples) = options.model.source(Target::Generic)?;
    let checked = check(&body, &targets);
    let mut assumptions = Assumptions { inputs: options.range, ..Assumptions::default() };
    if let Some(folder) = &options.samples {
        assumptions.observed = observe(&body, &samples, folder.as_deref())?;
    }
    let found = risks(&body, &ranges(&body, &assumptions), &targets, options.threshold);
    let how = if options.samples.is_some() { "samples" } else { "bounds" };
    let refused = checked.iter().filter(|target| target.worst() >= Verdict::Oversize).map(|target| target.target);
    let refused: Vec<&str> = refused.filter(|_| options.target != ALL).collect();
    let report = Report { description, targets: checked, ranges: how, risks: found };
    if options.json {
        output::json(&report)?
    } else {
        output::data(&text(&report))?
    }
    if refused.is_empty() { Ok(()) } else { Err(Failure::Check(format!("refused by {}", refused.join(", ")))) }
}

/// The word for every target.
pub const ALL: &str = "all";

/// Targets by names of chips or of their own.
pub fn targets(names: &str) -> Result<Vec<&'static CompilerTarget>, Failure> {
    if names == ALL {
        return Ok(all_targets());
    }
    let find = |name: &str| {
        let found = CompilerTarget::find(name).or_else(|| CompilerTarget::find(Chip::find(name)?.compiler_target));
        found.ok_or_else(|| {
            Failure::Input(format!(
                "{name:?} is neither a chip nor a target of the compiler; aneforge chips lists both, all is every one"
            ))
        })
    };
    names.split(',').map(|name| find(name.trim())).collect()
}

fn bounds(text: &str) -> Result<(f64, f64), String> {
    let parse = |text: &str| text.trim().parse::<f64>().ok().filter(|value| value.is_finite());
    let pair = text.split_once(',').and_then(|(low, high)| parse(low).zip(parse(high)));
    pair.filter(|(low, high)| low <= high).ok_or_else(|| "expected two numbers, the lower first, for example -4,4".to_string())
}

/// Runs the model on samples with every fp16 value as an output.
fn observe(body: &Body, samples: &Samples, folder: Option<&std::path::Path>) -> Result<HashMap<String, Range>, Failure> {
    let calibration = samples.read(body, folder)?;
    let mut open_body = body.clone();
    let made = body.operations.iter().flat_map(|operation| &operation.outputs).copied();
    let seen: Vec<ValueId> = made.filter(|&id| body.ty(id).dtype == DType::Fp16).collect();
    open_body.outputs = seen.iter().enumerate().map(|(at, &value)| Output { name: format!("observed_{at}"), value }).collect();
    let program = compile::compile_body(open_body, &CompileOptions::default())?.into_program().map_err(|e| Failure::input(&e))?;
    let loaded = open("cpu")?.load(&program)?;
    let mut observed: HashMap<String, Range> = HashMap::new();
    let calls = calibration.samples().len().max(1) as f64;
    for sample in calibration.samples() {
        let results = loaded.run(&sample.iter().collect::<Vec<_>>())?;
        for (&id, result) in seen.iter().zip(&results) {
            let values = result.to_f32();
            let (mut low, mut high, mut square) = (f64::INFINITY, f64::NEG_INFINITY, 0.0);
            for value in values.iter().map(|value| f64::from(*value)) {
                (low, high) = (low.min(value), high.max(value));
                square += value * value;
            }
            let mean_square = square / values.len().max(1) as f64 / calls;
            let range = observed.entry(body.value(id).name.clone()).or_insert(Range { low, high, scale: 0.0 });
            *range =
                Range { low: range.low.min(low), high: range.high.max(high), scale: (range.scale.powi(2) + mean_square).sqrt() };
        }
    }
    Ok(observed)
}

fn text(report: &Report) -> String {
    let head = ["target", "chips", "native", "decomposed", "oversize", "rejected"].map(str::to_string).to_vec();
    let rows = report.targets.iter().map(|target| {
        let count = |verdict| target.count(verdict).to_string();
        vec![
            target.target.to_string(),
            target.chips.join(" "),
            count(Verdict::Native),
            count(Verdict::Decomposed),
            count(Verdict::Oversize),
            count(Verdict::Rejected),
        ]
    });
    let mut shown = format!("{}\n\n", report.description);
    shown.push_str(&output::table(&std::iter::once(head).chain(rows).collect::<Vec<_>>(), &[2, 3, 4, 5]));
    shown.push_str(&findings(&report.targets));
    shown.push_str(&shown_risks(report));
    shown
}

/// What is not native, once for all targets where it is so.
fn findings(targets: &[TargetCheck]) -> String {
    let mut merged: BTreeMap<(Verdict, String), Vec<&str>> = BTreeMap::new();
    for target in targets {
        let mut alike: Vec<(String, Verdict)> = Vec::new();
        for Finding { op, verdict, count, first, reason, remedy } in &target.findings {
            if *verdict == Verdict::Native {
                continue;
            }
            // A target that takes no program refuses all operators for one reason.
            let what = if CompilerTarget::find(target.target).is_some_and(|found| found.chip().is_none()) {
                "every operator".to_string()
            } else {
                format!("{count} {op}, first {first}")
            };
            let remedy = if remedy.is_empty() { String::new() } else { format!("; {remedy}") };
            let reason = reason.replacen(target.target, "it", 1);
            let line = (format!("{what}: {reason}{remedy}"), *verdict);
            if !alike.contains(&line) {
                alike.push(line);
            }
        }
        for (line, verdict) in alike {
            merged.entry((verdict, line)).or_default().push(target.target);
        }
    }
    let word = |verdict: Verdict| match verdict {
        Verdict::Native => "native",
        Verdict::Decomposed => "decomposed",
        Verdict::Oversize => "oversize",
        Verdict::Rejected => "rejected",
    };
    let lines = merged.iter().rev().map(|((verdict, line), names)| format!("{} on {}: {line}\n", word(*verdict), names.join(" ")));
    let lines: String = lines.collect();
    if lines.is_empty() { String::new() } else { format!("\n{lines}") }
}

/// Places of one kind that are shown; the rest are counted.
const SHOWN: usize = 5;

fn shown_risks(report: &Report) -> String {
    if report.risks.is_empty() {
        return format!("\nno risk in fp16, judged by {}\n", report.ranges);
    }
    let hint = if report.ranges == "bounds" {
        "; bounds hold for every input and grow with depth, --samples judges by values"
    } else {
        ""
    };
    let mut shown = format!("\nrisks in fp16, judged by {}{hint}\n", report.ranges);
    let mut kinds: Vec<(RiskKind, bool)> = report.risks.iter().map(|risk| (risk.kind, risk.is_likely)).collect();
    kinds.dedup();
    for (kind, is_likely) in kinds {
        let alike: Vec<&Risk> = report.risks.iter().filter(|risk| (risk.kind, risk.is_likely) == (kind, is_likely)).collect();
        let title = serde_json::to_value(kind).ok().and_then(|value| value.as_str().map(|name| name.replace('_', " ")));
        let likely = if is_likely { "expected" } else { "not excluded" };
        shown.push_str(&format!("{} ({likely}): {} place(s)\n", title.unwrap_or_default(), alike.len()));
        for risk in alike.iter().take(SHOWN) {
            let on = if risk.targets.is_empty() { String::new() } else { format!(" on {}", risk.targets.join(" ")) };
            shown.push_str(&format!("  {} {}{on}: {}\n", risk.op, risk.value, risk.text));
        }
    }
    shown
}
