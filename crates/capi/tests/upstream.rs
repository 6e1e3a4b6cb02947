//! The unmodified PyPI package aneforge 0.4.0 with this library in the place of its own: a graph of each of its operators, and one in
//! the shape of its quickstart, give what the emulator gives for the text that the package wrote, and numpy within a tolerance.
//!
//! Its 19 native layers run through executables of their own beside the library, on a Mac alone: they are not covered here.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod common;

use aneforge_core::DType;
use aneforge_runtime::{Executable, Program, open};
use common::{finished, installed, library, root};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

const DEVICE: &str = "emulator:m1";

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

#[test]
fn the_package_runs_a_graph_of_each_of_its_operators_on_this_library() {
    let Some(python) = std::env::var_os("ANEFORGE_UPSTREAM_PYTHON").filter(|python| Path::new(python).is_file()) else {
        eprintln!("skipped: ANEFORGE_UPSTREAM_PYTHON names no Python with the package; make test sets it up");
        return;
    };
    let folder = installed();
    let work = folder.path().join("work");
    let mut command = Command::new(python);
    command.arg(root().join("testing/python/upstream_dispatch.py")).arg(library(folder.path())).arg(&work);
    command.env("ANEFORGE_DEVICE", DEVICE).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = finished(&mut command, Duration::from_secs(400));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(work.join("report.json")).unwrap()).unwrap();
    let (mut faults, mut refused, mut equal) = (Vec::new(), Vec::new(), 0);
    let device = open(DEVICE).unwrap();
    for entry in report.as_array().unwrap() {
        let name = entry["name"].as_str().unwrap();
        if let Some(error) = entry["refused"].as_str() {
            refused.push(name);
            assert!(error.contains("stderr"), "{name}: {error}");
            continue;
        }
        let place = work.join(name);
        let executable = device.load(&Arc::new(Program::open(&place).unwrap())).unwrap();
        if same(&answer(&*executable, &place), &std::fs::read(place.join("got.bin")).unwrap()) {
            equal += 1;
        } else {
            faults.push(format!("{name}: not the emulator's bits"));
        }
        let worst = entry["worst"].as_f64().unwrap_or(f64::INFINITY);
        if worst > TOLERANCE {
            faults.push(format!("{name}: {worst:.2e} from numpy"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    // The package writes block scales of two axes for weights of any rank, which MIL does not have.
    assert!(refused.iter().all(|name| name.contains("blockwise")) && refused.len() <= 4, "{refused:?}");
    assert!(equal >= 129, "only {equal} graphs ran");
}

/// fp16 and the engine's tables, relative to the largest number expected.
const TOLERANCE: f64 = 2e-2;
