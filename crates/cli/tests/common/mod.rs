//! What the command's tests share: calling it, and a small bundle for it to run.
#![allow(clippy::unwrap_used, dead_code)] // shared by several test programs

use aneforge::io::NpyArray;
use aneforge::{CompileOptions, DType, Graph, HostArray, TensorType, compile};
use std::path::Path;
use std::process::{Command, Output};

/// The command with a cache of its own.
pub fn command(cache: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aneforge"));
    command.args(arguments).env("ANEFORGE_CACHE_DIR", cache.join("cache"));
    command
}

/// Runs it.
pub fn aneforge(cache: &Path, arguments: &[&str]) -> Output {
    command(cache, arguments).output().unwrap()
}

/// Runs it, expects an exit code, gives standard output and standard error.
pub fn expect(code: i32, cache: &Path, arguments: &[&str]) -> (String, String) {
    let output = aneforge(cache, arguments);
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{out}\n{err}");
    assert!(!err.contains("panicked"), "{err}");
    (out, err)
}

/// `y = relu(x W^T)` with x fp16 [2, 8] and W [4, 8] in the weight file.
pub fn write_bundle(folder: &Path) {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[2, 8]);
    let values: Vec<f32> = (0..32).map(|index| index as f32 / 16.0 - 1.0).collect();
    let weight = graph.constant(&HostArray::from_f32([4, 8], &values).unwrap());
    let y = x.linear(&weight, None).relu();
    compile(&[("y", &y)], &CompileOptions::default()).unwrap().write(folder).unwrap();
}

/// Writes an fp16 array of ones.
pub fn write_ones(path: &Path, shape: &[usize]) {
    let ty = TensorType::new(DType::Fp16, shape);
    let bytes = [0x00, 0x3c].repeat(ty.count());
    NpyArray { ty, bytes }.write(path).unwrap();
}

/// A path as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Names in a folder.
pub fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
