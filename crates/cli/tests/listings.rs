//! The commands that only tell something, and what all commands have in common.

mod common;

use common::{command, expect, text};
use std::io::Read;
use std::process::Stdio;

#[test]
fn operators_are_listed_and_shown_with_their_rules() {
    let here = tempfile::tempdir().unwrap();
    let (out, err) = expect(0, here.path(), &["ops"]);
    assert!(err.is_empty() && out.contains("graph") && out.contains("layer_norm"), "{out}");
    let (out, _) = expect(0, here.path(), &["ops", "conv"]);
    assert!(out.contains("rule C1") && out.contains("arithmetic on the engine") && out.contains("arXiv"), "{out}");
    let (json, _) = expect(0, here.path(), &["ops", "relu", "--json"]);
    assert!(json.contains("\"schema\": 1") && json.contains("\"native_from\""), "{json}");
    let (_, err) = expect(2, here.path(), &["ops", "frobnicate"]);
    assert!(err.contains("frobnicate"), "{err}");
}

#[test]
fn devices_and_doctor_say_what_is_here_and_what_is_not() {
    let here = tempfile::tempdir().unwrap();
    let (out, _) = expect(0, here.path(), &["devices"]);
    assert!(["null", "reference", "cpu", "emulator:m1", "ane", "auto"].iter().all(|name| out.contains(name)), "{out}");
    let (json, _) = expect(0, here.path(), &["devices", "--json"]);
    assert!(json.contains("\"schema\": 1"), "{json}");
    let (out, _) = expect(0, here.path(), &["doctor"]);
    assert!(out.contains("threads") && out.contains("device ane"), "{out}");
    expect(0, here.path(), &["doctor", "--json"]);
}

#[test]
fn wrong_usage_ends_with_2_and_help_with_0() {
    let here = tempfile::tempdir().unwrap();
    expect(2, here.path(), &["frobnicate"]);
    expect(2, here.path(), &["run"]);
    let (out, _) = expect(0, here.path(), &["--help"]);
    for name in
        ["embed", "run", "compile", "check", "estimate", "inspect", "ops", "chips", "devices", "doctor", "conform", "fingerprint"]
    {
        assert!(out.contains(name), "{name} in {out}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let here = tempfile::tempdir().unwrap();
    let mut child = command(here.path(), &["ops", "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0u8; 1];
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut first).unwrap();
    drop(out);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty());
}

#[test]
fn a_published_figure_is_recomputed_and_printed_as_a_bare_array() {
    let here = tempfile::tempdir().unwrap();
    let (json, err) = expect(0, here.path(), &["fingerprint", "--chip", "m1", "--filter", "gemm/N=512", "--json"]);
    assert!(json.starts_with('[') && json.contains("\"status\": \"exact\"") && err.contains("1 figures"), "{json}{err}");
    for key in ["workload", "chips", "published", "ours", "difference", "status"] {
        assert!(json.contains(&format!("\"{key}\"")), "{key} in {json}");
    }
    expect(2, here.path(), &["fingerprint", "--chip", "m99"]);
}

#[test]
fn graph_text_is_compiled_and_a_fault_in_it_has_a_place() {
    let here = tempfile::tempdir().unwrap();
    let graph = aneforge::Graph::new();
    let y = graph.input("x", aneforge::DType::Fp16, &[2, 3]).relu();
    let source = graph.to_text_with(&[("y".to_string(), y)]);
    let (file, bundle) = (here.path().join("small.graph"), here.path().join("bundle"));
    std::fs::write(&file, &source).unwrap();
    expect(0, here.path(), &["compile", text(&file), "-o", text(&bundle)]);
    let (out, _) = expect(0, here.path(), &["inspect", text(&bundle)]);
    assert!(out.contains("relu") && out.contains("output y fp16 [2, 3]"), "{out}");
    std::fs::write(&file, source.replace("relu", "rellu")).unwrap();
    let (_, err) = expect(2, here.path(), &["compile", text(&file), "-o", text(&here.path().join("other"))]);
    assert!(err.contains("small.graph") && err.contains("line "), "{err}");
}
