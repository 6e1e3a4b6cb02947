//! `aneforge compile`

use crate::compression::{Compression, Samples};
use crate::failure::Failure;
use crate::output;
use crate::package::{self, Selection};
use aneforge::compile::compress::CompressedWeight;
use aneforge::core::lower;
use aneforge::io::models::{self, Model, bert};
use aneforge::io::{BUCKETS, ModelFolder, SafeTensors};
use aneforge::mil::Body;
use aneforge::tune::Quality;
use aneforge::{CompileOptions, Dialect, Graph, Program, Target, Tensor};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Compile a model to a bundle: one MIL program, its weights, a manifest.
#[derive(clap::Args)]
pub struct Options {
    /// Folder in Hugging Face layout (BERT), .safetensors in torchvision's layout (ResNet, ViT), a bundle, a Core ML package
    /// (.mlpackage), or graph text in a .graph file.
    model: PathBuf,
    /// Folder to write; an older bundle there is replaced.
    #[arg(short, long, required_unless_present = "mlpackage")]
    output: Option<PathBuf>,
    /// Core ML package to write; an older package there is replaced.
    #[arg(long)]
    mlpackage: Option<PathBuf>,
    #[command(flatten)]
    selection: Selection,
    /// What to compile for: generic, or a chip such as m1 or m5; m1:in-memory for the route of models in memory.
    #[arg(long, default_value = "generic")]
    target: String,
    /// Dialect of the text: modern is program(1.3) for ios18, old is program(1.0) for ios16.
    #[arg(long, default_value = "modern", value_parser = ["modern", "old"])]
    dialect: String,
    /// Tokens per text, for sentence encoders.
    #[arg(long, default_value_t = 128)]
    bucket: usize,
    /// Texts per program, for sentence encoders.
    #[arg(long, default_value_t = 1)]
    batch: usize,
    #[command(flatten)]
    compression: Compression,
    /// Say what the passes did and what they nearly did.
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
    let (description, body, samples) = source(options, target)?;
    let lowering = begun.elapsed();
    let compressed = options.compression.apply(body, &target, &samples)?;
    let how = CompileOptions { target, dialect, ..CompileOptions::default() };
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
    let before = [("lowering".to_string(), lowering)].into_iter().chain(compressed.time.map(|time| ("compress".to_string(), time)));
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
        notes: compressed.notes.all().iter().chain(compiled.notes.all()).map(note).collect(),
        timings: before
            .chain(timings)
            .chain([("writing".to_string(), writing)])
            .map(|(step, time)| Step { step, milliseconds: time.as_secs_f64() * 1e3 })
            .collect(),
    };
    print(options, &report)
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
        report.notes.iter().for_each(|note| output::note(note));
    }
    if options.timings {
        let rows: Vec<_> =
            report.timings.iter().map(|step| vec![step.step.clone(), format!("{:.3} ms", step.milliseconds)]).collect();
        output::note(output::table(&rows, &[1]).trim_end());
    }
    Ok(())
}

/// The model as a program before any pass, and what samples of its inputs can be made from.
fn source(options: &Options, target: Target) -> Result<(String, Body, Samples), Failure> {
    let path = &options.model;
    if package::is_package(path) {
        let body = package::body(path, &options.selection)?;
        return Ok((format!("package {}", path.display()), body, Samples::Generated));
    }
    options.selection.refuse(path)?;
    let is_bundle = |name: &str| path.join(name).exists();
    if path.is_dir() && (is_bundle(aneforge::compile::bundle::TEXT) || is_bundle(aneforge::compile::bundle::SEGMENTS)) {
        aneforge::io::bundle::check(path)?;
        let program = Program::open(path)?;
        return Ok((format!("program {}", path.display()), program.body().clone(), Samples::Generated));
    }
    let lowered = |outputs: &[(&str, &Tensor)]| {
        let named: Vec<(String, Tensor)> = outputs.iter().map(|(name, tensor)| ((*name).to_string(), (*tensor).clone())).collect();
        lower(&named, target).map_err(|error| Failure::input(&error))
    };
    if path.extension().is_some_and(|extension| extension == "graph") {
        let read =
            std::fs::read_to_string(path).map_err(|error| Failure::Input(format!("cannot read {}: {error}", path.display())))?;
        let graph = Graph::parse(&read).map_err(|error| Failure::Input(format!("{}: {error}", path.display())))?;
        let outputs: Vec<_> = graph.outputs.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        return Ok((format!("graph {}", path.display()), lowered(&outputs)?, Samples::Generated));
    }
    let (model, samples) = if path.is_dir() {
        (sentence_encoder(path, options)?, Samples::Texts { folder: path.clone(), batch: options.batch, tokens: options.bucket })
    } else {
        (classifier(path)?, Samples::Generated)
    };
    Ok((model.description.clone(), lowered(&model.named_outputs())?, samples))
}

fn sentence_encoder(folder: &Path, options: &Options) -> Result<Model, Failure> {
    let folder = ModelFolder::open(folder)?;
    let config = bert::BertConfig::read(folder.config())?;
    if options.batch == 0 || options.bucket == 0 || options.bucket > config.positions {
        return Err(Failure::Input(format!(
            "--batch must be at least 1 and --bucket 1 to {} for this model; usual buckets are {BUCKETS:?}",
            config.positions
        )));
    }
    Ok(bert::build(&folder, &config, options.batch, options.bucket)?)
}

fn classifier(path: &Path) -> Result<Model, Failure> {
    if path.extension().is_none_or(|extension| extension != "safetensors") {
        return Err(Failure::Input(format!(
            "{} is no model: expected a folder in Hugging Face layout, a .safetensors file, a bundle, a Core ML package or a .graph file",
            path.display()
        )));
    }
    Ok(models::image_classifier(&SafeTensors::open(path)?)?)
}
