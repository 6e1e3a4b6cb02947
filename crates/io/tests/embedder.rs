//! The sentence encoder on a tiny model: against a plain f64 forward pass, alone and in batches, with its cache.
#![cfg(feature = "tokenizers")]
#![allow(clippy::unwrap_used)] // helper functions of tests

mod common;

use aneforge_io::{EmbedOptions, Embedder, Embeddings};
use common::{relative_distance, tiny};
use std::path::Path;

const TEXTS: [&str; 6] = ["a b a", "", "b", "a a a a a a a a a a a a a a a a a a b", "b a", "a"];

fn embed(folder: &Path, device: &str, batch: usize, texts: &[&str]) -> Embeddings {
    let options = EmbedOptions { batch, cache: Some(folder.join("cache")), ..EmbedOptions::default() };
    Embedder::open(folder, aneforge_runtime::open(device).unwrap(), options).unwrap().embed(texts).unwrap()
}

fn model() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    tiny::write(folder.path());
    folder
}

/// The model's forward pass as a textbook has it, in f64 and without any padding.
mod twin {
    use super::common::tiny::{WIDTH, value};

    fn at(name: &str, index: usize) -> f64 {
        f64::from(value(name, index))
    }

    fn norm(x: &mut [Vec<f64>], name: &str) {
        for row in x {
            let mean = row.iter().sum::<f64>() / row.len() as f64;
            let variance = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / row.len() as f64;
            for (index, v) in row.iter_mut().enumerate() {
                let scale = at(&format!("{name}.weight"), index);
                *v = (*v - mean) / (variance + 1e-12).sqrt() * scale + at(&format!("{name}.bias"), index);
            }
        }
    }

    fn linear(x: &[Vec<f64>], name: &str, to: usize) -> Vec<Vec<f64>> {
        let (weight, bias) = (format!("{name}.weight"), format!("{name}.bias"));
        let element = |row: &[f64], output: usize| {
            let products = row.iter().enumerate().map(|(index, v)| v * at(&weight, output * row.len() + index));
            products.sum::<f64>() + at(&bias, output)
        };
        x.iter().map(|row| (0..to).map(|output| element(row, output)).collect()).collect()
    }

    fn add(x: &[Vec<f64>], y: &[Vec<f64>]) -> Vec<Vec<f64>> {
        x.iter().zip(y).map(|(a, b)| a.iter().zip(b).map(|(a, b)| a + b).collect()).collect()
    }

    /// The error function by its Taylor series, which converges everywhere; arguments here are small.
    fn erf(x: f64) -> f64 {
        let (mut term, mut sum) = (x, x);
        for n in 1..60 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        sum * 2.0 / std::f64::consts::PI.sqrt()
    }

    fn attention(x: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let name = "encoder.layer.0.attention.self";
        let [query, key, value] = ["query", "key", "value"].map(|part| linear(x, &format!("{name}.{part}"), WIDTH));
        let (heads, depth) = (2, WIDTH / 2);
        let mut mixed = vec![vec![0.0; WIDTH]; x.len()];
        for head in 0..heads {
            let part = head * depth..(head + 1) * depth;
            for (row, query) in mixed.iter_mut().zip(&query) {
                let score = |key: &Vec<f64>| part.clone().map(|i| query[i] * key[i]).sum::<f64>() / (depth as f64).sqrt();
                let weights: Vec<f64> = key.iter().map(|key| score(key).exp()).collect();
                let total: f64 = weights.iter().sum();
                for i in part.clone() {
                    row[i] = weights.iter().zip(&value).map(|(weight, value)| weight / total * value[i]).sum();
                }
            }
        }
        mixed
    }

    pub fn embed(ids: &[usize]) -> Vec<f32> {
        let word = |(place, &id): (usize, &usize)| {
            let element = |i: usize| {
                at("embeddings.word_embeddings.weight", id * WIDTH + i)
                    + at("embeddings.position_embeddings.weight", place * WIDTH + i)
                    + at("embeddings.token_type_embeddings.weight", i)
            };
            (0..WIDTH).map(element).collect()
        };
        let mut x: Vec<Vec<f64>> = ids.iter().enumerate().map(word).collect();
        norm(&mut x, "embeddings.LayerNorm");
        x = add(&x, &linear(&attention(&x), "encoder.layer.0.attention.output.dense", WIDTH));
        norm(&mut x, "encoder.layer.0.attention.output.LayerNorm");
        let mut inner = linear(&x, "encoder.layer.0.intermediate.dense", 2 * WIDTH);
        inner.iter_mut().flatten().for_each(|v| *v *= (1.0 + erf(*v / 2f64.sqrt())) / 2.0);
        x = add(&x, &linear(&inner, "encoder.layer.0.output.dense", WIDTH));
        norm(&mut x, "encoder.layer.0.output.LayerNorm");
        let mean: Vec<f64> = (0..WIDTH).map(|i| x.iter().map(|row| row[i]).sum::<f64>() / x.len() as f64).collect();
        let length = mean.iter().map(|v| v * v).sum::<f64>().sqrt();
        mean.iter().map(|v| (v / length) as f32).collect()
    }
}

fn ids(text: &str) -> Vec<usize> {
    let words = text.split_whitespace().map(|word| if word == "a" { 4 } else { 5 });
    std::iter::once(1).chain(words).chain([2]).collect()
}

#[test]
fn embeddings_equal_a_plain_forward_pass_without_padding() {
    let folder = model();
    for (device, tolerance) in [("reference", 4e-3), ("cpu", 4e-3), ("emulator:m1", 3e-2)] {
        let answer = embed(folder.path(), device, 1, &TEXTS);
        for (text, row) in TEXTS.iter().zip(&answer.rows) {
            let distance = relative_distance(row, &twin::embed(&ids(text)));
            assert!(distance < tolerance, "{device} {text:?}: {distance}");
        }
    }
}

#[test]
fn a_text_alone_and_in_a_batch_gives_the_same_bits_on_emulators() {
    let folder = model();
    for device in ["emulator:m1", "emulator:m5"] {
        let together = embed(folder.path(), device, 4, &TEXTS).rows;
        for (text, row) in TEXTS.iter().zip(&together) {
            assert_eq!(&embed(folder.path(), device, 1, &[text]).rows[0], row, "{device} {text:?}");
        }
    }
}

#[test]
fn a_text_alone_and_in_a_batch_agrees_on_cpu() {
    let folder = model();
    let together = embed(folder.path(), "cpu", 4, &TEXTS).rows;
    for (text, row) in TEXTS.iter().zip(&together) {
        let distance = relative_distance(&embed(folder.path(), "cpu", 1, &[text]).rows[0], row);
        assert!(distance < 1e-3, "{text:?}: {distance}");
    }
}

#[test]
fn long_texts_are_cut_at_512_tokens_and_said_to_be() {
    let folder = model();
    let (long, longer) = ("a ".repeat(510), "a ".repeat(5000));
    let answer = embed(folder.path(), "cpu", 1, &[&long, &longer]);
    assert_eq!((answer.tokens, answer.truncated), (vec![512, 512], vec![1]));
    assert_eq!(answer.rows[0], answer.rows[1]);
}

#[test]
fn a_program_is_compiled_once_and_again_only_when_the_weights_change() {
    let folder = model();
    let bundles = || std::fs::read_dir(folder.path().join("cache")).unwrap().count();
    embed(folder.path(), "cpu", 1, &["a"]);
    embed(folder.path(), "null", 1, &["b a"]);
    assert_eq!(bundles(), 1);
    embed(folder.path(), "cpu", 2, &["a"]);
    assert_eq!(bundles(), 2);
    let weights = folder.path().join("model.safetensors");
    let file = std::fs::File::options().append(true).open(&weights).unwrap();
    file.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(2)).unwrap();
    embed(folder.path(), "cpu", 1, &["a"]);
    assert_eq!(bundles(), 3);
}

#[test]
fn no_texts_give_no_rows() {
    let folder = model();
    assert!(embed(folder.path(), "cpu", 1, &[]).rows.is_empty());
}
