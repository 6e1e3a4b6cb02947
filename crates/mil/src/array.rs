//! Host arrays in f64: the values that an operator's meaning is defined on.

use crate::{DType, TensorType};

/// A tensor of any numeric element type with its values held in f64, row major.
///
/// Every element type of MIL up to 32 bits fits f64 exactly; bools are 0 and 1. Values are not rounded to `ty.dtype` unless
/// [`Array::rounded`] was called: `reference` decides when that happens.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Element type and shape.
    pub ty: TensorType,
    /// Values, `ty.count()` of them.
    pub data: Vec<f64>,
}

impl Array {
    /// An array from its parts; `data` must hold `shape`'s product of elements.
    pub fn new(dtype: DType, shape: impl Into<Vec<usize>>, data: Vec<f64>) -> Self {
        let ty = TensorType::new(dtype, shape);
        debug_assert_eq!(ty.count(), data.len(), "array data does not fill {ty}");
        Self { ty, data }
    }

    /// Extent of each axis.
    pub fn shape(&self) -> &[usize] {
        &self.ty.shape
    }

    /// The same values rounded to the element type: floats to nearest, ties to even.
    pub fn rounded(mut self) -> Self {
        match self.ty.dtype {
            DType::Fp16 => self.data.iter_mut().for_each(|v| *v = half::f16::from_f64(*v).to_f64()),
            DType::Bf16 => self.data.iter_mut().for_each(|v| *v = half::bf16::from_f64(*v).to_f64()),
            DType::Fp32 => self.data.iter_mut().for_each(|v| *v = f64::from(*v as f32)),
            _ => {}
        }
        self
    }

    /// Row-major strides in elements.
    pub fn strides(&self) -> Vec<usize> {
        strides(&self.ty.shape)
    }
}

/// Row-major strides in elements of a dense tensor.
pub fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}
