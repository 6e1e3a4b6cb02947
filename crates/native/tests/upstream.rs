//! Networks by an independent writer, the Python package aneforge 0.4.0: each reads and means what numpy computed.
//! `testing/python/upstream_nets.py` makes them.
#![allow(clippy::unwrap_used)]

mod support;

use aneforge_mil::{Array, Body};
use aneforge_native::net::read;
use aneforge_testkit::{difference, upstream_python};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use support::evaluate;

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

fn inputs(body: &Body, case: &Value) -> Vec<Array> {
    let array = |&id| {
        let (name, ty) = (&body.value(id).name, body.ty(id).clone());
        let data = numbers(&case["inputs"][name]);
        assert_eq!(data.len(), ty.count(), "input {name}");
        Array { ty, data }
    };
    body.inputs.iter().map(array).collect()
}

#[test]
fn every_network_of_the_package_reads_and_means_what_numpy_says() {
    let Some(python) = upstream_python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/python/upstream_nets.py");
    let status = Command::new(python).arg(script).arg(folder.path()).env("PYTHONWARNINGS", "ignore").status().unwrap();
    assert!(status.success());
    let (mut compared, mut faults) = (0, Vec::new());
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let case: Value = serde_json::from_slice(&std::fs::read(path.join("case.json")).unwrap()).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !case["refused"].is_null() {
            assert!(read(&path).is_err(), "{name}: {}", case["refused"]);
            continue;
        }
        let body = read(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        body.verify().unwrap_or_else(|error| panic!("{name}: {error}"));
        let got = evaluate(&body, &inputs(&body, &case));
        let apart = difference(&got[0].data, &numbers(&case["expected"]));
        if apart.worst > case["tolerance"].as_f64().unwrap() {
            faults.push(format!("{name}: {apart:?}, got {:?}", got[0].data));
        }
        compared += 1;
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(compared > 80, "only {compared} networks were compared");
}
