//! `aneforge embed` and `compile` on a tiny sentence encoder, whole and damaged.
#![allow(clippy::unwrap_used)] // helper functions of tests

#[path = "../../io/tests/common/tiny.rs"]
mod tiny;

mod common;

use aneforge::io::NpyArray;
use common::{command, expect, names, text};
use std::fs;
use std::process::Stdio;

fn model() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    tiny::write(folder.path());
    folder
}

#[test]
fn sentences_become_unit_vectors_and_a_table() {
    let folder = model();
    let (here, output) = (folder.path(), folder.path().join("rows.npy"));
    let (out, err) = expect(0, here, &["embed", text(here), "a b", "", "b", "--device", "cpu", "--output", text(&output)]);
    assert!(out.contains("1.00") && err.contains("3 sentence(s) on cpu"), "{out}{err}");
    let rows = NpyArray::read(&output).unwrap();
    assert_eq!(rows.ty.shape, [3, tiny::WIDTH]);
    for row in rows.to_f32().chunks_exact(tiny::WIDTH) {
        let length: f32 = row.iter().map(|value| value * value).sum();
        assert!((length - 1.0).abs() < 5e-3, "{length}");
    }
    expect(0, here, &["embed", text(here), "a b", "", "b", "--device", "cpu", "--reference", text(&output)]);
}

#[test]
fn a_wrong_reference_ends_with_1_and_an_unfitting_one_with_2() {
    let folder = model();
    let (here, reference) = (folder.path(), folder.path().join("reference.npy"));
    let mut wrong = [0.0; 2 * tiny::WIDTH];
    (wrong[0], wrong[tiny::WIDTH]) = (1.0, 1.0);
    NpyArray::from_f32([2, tiny::WIDTH], &wrong).write(&reference).unwrap();
    let (_, err) = expect(1, here, &["embed", text(here), "a", "b", "--reference", text(&reference)]);
    assert!(err.contains("cosine"), "{err}");
    let (_, err) = expect(2, here, &["embed", text(here), "a", "--reference", text(&reference)]);
    assert!(err.contains("expected one row for each of 1 sentences"), "{err}");
}

#[test]
fn sentences_come_from_files_and_standard_input_too() {
    let folder = model();
    let here = folder.path();
    fs::write(here.join("lines.txt"), "a\n\nb a\n").unwrap();
    fs::write(here.join("list.json"), r#"["a", "b\na"]"#).unwrap();
    let count = |arguments: &[&str]| {
        let (json, _) = expect(0, here, arguments);
        assert!(json.contains("\"schema\": 1"), "{json}");
        json.split("\"sentences\": ").nth(1).unwrap().split(',').next().unwrap().to_string()
    };
    assert_eq!(count(&["embed", text(here), "--json", "--file", text(&here.join("lines.txt"))]), "3");
    assert_eq!(count(&["embed", text(here), "a", "--json", "--file", text(&here.join("list.json"))]), "3");
    let mut child =
        command(here, &["embed", text(here)]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2), "no sentences at all");
}

#[test]
fn missing_tensors_are_all_named_and_nothing_is_written() {
    let folder = model();
    let (here, output) = (folder.path(), folder.path().join("rows.npy"));
    let gone = ["encoder.layer.0.output.dense.bias", "embeddings.LayerNorm.weight"];
    let rest: Vec<_> = tiny::tensors().into_iter().filter(|(name, _)| !gone.contains(&name.as_str())).collect();
    fs::write(here.join("model.safetensors"), tiny::safetensors(&rest)).unwrap();
    let (out, err) = expect(2, here, &["embed", text(here), "a", "--output", text(&output)]);
    assert!(out.is_empty() && gone.iter().all(|name| err.contains(name)) && err.contains("lacks 2"), "{err}");
    let bundle = here.join("bundle");
    expect(2, here, &["compile", text(here), "-o", text(&bundle)]);
    assert_eq!(names(here), ["config.json", "model.safetensors", "tokenizer.json"]);
}

#[test]
fn wrong_offsets_fields_and_files_are_named() {
    let folder = model();
    let here = folder.path();
    let refuse = |file: &str, bytes: &[u8], words: &[&str]| {
        let whole = fs::read(here.join(file)).unwrap();
        fs::write(here.join(file), bytes).unwrap();
        let (_, err) = expect(2, here, &["embed", text(here), "a"]);
        assert!(err.contains(file) && words.iter().all(|word| err.contains(word)), "{words:?} in {err}");
        fs::write(here.join(file), whole).unwrap();
    };
    let whole = fs::read(here.join("model.safetensors")).unwrap();
    let mut shifted = whole.clone();
    let at = whole.windows(22).position(|window| window == b"\"data_offsets\":[0,192]").unwrap();
    shifted[at..at + 22].copy_from_slice(b"\"data_offsets\":[4,196]");
    refuse("model.safetensors", &shifted, &["embeddings.word_embeddings.weight", "expected 0"]);
    refuse("model.safetensors", &whole[..whole.len() - 1], &["cut off"]);
    refuse("config.json", tiny::CONFIG.replace("\"gelu\"", "\"relu\"").as_bytes(), &["hidden_act", "relu", "gelu"]);
    refuse("config.json", tiny::CONFIG.replace("_heads\": 2", "_heads\": 3").as_bytes(), &["num_attention_heads", "3"]);
    refuse("config.json", b"{", &["JSON"]);
    refuse("tokenizer.json", b"{}", &[]);
    expect(0, here, &["embed", text(here), "a"]);
}

#[test]
fn a_compiled_bundle_can_be_inspected_and_compiled_again_for_a_chip() {
    let folder = model();
    let (here, bundle, chip) = (folder.path(), folder.path().join("bundle"), folder.path().join("chip"));
    expect(0, here, &["compile", text(here), "-o", text(&bundle), "--bucket", "16", "--explain", "--timings"]);
    assert_eq!(names(&bundle), ["manifest.json", "model.mil", "weights.bin"]);
    let (out, _) = expect(0, here, &["inspect", text(&bundle)]);
    assert!(out.contains("input words tensor<fp16, [1, 16, 8]>") && out.contains("matmul"), "{out}");
    let (json, _) = expect(0, here, &["inspect", text(&bundle), "--json"]);
    assert!(json.contains("\"schema\": 1") && json.contains("\"embedding\""), "{json}");
    expect(0, here, &["inspect", text(&bundle.join("weights.bin"))]);
    expect(0, here, &["inspect", text(&bundle.join("model.mil"))]);
    expect(0, here, &["compile", text(&bundle), "-o", text(&chip), "--target", "m1", "--dialect", "old"]);
    let program = fs::read_to_string(chip.join("model.mil")).unwrap();
    assert!(program.starts_with("program(1.0)"), "{program}");
    let (_, err) = expect(2, here, &["compile", text(here), "-o", text(&chip), "--target", "m99"]);
    assert!(err.contains("\"m99\"") && err.contains("m1"), "{err}");
}
