//! MiniLM-L6 on one hundred sentences of every awkward kind, against onnxruntime in fp32.
#![cfg(feature = "tokenizers")]
#![allow(clippy::unwrap_used, clippy::print_stdout)] // helper functions of tests

mod common;

use aneforge_io::{EmbedOptions, Embedder, NpyArray, TextTokenizer};
use common::{cosine, folder, relative_distance};
use std::path::{Path, PathBuf};

struct Fixture {
    model: PathBuf,
    sentences: Vec<String>,
    ids: Vec<Vec<u32>>,
    rows: Vec<Vec<f32>>,
}

fn fixture() -> Option<Fixture> {
    let (model, fixtures) = (folder("ANEFORGE_MINILM")?, folder("ANEFORGE_FIXTURES")?.join("minilm"));
    let read = |name: &str| std::fs::read(fixtures.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let embeddings = NpyArray::read(fixtures.join("embeddings.npy")).unwrap();
    let fixture = Fixture {
        model,
        sentences: serde_json::from_slice(&read("sentences.json")).unwrap(),
        ids: serde_json::from_slice(&read("ids.json")).unwrap(),
        rows: embeddings.to_f32().chunks_exact(embeddings.ty.shape[1]).map(<[f32]>::to_vec).collect(),
    };
    assert_eq!((fixture.sentences.len(), fixture.rows.len()), (100, 100));
    Some(fixture)
}

fn embedder(model: &Path, device: &str, batch: usize) -> Embedder {
    let cache = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("minilm"));
    let options = EmbedOptions { batch, cache, ..EmbedOptions::default() };
    Embedder::open(model, aneforge_runtime::open(device).unwrap(), options).unwrap()
}

/// Lowest cosine over all sentences.
fn lowest(fixture: &Fixture, device: &str) -> f64 {
    let answer = embedder(&fixture.model, device, 1).embed(&fixture.sentences).unwrap();
    let found = answer.rows.iter().zip(&fixture.rows).map(|(row, wanted)| cosine(row, wanted)).fold(1.0, f64::min);
    println!("{device}: lowest cosine {found:.7}, {:.2} ms per sentence", answer.milliseconds_per_text());
    found
}

#[test]
fn token_ids_equal_those_of_the_python_tokenizers() {
    let Some(fixture) = fixture() else { return };
    let tokenizer = TextTokenizer::open(fixture.model.join("tokenizer.json"), 512).unwrap();
    for (sentence, ids) in fixture.sentences.iter().zip(&fixture.ids) {
        assert_eq!(&tokenizer.encode(sentence).unwrap().ids, ids, "{sentence:?}");
    }
}

#[test]
fn cpu_is_within_cosine_0_9999_of_onnxruntime() {
    let Some(fixture) = fixture() else { return };
    assert!(lowest(&fixture, "cpu") >= 0.9999);
}

#[test]
fn emulated_m1_is_within_cosine_0_999_of_onnxruntime() {
    let Some(fixture) = fixture() else { return };
    assert!(lowest(&fixture, "emulator:m1") >= 0.999);
}

#[test]
fn batches_change_no_bit_on_the_emulator_and_little_on_cpu() {
    let Some(fixture) = fixture() else { return };
    // Short ones alone: what batching does is the same for all lengths.
    let short: Vec<&String> =
        fixture.sentences.iter().zip(&fixture.ids).filter(|(_, ids)| ids.len() <= 16).map(|(text, _)| text).collect();
    assert!(short.len() > 8);
    for device in ["emulator:m1", "cpu"] {
        let alone = embedder(&fixture.model, device, 1).embed(&short).unwrap().rows;
        let together = embedder(&fixture.model, device, 4).embed(&short).unwrap().rows;
        for ((alone, together), text) in alone.iter().zip(&together).zip(&short) {
            if device == "cpu" {
                assert!(relative_distance(together, alone) < 1e-3, "{text:?}");
            } else {
                assert_eq!(alone, together, "{text:?}");
            }
        }
    }
}
