//! What is emitted means what the graph means: every program goes through its text and its weight file before it runs.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use aneforge::core::{LowerOptions, lower_with};
use aneforge::mil::Dialect;
use aneforge::{Array, CompileError, CompileOptions, DType, Target, compile};
use aneforge_testkit::difference;
use common::graphs::{Sample, networks, operators};
use common::{meaning, options, run, written};

/// What the engine's tables of straight pieces, as the emulator models them, are off by.
const ENGINE_TABLES: f64 = 1e-2;

const TARGETS: [&str; 3] = ["generic", "m1", "m5"];

fn generic_meaning(sample: &Sample) -> Vec<Array> {
    let lowered = lower_with(&sample.outputs, LowerOptions { target: Target::Generic, keep_unused_inputs: false });
    meaning(&lowered.unwrap_or_else(|error| panic!("{}: {error}", sample.name)), &sample.inputs)
}

/// Compares all results and says which one is too far off.
fn compare(what: &str, got: &[Array], expected: &[Array], allowed: f64, faults: &mut Vec<String>) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (index, (got, expected)) in got.iter().zip(expected).enumerate() {
        assert_eq!(got.ty, expected.ty, "{what}, result {index}");
        let found = difference(&got.data, &expected.data);
        if found.worst > allowed {
            let (got, expected) = (got.data[found.at], expected.data[found.at]);
            faults
                .push(format!("{what}, result {index}: {:.3e} > {allowed:.1e}, {got} for {expected} at {}", found.worst, found.at));
        }
    }
}

/// One sample through every target and dialect, over all devices.
fn check(sample: &Sample, faults: &mut Vec<String>) -> usize {
    let expected = generic_meaning(sample);
    let mut runs = 0;
    for target in TARGETS {
        let mut modern: Option<Vec<(String, Vec<Array>)>> = None;
        for dialect in [Dialect::Modern, Dialect::Old] {
            let what = format!("{} for {target} in {dialect:?}", sample.name);
            let compiled = match compile(&sample.named_outputs(), &CompileOptions { dialect, ..options(target) }) {
                Ok(compiled) => compiled,
                // A chip hands back fp16 alone; `generic` takes everything.
                Err(CompileError::Output { .. } | CompileError::Limit { .. }) if target != "generic" => continue,
                Err(error) => panic!("{what}: {error}"),
            };
            let bundle = written(&compiled);
            let reference = run("reference", &bundle.program, &sample.inputs);
            compare(&format!("{what} on reference"), &reference, &meaning(&compiled.body, &sample.inputs), 0.0, faults);
            // Passes for `generic` are lossless; those for chips may say otherwise.
            let allowed = if target == "generic" { 0.0 } else { 1e-3 };
            compare(&format!("{what} against the graph"), &reference, &expected, allowed, faults);
            let chip = format!("emulator:{}", if target == "generic" { "m1" } else { target });
            let mut results = vec![("reference".to_string(), reference)];
            for device in ["cpu", &chip, "null"] {
                let got = run(device, &bundle.program, &sample.inputs);
                match device {
                    "null" => assert!(got.iter().all(|array| array.data.iter().all(|&value| value == 0.0)), "{what}"),
                    "cpu" => compare(&format!("{what} on {device}"), &got, &expected, sample.tolerance, faults),
                    _ => compare(&format!("{what} on {device}"), &got, &expected, sample.tolerance.max(ENGINE_TABLES), faults),
                }
                results.push((device.to_string(), got));
                runs += 1;
            }
            // The dialect is spelling: results are the same to the bit.
            match &modern {
                None => modern = Some(results),
                Some(modern) => {
                    for ((device, a), (_, b)) in modern.iter().zip(&results) {
                        compare(&format!("{what} on {device} against the modern dialect"), b, a, 0.0, faults);
                    }
                }
            }
        }
    }
    runs
}

fn check_all(samples: &[Sample]) {
    let mut faults = Vec::new();
    let runs: usize = samples.iter().map(|sample| check(sample, &mut faults)).sum();
    assert!(runs >= samples.len() * 6, "only {runs} runs of {} graphs", samples.len());
    assert!(faults.is_empty(), "{} faults in {runs} runs:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn every_operator_runs_from_its_text_as_the_graph_says() {
    check_all(&operators());
}

#[test]
fn networks_run_from_their_text_as_the_graph_says() {
    check_all(&networks());
}

#[test]
fn results_come_in_the_order_and_under_the_names_that_were_asked_for() {
    for sample in networks() {
        for target in TARGETS {
            let Ok(compiled) = compile(&sample.named_outputs(), &options(target)) else { continue };
            let bundle = written(&compiled);
            let asked: Vec<&str> = sample.outputs.iter().map(|(name, _)| name.as_str()).collect();
            for device in ["null", "reference", "cpu", "emulator:m1"] {
                let loaded = aneforge::open(device).unwrap().load(&bundle.program).unwrap();
                let names: Vec<&str> = loaded.outputs().iter().map(|port| port.name.as_str()).collect();
                assert_eq!(names, asked, "{} on {device}", sample.name);
            }
            let manifest: serde_json::Value =
                serde_json::from_slice(&std::fs::read(bundle.folder.path().join("manifest.json")).unwrap()).unwrap();
            let listed: Vec<&str> =
                manifest["outputs"].as_array().unwrap().iter().map(|port| port["name"].as_str().unwrap()).collect();
            assert_eq!(listed, asked, "{}", sample.name);
        }
    }
}

#[test]
fn compiling_twice_writes_the_same_bytes() {
    for (first, second) in networks().iter().zip(&networks()) {
        let [a, b] = [first, second].map(|sample| written(&compile(&sample.named_outputs(), &options("generic")).unwrap()));
        assert_eq!(a.text, b.text);
        let weights = |bundle: &common::Bundle| std::fs::read(bundle.folder.path().join("weights.bin")).unwrap();
        assert!(weights(&a) == weights(&b), "{}", first.name);
    }
}

#[test]
fn a_weight_used_twice_stands_in_the_file_once() {
    let mut make = common::graphs::Maker::new(9);
    let x = make.input("x", &[4, 64], -1.0, 1.0);
    let weight = make.dense(64, 64);
    let y = x.linear(&weight, None).relu().linear(&weight, None);
    let bundle = written(&compile(&[("y", &y)], &options("generic")).unwrap());
    let bytes = std::fs::metadata(bundle.folder.path().join("weights.bin")).unwrap().len();
    let once = (64 + 64 + DType::Fp16.packed_bytes(64 * 64)) as u64;
    assert_eq!(bytes, once);
}
