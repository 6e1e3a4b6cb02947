//! What each weight format costs and keeps on whole models: the table of docs/compression.md.
//!
//! Cosines are the lowest over samples, of outputs on `cpu`, against the same program with fp16 weights. Samples that choose formats
//! are not those that judge them. Without the environment that `make bench` sets, nothing is run.
#![allow(clippy::print_stdout)] // a benchmark talks to people

use aneforge::compile::Notes;
use aneforge::compile::compress::{CompressedWeight, compress_for};
use aneforge::core::lower;
use aneforge::io::{EmbedOptions, Embedder, ModelFolder, NpyArray, SafeTensors, models};
use aneforge::mil::Body;
use aneforge::tune::{Calibration, Quality, automatic, quality, quantise_activations};
use aneforge::{HostArray, Program, Target, open};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const FORMATS: &[&str] = &["int8", "palette4", "palette4-group16", "int4-block32", "sparse50", "w8a8", "auto"];
/// Lowest cosine that `auto` accepts on its own samples.
const GATE: f64 = 0.9995;

fn main() -> Result<()> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let (Some(fixtures), Some(minilm)) = (variable("ANEFORGE_FIXTURES"), variable("ANEFORGE_MINILM")) else {
        println!("not run: no fixtures; use make bench");
        return Ok(());
    };
    println!("| model | format | weights | of fp16 | lowest cosine | relative error | time | kept |");
    println!("|---|---|---|---|---|---|---|---|");
    encoder(&minilm, &fixtures.join("minilm/sentences.json"))?;
    for model in ["resnet18", "vit_b_16"] {
        classifier(model, &fixtures.join("torchvision"))?;
    }
    Ok(())
}

/// A program in a format, what became of its weights, and the time that took.
fn compressed(body: &Body, format: &str, samples: &Calibration) -> Result<(Body, Vec<CompressedWeight>, f64)> {
    let (target, cpu, start) = (Target::Generic, open("cpu")?, Instant::now());
    let (body, weights) = match format {
        "auto" => automatic(body, &target, samples, GATE, cpu.as_ref()).map(|chosen| (chosen.body, chosen.weights))?,
        "w8a8" => quantise_activations(body, samples, cpu.as_ref()).map(|made| (made.body, made.weights))?,
        name => compress_for(body, name.parse()?, &target, &mut Notes::default())?,
    };
    Ok((body, weights, start.elapsed().as_secs_f64()))
}

fn row(model: &str, format: &str, weights: &[CompressedWeight], quality: Quality, seconds: f64, kept: &str) {
    let sum = |bytes: fn(&CompressedWeight) -> usize| weights.iter().map(bytes).sum::<usize>() as f64;
    let (now, before) = (sum(|weight| weight.bytes), sum(|weight| weight.dense_bytes));
    let mut counts = BTreeMap::new();
    weights.iter().for_each(|weight| *counts.entry(weight.format.as_str()).or_insert(0) += 1);
    let chosen: Vec<String> = counts.iter().map(|(format, count)| format!("{count} {format}")).collect();
    let format = if format == "auto" { format!("auto: {}", chosen.join(", ")) } else { format.to_string() };
    println!(
        "| {model} | {format} | {:.1} MB | {:.3} | {:.5} | {:.4} | {seconds:.1} s | {kept} |",
        now / 1e6,
        now / before,
        quality.cosine,
        quality.relative_error
    );
}

fn encoder(folder: &Path, sentences: &Path) -> Result<()> {
    let texts: Vec<String> = serde_json::from_str(&std::fs::read_to_string(sentences)?)?;
    let embedder = Embedder::open(folder, open("null")?, EmbedOptions::default())?;
    let files = ModelFolder::open(folder)?;
    let model = models::bert::build(&files, embedder.config(), 1, 128)?;
    let named: Vec<_> = model.named_outputs().iter().map(|(name, tensor)| ((*name).to_string(), (*tensor).clone())).collect();
    let body = lower(&named, Target::Generic)?;
    let samples = embedder.samples(&texts, 128)?;
    // Every sixth text chooses, the others judge.
    let (choosing, judging): (Vec<_>, Vec<_>) = samples.into_iter().enumerate().partition(|(place, _)| place % 6 == 0);
    let take = |samples: Vec<(usize, Vec<HostArray>)>| samples.into_iter().map(|(_, sample)| sample).collect::<Vec<_>>();
    let choosing = Calibration::given(&body, take(choosing))?;
    let judging = Calibration::given(&body, take(judging))?;
    let original = rows(&body, &judging)?;
    for format in FORMATS {
        let (changed, weights, seconds) = compressed(&body, format, &choosing)?;
        let found = quality(&body, &changed, &judging, open("cpu")?.as_ref())?;
        let same = nearest(&rows(&changed, &judging)?).iter().zip(nearest(&original)).filter(|(a, b)| **a == *b).count();
        let kept = format!("nearest of {} texts the same for {same}", original.len());
        row("MiniLM-L6, 128 tokens", format, &weights, found, seconds, &kept);
    }
    Ok(())
}

fn classifier(name: &str, folder: &Path) -> Result<()> {
    let weights = SafeTensors::open(folder.join(format!("{name}.safetensors")))?;
    let model = models::image_classifier(&weights)?;
    let named: Vec<_> = model.named_outputs().iter().map(|(name, tensor)| ((*name).to_string(), (*tensor).clone())).collect();
    let body = lower(&named, Target::Generic)?;
    let mut pictures = Vec::new();
    for index in 0..5 {
        let picture = NpyArray::read(folder.join(format!("input_{index}.npy")))?;
        pictures.push(vec![HostArray::fp16_from_f32(picture.ty.shape.clone(), &picture.to_f32())?]);
    }
    let judging = Calibration::given(&body, pictures.split_off(2))?;
    let choosing = Calibration::given(&body, pictures)?;
    for format in FORMATS {
        let (changed, weights, seconds) = compressed(&body, format, &choosing)?;
        let found = quality(&body, &changed, &judging, open("cpu")?.as_ref())?;
        row(&format!("{name}, seeded weights"), format, &weights, found, seconds, "");
    }
    Ok(())
}

/// The first output for every sample.
fn rows(body: &Body, samples: &Calibration) -> Result<Vec<Vec<f32>>> {
    let executable = open("cpu")?.load(&Arc::new(Program::from_body("judged", body.clone())))?;
    let mut rows = Vec::new();
    for sample in samples.samples() {
        let inputs: Vec<&HostArray> = sample.iter().collect();
        rows.push(executable.run(&inputs)?.first().map(HostArray::to_f32).unwrap_or_default());
    }
    Ok(rows)
}

/// For each row the other one with the largest product.
fn nearest(rows: &[Vec<f32>]) -> Vec<usize> {
    let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let best = |place: usize| {
        let others = (0..rows.len()).filter(|&other| other != place);
        others.max_by(|&a, &b| product(&rows[place], &rows[a]).total_cmp(&product(&rows[place], &rows[b]))).unwrap_or(place)
    };
    (0..rows.len()).map(best).collect()
}
