//! The size of all gradients together: clipping by norm, and whether they are numbers.

use crate::optimizer::SMALLEST_NORMAL;
use aneforge_core::Tensor;

/// From here on a result of the engine may be infinity: its multiply-accumulate array ends at 2^15.
pub(crate) const CEILING: f64 = 32000.0;

/// The largest magnitude in all tensors, as `[1]`.
pub(crate) fn largest(tensors: &[Tensor]) -> Option<Tensor> {
    let tops = tensors.iter().map(|tensor| whole(&tensor.abs(), Tensor::reduce_max));
    tops.reduce(|top, other| top.maximum(&other))
}

/// A mask of shape `[1]`: whether all values are numbers below the ceiling.
///
/// The engine makes infinity of what overflows and of NaN and never gives NaN (ANE guide, arXiv 2606.22283, chapter 3), so its largest
/// magnitude tells. Elsewhere a maximum may pass over NaN, but `0 x` sums to 0 for numbers alone, and NaN is below nothing.
pub fn are_numbers(tensors: &[Tensor]) -> Option<Tensor> {
    let top = largest(tensors)?;
    let probes = tensors.iter().map(|tensor| whole(&tensor.muls(0.0), Tensor::reduce_sum));
    let total = probes.fold(top, |total, probe| total.add(&probe));
    Some(total.less(&total.constant_like(CEILING)))
}

/// Gradients times `min(1, limit / norm)`, for the Euclidean norm of all of them together. They come and go times `scale`, a tensor
/// of shape `[1]`, which the limit is not.
///
/// All are divided by the largest magnitude first, and mean squares weighted by each tensor's share of the elements, so nothing
/// overflows and the largest element's square is 1. Elements below 2^-12 of the largest count as 0.
pub fn clip_by_norm(gradients: &[Tensor], limit: f64, scale: &Tensor) -> Vec<Tensor> {
    let Some(top) = largest(gradients) else { return Vec::new() };
    let top = top.maximum(&top.constant_like(SMALLEST_NORMAL));
    let counts: Vec<f64> = gradients.iter().map(|g| g.ty().map_or(0, aneforge_core::TensorType::count) as f64).collect();
    let all: f64 = counts.iter().sum();
    let squares = gradients
        .iter()
        .zip(&counts)
        .map(|(gradient, count)| whole(&gradient.real_div(&top).square(), Tensor::reduce_mean).muls(count / all));
    let Some(square) = squares.reduce(|sum, square| sum.add(&square)) else { return Vec::new() };
    let size = square.sqrt().maximum(&top.constant_like(SMALLEST_NORMAL));
    // limit / norm, with norm = top sqrt(all) size / scale.
    let allowed = scale.muls(limit / all.sqrt()).real_div(&top).real_div(&size);
    let factor = allowed.minimum(&top.constant_like(1.0));
    gradients.iter().map(|gradient| gradient.mul(&factor)).collect()
}

/// A reduction over all axes, as `[1]`.
pub(crate) fn whole(tensor: &Tensor, reduce: fn(&Tensor, Vec<i64>, bool) -> Tensor) -> Tensor {
    let axes: Vec<i64> = (0..tensor.rank().unwrap_or(0) as i64).collect();
    reduce(tensor, axes, true).reshape(&[1])
}
