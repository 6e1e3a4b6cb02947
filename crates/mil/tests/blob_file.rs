//! Weight files written in one pass, against the writer that goes blob by blob.
#![allow(clippy::unwrap_used)]

use aneforge_mil::{BlobFileWriter, BlobWriter, DType, TensorType, Weight, WeightError};
use half::{bf16, f16};
use std::io::Cursor;
use std::sync::Arc;
use tempfile::TempDir;

fn numbers(count: usize, seed: u32) -> Vec<f32> {
    (0..count as u32).map(|i| (i.wrapping_add(seed).wrapping_mul(2_654_435_761) >> 8) as f32 / 1e6 - 8.0).collect()
}

fn rounded(values: &[f32]) -> Vec<f16> {
    values.iter().map(|&value| f16::from_f32(value)).collect()
}

fn computed(values: Vec<f16>) -> Weight {
    Weight::computed([values.len()], Arc::new(move |sink| values.chunks(999).try_for_each(&mut *sink)))
}

/// A weight of each kind with the bytes it stands for.
fn weights() -> Vec<(Weight, Vec<u8>)> {
    let bytes = |values: &[f16]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let mut weights = Vec::new();
    for (index, count) in [3, 1_000_000, 1, 40_000, 262_144, 777_777, 0, 5].into_iter().enumerate() {
        let values = numbers(count, index as u32);
        let narrow = rounded(&values);
        weights.push((Weight::from_fp32([count], values).unwrap(), bytes(&narrow)));
        weights.push((Weight::from_fp16([count], &narrow).unwrap(), bytes(&narrow)));
        let odd: Vec<u8> = (0..count + 1).map(|i| (i * 7 % 251) as u8).collect();
        let ty = TensorType::new(DType::UInt8, [odd.len()]);
        weights.push((Weight::from_bytes(ty, odd.clone()).unwrap(), odd));
        if index % 3 == 1 {
            weights.push((computed(narrow.clone()), bytes(&narrow)));
        }
    }
    weights
}

#[test]
fn a_file_written_in_one_pass_is_the_one_written_blob_by_blob() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("weights.bin");
    let mut file = BlobFileWriter::create(&path).unwrap();
    let mut stream = BlobWriter::new(Cursor::new(Vec::new())).unwrap();
    for (weight, bytes) in weights() {
        let offset = file.blobs().unwrap().add_weight(&weight).unwrap();
        assert_eq!(stream.add_bytes(weight.ty(), &bytes).unwrap(), offset);
    }
    assert_eq!((file.blobs().unwrap().len(), file.blobs().unwrap().count()), (stream.len(), stream.count()));
    let mut seen = Vec::new();
    let length = file.finish_observed(&mut |bytes| seen.extend_from_slice(bytes)).unwrap();
    let (written, expected) = (std::fs::read(&path).unwrap(), stream.finish().unwrap().into_inner());
    assert_eq!((length, written.len()), (expected.len() as u64, expected.len()));
    assert!(written == expected, "the file differs");
    assert!(seen == expected, "the observer saw something else");
}

#[test]
fn fp32_and_bf16_round_as_one_number_at_a_time_does() {
    let values = numbers(10_000, 7);
    let weight = Weight::from_fp32([100, 100], values.clone()).unwrap();
    assert!(weight.direct_bytes().is_none());
    assert_eq!(weight.to_fp16().unwrap(), rounded(&values));
    assert!(matches!(Weight::from_fp32([3], vec![0.0; 2]), Err(WeightError::Size { .. })));

    let folder = TempDir::new().unwrap();
    let source = folder.path().join("source");
    let stored: Vec<bf16> = values.iter().map(|&value| bf16::from_f32(value)).collect();
    std::fs::write(&source, stored.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>()).unwrap();
    let mapping = Arc::new(aneforge_map::Mapping::open(&source).unwrap());
    let weight = Weight::from_mapping(TensorType::new(DType::Fp16, [10_000]), DType::Bf16, mapping, 0).unwrap();
    let path = folder.path().join("weights.bin");
    let mut file = BlobFileWriter::create(&path).unwrap();
    file.blobs().unwrap().add_weight(&weight).unwrap();
    file.finish().unwrap();
    let expected: Vec<u8> = stored.iter().flat_map(|value| f16::from_f32(value.to_f32()).to_le_bytes()).collect();
    assert_eq!(std::fs::read(&path).unwrap()[128..], expected);
}

#[test]
fn the_first_weight_that_cannot_be_written_is_named_and_nothing_is_left() {
    for first in ["large", "small"] {
        let folder = TempDir::new().unwrap();
        let mut file = BlobFileWriter::create(folder.path().join("weights.bin")).unwrap();
        let mut values = numbers(3_000_000, 1);
        values[2_500_001] = 1e6;
        let large = Weight::from_fp32([3_000_000], values).unwrap();
        let small = Weight::from_fp32([2], vec![0.0, -70000.0]).unwrap();
        let fine = Weight::from_fp32([2_000_000], numbers(2_000_000, 2)).unwrap();
        let mut weights = [("large", &large), ("small", &small)];
        if first == "small" {
            weights.reverse();
        }
        file.blobs().unwrap().add_constant("fine", &fine).unwrap();
        for (name, weight) in weights {
            file.blobs().unwrap().add_constant(name, weight).unwrap();
            file.blobs().unwrap().add_constant("fine", &fine).unwrap();
        }
        let message = file.finish().unwrap_err().to_string();
        let place = if first == "large" { "1000000 at element 2500001" } else { "-70000 at element 1" };
        assert!(message.contains(&format!("constant \"{first}\"")) && message.contains(place), "{message}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_computed_weight_of_another_length_leaves_nothing() {
    for count in [0, 5, 600_000] {
        let folder = TempDir::new().unwrap();
        let mut file = BlobFileWriter::create(folder.path().join("weights.bin")).unwrap();
        let values = vec![f16::ONE; count];
        let lies = Weight::computed([6], Arc::new(move |sink| values.chunks(1000).try_for_each(&mut *sink)));
        file.blobs().unwrap().add_constant("liar", &lies).unwrap();
        let message = file.finish().unwrap_err().to_string();
        assert!(message.contains("\"liar\"") && message.contains("12 bytes"), "{message}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
