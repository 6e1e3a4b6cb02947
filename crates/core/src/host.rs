//! Arrays in host memory: what people hand to devices and get back.

use aneforge_mil::{Array, DType, DisplayShape, TensorType, round_to_fp16, unpack};
use half::f16;

/// A dense row-major tensor as packed little-endian bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct HostArray {
    ty: TensorType,
    bytes: Vec<u8>,
}

/// Why a host array cannot be made or read as asked.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum HostError {
    /// The values do not fill the shape.
    #[error("shape {shape} of {dtype} needs {needed} elements, {given} were given")]
    Count {
        /// The shape.
        shape: String,
        /// Element type.
        dtype: DType,
        /// Elements the shape needs.
        needed: usize,
        /// Elements given.
        given: usize,
    },
    /// The elements have another type than asked for.
    #[error("array holds {held}, not {wanted}; convert it with to_f32 or cast")]
    Type {
        /// What it holds.
        held: DType,
        /// What was asked for.
        wanted: DType,
    },
    /// No conversion to that element type.
    #[error("host arrays of {dtype} are not supported; use fp16, fp32, int8, uint8, int32 or bool")]
    Unsupported {
        /// The type.
        dtype: DType,
    },
}

impl HostArray {
    /// An array from its packed little-endian bytes.
    ///
    /// # Errors
    /// [`HostError::Count`] where `bytes` does not fill the shape.
    pub fn from_bytes(dtype: DType, shape: impl Into<Vec<usize>>, bytes: Vec<u8>) -> Result<Self, HostError> {
        let ty = TensorType::new(dtype, shape);
        let needed = ty.checked_count().and_then(|count| count.checked_mul(dtype.bits())).map(|bits| bits.div_ceil(8));
        if dtype.bits() == 0 || needed != Some(bytes.len()) {
            return Err(count_error(&ty, bytes.len() * 8 / dtype.bits().max(1)));
        }
        Ok(Self { ty, bytes })
    }

    /// An fp16 array from f32 values, rounded to nearest, ties to even.
    ///
    /// # Errors
    /// [`HostError::Count`].
    pub fn fp16_from_f32(shape: impl Into<Vec<usize>>, values: &[f32]) -> Result<Self, HostError> {
        use half::slice::HalfFloatSliceExt;
        let mut narrow = vec![f16::ZERO; values.len()];
        narrow.convert_from_f32_slice(values);
        Self::from_fp16(shape, &narrow)
    }

    /// An fp16 array.
    ///
    /// # Errors
    /// [`HostError::Count`].
    pub fn from_fp16(shape: impl Into<Vec<usize>>, values: &[f16]) -> Result<Self, HostError> {
        Self::packed(TensorType::new(DType::Fp16, shape), values.len(), values.iter().flat_map(|value| value.to_le_bytes()))
    }

    /// An fp32 array.
    ///
    /// # Errors
    /// [`HostError::Count`].
    pub fn from_f32(shape: impl Into<Vec<usize>>, values: &[f32]) -> Result<Self, HostError> {
        Self::packed(TensorType::new(DType::Fp32, shape), values.len(), values.iter().flat_map(|value| value.to_le_bytes()))
    }

    /// An int32 array.
    ///
    /// # Errors
    /// [`HostError::Count`].
    pub fn from_i32(shape: impl Into<Vec<usize>>, values: &[i32]) -> Result<Self, HostError> {
        Self::packed(TensorType::new(DType::Int32, shape), values.len(), values.iter().flat_map(|value| value.to_le_bytes()))
    }

    /// An array of zeros.
    pub fn zeros(dtype: DType, shape: impl Into<Vec<usize>>) -> Self {
        let ty = TensorType::new(dtype, shape);
        let bytes = vec![0; dtype.packed_bytes(ty.count())];
        Self { ty, bytes }
    }

    /// An array of `dtype` from f64 values: floats rounded to nearest, ties to even, integers rounded and clamped.
    ///
    /// # Errors
    /// [`HostError::Count`], [`HostError::Unsupported`].
    pub fn from_f64(dtype: DType, shape: impl Into<Vec<usize>>, values: &[f64]) -> Result<Self, HostError> {
        let ty = TensorType::new(dtype, shape);
        let width = dtype.bits() / 8;
        let mut bytes = Vec::with_capacity(values.len() * width);
        for &value in values {
            match dtype {
                DType::Bool => bytes.push(u8::from(value != 0.0)),
                DType::Fp16 => bytes.extend(round_to_fp16(value).to_le_bytes()),
                DType::Bf16 => bytes.extend(half::bf16::from_f64(value).to_le_bytes()),
                DType::Fp32 => bytes.extend((value as f32).to_le_bytes()),
                DType::Int8 => bytes.extend((value.round() as i8).to_le_bytes()),
                DType::UInt8 => bytes.push(value.round() as u8),
                DType::Int16 => bytes.extend((value.round() as i16).to_le_bytes()),
                DType::UInt16 => bytes.extend((value.round() as u16).to_le_bytes()),
                DType::Int32 => bytes.extend((value.round() as i32).to_le_bytes()),
                DType::UInt32 => bytes.extend((value.round() as u32).to_le_bytes()),
                _ => return Err(HostError::Unsupported { dtype }),
            }
        }
        if ty.checked_count() != Some(values.len()) {
            return Err(count_error(&ty, values.len()));
        }
        Ok(Self { ty, bytes })
    }

    /// An array from the values of an [`Array`], rounded to its element type.
    ///
    /// # Errors
    /// [`HostError::Unsupported`].
    pub fn from_array(array: &Array) -> Result<Self, HostError> {
        Self::from_f64(array.ty.dtype, array.ty.shape.clone(), &array.data)
    }

    /// Element type and shape.
    pub fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.ty.dtype
    }

    /// Extent of each axis.
    pub fn shape(&self) -> &[usize] {
        &self.ty.shape
    }

    /// Packed little-endian bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Packed little-endian bytes, to be overwritten.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// The bytes themselves.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Elements as fp16 without a copy where the memory allows it, else copied.
    ///
    /// # Errors
    /// [`HostError::Type`] where the array does not hold fp16.
    pub fn fp16(&self) -> Result<std::borrow::Cow<'_, [f16]>, HostError> {
        if self.ty.dtype != DType::Fp16 {
            return Err(HostError::Type { held: self.ty.dtype, wanted: DType::Fp16 });
        }
        Ok(match bytemuck::try_cast_slice(&self.bytes) {
            Ok(view) if cfg!(target_endian = "little") => std::borrow::Cow::Borrowed(view),
            _ => self.bytes.chunks_exact(2).map(|pair| f16::from_le_bytes([pair[0], pair[1]])).collect(),
        })
    }

    /// All elements converted to f32.
    pub fn to_f32(&self) -> Vec<f32> {
        use half::slice::HalfFloatSliceExt;
        match self.fp16() {
            Ok(view) => {
                let mut wide = vec![0.0; view.len()];
                view.convert_to_f32_slice(&mut wide);
                wide
            }
            Err(_) => self.to_array().data.into_iter().map(|value| value as f32).collect(),
        }
    }

    /// All elements in f64.
    pub fn to_array(&self) -> Array {
        // The constructors keep `bytes` filling `ty`, and no constructor makes strings, so unpacking cannot fail.
        let data = unpack(self.ty.dtype, &self.bytes, self.ty.count()).unwrap_or_default();
        Array { ty: self.ty.clone(), data }
    }

    fn packed(ty: TensorType, given: usize, bytes: impl Iterator<Item = u8>) -> Result<Self, HostError> {
        if ty.checked_count() != Some(given) {
            return Err(count_error(&ty, given));
        }
        Ok(Self { ty, bytes: bytes.collect() })
    }
}

fn count_error(ty: &TensorType, given: usize) -> HostError {
    HostError::Count {
        shape: DisplayShape(&ty.shape).to_string(),
        dtype: ty.dtype,
        needed: ty.checked_count().unwrap_or(usize::MAX),
        given,
    }
}
