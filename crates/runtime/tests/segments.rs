//! Programs in segments on every device: the same answers as in one piece, a report of where each segment ran, and no trust in
//! manifests.
#![allow(clippy::unwrap_used)]

use aneforge_compile::{CompileOptions, Manifest, compile};
use aneforge_core::{Array, DType, Graph, HostArray, Tensor, sdpa};
use aneforge_runtime::{DeviceError, Program, open};
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// A bundle of a graph that goes back and forth between text and native layers.
fn mixed() -> (TempDir, Arc<Program>) {
    let graph = Graph::new();
    let [q, k, v] = ["q", "k", "v"].map(|name| graph.input(name, DType::Fp16, &[1, 2, 4, 8]));
    let attended = sdpa(&q.tanh(), &k, &v, None, None, true);
    let sorted = (attended.clone() * 0.5).sort(true);
    let best = sorted.transpose(&[0, 1, 3, 2]).argmax(1);
    write(&[("attended", &attended), ("sorted", &sorted.relu()), ("best", &best)])
}

fn write(outputs: &[(&str, &Tensor)]) -> (TempDir, Arc<Program>) {
    let folder = tempfile::tempdir().unwrap();
    let compiled = compile(outputs, &CompileOptions::default()).unwrap();
    compiled.write(folder.path()).unwrap();
    (folder, Arc::new(Program::from_body("whole", compiled.body)))
}

fn inputs(program: &Program) -> Vec<HostArray> {
    let body = program.body();
    let array = |(index, &id): (usize, &_)| {
        HostArray::from_array(&Array::seeded(body.ty(id).clone(), index as u64 + 1, (-2.0, 2.0))).unwrap()
    };
    body.inputs.iter().enumerate().map(array).collect()
}

fn run(device: &str, program: &Arc<Program>) -> Vec<Array> {
    let inputs = inputs(program);
    let loaded = open(device).unwrap().load(program).unwrap();
    loaded.run(&inputs.iter().collect::<Vec<_>>()).unwrap().iter().map(HostArray::to_array).collect()
}

#[test]
fn segments_give_the_answers_of_the_whole() {
    let (folder, whole) = mixed();
    let program = Arc::new(Program::open(folder.path()).unwrap());
    let wanted = run("reference", &whole);
    assert_eq!(run("reference", &program), wanted, "put together again, nothing is rounded between segments");
    for device in ["cpu", "emulator:m2", "emulator:m5"] {
        let (got, in_one) = (run(device, &program), run(device, &whole));
        for ((got, in_one), wanted) in got.iter().zip(&in_one).zip(&wanted).take(2) {
            assert_eq!(got.ty, wanted.ty);
            let apart = |other: &Array| got.data.iter().zip(&other.data).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(apart(wanted) < 2e-2 && apart(in_one) < 1e-2, "{device}: {} {}", apart(wanted), apart(in_one));
        }
    }
    assert!(run("null", &program).iter().all(|array| array.data.iter().all(|&value| value == 0.0)));
}

#[test]
fn the_report_says_where_each_segment_ran_and_of_which_kind() {
    let (folder, _) = mixed();
    let program = Arc::new(Program::open(folder.path()).unwrap());
    for device in ["reference", "cpu", "null", "emulator:m2"] {
        let report = open(device).unwrap().load(&program).unwrap().report();
        let kinds: Vec<_> = report.segments.iter().map(|part| part.kind).collect();
        assert_eq!(kinds, ["mil", "native", "mil", "native", "mil"], "{device}");
        assert!(report.segments.iter().all(|part| part.device == device && part.operations > 0));
        if matches!(device, "cpu" | "emulator:m2") {
            assert_eq!(report.segments.iter().map(|part| part.steps).sum::<usize>(), report.steps.len());
            let loaded = open(device).unwrap().load(&program).unwrap();
            let given = inputs(&program);
            let buffers: Vec<&[u8]> = given.iter().map(HostArray::bytes).collect();
            let mut results: Vec<Vec<u8>> = loaded.outputs().iter().map(|port| vec![0; port.byte_length()]).collect();
            let times = loaded.profile(&buffers, &mut results.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>()).unwrap();
            assert_eq!(times.len(), report.steps.len());
        }
    }
}

#[test]
fn native_steps_of_the_emulator_are_labelled_as_modelled() {
    let (folder, _) = mixed();
    let program = Arc::new(Program::open(folder.path()).unwrap());
    let report = open("emulator:m5").unwrap().load(&program).unwrap().report();
    let native = report.steps.iter().find(|step| step.ops.contains(&"SDPA")).unwrap();
    assert_eq!(native.rule.as_ref().unwrap().label.to_string(), "modelled");
}

fn changed(folder: &Path, change: impl Fn(&mut Manifest)) -> DeviceError {
    let path = folder.join("manifest.json");
    let whole = std::fs::read(&path).unwrap();
    let mut manifest: Manifest = serde_json::from_slice(&whole).unwrap();
    change(&mut manifest);
    std::fs::write(&path, serde_json::to_vec(&manifest).unwrap()).unwrap();
    let error = Program::open(folder).unwrap_err();
    std::fs::write(&path, whole).unwrap();
    error
}

#[test]
fn manifests_that_contradict_their_segments_are_errors() {
    let (folder, _) = mixed();
    type Change = fn(&mut Manifest);
    let wrong: [(&str, Change); 9] = [
        ("not made before", |m| m.segments[1].inputs[0].segment = Some(3)),
        ("not made before", |m| m.segments[1].inputs[0].value = "nothing".to_string()),
        ("links", |m| m.segments[1].inputs.truncate(1)),
        ("cannot move", |m| m.segments[1].inputs[0].layout = vec![aneforge_compile::Move::Transpose(vec![0, 0, 1, 2])]),
        ("gives it", |m| m.segments[1].inputs[1].layout.clear()),
        ("results", |m| m.results.truncate(1)),
        ("no result", |m| m.results[0].port = "other".to_string()),
        ("element type", |m| m.inputs[0].dtype = "fp17".to_string()),
        ("larger", |m| m.inputs[0].shape = vec![usize::MAX, 2]),
    ];
    for (part, change) in wrong {
        let error = changed(folder.path(), change);
        assert!(matches!(error, DeviceError::Program { .. }) && error.to_string().contains(part), "{part}: {error}");
    }
    std::fs::remove_file(folder.path().join("segments/1/net.plist")).unwrap();
    assert!(Program::open(folder.path()).is_err());
}
