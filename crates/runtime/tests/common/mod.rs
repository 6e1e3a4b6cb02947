//! What the tests of devices share.
#![allow(dead_code, clippy::unwrap_used)]

pub mod engine;

use aneforge_core::HostArray;
use aneforge_mil::{Array, BlobFileWriter, Body, DType, EmitOptions, NoBlobs, TensorType, emit, print};
use aneforge_runtime::{Device, Program};
use std::sync::Arc;

/// Writes a body as a bundle and reads it back: what devices execute is what was written.
pub fn through_text(body: Body, name: &str) -> Arc<Program> {
    let folder = tempfile::tempdir().unwrap();
    let mut weights = BlobFileWriter::create(folder.path().join("weights.bin")).unwrap();
    let program = emit(&body, &EmitOptions::default(), weights.blobs().unwrap()).unwrap_or_else(|error| panic!("{name}: {error}"));
    weights.finish().unwrap();
    std::fs::write(folder.path().join("model.mil"), print(&program)).unwrap();
    let read = Program::open(folder.path()).unwrap_or_else(|error| panic!("{name}: {error}"));
    Arc::new(Program::from_body(name, read.body().clone()))
}

/// A program from the statements of its function.
pub fn program(inputs: &str, statements: &str, outputs: &str) -> Arc<Program> {
    let text = format!(
        "program(1.3)\n[buildInfo = dict<string, string>({{}})]\n{{\n    func main<ios18>({inputs}) {{\n{statements}\n    }} -> ({outputs});\n}}\n"
    );
    Arc::new(Program::from_text("test", &text, &NoBlobs).unwrap_or_else(|error| panic!("{error}\n{text}")))
}

/// Seeded inputs of a program: fp16 between `range`, integers small, bools by a coin.
pub fn inputs(program: &Program, seed: u64, range: (f64, f64)) -> Vec<HostArray> {
    let body = program.body();
    let draw = |(index, ty): (usize, &TensorType)| {
        let range = if ty.dtype.is_float() { range } else { (0.0, 3.0) };
        HostArray::from_array(&Array::seeded(ty.clone(), seed + index as u64, range)).unwrap()
    };
    body.inputs.iter().map(|&id| body.ty(id)).enumerate().map(draw).collect()
}

/// Loads and runs once.
pub fn run(device: &dyn Device, program: &Arc<Program>, inputs: &[HostArray]) -> Vec<HostArray> {
    let executable = device.load(program).unwrap_or_else(|error| panic!("{}: {error}", device.name()));
    executable.run(&inputs.iter().collect::<Vec<_>>()).unwrap_or_else(|error| panic!("{}: {error}", device.name()))
}

/// Relative L2 distance.
pub fn distance(got: &HostArray, wanted: &HostArray) -> f64 {
    let (got, wanted) = (got.to_array().data, wanted.to_array().data);
    let square = |sum: f64, value: f64| sum + value * value;
    let error = got.iter().zip(&wanted).map(|(a, b)| a - b).fold(0.0, square).sqrt();
    let scale = wanted.iter().copied().fold(0.0, square).sqrt();
    if scale == 0.0 { error } else { error / scale }
}

/// A literal of an fp16 tensor with seeded values, as MIL text.
pub fn literal(shape: &[usize], seed: u64, range: (f64, f64)) -> String {
    let array = Array::seeded(TensorType::new(DType::Fp16, shape), seed, range);
    let values: Vec<String> = array.data.iter().map(|value| format!("{value:?}")).collect();
    format!("tensor<fp16, {shape:?}>([{}])", values.join(", "))
}
