//! The unmodified PyPI package aneforge 0.4.0 with this library in the place of its own: a graph of each of its operators, and one in
//! the shape of its quickstart, give what the emulator gives for the text that the package wrote, and numpy within a tolerance.
//!
//! Its 19 native layers run through executables of their own beside the library, on a Mac alone: they are not covered here.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod common;

use aneforge_core::DType;
use aneforge_runtime::{Executable, Program, open};
use common::{finished, installed, library, root};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// The emulator's answer to what the package was given, as the package hands it out: fp32.
fn answer(executable: &dyn Executable, folder: &Path) -> Vec<u8> {
    let read = |index| std::fs::read(folder.join(format!("input.{index}.bin"))).unwrap();
    let inputs: Vec<Vec<u8>> = (0..executable.inputs().len()).map(read).collect();
    let mut outputs: Vec<Vec<u8>> = executable.outputs().iter().map(|port| vec![0; port.byte_length()]).collect();
    let given: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let mut taken: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
    executable.execute(&given, &mut taken).unwrap();
    let values = aneforge_mil::unpack(DType::Fp16, &outputs[0], outputs[0].len() / 2).unwrap();
    values.into_iter().flat_map(|value| (value as f32).to_le_bytes()).collect()
}

/// NaN payloads aside.
fn same(ours: &[u8], theirs: &[u8]) -> bool {
    let number = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().unwrap());
    ours.len() == theirs.len()
        && ours.chunks(4).zip(theirs.chunks(4)).all(|(a, b)| a == b || (number(a).is_nan() && number(b).is_nan()))
}

/// Has the package run its graphs on a device of the library; `None` where the package is not there.
fn dispatched(device: &str) -> Option<(tempfile::TempDir, Vec<Value>)> {
    let Some(python) = std::env::var_os("ANEFORGE_UPSTREAM_PYTHON").filter(|python| Path::new(python).is_file()) else {
        eprintln!("skipped: ANEFORGE_UPSTREAM_PYTHON names no Python with the package; make test sets it up");
        return None;
    };
    let folder = installed();
    let work = folder.path().join("work");
    let mut command = Command::new(python);
    command.arg(root().join("testing/python/upstream_dispatch.py")).arg(library(folder.path())).arg(&work);
    command.env("ANEFORGE_DEVICE", device).env("ANEFORGE_FAKE_APPLE", aneforge_testkit::fake::library());
    command.env("FAKE_APPLE", r#"{"chip": "m5"}"#).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = finished(&mut command, Duration::from_secs(400));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&std::fs::read(work.join("report.json")).unwrap()).unwrap();
    Some((folder, report.as_array().unwrap().clone()))
}

/// The package writes block scales of two axes for weights of any rank, which MIL does not have.
fn no_mil(refused: &[&str]) -> bool {
    refused.iter().all(|name| name.contains("blockwise")) && refused.len() <= 4
}

fn refused(report: &[Value]) -> Vec<&str> {
    report.iter().filter(|entry| entry["refused"].is_string()).map(|entry| entry["name"].as_str().unwrap()).collect()
}

/// Graphs that are too far from numpy.
fn far(report: &[Value]) -> Vec<String> {
    let worst = |entry: &Value| entry["worst"].as_f64().unwrap_or(f64::INFINITY);
    let ran = report.iter().filter(|entry| !entry["refused"].is_string());
    ran.filter(|entry| worst(entry) > TOLERANCE).map(|entry| format!("{}: {:.2e}", entry["name"], worst(entry))).collect()
}

#[test]
fn the_package_runs_a_graph_of_each_of_its_operators_with_the_emulators_bits() {
    let Some((folder, report)) = dispatched("emulator:m1") else { return };
    let device = open("emulator:m1").unwrap();
    let (refused, mut equal) = (refused(&report), 0);
    for entry in &report {
        let name = entry["name"].as_str().unwrap();
        if refused.contains(&name) {
            continue;
        }
        let place = folder.path().join("work").join(name);
        let executable = device.load(&Arc::new(Program::open(&place).unwrap())).unwrap();
        assert!(same(&answer(&*executable, &place), &std::fs::read(place.join("got.bin")).unwrap()), "{name}");
        equal += 1;
    }
    assert_eq!(far(&report), Vec::<String>::new(), "from numpy");
    assert!(no_mil(&refused), "{refused:?}");
    assert!(equal >= 129, "only {equal} graphs ran");
}

#[test]
fn the_package_runs_them_through_e5rt_as_the_fake_has_it() {
    let Some((_folder, report)) = dispatched("fake:e5rt") else { return };
    let refused = refused(&report);
    assert_eq!(far(&report), Vec::<String>::new(), "from numpy");
    assert!(no_mil(&refused), "{refused:?}");
}

/// fp16 and the engine's tables, relative to the largest number expected.
const TOLERANCE: f64 = 2e-2;
