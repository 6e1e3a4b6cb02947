//! Elements as bytes: what ports and buffers hold, little endian, one element per whole number of bytes.

use aneforge_mil::{Array, DType, TensorType, round_to_fp16, unpack};
use half::bf16;

/// Bytes that a tensor takes in a buffer.
pub(crate) fn byte_length(ty: &TensorType) -> Option<usize> {
    ty.checked_count()?.checked_mul(ty.dtype.bits()).map(|bits| bits.div_ceil(8))
}

/// Reads a buffer into f64 values.
pub(crate) fn read(ty: &TensorType, bytes: &[u8]) -> Option<Array> {
    Some(Array { ty: ty.clone(), data: unpack(ty.dtype, bytes, ty.count())? })
}

/// Writes f64 values into a buffer of element type `dtype`: floats to nearest with ties to even, integers truncated and
/// saturated, bools as 0 and 1. NaN becomes 0 in integer types.
pub(crate) fn write(dtype: DType, values: &[f64], bytes: &mut [u8]) -> Option<()> {
    let width = dtype.bits() / 8;
    if width == 0 || bytes.len() != values.len() * width {
        return None;
    }
    let slots = bytes.chunks_exact_mut(width).zip(values);
    match dtype {
        DType::Fp16 => slots.for_each(|(slot, v)| slot.copy_from_slice(&round_to_fp16(*v).to_le_bytes())),
        DType::Bf16 => slots.for_each(|(slot, v)| slot.copy_from_slice(&bf16::from_f64(*v).to_le_bytes())),
        DType::Fp32 => slots.for_each(|(slot, v)| slot.copy_from_slice(&(*v as f32).to_le_bytes())),
        DType::Fp64 => slots.for_each(|(slot, v)| slot.copy_from_slice(&v.to_le_bytes())),
        DType::Bool => slots.for_each(|(slot, v)| slot[0] = u8::from(*v != 0.0)),
        DType::Int8 => slots.for_each(|(slot, v)| slot[0] = (*v as i8) as u8),
        DType::UInt8 => slots.for_each(|(slot, v)| slot[0] = *v as u8),
        DType::Int16 => slots.for_each(|(slot, v)| slot.copy_from_slice(&(*v as i16).to_le_bytes())),
        DType::UInt16 => slots.for_each(|(slot, v)| slot.copy_from_slice(&(*v as u16).to_le_bytes())),
        DType::Int32 => slots.for_each(|(slot, v)| slot.copy_from_slice(&(*v as i32).to_le_bytes())),
        DType::UInt32 => slots.for_each(|(slot, v)| slot.copy_from_slice(&(*v as u32).to_le_bytes())),
        DType::Int64 => slots.for_each(|(slot, v)| slot.copy_from_slice(&(*v as i64).to_le_bytes())),
        DType::UInt64 => slots.for_each(|(slot, v)| slot.copy_from_slice(&(*v as u64).to_le_bytes())),
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_rounded_to_the_element_type() {
        let values = [0.0, 1.0, -2.5, 2049.0, 70000.0, f64::NAN];
        let mut bytes = [0u8; 12];
        write(DType::Fp16, &values, &mut bytes).unwrap();
        let back = read(&TensorType::new(DType::Fp16, [6]), &bytes).unwrap().data;
        assert_eq!(back[..5], [0.0, 1.0, -2.5, 2048.0, f64::INFINITY]);
        assert!(back[5].is_nan());
        let mut bytes = [0u8; 24];
        write(DType::Int32, &[-1.9, 1.9, 1e20, -1e20, f64::NAN, 7.0], &mut bytes).unwrap();
        let back = read(&TensorType::new(DType::Int32, [6]), &bytes).unwrap().data;
        assert_eq!(back, [-1.0, 1.0, f64::from(i32::MAX), f64::from(i32::MIN), 0.0, 7.0]);
    }

    #[test]
    fn a_buffer_of_the_wrong_length_is_refused() {
        assert!(write(DType::Fp16, &[1.0], &mut [0u8; 3]).is_none());
        assert!(read(&TensorType::new(DType::Fp32, [2]), &[0u8; 7]).is_none());
    }
}
