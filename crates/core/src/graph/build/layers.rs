//! Convolutions, pools and normalisations.

use super::Window;
use crate::Attribute;
use crate::graph::{Argument, Axes, Tensor};
use crate::op::{self, GraphOp};

impl Tensor {
    /// Convolution of `[batch, in, spatial...]` with `weight` (`[out, in / groups, kernel...]`), plus `bias` (`[out]`).
    pub fn conv(&self, weight: &Tensor, bias: Option<&Tensor>, window: &Window) -> Tensor {
        self.convolve(&op::CONV, weight, bias, window, &[])
    }

    /// Transposed convolution with `weight` (`[in, out / groups, kernel...]`), plus `bias` (`[out]`).
    pub fn conv_transpose(&self, weight: &Tensor, bias: Option<&Tensor>, window: &Window) -> Tensor {
        let spatial = self.rank().unwrap_or(4).saturating_sub(2);
        let extra = Window::spread(&window.output_padding, spatial, 0);
        self.convolve(&op::CONV_TRANSPOSE, weight, bias, window, &[("output_padding", extra.into())])
    }

    /// Largest value under a sliding window.
    pub fn max_pool(&self, window: &Window) -> Tensor {
        self.pool(&op::MAX_POOL, window, &[])
    }

    /// Mean under a sliding window.
    pub fn avg_pool(&self, window: &Window) -> Tensor {
        self.pool(&op::AVG_POOL, window, &[("exclude_padding_from_average", window.exclude_padding.into())])
    }

    /// Root of the sum of squares under a sliding window.
    pub fn l2_pool(&self, window: &Window) -> Tensor {
        self.pool(&op::L2_POOL, window, &[])
    }

    /// Layer normalisation over `axes`, with `gamma` and `beta` of the extents there.
    pub fn layer_norm(&self, axes: impl Into<Axes>, gamma: Option<&Tensor>, beta: Option<&Tensor>, epsilon: f64) -> Tensor {
        let axes = axes.into().resolved(self.rank().unwrap_or(0));
        self.normalise(&op::LAYER_NORM, &[gamma, beta], &[("axes", axes.into()), ("epsilon", epsilon.into())])
    }

    /// Root mean square normalisation along an axis, with `gamma` of its extent.
    pub fn rms_norm(&self, axis: i64, gamma: Option<&Tensor>, epsilon: f64) -> Tensor {
        self.normalise(&op::RMS_NORM, &[gamma], &[("axis", self.front(axis).into()), ("epsilon", epsilon.into())])
    }

    /// Division by the Euclidean length along an axis, or by the root of epsilon where that is larger.
    pub fn l2_norm(&self, axis: i64, epsilon: f64) -> Tensor {
        self.with(&op::L2_NORM, &[("axis", self.front(axis).into()), ("epsilon", epsilon.into())])
    }

    /// Batch normalisation with given statistics, all constants of shape `[channels]`.
    pub fn batch_norm(
        &self,
        mean: &Tensor,
        variance: &Tensor,
        gamma: Option<&Tensor>,
        beta: Option<&Tensor>,
        epsilon: f64,
    ) -> Tensor {
        self.normalise(&op::BATCH_NORM, &[Some(mean), Some(variance), gamma, beta], &[("epsilon", epsilon.into())])
    }

    /// Each channel normalised for itself, with `gamma` and `beta` of shape `[channels]`.
    pub fn instance_norm(&self, gamma: Option<&Tensor>, beta: Option<&Tensor>, epsilon: f64) -> Tensor {
        self.normalise(&op::INSTANCE_NORM, &[gamma, beta], &[("epsilon", epsilon.into())])
    }

    /// Groups of channels normalised for themselves, with `gamma` and `beta` of shape `[channels]`.
    pub fn group_norm(&self, num_groups: i64, gamma: Option<&Tensor>, beta: Option<&Tensor>, epsilon: f64) -> Tensor {
        let attributes = [("num_groups", num_groups.into()), ("epsilon", epsilon.into())];
        self.normalise(&op::GROUP_NORM, &[gamma, beta], &attributes)
    }

    /// Division by `(k + alpha / size * sum of squares of size neighbouring channels)^beta`.
    pub fn local_response_norm(&self, size: i64, alpha: f64, beta: f64, k: f64) -> Tensor {
        let attributes = [("size", size.into()), ("alpha", alpha.into()), ("beta", beta.into()), ("k", k.into())];
        self.with(&op::LOCAL_RESPONSE_NORM, &attributes)
    }

    fn normalise(&self, op: &'static GraphOp, others: &[Option<&Tensor>], attributes: &[(&str, Attribute)]) -> Tensor {
        let mut inputs = vec![Argument::One(self)];
        inputs.extend(others.iter().map(|&other| Argument::from(other)));
        self.graph().apply_one(op, &inputs, attributes)
    }

    fn convolve(
        &self,
        op: &'static GraphOp,
        weight: &Tensor,
        bias: Option<&Tensor>,
        window: &Window,
        more: &[(&str, Attribute)],
    ) -> Tensor {
        let spatial = self.rank().unwrap_or(4).saturating_sub(2);
        let mut attributes: Vec<(&str, Attribute)> = vec![
            ("strides", Window::spread(&window.strides, spatial, 1).into()),
            ("pad", Window::spread(&window.pad, 2 * spatial, 0).into()),
            ("dilations", Window::spread(&window.dilations, spatial, 1).into()),
            ("groups", window.groups.into()),
        ];
        attributes.extend_from_slice(more);
        self.graph().apply_one(op, &[Argument::One(self), Argument::One(weight), bias.into()], &attributes)
    }

    fn pool(&self, op: &'static GraphOp, window: &Window, more: &[(&str, Attribute)]) -> Tensor {
        let spatial = self.rank().unwrap_or(4).saturating_sub(2);
        let kernel = Window::spread(&window.kernel, spatial, 1);
        let strides = if window.strides.is_empty() { kernel.clone() } else { Window::spread(&window.strides, spatial, 1) };
        let mut attributes: Vec<(&str, Attribute)> = vec![
            ("kernel_sizes", kernel.into()),
            ("strides", strides.into()),
            ("pad", Window::spread(&window.pad, 2 * spatial, 0).into()),
            ("ceil_mode", window.ceil_mode.into()),
        ];
        attributes.extend_from_slice(more);
        self.with(op, &attributes)
    }
}
