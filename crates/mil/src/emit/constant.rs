//! Constants as literals of the text or as blobs of the weight file.

use super::{EmitError, written_type};
use crate::text::number::round_to;
use crate::{BlobWriter, Constant, DType, Literal, LiteralValue, TensorType};
use std::collections::HashMap;
use std::io::{Seek, Write};

/// What tells written weights apart: identity of the data, element type, number of elements.
pub(super) type WrittenKey = ((usize, usize, DType), DType, usize);

/// Largest tensor that is written into the text because the weight file has no code for its element type.
const UNSTORABLE_LIMIT: usize = 1 << 20;

/// The constant as a literal; `None` where it belongs into the weight file.
pub(super) fn literal(name: &str, ty: &TensorType, constant: &Constant, limit: usize) -> Result<Option<Literal>, EmitError> {
    let fault = |problem: String| EmitError::Constant { name: name.to_string(), ty: ty.to_string(), problem };
    let count = ty.checked_count().ok_or_else(|| fault("the shape has too many elements".to_string()))?;
    let storable = !matches!(ty.dtype, DType::Bool | DType::Fp64 | DType::Int64 | DType::UInt64 | DType::String);
    let inline = match constant {
        Constant::Text(text) => {
            return Ok(Some(Literal { ty: written_type(ty), value: LiteralValue::Text(text.clone()) }));
        }
        Constant::Values(values) if values.len() != count => {
            return Err(fault(format!("it holds {} elements", values.len())));
        }
        Constant::Weight(weight) if weight.ty().dtype != ty.dtype || weight.ty().checked_count() != Some(count) => {
            return Err(fault(format!("its weight is {}", weight.ty())));
        }
        Constant::Values(_) => !storable || count <= limit,
        Constant::Weight(_) => !storable || ty.shape.is_empty() || count == 0,
    };
    if !inline {
        return Ok(None);
    }
    if count > UNSTORABLE_LIMIT {
        return Err(fault(format!("a weight file cannot hold {} elements and there are too many for the text", ty.dtype)));
    }
    let array = constant.to_array(ty).ok_or_else(|| fault("its weight cannot be read".to_string()))?;
    let mut elements = array.data.iter().map(|&value| element(value, ty.dtype));
    let value = match ty.shape.is_empty() {
        true => elements.next().ok_or_else(|| fault("it holds no element".to_string()))?,
        false => LiteralValue::Elements(elements.collect()),
    };
    Ok(Some(Literal { ty: written_type(ty), value }))
}

/// Writes the constant to the weight file, if that was not done before, and gives its offset.
pub(super) fn store<W: Write + Seek>(
    name: &str,
    ty: &TensorType,
    constant: &Constant,
    blob: &mut BlobWriter<W>,
    written: &mut HashMap<WrittenKey, u64>,
) -> Result<u64, EmitError> {
    let fail = |source| EmitError::Blob { name: name.to_string(), source };
    match constant {
        Constant::Weight(weight) => {
            let key = (weight.identity(), ty.dtype, ty.count());
            if let Some(&offset) = written.get(&key) {
                return Ok(offset);
            }
            let offset = blob.add_constant(name, weight).map_err(fail)?;
            written.insert(key, offset);
            Ok(offset)
        }
        Constant::Values(values) => blob.add_bytes(ty, &pack(ty.dtype, values)).map_err(fail),
        Constant::Text(_) => Err(EmitError::Constant {
            name: name.to_string(),
            ty: ty.to_string(),
            problem: "a weight file cannot hold text".to_string(),
        }),
    }
}

fn element(value: f64, dtype: DType) -> LiteralValue {
    match dtype {
        DType::Bool => LiteralValue::Bool(value != 0.0),
        _ if dtype.is_float() => LiteralValue::Float(round_to(value, dtype)),
        _ => LiteralValue::Int(value as i128),
    }
}

/// Packed little-endian elements; the inverse of [`crate::unpack`].
pub fn pack(dtype: DType, values: &[f64]) -> Vec<u8> {
    let width = dtype.bits();
    if width < 8 {
        let mut bytes = vec![0u8; dtype.packed_bytes(values.len())];
        for (index, &value) in values.iter().enumerate() {
            for bit in (0..width).filter(|bit| value as i64 >> bit & 1 == 1) {
                let position = index * width + bit;
                bytes[position / 8] |= 1 << (position % 8);
            }
        }
        return bytes;
    }
    let mut bytes = Vec::with_capacity(width / 8 * values.len());
    for &value in values {
        match dtype {
            DType::Fp16 => bytes.extend(crate::round_to_fp16(value).to_le_bytes()),
            DType::Bf16 => bytes.extend(half::bf16::from_f64(value).to_le_bytes()),
            DType::Fp32 => bytes.extend((value as f32).to_le_bytes()),
            DType::Fp64 => bytes.extend(value.to_le_bytes()),
            _ => bytes.extend(&(value as i64).to_le_bytes()[..width / 8]),
        }
    }
    bytes
}
