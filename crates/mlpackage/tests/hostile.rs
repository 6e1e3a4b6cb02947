//! Damaged packages: a typed error or a body that holds together, never a panic, and no memory on the word of a file.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use aneforge_mil::{Body, Builder, DType, Output, TensorType, Weight};
use aneforge_mlpackage::{Package, ReadError, ReadOptions, write};
use aneforge_testkit::Random;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const MODEL: &str = "Data/com.apple.CoreML/model.mlmodel";
const WEIGHTS: &str = "Data/com.apple.CoreML/weights/weight.bin";

/// A program with weights, immediate values of several types, a tuple and text.
fn sample() -> Body {
    let mut builder = Builder::new("main");
    let x = builder.input("x", TensorType::new(DType::Fp16, [1, 4, 6, 6]));
    let kernel: Vec<f32> = (0..8 * 4 * 9).map(|index| index as f32 / 64.0).collect();
    let kernel = builder.weight("kernel", Weight::from_fp32([8, 4, 3, 3], kernel).unwrap());
    let y = builder.op("conv", &[("x", x.into()), ("weight", kernel.into()), ("pad_type", "same".into())]).unwrap();
    let y = builder.op("concat", &[("values", vec![y, y].into()), ("axis", 1i64.into()), ("interleave", false.into())]).unwrap();
    let y = builder.op("leaky_relu", &[("x", y.into()), ("alpha", 0.25.into())]).unwrap();
    let y = builder.op("reshape", &[("x", y.into()), ("shape", vec![1i64, 16, 36].into())]).unwrap();
    let mut body = builder.finish();
    body.outputs.push(Output { name: "y".to_string(), value: y });
    body
}

fn written() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("x.mlpackage");
    write(&[&sample()], &path).unwrap();
    (folder, path)
}

/// Reads a package as far as it goes; what is read must hold together.
fn read(path: &Path) -> Result<Body, ReadError> {
    let package = Package::open(path)?;
    package.functions();
    let body = package.body(&ReadOptions::default())?;
    body.verify().expect("a body that was read verifies");
    Ok(body)
}

#[test]
fn the_sample_itself_is_read() {
    let (_folder, path) = written();
    assert!(read(&path).unwrap().same_computation(&sample()));
}

#[test]
fn changed_bytes_never_stop_the_program() {
    let (_folder, path) = written();
    let model = fs::read(path.join(MODEL)).unwrap();
    let mut random = Random::new(0x6d6c);
    let (mut refused, mut taken) = (0, 0);
    for round in 0..4000 {
        let mut bytes = model.clone();
        match round % 4 {
            0 => bytes.truncate(random.below(model.len())),
            1 => {
                let (from, to) = (random.below(model.len()), random.below(model.len()));
                let length = random.below(48).min(model.len() - from.max(to));
                bytes.copy_within(from..from + length, to);
            }
            _ => {
                for _ in 0..=random.below(6) {
                    let at = random.below(bytes.len());
                    bytes[at] = match random.below(3) {
                        0 => 0xff,
                        1 => bytes[at] ^ (1 << random.below(8)),
                        _ => random.bits() as u8,
                    };
                }
            }
        }
        fs::write(path.join(MODEL), &bytes).unwrap();
        match read(&path) {
            Ok(_) => taken += 1,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                refused += 1;
            }
        }
    }
    assert!(refused > 2000 && taken > 20, "{refused} refused, {taken} taken");
}

#[test]
fn damaged_weight_files_are_refused_where_they_are_used() {
    for damage in [
        |bytes: &mut Vec<u8>| bytes.truncate(100),
        |bytes: &mut Vec<u8>| bytes[64] ^= 1,
        |bytes: &mut Vec<u8>| bytes[68] = 4,
        |bytes: &mut Vec<u8>| bytes[72..80].copy_from_slice(&u64::MAX.to_le_bytes()),
    ] {
        let (_folder, path) = written();
        let mut bytes = fs::read(path.join(WEIGHTS)).unwrap();
        damage(&mut bytes);
        fs::write(path.join(WEIGHTS), bytes).unwrap();
        let error = read(&path).unwrap_err();
        assert!(matches!(&error, ReadError::Operation { op, .. } if op == "const"), "{error}");
        assert!(error.to_string().contains("kernel"), "{error}");
    }
}

#[test]
fn missing_and_foreign_files_are_named() {
    let (_folder, path) = written();
    fs::remove_file(path.join(WEIGHTS)).unwrap();
    assert!(read(&path).unwrap_err().to_string().contains("weight.bin"));
    fs::write(path.join(MODEL), b"not a model").unwrap();
    assert!(matches!(read(&path).unwrap_err(), ReadError::Decode { .. }));
    // Field 500, a neural network without layers.
    fs::write(path.join(MODEL), [8, 4, 0xa2, 0x1f, 0]).unwrap();
    let error = read(&path).unwrap_err();
    assert!(matches!(error, ReadError::Kind { .. }) && error.to_string().contains("neural network"), "{error}");
    fs::write(path.join("Manifest.json"), b"{}").unwrap();
    assert!(matches!(read(&path).unwrap_err(), ReadError::Manifest { .. }));
    fs::remove_file(path.join("Manifest.json")).unwrap();
    assert!(matches!(read(&path).unwrap_err(), ReadError::File { .. }));
}
