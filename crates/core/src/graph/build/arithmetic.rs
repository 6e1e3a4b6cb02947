//! Matrix products and reductions.

use crate::graph::{Argument, Axes, Tensor};
use crate::op::{self, GraphOp};

/// Reductions; an empty list of axes means all of them.
macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident $(= $alias:ident)? => $op:ident;)*) => {
        impl Tensor {
            $(
                $(#[$doc])*
                pub fn $name(&self, axes: impl Into<Axes>, keep_dims: bool) -> Tensor { self.reduce(&op::$op, axes.into(), keep_dims) }
                $(
                    #[doc = concat!("The same as [`Self::", stringify!($name), "`].")]
                    pub fn $alias(&self, axes: impl Into<Axes>, keep_dims: bool) -> Tensor { self.$name(axes, keep_dims) }
                )?
            )*
        }
    };
}

reductions! {
    /// Mean over axes.
    reduce_mean = mean => REDUCE_MEAN;
    /// Sum over axes.
    reduce_sum = sum => REDUCE_SUM;
    /// Largest value over axes.
    reduce_max = amax => REDUCE_MAX;
    /// Smallest value over axes.
    reduce_min = amin => REDUCE_MIN;
    /// Sum of magnitudes over axes.
    reduce_l1_norm = l1_norm => REDUCE_L1_NORM;
    /// Euclidean length over axes.
    reduce_l2_norm => REDUCE_L2_NORM;
    /// Sum of squares over axes.
    reduce_sum_square = sum_square => REDUCE_SUM_SQUARE;
    /// Product over axes.
    reduce_prod => REDUCE_PROD;
    /// Logarithm of the sum over axes.
    reduce_log_sum = log_sum => REDUCE_LOG_SUM;
    /// Logarithm of the sum of exponentials over axes.
    reduce_log_sum_exp => REDUCE_LOG_SUM_EXP;
}

impl Tensor {
    /// Matrix product over the last two axes; the axes before them broadcast as in numpy.
    pub fn matmul(&self, other: &Tensor) -> Tensor {
        self.matmul_with(other, false, false)
    }

    /// Matrix product with either operand transposed on its last two axes first.
    pub fn matmul_with(&self, other: &Tensor, transpose_self: bool, transpose_other: bool) -> Tensor {
        let attributes = [("transpose_x", transpose_self.into()), ("transpose_y", transpose_other.into())];
        self.graph().apply_one(&op::MATMUL, &[Argument::One(self), Argument::One(other)], &attributes)
    }

    /// Times the transpose of `weight` (`[out, in]`), plus `bias` (`[out]`): `[..., in]` to `[..., out]`.
    pub fn linear(&self, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
        self.graph().apply_one(&op::LINEAR, &[Argument::One(self), Argument::One(weight), bias.into()], &[])
    }

    fn reduce(&self, op: &'static GraphOp, axes: Axes, keep_dims: bool) -> Tensor {
        let axes = axes.resolved(self.rank().unwrap_or(0));
        // A scalar has no axes: it is its own reduction, but for the function applied to it.
        if axes.is_empty() && self.check().is_ok() {
            return self.reshape(&[1]).reduce(op, Axes(vec![0]), false);
        }
        self.with(op, &[("axes", axes.into()), ("keep_dims", keep_dims.into())])
    }
}
