//! What the tests against the fake share.
#![allow(dead_code, clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aneforge_sys::{Frameworks, Source};
use aneforge_testkit::fake;

/// The fake's frameworks.
pub fn frameworks() -> Arc<Frameworks> {
    Frameworks::open(&Source::Library(fake::library())).unwrap()
}

/// A program with one fp16 input `x` and one output `y`, both of 768 x 32: the smallest surface that every source accepts.
pub const RELU: &str = "program(1.3)
{
    func main<ios18>(tensor<fp16, [1, 768, 1, 32]> x) {
        tensor<fp16, [1, 768, 1, 32]> y = relu(x = x)[name = string(\"y\")];
    } -> (y);
}
";

/// Bytes of its input and its output.
pub const BYTES: usize = 768 * 32 * 2;

/// Writes the program to `folder/model.mil`.
pub fn write_program(folder: &Path, text: &str) -> PathBuf {
    std::fs::create_dir_all(folder).unwrap();
    let path = folder.join("model.mil");
    std::fs::write(&path, text).unwrap();
    path
}

/// 1, -1, 1, -1, ... in fp16.
pub fn alternating() -> Vec<u8> {
    (0..BYTES / 2).flat_map(|index| if index % 2 == 0 { 0x3c00u16 } else { 0xbc00 }.to_le_bytes()).collect()
}

/// What relu makes of it.
pub fn rectified() -> Vec<u8> {
    (0..BYTES / 2).flat_map(|index| if index % 2 == 0 { 0x3c00u16 } else { 0 }.to_le_bytes()).collect()
}

/// The bytes of a buffer.
pub fn bytes(buffer: &aneforge_sys::memory::Buffer) -> Vec<u8> {
    buffer.with(<[u8]>::to_vec).unwrap()
}
