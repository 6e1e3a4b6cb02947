//! Losses and metrics. All give the mean over the batch as a tensor of shape `[1]`.

use crate::detach;
use aneforge_core::{DType, Tensor};

/// Largest number of classes that labels in fp16 can name: from 2048 on it skips integers.
pub const MAX_FP16_CLASSES: usize = 2048;

/// 1 where the class is the label, else 0: `[..., classes]` in fp16 from labels `[...]`, which are int32, or integers in fp16 for at
/// most [`MAX_FP16_CLASSES`] classes. Labels outside give rows of zeros.
pub fn one_hot(labels: &Tensor, classes: usize) -> Tensor {
    match labels.dtype() {
        Ok(DType::Fp16) => {
            let places: Vec<f64> = (0..classes).map(|class| class as f64).collect();
            let places = labels.graph().values(DType::Fp16, &[classes], &places);
            labels.expand_dims(-1i64).equal(&places).cast(DType::Fp16)
        }
        Ok(_) => labels.one_hot(classes, -1),
        Err(_) => labels.clone(),
    }
}

/// The logarithm of the softmax along the last axis; no exponent is above 0, so nothing overflows, and a sure class keeps its
/// small loss.
pub fn log_softmax(logits: &Tensor) -> Tensor {
    // The maximum cancels out of the value, so its derivative does too: leaving it out saves the work and its rounding.
    let shifted = logits.sub(&detach(&logits.reduce_max(-1i64, true)));
    shifted.sub(&shifted.exp().reduce_sum(-1i64, true).log(0.0))
}

/// Cross entropy of logits `[..., classes]` to a distribution of the same shape, for example from [`one_hot`]:
/// `-sum(target * log_softmax(logits))`, the mean over all but the last axis. With `smoothing` s the target becomes
/// `(1 - s) target + s / classes`.
///
/// In fp16 the smoothed share of a class is rounded: at s = 0.1 its relative error is below 2^-11.
pub fn cross_entropy_to(logits: &Tensor, target: &Tensor, smoothing: f64) -> Tensor {
    let logs = log_softmax(logits);
    let mut loss = logs.mul(target).reduce_sum(-1i64, true);
    if smoothing > 0.0 {
        loss = loss.muls(1.0 - smoothing).add(&logs.reduce_mean(-1i64, true).muls(smoothing));
    }
    mean(&loss.neg())
}

/// [`cross_entropy_to`] the classes that labels name.
pub fn cross_entropy(logits: &Tensor, labels: &Tensor, smoothing: f64) -> Tensor {
    let classes = logits.shape().ok().and_then(<[usize]>::last).copied().unwrap_or(1);
    cross_entropy_to(logits, &one_hot(labels, classes), smoothing)
}

/// Mean squared error.
pub fn mse(output: &Tensor, target: &Tensor) -> Tensor {
    mean(&output.sub(target).square())
}

/// Binary cross entropy of logits to targets between 0 and 1: `max(x, 0) - x t + log(1 + exp(-|x|))`, whose exponent is never
/// above 0.
pub fn bce_with_logits(logits: &Tensor, target: &Tensor) -> Tensor {
    let tail = logits.abs().neg().exp().adds(1.0).log(0.0);
    mean(&logits.relu().sub(&logits.mul(target)).add(&tail))
}

/// The share of rows whose largest logit is that of the label, by the one-hot labels; rows with equal largest logits count in part
/// for each.
pub fn accuracy_to(logits: &Tensor, target: &Tensor) -> Tensor {
    let top = logits.equal(&logits.reduce_max(-1i64, true)).cast(DType::Fp16);
    let hits = top.mul(target).reduce_sum(-1i64, true).real_div(&top.reduce_sum(-1i64, true));
    mean(&hits)
}

/// [`accuracy_to`] the classes that labels name.
pub fn accuracy(logits: &Tensor, labels: &Tensor) -> Tensor {
    let classes = logits.shape().ok().and_then(<[usize]>::last).copied().unwrap_or(1);
    accuracy_to(logits, &one_hot(labels, classes))
}

/// The mean over all axes, as shape `[1]`.
fn mean(x: &Tensor) -> Tensor {
    let axes: Vec<i64> = (0..x.rank().unwrap_or(0) as i64).collect();
    x.reduce_mean(axes, true).reshape(&[1])
}
