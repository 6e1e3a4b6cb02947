//! The .npy reader and writer against bytes that numpy 2.3 wrote, and against damaged files.
#![cfg(feature = "npy")]
#![allow(clippy::unwrap_used)] // helper functions of tests

use aneforge_io::NpyArray;
use aneforge_mil::{DType, TensorType};

/// `numpy.save` of an array: the header as numpy pads it, then the elements.
fn numpy(dict: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00v\x00".to_vec();
    bytes.extend_from_slice(format!("{dict:<117}\n").as_bytes());
    bytes.extend_from_slice(data);
    bytes
}

fn samples() -> Vec<(Vec<u8>, NpyArray)> {
    let array = |dtype, shape: &[usize], bytes: &[u8]| NpyArray { ty: TensorType::new(dtype, shape), bytes: bytes.to_vec() };
    let integers = [0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0];
    let halves = [0x00, 0x3e, 0x00, 0xc0];
    let scalar = [0, 0, 0x20, 0x40];
    vec![
        (numpy("{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }", &integers), array(DType::Int32, &[3], &integers)),
        (numpy("{'descr': '<f2', 'fortran_order': False, 'shape': (1, 2), }", &halves), array(DType::Fp16, &[1, 2], &halves)),
        (numpy("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", &scalar), array(DType::Fp32, &[], &scalar)),
    ]
}

#[test]
fn bytes_equal_numpys_in_both_directions() {
    let folder = tempfile::tempdir().unwrap();
    for (bytes, array) in samples() {
        let path = folder.path().join("array.npy");
        array.write(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        assert_eq!(NpyArray::read(&path).unwrap(), array);
    }
}

#[test]
fn values_come_out_as_f32() {
    let values: Vec<_> = samples().iter().map(|(_, array)| array.to_f32()).collect();
    assert_eq!(values, [vec![0.0, 1.0, 2.0], vec![1.5, -2.0], vec![2.5]]);
}

#[test]
fn every_cut_and_every_unsupported_header_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("array.npy");
    let problem = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let error = NpyArray::read(&path).unwrap_err().to_string();
        assert!(error.contains("array.npy"), "{error}");
        error
    };
    for (bytes, _) in samples() {
        (0..bytes.len()).for_each(|length| drop(problem(&bytes[..length])));
    }
    let data = [0u8; 8];
    assert!(problem(&numpy("{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }", &data)).contains("column-major"));
    assert!(problem(&numpy("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", &data)).contains("\">f4\""));
    assert!(problem(&numpy("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", &data)).contains("holds 8 bytes"));
    assert!(problem(&numpy("{'descr': '<f4', 'fortran_order': False, 'shape': (x,), }", &data)).contains("tuple of sizes"));
    assert!(problem(&numpy("{'descr': '<f4', 'fortran_order': False}", &data)).contains("\"shape\""));
    assert!(problem(b"PK\x03\x04").contains("mark"));
}
