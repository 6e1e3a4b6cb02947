//! `aneforge conform` and what `aneforge ops` says of every operator.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use aneforge_testkit::package;
use common::{expect, names, text};
use serde_json::Value;

#[test]
fn a_run_writes_its_report_and_its_page_and_sums_up() {
    let here = tempfile::tempdir().unwrap();
    let (json, page) = (here.path().join("run.json"), here.path().join("run.html"));
    let arguments =
        ["conform", "--device", "emulator:m1", "--filter", "relu", "--json", text(&json), "--html", text(&page), "--seed", "7"];
    let (out, err) = expect(0, here.path(), &arguments);
    assert!(out.is_empty() && err.contains("seed 7") && err.contains("0 failed"), "{out}{err}");
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(
        (report["schema"].as_u64(), report["device"].as_str(), report["seed"].as_u64()),
        (Some(1), Some("emulator:m1"), Some(7))
    );
    let relu = report["operators"].as_array().unwrap().iter().find(|op| op["name"] == "relu" && op["table"] == "mil").unwrap();
    assert_eq!((relu["outcome"].as_str(), relu["claim"]["status"].as_str()), (Some("pass"), Some("emulated")));
    assert!(std::fs::read_to_string(&page).unwrap().starts_with("<!DOCTYPE html>"));
    // The same seed gives the same uses and results; only times differ.
    let again = here.path().join("again.json");
    expect(0, here.path(), &["conform", "--device", "emulator:m1", "--filter", "relu", "--json", text(&again), "--seed", "7"]);
    let mut other: Value = serde_json::from_str(&std::fs::read_to_string(&again).unwrap()).unwrap();
    let mut report = report;
    for value in [&mut report, &mut other] {
        without_times(value);
    }
    assert_eq!(report, other);
}

/// The in-memory route takes about 110 programs of a process: more go to others, and the report is that of a route without the limit.
#[test]
fn a_run_that_uses_up_a_process_goes_on_in_others() {
    let here = tempfile::tempdir().unwrap();
    let run = |device: &str, twin: &[&str]| {
        let settings = r#"{"chip": "m1", "profile": "strict"}"#;
        let json = here.path().join("run.json");
        let mut command =
            common::command(here.path(), &["conform", "--device", device, "--filter", "reduce_", "--json", text(&json)]);
        command.args(twin).env("ANEFORGE_FAKE_APPLE", aneforge_testkit::fake::library()).env("FAKE_APPLE", settings);
        let done = command.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        serde_json::from_str::<Value>(&std::fs::read_to_string(&json).unwrap()).unwrap()
    };
    let (mut own, mut other) = (run("fake:in-memory", &["--twin", "emulator:m1"]), run("fake:client", &[]));
    assert!(own["totals"]["passed"].as_u64().unwrap() > 220, "three processes: {}", own["totals"]);
    for report in [&mut own, &mut other] {
        without_times(report);
        report["device"].take();
    }
    assert_eq!(own, other);
}

fn without_times(value: &mut Value) {
    match value {
        Value::Object(entries) => {
            entries.retain(|key, _| key != "micros" && key != "seconds");
            entries.values_mut().for_each(without_times);
        }
        Value::Array(items) => items.iter_mut().for_each(without_times),
        _ => {}
    }
}

#[test]
fn what_cannot_be_run_or_written_has_its_exit_code_and_leaves_no_file() {
    let here = tempfile::tempdir().unwrap();
    expect(2, here.path(), &["conform", "--device", "nowhere"]);
    expect(3, here.path(), &["conform", "--device", "ane"]);
    let (_, err) = expect(2, here.path(), &["conform", "--device", "cpu", "--filter", "frobnicate"]);
    assert!(err.contains("frobnicate"), "{err}");
    let missing = here.path().join("no/such/folder.json");
    let (_, err) = expect(2, here.path(), &["conform", "--device", "cpu", "--filter", "relu6", "--json", text(&missing)]);
    assert!(err.contains("folder.json"), "{err}");
    let (file, report) = (here.path().join("made.json"), here.path().join("made.html"));
    expect(0, here.path(), &["conform", "--device", "cpu", "--filter", "relu6", "--json", text(&file)]);
    // Made on a processor: no evidence.
    let (_, err) = expect(
        2,
        here.path(),
        &["conform", "--device", "cpu", "--filter", "relu6", "--html", text(&report), "--evidence", text(&file)],
    );
    assert!(err.contains("nothing about an engine"), "{err}");
    assert!(!names(here.path()).iter().any(|name| name == "made.html" || name.starts_with(".tmp")));
}

#[test]
fn the_listing_as_json_has_everything_about_every_operator() {
    let here = tempfile::tempdir().unwrap();
    let (json, _) = expect(0, here.path(), &["ops", "--json"]);
    let listing: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(listing["schema"], 1);
    let graph = listing["graph"].as_array().unwrap();
    assert_eq!(graph.len(), aneforge::core::op::builtin().len());
    for op in graph {
        for key in ["name", "aliases", "summary", "inputs", "attributes", "rules", "gradient", "tolerance", "lowering", "support"] {
            assert!(!op[key].is_null(), "{key} of {}", op["name"]);
        }
        assert!(op["gradient"]["status"] == "rule" || !op["gradient"]["reason"].as_str().unwrap().is_empty(), "{}", op["name"]);
        let targets: usize = op["lowering"].as_array().unwrap().iter().map(|text| text["targets"].as_array().unwrap().len()).sum();
        // A record whose every use is refused has no case to lower.
        let refused = aneforge::core::op::find(op["name"].as_str().unwrap()).unwrap().cases.is_empty();
        let wanted = if refused { 0 } else { 7 };
        assert_eq!((targets, op["support"].as_array().unwrap().len()), (wanted, 6), "{}", op["name"]);
    }
    let mil = listing["mil"].as_array().unwrap();
    assert_eq!(mil.len(), aneforge::mil::op::builtin().all().len());
    for op in mil {
        let e5rt = op["support"].as_array().unwrap().iter().filter(|support| support["route"] == "e5rt");
        assert_eq!(e5rt.count(), 6, "{}", op["name"]);
    }
}

#[test]
fn an_operator_is_shown_with_every_side_of_a_disagreement() {
    let here = tempfile::tempdir().unwrap();
    let (out, _) = expect(0, here.path(), &["ops", "show", "gather"]);
    for part in ["func main", "contradicted", "vocabulary sweep", "appendix A", "limit on A13"] {
        assert!(out.contains(part), "{part} in {out}");
    }
    assert_eq!(out, expect(0, here.path(), &["ops", "gather"]).0);
}

#[test]
fn the_reference_is_written_into_a_folder() {
    let here = tempfile::tempdir().unwrap();
    let folder = here.path().join("reference");
    expect(0, here.path(), &["ops", "--markdown", text(&folder)]);
    assert_eq!(names(&folder), ["README.md", "graph.md", "mil.md", "native.md"]);
}

#[test]
fn every_operator_of_the_python_package_is_listed_as_itself_or_as_an_alias() {
    let here = tempfile::tempdir().unwrap();
    let (json, _) = expect(0, here.path(), &["ops", "--json"]);
    let listing: Value = serde_json::from_str(&json).unwrap();
    let mut known = std::collections::HashSet::new();
    for op in listing["graph"].as_array().unwrap() {
        known.insert(op["name"].as_str().unwrap());
        known.extend(op["aliases"].as_array().unwrap().iter().map(|alias| alias["name"].as_str().unwrap()));
    }
    known.extend(listing["nodes"].as_array().unwrap().iter().map(|node| node["name"].as_str().unwrap()));
    let names: Vec<_> = package::GRAPH_OPERATORS.split_whitespace().chain(package::NATIVE_OPERATORS.split_whitespace()).collect();
    assert_eq!(names.len(), 100 + 19);
    let missing: Vec<_> = names.into_iter().filter(|name| !known.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
