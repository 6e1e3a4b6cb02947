//! Weight files: layout to the byte, mapped reading, and an answer for every damaged file.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use aneforge_mil::{BlobError, BlobFile, BlobFileWriter, BlobWriter, DType, TensorType, Weight};
use proptest::prelude::*;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

fn written(blobs: &[(DType, Vec<usize>, Vec<u8>)]) -> (Vec<u8>, Vec<u64>) {
    let mut writer = BlobWriter::new(Cursor::new(Vec::new())).unwrap();
    let add = |(dtype, shape, bytes): &(DType, Vec<usize>, Vec<u8>)| {
        writer.add_bytes(&TensorType::new(*dtype, shape.clone()), bytes).unwrap()
    };
    let offsets = blobs.iter().map(add).collect();
    (writer.finish().unwrap().into_inner(), offsets)
}

fn saved(folder: &TempDir, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join("weights.bin");
    std::fs::write(&path, bytes).unwrap();
    path
}

fn three_blobs() -> (Vec<u8>, Vec<u64>) {
    written(&[
        (DType::Int8, vec![3, 4], (0..12).collect()),
        (DType::Fp16, vec![3], vec![0, 0x3c, 0, 0x40, 0, 0x42]),
        (DType::UInt4, vec![5], vec![0xf0, 0x37, 0x09]),
    ])
}

/// A file as the package aneforge 0.4 lays it out: nothing padded, no padding bits.
fn unpadded(blobs: &[(u32, &[u8])]) -> (Vec<u8>, Vec<u64>) {
    let mut bytes = vec![0u8; 64];
    bytes[0..4].copy_from_slice(&(blobs.len() as u32).to_le_bytes());
    bytes[4] = 2;
    let mut offsets = Vec::new();
    for (code, data) in blobs {
        let offset = bytes.len() as u64;
        offsets.push(offset);
        bytes.extend(0xDEAD_BEEFu32.to_le_bytes());
        bytes.extend(code.to_le_bytes());
        bytes.extend((data.len() as u64).to_le_bytes());
        bytes.extend((offset + 64).to_le_bytes());
        bytes.extend([0; 40]);
        bytes.extend(*data);
    }
    (bytes, offsets)
}

#[test]
fn the_layout_is_that_of_storage_version_2() {
    let (bytes, offsets) = three_blobs();
    assert_eq!(offsets, [64, 192, 320]);
    assert_eq!(bytes.len(), 384 + 3);
    assert_eq!(bytes[..8], [3, 0, 0, 0, 2, 0, 0, 0]);
    assert!(bytes[8..64].iter().all(|&byte| byte == 0));
    // Descriptor of the uint4 blob: sentinel, code 11, 3 bytes at 384, 4 unused bits.
    let mut descriptor = vec![0xEF, 0xBE, 0xAD, 0xDE, 11, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0];
    descriptor.extend(384u64.to_le_bytes());
    descriptor.extend(4u64.to_le_bytes());
    descriptor.resize(64, 0);
    assert_eq!(bytes[320..384], descriptor);
    assert_eq!(bytes[384..], [0xf0, 0x37, 0x09]);
}

#[test]
fn blobs_come_back_by_offset_in_order_and_as_weights() {
    let folder = TempDir::new().unwrap();
    let (bytes, offsets) = three_blobs();
    let file = BlobFile::open(saved(&folder, &bytes)).unwrap();
    assert_eq!(file.count(), 3);
    let views: Vec<_> = file.iter().map(Result::unwrap).collect();
    assert_eq!(views.iter().map(|view| view.offset).collect::<Vec<_>>(), offsets);
    assert_eq!(views[2].padding_bits, 4);
    assert_eq!(file.blob_at(192).unwrap(), views[1]);

    let weight = file.weight(192, &TensorType::new(DType::Fp16, [3])).unwrap();
    let values: Vec<f32> = weight.to_fp16().unwrap().iter().map(|value| value.to_f32()).collect();
    assert_eq!(values, [1.0, 2.0, 3.0]);
    // Mapped, not copied.
    assert_eq!(weight.direct_bytes().unwrap().as_ptr(), views[1].bytes.as_ptr());
}

#[test]
fn files_without_padding_are_read() {
    let folder = TempDir::new().unwrap();
    let (bytes, offsets) = unpadded(&[(4, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]), (1, &[0, 0x3c]), (11, &[0xf0, 7])]);
    assert_eq!(offsets, [64, 140, 206]);
    let file = BlobFile::open(saved(&folder, &bytes)).unwrap();
    let found: Vec<_> = file.iter().map(|view| view.unwrap().offset).collect();
    assert_eq!(found, offsets);
    let weight = file.weight(140, &TensorType::new(DType::Fp16, [1])).unwrap();
    assert_eq!(weight.to_fp16().unwrap()[0].to_f32(), 1.0);
    assert!(file.weight(206, &TensorType::new(DType::UInt4, [3])).is_ok());
}

#[test]
fn a_file_without_blobs_is_its_header() {
    let folder = TempDir::new().unwrap();
    let (bytes, _) = written(&[]);
    assert_eq!(bytes.len(), 64);
    assert_eq!(BlobFile::open(saved(&folder, &bytes)).unwrap().iter().count(), 0);
}

#[test]
fn errors_name_file_offset_and_what_was_expected() {
    let folder = TempDir::new().unwrap();
    let (bytes, _) = three_blobs();
    let damaged = |at: usize, with: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = with;
        BlobFile::open(saved(&folder, &bytes)).and_then(|file| file.weight(64, &TensorType::new(DType::Int8, [3, 4])).map(drop))
    };
    let message = |result: Result<(), BlobError>| result.unwrap_err().to_string();
    assert!(matches!(damaged(4, 1), Err(BlobError::Version { found: 1, .. })));
    assert!(message(damaged(64, 0)).contains("byte 64: expected a blob descriptor (0xDEADBEEF), found 0xDEADBE00"));
    assert!(message(damaged(68, 99)).contains("element type code 99 is unknown"));
    assert!(message(damaged(68, 3)).contains("declares tensor<int8, [3, 4]> but the file holds uint8"));
    assert!(message(damaged(72, 11)).contains("declares tensor<int8, [3, 4]>, 12 bytes, but the blob holds 11"));
    assert!(matches!(damaged(79, 0x7f), Err(BlobError::Truncated { .. })), "a size that overflows");
    assert!(message(damaged(80, 0)).contains("not behind the descriptor"));
    // Another place of the file would give other numbers without a word.
    assert!(message(damaged(81, 1)).contains("not behind the descriptor"));
    assert!(damaged(88, 9).is_ok(), "older writers leave anything where whole bytes need no padding bits");
    let file = BlobFile::open(saved(&folder, &bytes)).unwrap();
    assert!(file.blob_at(u64::MAX).unwrap_err().to_string().contains("weights.bin, byte 18446744073709551615"));
    let mut many = bytes.clone();
    many[0] = 9;
    let file = BlobFile::open(saved(&folder, &many)).unwrap();
    assert!(matches!(file.iter().last().unwrap(), Err(BlobError::Count { expected: 9, found: 3, .. })));
}

/// Walks and probes a file, whatever it holds; whatever it yields must lie inside it.
fn probe(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
    let Ok(file) = BlobFile::open(path) else { return };
    for view in file.iter().flatten() {
        assert!(view.data_offset as usize + view.bytes.len() <= bytes.len());
    }
    for offset in [0, 64, 140, 192, 206, 320, u64::MAX - 3] {
        for ty in [TensorType::new(DType::Int8, [3, 4]), TensorType::new(DType::Fp16, [3]), TensorType::new(DType::UInt4, [5])] {
            let _ = file.weight(offset, &ty).map(|weight| weight.stream(&mut |_| Ok(())));
        }
    }
}

#[test]
fn files_cut_or_damaged_at_every_byte_are_answered() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("weights.bin");
    for bytes in [three_blobs().0, unpadded(&[(4, &[7; 12]), (1, &[0, 0x3c]), (11, &[0xf0, 7])]).0] {
        for end in 0..bytes.len() {
            probe(&path, &bytes[..end]);
        }
        for at in 0..bytes.len() {
            for with in [1, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = with;
                probe(&path, &damaged);
            }
        }
    }
}

#[test]
fn the_fuzz_corpus_passes() {
    let folder = TempDir::new().unwrap();
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testing/fuzz/corpus/read_blob");
    let seeds: Vec<_> = std::fs::read_dir(corpus).unwrap().collect();
    assert!(seeds.len() >= 4, "the seed corpus is gone");
    for seed in seeds {
        probe(&folder.path().join("weights.bin"), &std::fs::read(seed.unwrap().path()).unwrap());
    }
}

#[test]
fn a_file_gets_its_name_only_when_it_is_whole() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("weights.bin");
    let listing = || std::fs::read_dir(folder.path()).unwrap().count();
    let ty = TensorType::new(DType::Fp16, [2]);

    let mut writer = BlobFileWriter::create(&path).unwrap();
    writer.blobs().unwrap().add_bytes(&ty, &[1, 2, 3, 4]).unwrap();
    assert!(!path.exists());
    drop(writer);
    assert_eq!(listing(), 0);

    let mut writer = BlobFileWriter::create(&path).unwrap();
    let failing = Weight::computed([2], Arc::new(|_| Err(aneforge_mil::WeightError::Other("no data".into()))));
    writer.blobs().unwrap().add_constant("embedding", &failing).unwrap();
    let message = writer.finish().unwrap_err().to_string();
    assert!(message.contains("\"embedding\"") && message.contains("no data"), "{message}");
    assert_eq!(listing(), 0);

    let mut writer = BlobFileWriter::create(&path).unwrap();
    let offset = writer.blobs().unwrap().add_bytes(&ty, &[1, 2, 3, 4]).unwrap();
    assert_eq!(writer.finish().unwrap(), 132);
    assert_eq!(listing(), 1);
    assert_eq!(BlobFile::open(&path).unwrap().blob_at(offset).unwrap().bytes, [1, 2, 3, 4]);
}

#[test]
fn an_element_type_without_a_code_is_refused_and_costs_nothing() {
    let mut writer = BlobWriter::new(Cursor::new(Vec::new())).unwrap();
    for dtype in [DType::Bool, DType::String, DType::Int64, DType::Fp64] {
        let refused = writer.add_bytes(&TensorType::new(dtype, [1]), &[0; 8]);
        assert!(matches!(refused, Err(BlobError::Unstorable { .. })));
    }
    assert_eq!(writer.finish().unwrap().into_inner().len(), 64);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(blobs in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..8)) {
        let folder = TempDir::new().unwrap();
        let typed: Vec<_> = blobs.iter().map(|bytes| (DType::UInt8, vec![bytes.len()], bytes.clone())).collect();
        let (bytes, offsets) = written(&typed);
        let file = BlobFile::open(saved(&folder, &bytes)).unwrap();
        for ((view, blob), offset) in file.iter().zip(&blobs).zip(&offsets) {
            let view = view.unwrap();
            prop_assert_eq!(view.bytes, &blob[..]);
            prop_assert_eq!((view.offset, view.offset % 64, view.data_offset % 64), (*offset, 0, 0));
        }
        prop_assert_eq!(file.iter().count(), blobs.len());
    }
}
