//! Buffers that live across calls in packages: Apple's read, ours read by Apple's code.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use aneforge_core::HostArray;
use aneforge_mil::op::builtin;
use aneforge_mil::{Body, NoBlobs, parse, resolve};
use aneforge_mlpackage::{OpSet, Package, ReadOptions, WriteError, write};
use aneforge_runtime::{Program, open};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

fn body(inputs: &str, statements: &str, outputs: &str) -> Body {
    let text = format!("program(1.3)\n{{\n    func main<ios18>({inputs}) {{\n{statements}\n    }} -> ({outputs});\n}}\n");
    resolve(&parse(&text).unwrap(), "main", builtin(), &NoBlobs).unwrap()
}

fn sample() -> Body {
    body(
        "tensor<fp16, [2]> x, state<tensor<fp16, [2]>> sum, state<tensor<fp16, [2]>> last",
        "tensor<fp16, [2]> before = read_state(input = sum);
         tensor<fp16, [2]> after = add(x = before, y = x);
         write_state(input = sum, data = after);
         write_state(input = last, data = x);
         tensor<fp16, [2]> y = mul(x = after, y = after);",
        "y",
    )
}

fn read(path: &Path) -> Body {
    let body = Package::open(path).unwrap().body(&ReadOptions::default()).unwrap();
    body.verify().unwrap();
    body
}

#[test]
fn a_package_with_states_is_what_was_written_and_coremltools_agrees() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sum.mlpackage");
    assert_eq!(write(&[&sample()], &path).unwrap().opset, OpSet::Ios18);
    assert!(sample().same_computation(&read(&path)));
    let outline = Package::open(&path).unwrap().functions().remove(0);
    assert_eq!(outline.inputs[1], ("sum".to_string(), "state<tensor<fp16, [2]>>".to_string()));
    let Some(answer) = aneforge_testkit::oracle("check_packages.py", &[folder.path().to_str().unwrap()], "") else { return };
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["sum"]["problems"].as_array().unwrap().len(), 0, "{answer}");
}

/// A sum and a window of three rows by Apple's converter, four steps on each device, against torch.
#[test]
fn a_converted_model_keeps_what_torch_keeps() {
    let folder = tempfile::tempdir().unwrap();
    let Some(answer) = aneforge_testkit::oracle("stateful_package.py", &[folder.path().to_str().unwrap()], "") else { return };
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let program = Arc::new(Program::from_body("stateful", read(&folder.path().join("stateful.mlpackage"))));
    for device in ["reference", "cpu", "emulator:m1"] {
        let executable = open(device).unwrap().load(&program).unwrap();
        for (index, step) in answer["steps"].as_array().unwrap().iter().enumerate() {
            let numbers = |name: &str| -> Vec<f32> {
                step[name].as_array().unwrap().iter().map(|number| number.as_f64().unwrap() as f32).collect()
            };
            let x = HostArray::fp16_from_f32([1, 4], &numbers("x")).unwrap();
            assert_eq!(executable.run(&[&x]).unwrap()[0].to_f32(), numbers("y"), "{device}, step {index}");
            for state in ["total", "window"] {
                assert_eq!(executable.read_state(state).unwrap().to_f32(), numbers(state), "{device}, step {index}: {state}");
            }
        }
    }
}

#[test]
fn core_ml_keeps_nothing_but_fp16() {
    let wide = body(
        "tensor<fp32, [2]> x, state<tensor<fp32, [2]>> sum",
        "tensor<fp32, [2]> before = read_state(input = sum);
         tensor<fp32, [2]> y = add(x = before, y = x);
         write_state(input = sum, data = y);",
        "y",
    );
    let folder = tempfile::tempdir().unwrap();
    let error = write(&[&wide], &folder.path().join("wide.mlpackage")).unwrap_err();
    assert!(matches!(&error, WriteError::Edge { edge: "state", name, .. } if name == "sum"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
}
