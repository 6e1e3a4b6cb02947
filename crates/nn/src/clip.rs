//! The size of all gradients together: clipping by norm, and whether they are numbers.

use crate::optimizer::SMALLEST_NORMAL;
use aneforge_core::Tensor;
use half::f16;

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
/// All are divided by the largest magnitude first, and mean squares weighted by each tensor's share of a number of elements that is
/// a power of four, so nothing overflows, the largest element's square is 1, and the shares of small tensors and the root of that
/// number are numbers that fp16 holds. Elements below 2^-12 of the largest count as 0.
pub fn clip_by_norm(gradients: &[Tensor], limit: f64, scale: &Tensor) -> Vec<Tensor> {
    let Some(top) = largest(gradients) else { return Vec::new() };
    let top = top.maximum(&top.constant_like(SMALLEST_NORMAL));
    let counts: Vec<f64> = gradients.iter().map(|g| g.ty().map_or(0, aneforge_core::TensorType::count) as f64).collect();
    let root = 2f64.powi((counts.iter().sum::<f64>().log2() / 2.0).ceil() as i32);
    let squares = gradients
        .iter()
        .zip(&counts)
        .map(|(gradient, count)| times(&whole(&gradient.real_div(&top).square(), Tensor::reduce_mean), count / (root * root)));
    let Some(square) = squares.reduce(|sum, square| sum.add(&square)) else { return Vec::new() };
    let size = square.sqrt().maximum(&top.constant_like(SMALLEST_NORMAL));
    // limit / norm, with norm = top root size / scale.
    let allowed = times(scale, limit / root).real_div(&top).real_div(&size);
    let factor = allowed.minimum(&top.constant_like(1.0));
    gradients.iter().map(|gradient| gradient.mul(&factor)).collect()
}

/// Times a number that one of fp16 may not hold, as a sum of two: it is exact to 2^-22.
fn times(tensor: &Tensor, factor: f64) -> Tensor {
    let rest = factor - f16::from_f64(factor).to_f64();
    let product = tensor.muls(factor);
    if rest == 0.0 { product } else { product.add(&tensor.muls(rest)) }
}

/// A reduction over all axes, as `[1]`.
pub(crate) fn whole(tensor: &Tensor, reduce: fn(&Tensor, Vec<i64>, bool) -> Tensor) -> Tensor {
    let axes: Vec<i64> = (0..tensor.rank().unwrap_or(0) as i64).collect();
    reduce(tensor, axes, true).reshape(&[1])
}
