//! Weights that several constexpr operators expand one after the other, on every device.
#![allow(clippy::unwrap_used)]

mod common;

use aneforge_core::HostArray;
use aneforge_runtime::{Program, open};
use std::sync::Arc;

const DEVICES: &[&str] = &["reference", "cpu", "emulator:m1", "emulator:m4"];

/// `x [1, 2]` times a weight `w [2, 4]` that the statements make, through text and weight file as well.
fn products(statements: &str) -> Vec<Vec<f32>> {
    let statements = format!(
        "{statements}\ntensor<fp16, [1, 4]> y = matmul(x = x, y = w, transpose_x = bool(false), transpose_y = bool(false));"
    );
    let program = common::program("tensor<fp16, [1, 2]> x", &statements, "y");
    let written: Arc<Program> = common::through_text(program.body().clone(), "compressed");
    let x = HostArray::fp16_from_f32([1, 2], &[1.0, 10.0]).unwrap();
    let run =
        |device: &str, program: &Arc<Program>| common::run(&*open(device).unwrap(), program, std::slice::from_ref(&x))[0].to_f32();
    DEVICES.iter().flat_map(|device| [run(device, &program), run(device, &written)]).collect()
}

#[test]
fn a_sparse_table_becomes_a_dense_weight() {
    let results = products(
        "tensor<uint1, [2, 4]> m, tensor<fp16, [4]> v = constexpr_lut_to_sparse(indices_mask = tensor<uint1, [2, 4]>([1, 0, 0, 1, 0, 1, 1, 0]), \
         indices_nonzero_data = tensor<uint2, [4]>([3, 0, 1, 2]), lut = tensor<fp16, [1, 1, 4, 1]>([1.0, 2.0, 3.0, 4.0]));
         tensor<fp16, [2, 4]> w = constexpr_sparse_to_dense(nonzero_data = v, mask = m);",
    );
    assert!(results.iter().all(|y| *y == [4.0, 20.0, 30.0, 1.0]), "{results:?}");
}

#[test]
fn sparse_quantised_blocks_become_a_dense_weight() {
    let results = products(
        "tensor<uint1, [2, 4]> m, tensor<fp16, [4]> v = constexpr_sparse_blockwise_shift_scale(data_mask = tensor<uint1, [2, 4]>([1, 0, 0, 1, 0, 1, 1, 0]), \
         nonzero_data = tensor<int8, [4]>([4, 6, -2, 8]), scale = tensor<fp16, [1, 2]>([0.5, 0.25]));
         tensor<fp16, [2, 4]> w = constexpr_sparse_to_dense(nonzero_data = v, mask = m);",
    );
    assert!(results.iter().all(|y| *y == [2.0, -10.0, 20.0, 1.5]), "{results:?}");
}
