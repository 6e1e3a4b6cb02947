//! Elements picked, scattered and sorted.

use crate::graph::{Argument, Tensor};
use crate::op::{self, GraphOp};
use crate::{Attribute, DType, Graph};

impl Tensor {
    /// The elements whose place along an axis an integer tensor of the same rank names.
    pub fn gather_along_axis(&self, indices: &Tensor, axis: i64) -> Tensor {
        self.indexed(&op::GATHER_ALONG_AXIS, indices, &[("axis", self.front(axis).into())])
    }

    /// The slices whose first coordinates the last axis of an integer tensor names.
    pub fn gather_nd(&self, indices: &Tensor) -> Tensor {
        self.indexed(&op::GATHER_ND, indices, &[])
    }

    /// This tensor with `updates` combined into the slices along an axis that constant `indices` name. `mode` is `update`, `add`,
    /// `sub`, `mul`, `div`, `max` or `min`.
    pub fn scatter(&self, indices: &Tensor, updates: &Tensor, axis: i64, mode: &str) -> Tensor {
        self.scattered(&op::SCATTER, indices, updates, &[("axis", self.front(axis).into()), ("mode", mode.into())])
    }

    /// This tensor with `updates` combined into the slices whose coordinates constant `indices` name; modes as in [`Self::scatter`].
    pub fn scatter_nd(&self, indices: &Tensor, updates: &Tensor, mode: &str) -> Tensor {
        self.scattered(&op::SCATTER_ND, indices, updates, &[("mode", mode.into())])
    }

    /// This tensor with `updates` combined into the elements whose place along an axis constant `indices` name; modes as in
    /// [`Self::scatter`].
    pub fn scatter_along_axis(&self, indices: &Tensor, updates: &Tensor, axis: i64, mode: &str) -> Tensor {
        self.scattered(&op::SCATTER_ALONG_AXIS, indices, updates, &[("axis", self.front(axis).into()), ("mode", mode.into())])
    }

    /// 1 at the place along a new axis that each index names, else 0: fp16.
    pub fn one_hot(&self, size: usize, axis: i64) -> Tensor {
        self.with(&op::ONE_HOT, &[("one_hot_vector_size", size.into()), ("axis", axis.into())])
    }

    /// The last two axes with zeros more than `lower` below or `upper` above the diagonal; -1 keeps all on that side.
    pub fn band_part(&self, lower: i64, upper: i64) -> Tensor {
        self.with(&op::BAND_PART, &[("lower", lower.into()), ("upper", upper.into())])
    }

    /// The first elements along `seq_axis` backwards, as many as `lengths` says for each element of `batch_axis`.
    pub fn reverse_sequence(&self, lengths: &[i64], seq_axis: i64, batch_axis: i64) -> Tensor {
        let attributes =
            [("lengths", lengths.into()), ("seq_axis", self.front(seq_axis).into()), ("batch_axis", self.front(batch_axis).into())];
        self.with(&op::REVERSE_SEQUENCE, &attributes)
    }

    /// All windows of `size` places along an axis, `stride` apart; the places of a window are on an axis behind it.
    pub fn sliding_windows(&self, axis: i64, size: usize, stride: usize) -> Tensor {
        self.with(&op::SLIDING_WINDOWS, &[("axis", self.front(axis).into()), ("size", size.into()), ("stride", stride.into())])
    }

    /// The `k` largest values along an axis in order, or the smallest where `ascending`, and their positions as int32.
    pub fn topk_values(&self, k: usize, axis: i64, ascending: bool) -> (Tensor, Tensor) {
        self.topk_with(k, axis, ascending, "int32")
    }

    /// [`Self::topk_values`] with fp16 positions, composed of maxima so that every chip has it; `k` is at most 64.
    pub fn topk_values_fp16(&self, k: usize, axis: i64, ascending: bool) -> (Tensor, Tensor) {
        self.topk_with(k, axis, ascending, "fp16")
    }

    fn topk_with(&self, k: usize, axis: i64, ascending: bool, positions: &'static str) -> (Tensor, Tensor) {
        let attributes = [
            ("k", k.into()),
            ("axis", self.front(axis).into()),
            ("ascending", ascending.into()),
            ("output_indices_dtype", positions.into()),
        ];
        let results = self.graph().apply(&op::TOPK_VALUES, &[Argument::One(self)], &attributes);
        match results.as_slice() {
            [values, positions] => (values.clone(), positions.clone()),
            // A use that is refused has one failed result.
            [failed, ..] => (failed.clone(), failed.clone()),
            [] => (self.clone(), self.clone()),
        }
    }

    /// The positions that sort along an axis, largest first unless `ascending`: int32.
    pub fn argsort(&self, axis: i64, ascending: bool) -> Tensor {
        self.with(&op::ARGSORT, &[("axis", self.front(axis).into()), ("ascending", ascending.into())])
    }

    /// Height and width padded with zeros (`[top, bottom, left, right]`), then cut into blocks whose places become images.
    pub fn space_to_batch_padded(&self, block_shape: &[i64], paddings: &[i64]) -> Tensor {
        self.with(&op::SPACE_TO_BATCH_PADDED, &[("block_shape", block_shape.into()), ("paddings", paddings.into())])
    }

    /// Images of the batch put back as the places of blocks, then cropped (`[top, bottom, left, right]`).
    pub fn batch_to_space_cropped(&self, block_shape: &[i64], crops: &[i64]) -> Tensor {
        self.with(&op::BATCH_TO_SPACE_CROPPED, &[("block_shape", block_shape.into()), ("crops", crops.into())])
    }

    /// Bytes of the values divided by a constant `scale`, plus `zero_point`; both are scalars, or vectors along `axis`.
    pub fn quantize(&self, scale: &Tensor, zero_point: Option<&Tensor>, axis: Option<i64>, output_dtype: DType) -> Tensor {
        let inputs = [Argument::One(self), Argument::One(scale), zero_point.into()];
        let attributes = [("axis", self.optional_axis(axis)), ("output_dtype", output_dtype.keyword().into())];
        self.graph().apply_one(&op::QUANTIZE, &inputs, &attributes)
    }

    /// `scale (x - zero_point)` of bytes; both are scalars, or vectors along `axis`.
    pub fn dequantize(&self, scale: &Tensor, zero_point: Option<&Tensor>, axis: Option<i64>) -> Tensor {
        let inputs = [Argument::One(self), Argument::One(scale), zero_point.into()];
        self.graph().apply_one(&op::DEQUANTIZE, &inputs, &[("axis", self.optional_axis(axis))])
    }

    /// Seen through the affine map `[a0, a1, a2, b0, b1, b2]` (`[1, 6]`, or one row per image) from places of the result to places
    /// here, corners at -1 and 1, zeros outside.
    pub fn affine(&self, transform_matrix: &Tensor, output_height: i64, output_width: i64) -> Tensor {
        let attributes = [("output_height", output_height.into()), ("output_width", output_width.into())];
        self.graph().apply_one(&op::AFFINE, &[Argument::One(self), Argument::One(transform_matrix)], &attributes)
    }

    fn optional_axis(&self, axis: Option<i64>) -> Attribute {
        axis.map_or(Attribute::Absent, |axis| self.front(axis).into())
    }

    fn indexed(&self, op: &'static GraphOp, indices: &Tensor, attributes: &[(&str, Attribute)]) -> Tensor {
        self.graph().apply_one(op, &[Argument::One(self), Argument::One(indices)], attributes)
    }

    fn scattered(&self, op: &'static GraphOp, indices: &Tensor, updates: &Tensor, attributes: &[(&str, Attribute)]) -> Tensor {
        self.graph().apply_one(op, &[Argument::One(self), Argument::One(indices), Argument::One(updates)], attributes)
    }
}

impl Graph {
    /// An image of bytes as a named input of the program (`uint8`, `[batch, channels, height, width]`), and its pixels times `scale`
    /// plus `bias` as fp16. Each is one number, or one per channel; a scale of 1 and a bias of 0 cost nothing.
    pub fn image_input(&self, name: &str, shape: &[usize], scale: &[f64], bias: &[f64]) -> Tensor {
        let pixels = self.input(name, DType::UInt8, shape).cast(DType::Fp16);
        let numbers = |values: &[f64]| match values {
            [one] => self.values(DType::Fp16, &[], &[*one]),
            several => self.values(DType::Fp16, &[1, several.len(), 1, 1], several),
        };
        let scaled = if scale == [1.0] { pixels } else { pixels.mul(&numbers(scale)) };
        if bias == [0.0] { scaled } else { scaled.add(&numbers(bias)) }
    }

    /// A constant of the numbers from `start` in steps of `step` up to `end`, which is left out.
    pub fn range(&self, dtype: DType, start: f64, end: f64, step: f64) -> Tensor {
        let count = ((end - start) / step).ceil();
        // Counts that are no number, negative or too large give an empty shape, which is refused with a reason.
        let count = if (0.0..1e9).contains(&count) { count as usize } else { 0 };
        let values: Vec<f64> = (0..count).map(|index| start + index as f64 * step).collect();
        self.values(dtype, &[count], &values)
    }
}
