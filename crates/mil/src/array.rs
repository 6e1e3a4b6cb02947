//! Host arrays in f64: the values that an operator's meaning is defined on.

use crate::text::number::{int_range, round_to};
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

    /// An array drawn from a seed: floats evenly between the ends of `range`, integers the same and then rounded and kept within
    /// their type, bools by a coin; rounded to the element type. The same seed gives the same values on every machine.
    pub fn seeded(ty: TensorType, seed: u64, (low, high): (f64, f64)) -> Self {
        let mut state = seed;
        let draw = |_| {
            let unit = (split_mix(&mut state) >> 11) as f64 / (1u64 << 53) as f64;
            let value = low + (high - low) * unit;
            match ty.dtype {
                DType::Bool => f64::from(u8::from(unit < 0.5)),
                dtype if dtype.is_integer() => into_integer(value.round(), dtype),
                _ => value,
            }
        };
        let data = (0..ty.count()).map(draw).collect();
        Self { ty, data }.rounded()
    }

    /// Extent of each axis.
    pub fn shape(&self) -> &[usize] {
        &self.ty.shape
    }

    /// The same values rounded to the element type: floats to nearest, ties to even; others stay as they are.
    pub fn rounded(mut self) -> Self {
        let dtype = self.ty.dtype;
        if dtype.is_float() {
            self.data.iter_mut().for_each(|value| *value = round_to(*value, dtype));
        }
        self
    }

    /// Row-major strides in elements.
    pub fn strides(&self) -> Vec<usize> {
        strides(&self.ty.shape)
    }

    /// The same values under another shape of as many elements.
    pub fn reshaped(mut self, shape: impl Into<Vec<usize>>) -> Self {
        self.ty.shape = shape.into();
        debug_assert_eq!(self.ty.count(), self.data.len(), "reshape to {} changes the number of elements", self.ty);
        self
    }

    /// A dense copy of a strided view: element `i` of the result is at `offset + sum(i[axis] * strides[axis])`.
    ///
    /// Broadcasting (stride 0), transposing, slicing and reversing (negative strides) are all this. The view must lie inside the
    /// array.
    pub fn strided(&self, offset: usize, shape: &[usize], strides: &[isize]) -> Self {
        let mut data = Vec::with_capacity(shape.iter().product());
        copy_strided(&self.data, offset as isize, shape, strides, &mut data);
        Self { ty: TensorType::new(self.ty.dtype, shape), data }
    }

    /// Axes in another order: axis `i` of the result is axis `permutation[i]` of `self`.
    pub fn transposed(&self, permutation: &[usize]) -> Self {
        let strides = self.strides();
        let shape: Vec<_> = permutation.iter().map(|&axis| self.ty.shape[axis]).collect();
        let permuted: Vec<_> = permutation.iter().map(|&axis| strides[axis] as isize).collect();
        self.strided(0, &shape, &permuted)
    }

    /// Repeated along new leading axes and along axes of extent 1 until it has `shape`, by numpy's rules.
    pub fn broadcast_to(&self, shape: &[usize]) -> Self {
        let missing = shape.len().saturating_sub(self.ty.rank());
        let own = self.strides();
        let stride = |axis: usize| match axis.checked_sub(missing) {
            Some(own_axis) if self.ty.shape[own_axis] != 1 => own[own_axis] as isize,
            _ => 0,
        };
        self.strided(0, shape, &(0..shape.len()).map(stride).collect::<Vec<_>>())
    }
}

fn copy_strided(from: &[f64], offset: isize, shape: &[usize], strides: &[isize], into: &mut Vec<f64>) {
    match (shape, strides) {
        ([extent], [1]) => into.extend_from_slice(&from[offset as usize..offset as usize + extent]),
        ([extent, inner @ ..], [stride, inner_strides @ ..]) => {
            for index in 0..*extent as isize {
                copy_strided(from, offset + index * stride, inner, inner_strides, into);
            }
        }
        _ => into.push(from[offset as usize]),
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

/// A whole number moved into the range of an integer type, NaN and -0 to 0; other types leave it alone.
pub(crate) fn into_integer(value: f64, dtype: DType) -> f64 {
    match int_range(dtype) {
        None => value,
        Some(_) if value.is_nan() => 0.0,
        // Integers have one zero: the sum loses the sign of the other.
        Some((low, high)) => value.clamp(low as f64, high as f64) + 0.0,
    }
}

/// One step of SplitMix64 (Steele, Lea, Flood 2014): a generator that fits in three lines and is the same everywhere.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
