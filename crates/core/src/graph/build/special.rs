//! Functions that engines lack, running sums, positions and slices with steps.

use crate::Attribute;
use crate::graph::{Argument, Graph, Tensor};
use crate::op::{self, GraphOp};

/// Methods that take nothing but the tensor.
macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {
        impl Tensor {
            $($(#[$doc])* pub fn $name(&self) -> Tensor { self.with(&op::$op, &[]) })*
        }
    };
}

/// Methods that take another tensor of the same graph, broadcast against this one.
macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {
        impl Tensor {
            $($(#[$doc])* pub fn $name(&self, other: &Tensor) -> Tensor { self.against(&op::$op, other) })*
        }
    };
}

unary! {
    /// Tangent of radians.
    tan => TAN;
    /// Inverse sine in radians.
    asin => ASIN;
    /// Inverse cosine in radians.
    acos => ACOS;
    /// Hyperbolic sine.
    sinh => SINH;
    /// Hyperbolic cosine.
    cosh => COSH;
    /// Inverse hyperbolic sine.
    asinh => ASINH;
    /// Inverse hyperbolic cosine.
    acosh => ACOSH;
    /// Inverse hyperbolic tangent.
    atanh => ATANH;
}

binary! {
    /// The largest integer not above the quotient.
    floor_div => FLOOR_DIV;
    /// Remainder, of the sign of the other tensor.
    modulo => MOD;
    /// Conjunction of two masks.
    logical_and => LOGICAL_AND;
    /// Disjunction of two masks.
    logical_or => LOGICAL_OR;
    /// Exclusive disjunction of two masks.
    logical_xor => LOGICAL_XOR;
}

impl Tensor {
    /// The angle in radians, from -pi to pi, of the point whose y is this tensor and whose x is the other one.
    pub fn atan2(&self, x: &Tensor) -> Tensor {
        x.against(&op::ATAN2, self)
    }

    /// Running sum along an axis; `exclusive` leaves each element itself out, `reverse` starts at the end.
    pub fn cumsum(&self, axis: i64, exclusive: bool, reverse: bool) -> Tensor {
        let attributes = [("axis", self.front(axis).into()), ("exclusive", exclusive.into()), ("reverse", reverse.into())];
        self.with(&op::CUMSUM, &attributes)
    }

    /// Positions of the largest values along an axis, the first one of several: int32.
    pub fn reduce_argmax(&self, axis: i64, keep_dims: bool) -> Tensor {
        self.position(&op::REDUCE_ARGMAX, axis, keep_dims, "int32")
    }

    /// Positions of the smallest values along an axis, the first one of several: int32.
    pub fn reduce_argmin(&self, axis: i64, keep_dims: bool) -> Tensor {
        self.position(&op::REDUCE_ARGMIN, axis, keep_dims, "int32")
    }

    /// [`Self::reduce_argmax`] as fp16 numbers, which a chip can hand back; at most 2048 positions.
    pub fn reduce_argmax_fp16(&self, axis: i64, keep_dims: bool) -> Tensor {
        self.position(&op::REDUCE_ARGMAX, axis, keep_dims, "fp16")
    }

    /// [`Self::reduce_argmin`] as fp16 numbers, which a chip can hand back; at most 2048 positions.
    pub fn reduce_argmin_fp16(&self, axis: i64, keep_dims: bool) -> Tensor {
        self.position(&op::REDUCE_ARGMIN, axis, keep_dims, "fp16")
    }

    fn position(&self, op: &'static GraphOp, axis: i64, keep_dims: bool, output_dtype: &'static str) -> Tensor {
        let attributes =
            [("axis", self.front(axis).into()), ("keep_dims", keep_dims.into()), ("output_dtype", output_dtype.into())];
        self.with(op, &attributes)
    }

    /// `x[begin:end:stride]` on each axis, as in Python. Empty lists of ends and strides are open ends and strides of 1, an end of
    /// `i64::MAX` or `i64::MIN` is open too. [`Self::get`] spells the same with ranges.
    pub fn slice_by_index(&self, begin: &[i64], end: &[i64], stride: &[i64]) -> Tensor {
        self.with(&op::SLICE_BY_INDEX, &slice_attributes(begin, end, stride))
    }

    /// This tensor with `x[begin:end:stride]` replaced; the bounds are those of [`Self::slice_by_index`].
    pub fn slice_update(&self, update: &Tensor, begin: &[i64], end: &[i64], stride: &[i64]) -> Tensor {
        let inputs = [Argument::One(self), Argument::One(update)];
        self.graph().apply_one(&op::SLICE_UPDATE, &inputs, &slice_attributes(begin, end, stride))
    }

    /// Zeros of a shape with this tensor at `[begin:end:stride]`; the bounds are those of [`Self::slice_by_index`].
    pub fn slice_spread(&self, shape: &[usize], begin: &[i64], end: &[i64], stride: &[i64]) -> Tensor {
        let mut attributes = vec![("shape", shape.into())];
        attributes.extend(slice_attributes(begin, end, stride));
        self.with(&op::SLICE_SPREAD, &attributes)
    }

    /// Enlarged by factors, blending neighbours; `align_corners` keeps the corner pixels where they are.
    pub fn upsample_bilinear(&self, scale_factor_height: f64, scale_factor_width: f64, align_corners: bool) -> Tensor {
        let attributes = [
            ("scale_factor_height", scale_factor_height.into()),
            ("scale_factor_width", scale_factor_width.into()),
            ("align_corners", align_corners.into()),
        ];
        self.with(&op::UPSAMPLE_BILINEAR, &attributes)
    }

    /// At another size by blending neighbours; `sampling_mode` is one of MIL's five words.
    pub fn resize_bilinear(&self, height: i64, width: i64, sampling_mode: &str) -> Tensor {
        let attributes =
            [("target_size_height", height.into()), ("target_size_width", width.into()), ("sampling_mode", sampling_mode.into())];
        self.with(&op::RESIZE_BILINEAR, &attributes)
    }

    /// At another size by repeating or leaving out pixels.
    pub fn resize_nearest_neighbor(&self, height: i64, width: i64) -> Tensor {
        self.with(&op::RESIZE_NEAREST_NEIGHBOR, &[("target_size_height", height.into()), ("target_size_width", width.into())])
    }

    /// `softmax(self key^T / sqrt(width) + attn_mask) value` over the last two axes, as one operation.
    pub fn scaled_dot_product_attention(&self, key: &Tensor, value: &Tensor, attn_mask: Option<&Tensor>) -> Tensor {
        let inputs = [Argument::One(self), Argument::One(key), Argument::One(value), attn_mask.into()];
        self.graph().apply_one(&op::SCALED_DOT_PRODUCT_ATTENTION, &inputs, &[])
    }
}

fn slice_attributes(begin: &[i64], end: &[i64], stride: &[i64]) -> [(&'static str, Attribute); 3] {
    let list = |values: &[i64]| if values.is_empty() { Attribute::Absent } else { values.into() };
    [("begin", begin.into()), ("end", list(end)), ("stride", list(stride))]
}

/// The sum of products of tensors over the letters that the result of `equation` does not name: `einsum("bij,bjk->bik", &[a, b])`.
pub fn einsum(equation: &str, tensors: &[Tensor]) -> Tensor {
    match tensors.first() {
        Some(first) => first.graph().apply_one(&op::EINSUM, &[Argument::Many(tensors)], &[("equation", equation.into())]),
        None => Graph::new().apply_one(&op::EINSUM, &[Argument::Absent], &[("equation", equation.into())]),
    }
}
