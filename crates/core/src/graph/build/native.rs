//! The engine's own layers.

use crate::graph::{Argument, Tensor};
use crate::{Attribute, op};

/// Attention as one layer of the engine: softmax of scaled scores, plus a mask, times values. All three are
/// `[batch, heads, sequence, features]`; the mask is `[queries, keys]`. A causal mask is made where `is_causal` says so.
///
/// The layer gives right numbers while the shorter sequence has fewer than 512 places and the longer at most 2048;
/// [`attention`](crate::attention) has no such limit.
pub fn sdpa(q: &Tensor, k: &Tensor, v: &Tensor, attn_mask: Option<&Tensor>, scale: Option<f64>, is_causal: bool) -> Tensor {
    let mut attributes: Vec<(&str, Attribute)> = vec![("is_causal", is_causal.into())];
    attributes.extend(scale.map(|scale| ("scale", scale.into())));
    q.graph().apply_one(&op::SDPA, &[Argument::One(q), Argument::One(k), Argument::One(v), attn_mask.into()], &attributes)
}

impl Tensor {
    /// The place of the largest value along an axis, which stays with extent 1; fp16, exact because the axis may have 2048 places.
    pub fn argmax(&self, axis: i64) -> Tensor {
        self.with(&op::ARGMAX, &[("axis", self.front(axis).into())])
    }

    /// The place of the smallest value along an axis.
    pub fn argmin(&self, axis: i64) -> Tensor {
        self.with(&op::ARGMAX, &[("axis", self.front(axis).into()), ("smallest", true.into())])
    }

    /// The `k` largest or smallest values of each row along the last axis, in order.
    pub fn topk(&self, k: usize, largest: bool) -> Tensor {
        self.with(&op::TOPK, &[("k", k.into()), ("largest", largest.into())])
    }

    /// Their places, as fp16.
    pub fn topk_indices(&self, k: usize, largest: bool) -> Tensor {
        self.with(&op::TOPK, &[("k", k.into()), ("largest", largest.into()), ("indices", true.into())])
    }

    /// The values of each row along the last axis in order.
    pub fn sort(&self, descending: bool) -> Tensor {
        self.with(&op::SORT, &[("descending", descending.into())])
    }

    /// Their places, as fp16.
    pub fn sort_indices(&self, descending: bool) -> Tensor {
        self.with(&op::SORT, &[("descending", descending.into()), ("indices", true.into())])
    }

    /// The cross product of two vectors of three elements.
    pub fn cross_product(&self, other: &Tensor) -> Tensor {
        self.graph().apply_one(&op::CROSS_PRODUCT, &[Argument::One(self), Argument::One(other)], &[])
    }

    /// The sum of products of a template `[height, width]` with every part of a plane of its size, zeros around it:
    /// `[top, bottom, left, right]`.
    pub fn cross_correlation(&self, template: &Tensor, pad: [i64; 4]) -> Tensor {
        let attributes = [("pad", pad.to_vec().into())];
        self.graph().apply_one(&op::CROSS_CORRELATION, &[Argument::One(self), Argument::One(template)], &attributes)
    }

    /// The distance of each value of a line from that of `reference` 0 to `disparity_range` places further on, one row for each.
    pub fn cost_volume(&self, reference: &Tensor, disparity_range: usize) -> Tensor {
        let attributes = [("disparity_range", disparity_range.into())];
        self.graph().apply_one(&op::COST_VOLUME, &[Argument::One(self), Argument::One(reference)], &attributes)
    }

    /// `k` of the points `[count, 3]` that lie far from each other, the first one first.
    pub fn fps(&self, k: usize) -> Tensor {
        self.with(&op::FPS, &[("k", k.into())])
    }

    /// For each of the points `[count, 3]` a row that says by 1 or 0 which centroids lie within `radius`.
    pub fn radius_search(&self, centroids: &Tensor, radius: f64) -> Tensor {
        let attributes = [("radius", radius.into())];
        self.graph().apply_one(&op::RADIUS_SEARCH, &[Argument::One(self), Argument::One(centroids)], &attributes)
    }

    /// `(x - least) / (greatest - least + eps)` along `Width`, the last axis, or `Height`, the one before it.
    pub fn minmax_norm(&self, dimension: &str, eps: f64) -> Tensor {
        self.with(&op::MINMAX_NORM, &[("dimension", dimension.into()), ("eps", eps.into())])
    }

    /// `x / (k + alpha * sum of squares over all channels)^beta`, for at most 15 channels.
    pub fn lrn(&self, alpha: f64, beta: f64, k: f64) -> Tensor {
        self.with(&op::LRN, &[("alpha", alpha.into()), ("beta", beta.into()), ("k", k.into())])
    }

    /// Pixels of blocks gathered into channels, places of a block before channels.
    pub fn space_to_channel(&self, block_height: i64, block_width: i64) -> Tensor {
        self.blocks(&op::SPACE_TO_CHANNEL, block_height, block_width)
    }

    /// Channels spread over pixels, the inverse of [`Self::space_to_channel`].
    pub fn channel_to_space(&self, block_height: i64, block_width: i64) -> Tensor {
        self.blocks(&op::CHANNEL_TO_SPACE, block_height, block_width)
    }

    /// Pixels of blocks gathered into images, places of a block before images.
    pub fn space_to_batch(&self, block_height: i64, block_width: i64) -> Tensor {
        self.blocks(&op::SPACE_TO_BATCH, block_height, block_width)
    }

    /// Images spread over pixels, the inverse of [`Self::space_to_batch`].
    pub fn batch_to_space(&self, block_height: i64, block_width: i64) -> Tensor {
        self.blocks(&op::BATCH_TO_SPACE, block_height, block_width)
    }

    /// All elements in one row, by the engine's own layer; [`Self::reshape`] does the same within a program's text.
    pub fn flatten(&self) -> Tensor {
        self.with(&op::FLATTEN, &[])
    }

    /// `size` places of the flattened tensor from `offset` on.
    pub fn input_view(&self, offset: usize, size: usize) -> Tensor {
        self.with(&op::INPUT_VIEW, &[("offset", offset.into()), ("size", size.into())])
    }

    /// `size` places of an axis from `offset` on.
    pub fn input_view_along(&self, axis: i64, offset: usize, size: usize) -> Tensor {
        let attributes = [("offset", offset.into()), ("size", size.into()), ("axis", self.front(axis).into())];
        self.with(&op::INPUT_VIEW, &attributes)
    }

    /// The block of the last axes that starts at `start` and has the extents `size`.
    pub fn dynamic_slice(&self, start: &[i64], size: &[i64]) -> Tensor {
        self.with(&op::DYNAMIC_SLICE, &[("start", start.into()), ("size", size.into())])
    }

    /// `scale` times the sum (`Add`), product (`Mult`), smaller (`Min`) or larger (`Max`) of two tensors of one shape.
    pub fn scaled_elementwise(&self, other: &Tensor, op: &str, scale: f64) -> Tensor {
        let attributes = [("op", op.into()), ("scale", scale.into())];
        self.graph().apply_one(&op::SCALED_ELEMENTWISE, &[Argument::One(self), Argument::One(other)], &attributes)
    }

    fn blocks(&self, op: &'static crate::GraphOp, block_height: i64, block_width: i64) -> Tensor {
        self.with(op, &[("block_height", block_height.into()), ("block_width", block_width.into())])
    }
}
