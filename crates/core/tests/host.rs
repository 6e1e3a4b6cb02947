//! Host arrays: conversions and what they refuse.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use aneforge_core::{DType, HostArray, HostError};
use half::f16;

#[test]
fn fp16_rounds_to_nearest_with_ties_to_even() {
    // 2049 lies half way between 2048 and 2050, 2051 between 2050 and 2052; 65519 is the last number that stays finite.
    let array = HostArray::fp16_from_f32([5], &[2049.0, 2051.0, 65519.0, 65520.0, -1e-8]).unwrap();
    assert_eq!(array.to_f32(), [2048.0, 2052.0, 65504.0, f32::INFINITY, 0.0]);
    assert_eq!(array.fp16().unwrap()[4].to_bits(), 0x8000);
}

#[test]
fn every_element_type_comes_back() {
    for dtype in
        [DType::Bool, DType::Fp16, DType::Bf16, DType::Fp32, DType::Int8, DType::UInt8, DType::Int16, DType::UInt16, DType::Int32]
    {
        let values = [0.0, 1.0, 1.0, 0.0];
        let array = HostArray::from_f64(dtype, [2, 2], &values).unwrap();
        assert_eq!(array.to_array().data, values, "{dtype}");
        let again = HostArray::from_bytes(dtype, [2, 2], array.bytes().to_vec()).unwrap();
        assert_eq!(again, array);
    }
}

#[test]
fn integers_are_rounded_and_clamped() {
    let array = HostArray::from_f64(DType::Int8, [4], &[1.5, -300.0, 300.0, f64::NAN]).unwrap();
    assert_eq!(array.to_array().data, [2.0, -128.0, 127.0, 0.0]);
}

#[test]
fn data_that_do_not_fill_the_shape_are_refused() {
    let message = HostArray::from_f32([2, 3], &[0.0; 5]).unwrap_err().to_string();
    assert!(message.contains("[2, 3]") && message.contains("needs 6") && message.contains("5 were given"), "{message}");
    assert!(HostArray::from_bytes(DType::Fp16, [3], vec![0; 5]).is_err());
    assert!(HostArray::from_bytes(DType::Fp16, [usize::MAX, 2], vec![0; 4]).is_err());
    assert!(HostArray::from_fp16([2], &[f16::ONE]).is_err());
}

#[test]
fn a_view_of_another_type_is_refused() {
    let array = HostArray::from_i32([2], &[7, -7]).unwrap();
    assert_eq!(array.fp16().unwrap_err(), HostError::Type { held: DType::Int32, wanted: DType::Fp16 });
    assert_eq!(array.to_f32(), [7.0, -7.0]);
}
