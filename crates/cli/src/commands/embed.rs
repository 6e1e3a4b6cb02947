//! `aneforge embed`

use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;
use aneforge::io::{EmbedOptions, Embedder, Embeddings, NpyArray};
use serde::Serialize;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

/// Texts per call, so that the progress bar moves.
const STEP: usize = 64;
/// Largest number of texts whose similarities fit a terminal.
const TABLE_LIMIT: usize = 16;

/// Turn sentences into vectors with a sentence encoder and show how similar they are.
#[derive(clap::Args)]
pub struct Options {
    /// Folder in Hugging Face layout: config.json, tokenizer.json, model.safetensors.
    folder: PathBuf,
    /// Sentences; without any and without --file they are read from standard input, one a line.
    texts: Vec<String>,
    /// Read more sentences: one a line, or a JSON array of strings where the name ends in .json.
    #[arg(long)]
    file: Option<PathBuf>,
    /// Where to run: auto, cpu, reference, null, emulator:<chip>.
    #[arg(long, default_value = "auto")]
    device: String,
    /// Sentences per program; the answers do not depend on it.
    #[arg(long, default_value_t = 1)]
    batch: usize,
    /// Write the vectors, float32 [sentences, width], as .npy.
    #[arg(long)]
    output: Option<PathBuf>,
    /// Compare with the vectors in this .npy; ends with 1 where one differs too much.
    #[arg(long)]
    reference: Option<PathBuf>,
    /// Lowest cosine with the reference that passes.
    #[arg(long, default_value_t = 0.999)]
    least_cosine: f64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    device: String,
    sentences: usize,
    milliseconds_per_sentence: f64,
    preparation_milliseconds: f64,
    tokens: Vec<usize>,
    truncated: Vec<usize>,
    similarities: Vec<Vec<f64>>,
    embeddings: Vec<Vec<f32>>,
    reference: Option<Comparison>,
}

/// How far the vectors are from the reference's.
#[derive(Clone, Copy, Serialize)]
struct Comparison {
    largest_difference: f64,
    lowest_cosine: f64,
}

/// Embeds, prints, compares.
pub fn run(options: &Options) -> Result<(), Failure> {
    let texts = texts(options)?;
    let reference = options.reference.as_deref().map(|path| read_reference(path, texts.len())).transpose()?;
    let device = aneforge::open(&options.device)?;
    let describe = device.describe();
    let embedder = Embedder::open(&options.folder, device, EmbedOptions { batch: options.batch, ..EmbedOptions::default() })?;
    let answer = embed(&embedder, &texts)?;
    let width = embedder.config().width;
    let comparison = reference.map(|(path, rows)| compare(&answer.rows, &rows, path, width)).transpose()?;
    if let Some(path) = &options.output {
        NpyArray::from_f32([texts.len(), width], &answer.rows.concat()).write(path)?;
    }
    report(options, &texts, &answer, comparison, &describe)?;
    if let Some(index) = answer.rows.iter().position(|row| row.iter().any(|value| !value.is_finite())) {
        return Err(Failure::Check(format!(
            "the vector of sentence {} holds NaN or infinities: the model's weights do, or its values leave fp16's range",
            index + 1
        )));
    }
    match comparison {
        // NaN is not enough either.
        Some(found) if found.lowest_cosine.is_nan() || found.lowest_cosine < options.least_cosine => Err(Failure::Check(format!(
            "a sentence has cosine {:.7} with the reference, expected at least {}",
            found.lowest_cosine, options.least_cosine
        ))),
        _ => Ok(()),
    }
}

fn embed(embedder: &Embedder, texts: &[String]) -> Result<Embeddings, Failure> {
    let progress = Progress::new(texts.len(), "embedding");
    let mut all = Embeddings::default();
    for (index, chunk) in texts.chunks(STEP).enumerate() {
        let part = embedder.embed(chunk)?;
        all.truncated.extend(part.truncated.iter().map(|position| position + index * STEP));
        all.rows.extend(part.rows);
        all.tokens.extend(part.tokens);
        all.device = part.device;
        all.preparation += part.preparation;
        all.execution += part.execution;
        progress.advance(chunk.len());
    }
    Ok(all)
}

fn report(
    options: &Options,
    texts: &[String],
    answer: &Embeddings,
    found: Option<Comparison>,
    device: &str,
) -> Result<(), Failure> {
    let similarities: Vec<Vec<f64>> = answer.rows.iter().map(|a| answer.rows.iter().map(|b| cosine(a, b)).collect()).collect();
    if options.json {
        return output::json(&Report {
            device: answer.device.clone(),
            sentences: texts.len(),
            milliseconds_per_sentence: answer.milliseconds_per_text(),
            preparation_milliseconds: answer.preparation.as_secs_f64() * 1e3,
            tokens: answer.tokens.clone(),
            truncated: answer.truncated.clone(),
            similarities,
            embeddings: answer.rows.clone(),
            reference: found,
        });
    }
    output::data(&if texts.len() <= TABLE_LIMIT { square(texts, &similarities) } else { nearest(texts, &similarities) })?;
    output::note(&format!(
        "\n{} sentence(s) on {} ({device}): {:.2} ms per sentence, {:.0} ms to prepare programs",
        texts.len(),
        answer.device,
        answer.milliseconds_per_text(),
        answer.preparation.as_secs_f64() * 1e3,
    ));
    if !answer.truncated.is_empty() {
        output::note(&format!("{} sentence(s) cut at {} tokens", answer.truncated.len(), aneforge::io::MAX_TOKENS));
    }
    if let Some(found) = found {
        output::note(&format!(
            "largest difference from the reference {:.2e}, lowest cosine {:.7}",
            found.largest_difference, found.lowest_cosine
        ));
    }
    Ok(())
}

/// All similarities, each sentence numbered.
fn square(texts: &[String], similarities: &[Vec<f64>]) -> String {
    let mut rows = Vec::with_capacity(texts.len() + 1);
    let numbers = (1..=texts.len()).map(|number| number.to_string());
    rows.push([String::new(), String::new()].into_iter().chain(numbers).collect());
    for (index, text) in texts.iter().enumerate() {
        let mut row = vec![(index + 1).to_string(), shortened(text)];
        row.extend(similarities[index].iter().map(|value| format!("{value:.2}")));
        rows.push(row);
    }
    let right: Vec<usize> = std::iter::once(0).chain(2..texts.len() + 2).collect();
    output::table(&rows, &right)
}

/// The most similar other sentence of each.
fn nearest(texts: &[String], similarities: &[Vec<f64>]) -> String {
    let row = |index: usize| {
        let others = similarities[index].iter().enumerate().filter(|(other, _)| *other != index);
        let best = others.max_by(|a, b| a.1.total_cmp(b.1));
        let (other, value) = best.map_or((index, 1.0), |(other, value)| (other, *value));
        vec![shortened(&texts[index]), format!("{value:.2}"), shortened(&texts[other])]
    };
    output::table(&(0..texts.len()).map(row).collect::<Vec<_>>(), &[])
}

fn shortened(text: &str) -> String {
    const LIMIT: usize = 40;
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if line.chars().count() <= LIMIT { line } else { line.chars().take(LIMIT - 1).chain(['…']).collect() }
}

fn texts(options: &Options) -> Result<Vec<String>, Failure> {
    let mut texts = options.texts.clone();
    if let Some(path) = &options.file {
        let read =
            std::fs::read_to_string(path).map_err(|error| Failure::Input(format!("cannot read {}: {error}", path.display())))?;
        if path.extension().is_some_and(|extension| extension == "json") {
            let more: Vec<String> = serde_json::from_str(&read)
                .map_err(|error| Failure::Input(format!("{} is not a JSON array of strings: {error}", path.display())))?;
            texts.extend(more);
        } else {
            texts.extend(lines(&read));
        }
    } else if texts.is_empty() && !std::io::stdin().is_terminal() {
        let mut read = String::new();
        std::io::stdin()
            .read_to_string(&mut read)
            .map_err(|error| Failure::Input(format!("cannot read standard input: {error}")))?;
        texts.extend(lines(&read));
    }
    if texts.is_empty() {
        return Err(Failure::Input("no sentences: give some as arguments, with --file, or on standard input".to_string()));
    }
    Ok(texts)
}

/// An empty line is an empty sentence; the newline at the end is none.
fn lines(text: &str) -> impl Iterator<Item = String> {
    text.strip_suffix('\n')
        .into_iter()
        .chain((!text.ends_with('\n') && !text.is_empty()).then_some(text))
        .flat_map(|text| text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line).to_string()))
}

fn read_reference(path: &Path, texts: usize) -> Result<(&Path, NpyArray), Failure> {
    let array = NpyArray::read(path)?;
    if array.ty.shape.len() != 2 || array.ty.shape[0] != texts {
        return Err(Failure::Input(format!("{} holds {array}, expected one row for each of {texts} sentences", path.display())));
    }
    Ok((path, array))
}

fn compare(rows: &[Vec<f32>], reference: &NpyArray, path: &Path, width: usize) -> Result<Comparison, Failure> {
    if reference.ty.shape[1] != width {
        return Err(Failure::Input(format!("{} holds {reference}, but the model's vectors have {width} elements", path.display())));
    }
    let values = reference.to_f32();
    let mut found = Comparison { largest_difference: 0.0, lowest_cosine: 1.0 };
    for (row, wanted) in rows.iter().zip(values.chunks_exact(width)) {
        let differences = row.iter().zip(wanted).map(|(a, b)| f64::from((a - b).abs()));
        // `max` and `min` would drop a NaN.
        found.largest_difference = differences.fold(found.largest_difference, |a, b| if b.is_nan() || b > a { b } else { a });
        let similarity = cosine(row, wanted);
        if similarity.is_nan() || similarity < found.lowest_cosine {
            found.lowest_cosine = similarity;
        }
    }
    Ok(found)
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}
