//! The reader against the format authors' own writer, and against files that are wrong in one way each.
#![cfg(feature = "safetensors")]
#![allow(clippy::unwrap_used)] // helper functions of tests

use aneforge_io::{IoError, Loader, SafeTensors};
use half::f16;
use safetensors::{Dtype, serialize, tensor::TensorView};
use std::path::PathBuf;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn write(folder: &tempfile::TempDir, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join("model.safetensors");
    std::fs::write(&path, bytes).unwrap();
    path
}

fn raw(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(data);
    bytes
}

fn two_tensors() -> Vec<u8> {
    let a: Vec<u8> = [1.0f32, -2.5, 1.0 / 3.0, 65504.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let b: Vec<u8> = [3.0f32, 0.1].iter().flat_map(|v| half::bf16::from_f32(*v).to_le_bytes()).collect();
    let a = TensorView::new(Dtype::F32, vec![2, 2], &a).unwrap();
    let b = TensorView::new(Dtype::BF16, vec![2], &b).unwrap();
    serialize([("a", a), ("b", b)], None).unwrap()
}

fn problem(bytes: &[u8]) -> String {
    let folder = folder();
    let error = SafeTensors::open(write(&folder, bytes)).unwrap_err().to_string();
    assert!(error.contains("model.safetensors"), "the file is named: {error}");
    error
}

#[test]
fn reads_what_the_reference_writer_writes() {
    let folder = folder();
    let file = SafeTensors::open(write(&folder, &two_tensors())).unwrap();
    assert_eq!(file.tensors().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "b"]);
    let a = file.weight("a", &[2, 2]).unwrap().to_fp16().unwrap();
    assert_eq!(a, [1.0, -2.5, 1.0 / 3.0, 65504.0].map(f16::from_f32));
    let b = file.weight("b", &[2]).unwrap().to_fp16().unwrap();
    assert_eq!(b, [3.0, 0.1].map(|v| f16::from_f32(half::bf16::from_f32(v).to_f32())));
}

#[test]
fn every_cut_of_a_file_is_an_error() {
    let whole = two_tensors();
    for length in 0..whole.len() {
        problem(&whole[..length]);
    }
}

#[test]
fn bytes_behind_the_last_tensor_are_an_error() {
    let mut bytes = two_tensors();
    bytes.push(0);
    assert!(problem(&bytes).contains("end at byte 20"));
}

#[test]
fn wrong_offsets_name_the_tensor_and_both_numbers() {
    let outside = raw(r#"{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#, &[0; 4]);
    assert!(problem(&outside).contains(r#"tensor "w" has data_offsets [0, 8], but the file holds 4 bytes"#));
    let backwards = raw(r#"{"w":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}"#, &[0; 8]);
    assert!(problem(&backwards).contains("expected the end not to lie before the start"));
    let short = raw(r#"{"w":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}"#, &[0; 8]);
    assert!(problem(&short).contains("that is 8 bytes, but F32 [3] takes 12"));
    let overlap = r#"{"v":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},"w":{"dtype":"F16","shape":[2],"data_offsets":[2,6]}}"#;
    assert!(problem(&raw(overlap, &[0; 6])).contains(r#"tensor "w" overlaps v"#));
    let gap = r#"{"v":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},"w":{"dtype":"F16","shape":[2],"data_offsets":[6,10]}}"#;
    assert!(problem(&raw(gap, &[0; 10])).contains(r#"tensor "w" leaves a gap after v"#));
    let huge = raw(r#"{"w":{"dtype":"F32","shape":[9223372036854775807,9],"data_offsets":[0,8]}}"#, &[0; 8]);
    assert!(problem(&huge).contains("no memory can hold"));
}

#[test]
fn unknown_types_repeated_names_and_bad_headers_are_named() {
    let dtype = raw(r#"{"w":{"dtype":"F9","shape":[1],"data_offsets":[0,4]}}"#, &[0; 4]);
    assert!(problem(&dtype).contains(r#"has dtype "F9", expected one of F32"#));
    let entry = r#""w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}"#;
    assert!(problem(&raw(&format!("{{{entry},{entry}}}"), &[0; 4])).contains(r#"tensor "w" is described twice"#));
    assert!(problem(&raw(r#"{"w":{"dtype":"F32","shape":[1]}}"#, &[])).contains(r#"tensor "w": missing field `data_offsets`"#));
    assert!(problem(&u64::MAX.to_le_bytes()).contains("claims 18446744073709551615 bytes"));
}

#[test]
fn wrong_shape_and_wrong_type_say_found_and_expected() {
    let folder = folder();
    let file = SafeTensors::open(write(&folder, &two_tensors())).unwrap();
    let error = file.weight("a", &[4]).unwrap_err().to_string();
    assert!(error.contains(r#"tensor "a" has shape [2, 2], expected [4]"#), "{error}");
    let bytes = raw(r#"{"i":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}"#, &[0; 8]);
    let file = SafeTensors::open(write(&folder, &bytes)).unwrap();
    let error = file.weight("i", &[1]).unwrap_err().to_string();
    assert!(error.contains(r#"tensor "i" has dtype int64, expected fp32, fp16 or bf16"#), "{error}");
}

#[test]
fn a_loader_reports_all_missing_tensors_at_once() {
    let folder = folder();
    let file = SafeTensors::open(write(&folder, &two_tensors())).unwrap();
    let mut loader = Loader::new(&file);
    loader.weight("a", &[2, 2]).unwrap();
    let placeholder = loader.weight("c", &[7]).unwrap();
    loader.weight("d", &[1]).unwrap();
    assert!(placeholder.to_fp16().is_err());
    match loader.finish().unwrap_err() {
        IoError::Missing { missing, .. } => assert_eq!(missing, ["c", "d"]),
        other => panic!("{other}"),
    }
}

#[test]
fn a_computed_weight_is_rounded_once_and_refuses_what_fp16_cannot_hold() {
    let folder = folder();
    let file = SafeTensors::open(write(&folder, &two_tensors())).unwrap();
    let mut loader = Loader::new(&file);
    let scaled = |factor: f64| {
        move |parts: &[aneforge_io::Values], sink: &mut dyn FnMut(f64) -> Result<(), aneforge_mil::WeightError>| {
            (0..parts[0].len()).try_for_each(|index| sink(parts[0].get(index) * factor))
        }
    };
    let third = loader.computed(&[4], &[("a", &[2, 2])], scaled(0.5)).unwrap().to_fp16().unwrap();
    assert_eq!(third[2], f16::from_f64(f64::from(1.0f32 / 3.0) * 0.5));
    let error = loader.computed(&[4], &[("a", &[2, 2])], scaled(2.0)).unwrap().to_fp16().unwrap_err();
    assert!(error.to_string().contains("131008 at element 3"), "{error}");
}
