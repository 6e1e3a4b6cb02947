//! What is written is what is read: same computation, same bits.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use aneforge_core::evaluate;
use aneforge_mil::{Array, Body, Builder, DType, TensorType, Weight};
use aneforge_mlpackage::{OpSet, Package, ReadOptions, WriteError, write};
use tempfile::TempDir;

fn bits(arrays: &[Array]) -> Vec<(TensorType, Vec<u64>)> {
    arrays.iter().map(|array| (array.ty.clone(), array.data.iter().map(|value| value.to_bits()).collect())).collect()
}

fn assert_survives(name: &str, body: &Body, inputs: &[Array]) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("x.mlpackage");
    write(&[body], &path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let package = Package::open(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let back = package.body(&ReadOptions::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
    back.verify().unwrap_or_else(|error| panic!("{name}: {error}"));
    let expected = evaluate(body, inputs).unwrap_or_else(|error| panic!("{name}: {error}"));
    let found = evaluate(&back, inputs).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(bits(&found), bits(&expected), "{name}");
}

#[test]
fn every_case_of_the_operator_table_computes_the_same_bits_after_a_round_trip() {
    for (op, case) in common::cases() {
        let (body, inputs) = common::case_body(op, case);
        let name = format!("{}.{}", op.name, case.name);
        if !common::REFUSED.contains(&name.as_str()) {
            assert_survives(&name, &body, &inputs);
        }
    }
}

#[test]
fn every_case_of_the_graph_operators_computes_the_same_bits_after_a_round_trip() {
    for (name, body, inputs) in common::graph_cases() {
        if !common::REFUSED.contains(&name.as_str()) {
            assert_survives(&name, &body, &inputs);
        }
    }
}

/// A linear layer of `rows` outputs over four inputs, with a weight that is shared by whoever has it.
fn layer(name: &str, weight: &Weight) -> Body {
    let mut builder = Builder::new(name);
    let x = builder.input("x", TensorType::new(DType::Fp16, [2, 4]));
    let weight = builder.weight("kernel", weight.clone());
    let y = builder.op_named("linear", &[("x", x.into()), ("weight", weight.into())], "y").unwrap();
    let mut body = builder.finish();
    body.outputs.push(aneforge_mil::Output { name: "y".to_string(), value: y });
    body
}

fn weight(rows: usize) -> Weight {
    let values: Vec<f32> = (0..rows * 4).map(|index| index as f32 / 8.0 - 1.0).collect();
    Weight::from_fp32([rows, 4], values).unwrap()
}

#[test]
fn functions_of_one_package_share_their_weights() {
    let shared = weight(4096);
    let folder = TempDir::new().unwrap();
    let (one, two) = (folder.path().join("one.mlpackage"), folder.path().join("two.mlpackage"));
    let (main, other) = (layer("main", &shared), layer("other", &shared));
    let alone = write(&[&main], &one).unwrap();
    let both = write(&[&main, &other], &two).unwrap();
    assert_eq!(alone.weight_bytes, both.weight_bytes);
    assert_eq!((alone.opset, both.opset), (OpSet::Ios16, OpSet::Ios18));
    let package = Package::open(&two).unwrap();
    for (name, body) in [(None, &main), (Some("other"), &other)] {
        let options = ReadOptions { function: name.map(str::to_string), ..ReadOptions::default() };
        assert!(package.body(&options).unwrap().same_computation(body), "{name:?}");
    }
    let missing = ReadOptions { function: Some("third".to_string()), ..ReadOptions::default() };
    let error = package.body(&missing).unwrap_err().to_string();
    assert!(error.contains("third") && error.contains("main, other"), "{error}");
}

#[test]
fn equal_bodies_become_equal_packages() {
    let folder = TempDir::new().unwrap();
    let read = |name: &str| {
        let path = folder.path().join(name);
        write(&[&layer("main", &weight(64))], &path).unwrap();
        ["Manifest.json", "Data/com.apple.CoreML/model.mlmodel", "Data/com.apple.CoreML/weights/weight.bin"]
            .map(|file| std::fs::read(path.join(file)).unwrap())
    };
    assert_eq!(read("a.mlpackage"), read("b.mlpackage"));
}

#[test]
fn a_package_is_replaced_but_no_other_folder() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("x.mlpackage");
    write(&[&layer("main", &weight(64))], &path).unwrap();
    write(&[&layer("main", &weight(8))], &path).unwrap();
    let body = Package::open(&path).unwrap().body(&ReadOptions::default()).unwrap();
    assert_eq!(body.ty(body.outputs[0].value).shape, [2, 8]);
    let other = folder.path().join("photos");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("cat.png"), b"cat").unwrap();
    assert!(matches!(write(&[&body], &other), Err(WriteError::Io { .. })));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "something temporary is left");
    assert_eq!(std::fs::read(other.join("cat.png")).unwrap(), b"cat");
}

fn refused(op: &str, given: &[(&str, aneforge_mil::Given)], builder: Builder) -> String {
    let mut builder = builder;
    let y = builder.op(op, given).unwrap();
    let mut body = builder.finish();
    body.outputs.push(aneforge_mil::Output { name: "y".to_string(), value: y });
    let folder = TempDir::new().unwrap();
    let error = write(&[&body], &folder.path().join("x.mlpackage")).unwrap_err().to_string();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{error}: something is left");
    error
}

#[test]
fn what_core_ml_does_not_take_is_refused_by_name() {
    let start = |dtype, shape: &[usize]| {
        let mut builder = Builder::new("main");
        let x = builder.input("x", TensorType::new(dtype, shape));
        (builder, x)
    };
    let (builder, x) = start(DType::Fp16, &[2]);
    let error = refused("greater", &[("x", x.into()), ("y", x.into())], builder);
    assert!(error.contains("output \"y\"") && error.contains("bool") && error.contains("cast"), "{error}");

    let (builder, x) = start(DType::Fp16, &[]);
    let error = refused("relu", &[("x", x.into())], builder);
    assert!(error.contains("input \"x\"") && error.contains("axes"), "{error}");

    let (mut builder, x) = start(DType::Fp16, &[1, 2, 4, 4]);
    let bias = builder.input("b", TensorType::new(DType::Fp16, [2]));
    let weight = builder.weight("w", Weight::from_fp32([2, 2, 1, 1], vec![1.0; 4]).unwrap());
    let error = refused("conv", &[("x", x.into()), ("weight", weight.into()), ("bias", bias.into())], builder);
    assert!(error.contains("conv") && error.contains("\"bias\""), "{error}");

    let (builder, x) = start(DType::Fp16, &[2]);
    let mut body = builder.finish();
    body.outputs.push(aneforge_mil::Output { name: "x".to_string(), value: x });
    let folder = TempDir::new().unwrap();
    let error = write(&[&body], &folder.path().join("x.mlpackage")).unwrap_err().to_string();
    assert!(error.contains("identity"), "{error}");
}
