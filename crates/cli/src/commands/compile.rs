//! `aneforge compile`

use crate::compression::Compression;
use crate::failure::Failure;
use crate::model::ModelOptions;
use crate::output;
use aneforge::compile::compress::{CompressedWeight, STEP};
use aneforge::compile::explain::{Explanation, explain};
use aneforge::compile::{Rewrite, Rewrites};
use aneforge::cost::{HostClass, Model};
use aneforge::tune::Quality;
use aneforge::{CompileOptions, Dialect, Target};
use serde::Serialize;
use std::path::PathBuf;

/// Compile a model to a bundle: one MIL program, its weights, a manifest.
#[derive(clap::Args)]
pub struct Options {
    #[command(flatten)]
    model: ModelOptions,
    /// Folder to write; an older bundle there is replaced.
    #[arg(short, long, required_unless_present = "mlpackage")]
    output: Option<PathBuf>,
    /// Core ML package to write; an older package there is replaced.
    #[arg(long)]
    mlpackage: Option<PathBuf>,
    /// What to compile for: generic, or a chip such as m1 or m5; m1:in-memory for the route of models in memory.
    #[arg(long, default_value = "generic")]
    target: String,
    /// Dialect of the text: modern is program(1.3) for ios18, old is program(1.0) for ios16.
    #[arg(long, default_value = "modern", value_parser = ["modern", "old"])]
    dialect: String,
    #[command(flatten)]
    compression: Compression,
    /// Run a rewrite or not: NAME or NAME=off, once for each. The names are query-tiles, grouped-heads, attention-operator,
    /// native-norms, length-norms, scale-folding, sum-by-product and channels-first; tune finds which are worth it.
    #[arg(long, value_name = "NAME", value_parser = rewrite)]
    rewrite: Vec<(Rewrite, bool)>,
    /// Say per region what it is made of, what it costs on the target's chip, and what the passes did and nearly did there.
    #[arg(long)]
    explain: bool,
    /// Say how long each step took.
    #[arg(long)]
    timings: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    description: String,
    target: String,
    bundle: Option<PathBuf>,
    package: Option<PathBuf>,
    operations: usize,
    /// What each segment is made of; empty where the program is whole.
    segments: Vec<aneforge::compile::SegmentKind>,
    weight_bytes: u64,
    /// What became of each large weight; empty where no format was asked for.
    weights: Vec<CompressedWeight>,
    /// Agreement with the uncompressed program on the calibration samples, where it was measured.
    quality: Option<Quality>,
    notes: Vec<String>,
    /// What of it is about compression.
    #[serde(skip)]
    compression_notes: Vec<String>,
    /// What the program is made of and what each part costs on the target's chip, where it was asked for.
    explanation: Option<Explanation>,
    timings: Vec<Step>,
}

#[derive(Serialize)]
struct Step {
    step: String,
    milliseconds: f64,
}

/// Builds, compiles, writes.
pub fn run(options: &Options) -> Result<(), Failure> {
    let target: Target = options.target.parse().map_err(|error: aneforge::TargetError| Failure::input(&error))?;
    let dialect = if options.dialect == "old" { Dialect::Old } else { Dialect::Modern };
    let begun = std::time::Instant::now();
    let (description, body, samples) = options.model.source(target)?;
    let lowering = begun.elapsed();
    let compressed = options.compression.apply(body, &target, &samples)?;
    let rewrites = options.rewrite.iter().fold(Rewrites::default(), |all, &(rewrite, runs)| all.with(rewrite, runs));
    let how = CompileOptions { target, dialect, rewrites, ..CompileOptions::default() };
    let compiled = aneforge::compile::compile_body(compressed.body, &how)?;
    let start = std::time::Instant::now();
    let mut weight_bytes = 0;
    if let Some(folder) = &options.output {
        let files = compiled.write(folder)?.files;
        let is_weights = |name: &str| name.rsplit('/').next().is_some_and(|name| name.starts_with("weights."));
        let weights = files.iter().filter(|file| is_weights(&file.name));
        weight_bytes = weights.map(|file| file.bytes).sum();
    }
    if let Some(folder) = &options.mlpackage {
        if compiled.segments.is_some() {
            return Err(Failure::Input(
                "a Core ML package cannot hold native layers of the engine; write a bundle with --output".to_string(),
            ));
        }
        let written = aneforge::mlpackage::write(&[&compiled.body], folder).map_err(|error| Failure::input(&error))?;
        weight_bytes = written.weight_bytes;
    }
    let writing = start.elapsed();
    let timings = compiled.timings.iter().map(|timing| (timing.pass.to_string(), timing.time));
    let before = [("lowering".to_string(), lowering)].into_iter().chain(compressed.time.map(|time| (STEP.to_string(), time)));
    let report = Report {
        description,
        target: target.to_string(),
        bundle: options.output.clone(),
        package: options.mlpackage.clone(),
        operations: compiled.body.operations.len(),
        segments: compiled.segments.iter().flat_map(|segments| &segments.parts).map(|part| part.kind).collect(),
        weight_bytes,
        weights: compressed.weights,
        quality: compressed.quality,
        compression_notes: compressed.notes.all().iter().map(note).collect(),
        notes: compressed.notes.all().iter().chain(compiled.notes.all()).map(note).collect(),
        explanation: options.explain.then(|| explained(&compiled)).transpose()?,
        timings: before
            .chain(timings)
            .chain([("writing".to_string(), writing)])
            .map(|(step, time)| Step { step, milliseconds: time.as_secs_f64() * 1e3 })
            .collect(),
    };
    print(options, &report)
}

/// A rewrite's name, with `=off` where it shall not run.
fn rewrite(text: &str) -> Result<(Rewrite, bool), String> {
    let (name, runs) = match text.split_once('=') {
        None | Some((_, "on")) => (text.trim_end_matches("=on"), true),
        Some((name, "off")) => (name, false),
        Some((_, word)) => return Err(format!("{word:?} is neither on nor off")),
    };
    Ok((name.parse().map_err(|error: aneforge::compile::fuse::UnknownRewrite| error.to_string())?, runs))
}

/// The regions of a program with their cost.
fn explained(compiled: &aneforge::Compiled) -> Result<Explanation, Failure> {
    let model = Model::committed().map_err(|error| Failure::input(&error))?;
    let chip = compiled.options().target.chip().map(|chip| model.chip(chip, HostClass::Native));
    Ok(explain(&compiled.body, &compiled.notes, chip.as_ref()))
}

fn print_explanation(explanation: &Explanation) {
    let said = |(text, count): &(String, usize)| if *count == 1 { format!("  {text}") } else { format!("  {count} times: {text}") };
    let all: f64 = explanation.regions.iter().filter_map(|region| region.milliseconds).sum();
    for region in &explanation.regions {
        let cost = match (region.milliseconds, region.millijoules) {
            (Some(time), Some(energy)) => {
                format!(", {time:.4} ms ({:.0}%), {energy:.3} mJ", 100.0 * time / all.max(f64::MIN_POSITIVE))
            }
            _ => String::new(),
        };
        let times = if region.count == 1 { String::new() } else { format!("{} times, first ", region.count) };
        output::note(&format!(
            "{times}{}: {}; {} of weights{cost}",
            region.name,
            region.operators.join(", "),
            output::bytes(region.weight_bytes as u64)
        ));
        region.notes.iter().for_each(|note| output::note(&said(note)));
    }
    if !explanation.elsewhere.is_empty() {
        output::note("of values that are no more:");
        explanation.elsewhere.iter().for_each(|note| output::note(&said(note)));
    }
}

fn note(note: &aneforge::compile::Note) -> String {
    let kind = if note.applied { "did" } else { "near miss" };
    format!("{} ({kind}) at {}: {}", note.pass, note.value, note.text)
}

fn print(options: &Options, report: &Report) -> Result<(), Failure> {
    if options.json {
        return output::json(report);
    }
    let segments = match report.segments.len() {
        0 => String::new(),
        count => {
            let native = report.segments.iter().filter(|&&kind| kind == aneforge::compile::SegmentKind::Native).count();
            format!(" in {count} segment(s), {native} of them native,")
        }
    };
    let places = report.bundle.iter().chain(&report.package).map(|place| place.display().to_string());
    output::data(&format!(
        "{}: {} operations,{segments} {} of weights, for {}, in {}",
        report.description,
        report.operations,
        output::bytes(report.weight_bytes),
        report.target,
        places.collect::<Vec<_>>().join(" and ")
    ))?;
    if options.explain {
        report.compression_notes.iter().for_each(|note| output::note(note));
        report.explanation.iter().for_each(print_explanation);
    }
    if options.timings {
        let rows: Vec<_> =
            report.timings.iter().map(|step| vec![step.step.clone(), format!("{:.3} ms", step.milliseconds)]).collect();
        output::note(output::table(&rows, &[1]).trim_end());
    }
    Ok(())
}
