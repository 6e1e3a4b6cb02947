//! The table of word embeddings, looked up on the host.

use crate::{IoError, SafeTensors};
use aneforge_mil::DType;
use half::f16;
use half::slice::HalfFloatSliceExt;

/// Rows of fp32, fp16 or bf16 in a mapped file, given out as fp16.
#[derive(Clone, Debug)]
pub(crate) struct WordTable {
    file: SafeTensors,
    name: String,
    dtype: DType,
    width: usize,
}

impl WordTable {
    /// The table `name`, `[rows, width]`.
    ///
    /// # Errors
    /// [`IoError`] where it is missing, of another shape or not of floats.
    pub(crate) fn new(file: &SafeTensors, name: String, rows: usize, width: usize) -> Result<Self, IoError> {
        let info = file.expect(&name, &[rows, width])?;
        file.check_float(&name, info)?;
        Ok(Self { file: file.clone(), dtype: info.ty.dtype, name, width })
    }

    /// Appends row `row` as little-endian fp16, rounded to nearest, ties to even.
    pub(crate) fn append(&self, row: usize, words: &mut Vec<u8>) {
        let length = self.width * self.dtype.bits() / 8;
        let table = self.file.bytes(&self.name).unwrap_or_default();
        let bytes = table.get(row * length..(row + 1) * length).unwrap_or_default();
        if self.dtype == DType::Fp16 {
            words.extend_from_slice(bytes);
            return;
        }
        let wide: Vec<f32> = match self.dtype {
            DType::Fp32 => bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
            _ => bytes.chunks_exact(2).map(|b| half::bf16::from_le_bytes([b[0], b[1]]).to_f32()).collect(),
        };
        let mut narrow = vec![f16::ZERO; wide.len()];
        narrow.convert_from_f32_slice(&wide);
        words.extend(narrow.iter().flat_map(|value| value.to_le_bytes()));
    }
}
