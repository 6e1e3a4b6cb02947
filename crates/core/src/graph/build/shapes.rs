//! Shapes, parts and rearrangements.

use crate::graph::{Argument, Axes, Tensor};
use crate::op::{self, resolve_shape};

impl Tensor {
    /// The same elements under another shape; one extent may be -1 and is computed.
    pub fn reshape(&self, shape: &[i64]) -> Tensor {
        let resolved = self.shape().ok().and_then(|own| resolve_shape(own, shape));
        let resolved = resolved.unwrap_or_else(|| shape.to_vec());
        if self.shape().is_ok_and(|own| own.len() == resolved.len() && own.iter().zip(&resolved).all(|(&a, &b)| a as i64 == b)) {
            return self.clone();
        }
        self.with(&op::RESHAPE, &[("shape", resolved.into())])
    }

    /// The axes in another order.
    pub fn transpose(&self, perm: &[i64]) -> Tensor {
        let perm: Vec<i64> = perm.iter().map(|&axis| self.front(axis)).collect();
        self.with(&op::TRANSPOSE, &[("perm", perm.into())])
    }

    /// Without some axes of extent 1.
    pub fn squeeze(&self, axes: impl Into<Axes>) -> Tensor {
        let axes = axes.into().resolved(self.rank().unwrap_or(0));
        self.with(&op::SQUEEZE, &[("axes", axes.into())])
    }

    /// With axes of extent 1 where axes of the result say.
    pub fn expand_dims(&self, axes: impl Into<Axes>) -> Tensor {
        let axes: Axes = axes.into();
        let rank = self.rank().unwrap_or(0) + axes.0.len();
        self.with(&op::EXPAND_DIMS, &[("axes", axes.resolved(rank).into())])
    }

    /// Two axes: those before `axis` merged, and the others merged.
    pub fn flatten2d(&self, axis: i64) -> Tensor {
        self.with(&op::FLATTEN2D, &[("axis", self.front(axis).into())])
    }

    /// The block that starts at `begin` and has shape `size`.
    pub fn slice_by_size(&self, begin: &[i64], size: &[i64]) -> Tensor {
        self.with(&op::SLICE_BY_SIZE, &[("begin", begin.into()), ("size", size.into())])
    }

    /// Equal parts along an axis: as many tensors as asked for, all of which fail where the cut is illegal.
    pub fn split(&self, num_splits: usize, axis: i64) -> Vec<Tensor> {
        let attributes = [("num_splits", num_splits.into()), ("axis", self.front(axis).into())];
        let parts = self.graph().apply(&op::SPLIT, &[Argument::One(self)], &attributes);
        if parts.len() == num_splits {
            return parts;
        }
        // More parts than any tensor has elements would only be copies of the error.
        let count = num_splits.min(64);
        parts.first().map_or_else(Vec::new, |failed| vec![failed.clone(); count])
    }

    /// Repeated along each axis.
    pub fn tile(&self, reps: &[i64]) -> Tensor {
        self.with(&op::TILE, &[("reps", reps.into())])
    }

    /// Stretched to a shape, as numpy's `broadcast_to`; extents of 1 are repeated.
    pub fn broadcast_to(&self, shape: &[usize]) -> Tensor {
        let Ok(own) = self.shape() else { return self.clone() };
        let mut full = vec![1i64; shape.len().saturating_sub(own.len())];
        full.extend(own.iter().map(|&extent| extent as i64));
        let reps: Vec<i64> = full.iter().zip(shape).map(|(&have, &want)| if have == 1 { want as i64 } else { 1 }).collect();
        let stretched = self.reshape(&full);
        if reps.iter().all(|&reps| reps == 1) { stretched } else { stretched.tile(&reps) }
    }

    /// Backwards along axes.
    pub fn reverse(&self, axes: impl Into<Axes>) -> Tensor {
        let axes = axes.into().resolved(self.rank().unwrap_or(0));
        self.with(&op::REVERSE, &[("axes", axes.into())])
    }

    /// With a border of one value, two counts per axis: before and after.
    pub fn pad(&self, pad: &[i64], value: f64) -> Tensor {
        self.with(&op::PAD, &[("pad", pad.into()), ("constant_val", value.into())])
    }

    /// With a border that mirrors (`reflect`) or repeats (`replicate`) the edge.
    pub fn pad_with(&self, pad: &[i64], mode: &str) -> Tensor {
        self.with(&op::PAD, &[("pad", pad.into()), ("mode", mode.into())])
    }

    /// Without some rows and columns of a map.
    pub fn crop(&self, top: i64, bottom: i64, left: i64, right: i64) -> Tensor {
        self.with(&op::CROP, &[("crop_height", vec![top, bottom].into()), ("crop_width", vec![left, right].into())])
    }

    /// Channels spread over pixels, in PyTorch's order.
    pub fn pixel_shuffle(&self, upscale_factor: i64) -> Tensor {
        self.with(&op::PIXEL_SHUFFLE, &[("upscale_factor", upscale_factor.into())])
    }

    /// Pixels gathered into channels, in PyTorch's order.
    pub fn pixel_unshuffle(&self, downscale_factor: i64) -> Tensor {
        self.with(&op::PIXEL_UNSHUFFLE, &[("downscale_factor", downscale_factor.into())])
    }

    /// Pixels gathered into channels, in TensorFlow's order.
    pub fn space_to_depth(&self, block_size: i64) -> Tensor {
        self.with(&op::SPACE_TO_DEPTH, &[("block_size", block_size.into())])
    }

    /// Channels spread over pixels, in TensorFlow's order.
    pub fn depth_to_space(&self, block_size: i64) -> Tensor {
        self.with(&op::DEPTH_TO_SPACE, &[("block_size", block_size.into())])
    }

    /// Each pixel repeated in height and width.
    pub fn upsample(&self, scale_factor: i64) -> Tensor {
        self.with(&op::UPSAMPLE, &[("scale_factor", scale_factor.into())])
    }

    /// The slices along an axis that an integer tensor names, in its order.
    pub fn gather(&self, indices: &Tensor, axis: i64) -> Tensor {
        let attributes = [("axis", self.front(axis).into())];
        self.graph().apply_one(&op::GATHER, &[Argument::One(self), Argument::One(indices)], &attributes)
    }

    /// The slices along an axis at fixed places; negative ones count from the end.
    pub fn take(&self, indices: &[i64], axis: i64) -> Tensor {
        let extent = self.shape().ok().and_then(|shape| shape.get(usize::try_from(self.front(axis)).ok()?).copied());
        let front = |&index: &i64| if index < 0 { index + extent.unwrap_or(0) as i64 } else { index } as f64;
        let places: Vec<f64> = indices.iter().map(front).collect();
        self.gather(&self.graph().values(crate::DType::Int32, &[indices.len()], &places), axis)
    }
}
