//! Compressed weights expand to the same bits everywhere: on the devices, through a bundle, and in coremltools, Apple's own code.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use aneforge::compile::compress::{Encoded, Format, apply, encode, read, slots};
use aneforge::core::{Axes, lower};
use aneforge::mil::{Body, Output};
use aneforge::{CompileOptions, DType, Graph, HostArray, Program, Target, Weight, Window, open};
use half::f16;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

const DEVICES: &[&str] = &["reference", "cpu", "emulator:m1", "emulator:m5"];

fn bell(count: usize, seed: u64) -> Vec<f16> {
    let mut random = aneforge_testkit::Random::new(seed);
    let mut uniform = || random.below(1 << 24) as f32 / (1 << 24) as f32 - 0.5;
    (0..count).map(|_| f16::from_f32((uniform() + uniform() + uniform()) * 0.3)).collect()
}

/// One weight of each kind, of extents that blocks and groups divide.
fn network() -> Body {
    let graph = Graph::new();
    let weight = |shape: &[usize], seed| graph.weight(Weight::from_fp16(shape, &bell(shape.iter().product(), seed)).unwrap());
    let picture = graph.input("picture", DType::Fp16, &[1, 32, 5, 5]);
    let mixed = picture.conv(&weight(&[64, 32, 3, 3], 1), None, &Window::default());
    let rows = mixed.reduce_mean(Axes::from(&[2, 3][..]), false);
    let y = rows.linear(&weight(&[96, 64], 2), None).matmul(&weight(&[96, 80], 3));
    lower(&[("y".to_string(), y)], Target::Generic).unwrap()
}

/// The network with all weights in a format and each expanded weight as an output, and what the weights must be.
fn exposed(format: Format) -> (Body, BTreeMap<String, Encoded>) {
    let body = network();
    let mut encoded = HashMap::new();
    let mut wanted = BTreeMap::new();
    for slot in slots(&body, 1) {
        let values = read(&body, &slot).unwrap();
        let weight = encode(&body, &slot, &values, format, None).unwrap();
        wanted.insert(body.value(slot.value).name.clone(), weight.clone());
        encoded.insert(slot.value, weight);
    }
    assert_eq!(wanted.len(), 3, "{format}");
    let mut packed = apply(&body, &encoded).unwrap();
    for name in wanted.keys() {
        let place = packed.values.iter().position(|value| value.name == *name).unwrap();
        packed.outputs.push(Output { name: name.clone(), value: aneforge::mil::ValueId(place as u32) });
    }
    (packed, wanted)
}

fn formats() -> Vec<Format> {
    Format::examples().into_iter().filter(|format| *format != Format::Sparse { sparsity: None }).collect()
}

fn picture() -> HostArray {
    let values: Vec<f32> = bell(32 * 25, 9).iter().map(|value| value.to_f32()).collect();
    HostArray::fp16_from_f32([1, 32, 5, 5], &values).unwrap()
}

#[test]
fn devices_expand_every_format_to_the_same_bits() {
    for format in formats() {
        let (body, wanted) = exposed(format);
        let folder = tempfile::tempdir().unwrap();
        let bundle = folder.path().join("bundle");
        let compiled = aneforge::compile::compile_body(body.clone(), &CompileOptions::default()).unwrap();
        let manifest = compiled.write(&bundle).unwrap();
        assert!(manifest.compression.starts_with("constexpr_"), "{format}: {}", manifest.compression);
        let programs = [Arc::new(Program::from_body("packed", body)), Arc::new(Program::open(&bundle).unwrap())];
        for program in &programs {
            for device in DEVICES {
                let results = open(device).unwrap().load(program).unwrap().run(&[&picture()]).unwrap();
                for (weight, result) in wanted.values().zip(&results[1..]) {
                    let got: Vec<f64> = result.to_array().data;
                    let same = got.iter().zip(&weight.dense).all(|(got, want)| *got == want.to_f64());
                    assert!(same, "{format} on {device}");
                }
            }
        }
    }
}

#[test]
fn a_compressed_network_computes_what_its_expanded_weights_do() {
    for format in formats() {
        let (packed, wanted) = exposed(format);
        let mut dense = network();
        for (name, weight) in &wanted {
            let place = dense.values.iter().position(|value| value.name == *name).unwrap();
            let expanded = Weight::from_fp16(dense.values[place].ty.shape.clone(), &weight.dense).unwrap();
            dense.values[place].kind = aneforge::mil::ValueKind::Constant(aneforge::mil::Constant::Weight(expanded));
        }
        // `reference` does not round weights: there the two differ by that rounding.
        for device in DEVICES.iter().filter(|device| **device != "reference") {
            let run = |body: &Body| {
                let program = Arc::new(Program::from_body("network", body.clone()));
                open(device).unwrap().load(&program).unwrap().run(&[&picture()]).unwrap()[0].to_f32()
            };
            assert_eq!(run(&packed), run(&dense), "{format} on {device}");
        }
    }
}

#[test]
fn coremltools_expands_every_format_to_the_same_bits() {
    if aneforge_testkit::python().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut wanted = BTreeMap::new();
    for format in formats() {
        let (mut body, weights) = exposed(format);
        body.outputs.truncate(1);
        let name = format.to_string();
        aneforge::mlpackage::write(&[&body], &folder.path().join(format!("{name}.mlpackage"))).unwrap();
        wanted.insert(name, weights);
    }
    let answer = aneforge_testkit::oracle("expanded_weights.py", &[folder.path().to_str().unwrap()], "").unwrap();
    let answers: BTreeMap<String, BTreeMap<String, String>> = serde_json::from_str(&answer).unwrap();
    let mut compared = 0;
    for (format, weights) in &wanted {
        for (name, weight) in weights {
            let hex: String = weight.dense.iter().flat_map(|value| value.to_le_bytes()).map(|byte| format!("{byte:02x}")).collect();
            assert!(answers[format].get(name) == Some(&hex), "{format}: {name} differs or is missing");
            compared += 1;
        }
    }
    println!("{compared} weights in {} formats", wanted.len());
    assert_eq!(compared, 3 * wanted.len());
}
