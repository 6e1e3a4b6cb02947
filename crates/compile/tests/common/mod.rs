//! Bodies from MIL text, and inputs for them.
#![allow(clippy::expect_used)] // helpers of tests
#![allow(dead_code)] // each test binary uses some of them

pub mod rewriting;

use aneforge_mil::op::builtin;
use aneforge_mil::{Array, BlobFileWriter, BlobFolder, Body, DType, TensorType, parse, resolve};
use half::f16;
use std::path::Path;

/// A folder with a weight file of 1024 fp16 numbers at offset 64, which the examples name.
pub fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let values: Vec<u8> = (0..1024u32).flat_map(|i| f16::from_f32(i as f32 / 512.0 - 1.0).to_le_bytes()).collect();
    let mut file = BlobFileWriter::create(folder.path().join("weights.bin")).expect("a file");
    let offset = file.blobs().expect("a writer").add_bytes(&TensorType::new(DType::Fp16, [1024]), &values).expect("a blob");
    assert_eq!(offset, 64);
    file.finish().expect("written");
    folder
}

/// The main function of a program around `function`, resolved.
pub fn body(function: &str, folder: &tempfile::TempDir) -> Body {
    let text = format!("program(1.3)\n[buildInfo = dict<string, string>({{{{\"k\", \"v\"}}}})]\n{{\n{function}\n}}\n");
    resolved(&text, folder.path())
}

/// A whole program's main function, resolved.
pub fn resolved(text: &str, folder: &Path) -> Body {
    let program = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    resolve(&program, "main", builtin(), &BlobFolder::new(folder)).unwrap_or_else(|error| panic!("{}", error.render(text)))
}

/// Several sets of inputs: ordinary numbers, signed zeros, large ones, subnormals.
pub fn inputs(body: &Body) -> Vec<Vec<Array>> {
    let patterns: [fn(usize) -> f64; 4] = [
        |i| f64::from(f16::from_f64((i as f64 * 0.37).sin() * 4.0 + 4.5)),
        |i| if i.is_multiple_of(2) { -0.0 } else { 0.0 },
        |i| if i.is_multiple_of(2) { 1500.0 } else { -700.25 },
        |i| f64::from(f16::from_bits(1 + i as u16 % 900)),
    ];
    let array = |pattern: fn(usize) -> f64, ty: &TensorType| Array { ty: ty.clone(), data: (0..ty.count()).map(pattern).collect() };
    patterns.iter().map(|&pattern| body.inputs.iter().map(|&id| array(pattern, body.ty(id))).collect()).collect()
}
