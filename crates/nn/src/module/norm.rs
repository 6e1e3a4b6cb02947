//! Normalisations.

use crate::{Initialiser, NnError, Parameter, Pass, Scope};
use aneforge_core::Tensor;

/// Batch normalisation of images `[batch, channels, ...]`.
///
/// Training passes take mean and variance from the batch and move the running statistics towards them by `momentum`, the variance
/// by its unbiased estimate; other passes use the running statistics.
#[derive(Clone, Debug)]
pub struct BatchNorm {
    gamma: Parameter,
    beta: Parameter,
    mean: Parameter,
    variance: Parameter,
    /// Added to the variance.
    pub epsilon: f64,
    /// The share of the batch in the new running statistics.
    pub momentum: f64,
}

impl BatchNorm {
    /// With epsilon 1e-5 and momentum 0.1.
    ///
    /// # Errors
    /// [`NnError::DuplicateName`].
    pub fn new(scope: &mut Scope<'_>, channels: usize) -> Result<Self, NnError> {
        Ok(Self {
            gamma: scope.parameter("weight", &[channels], Initialiser::Ones)?,
            beta: scope.parameter("bias", &[channels], Initialiser::Zeros)?,
            mean: scope.statistic("running_mean", &[channels], 0.0)?,
            variance: scope.statistic("running_var", &[channels], 1.0)?,
            epsilon: 1e-5,
            momentum: 0.1,
        })
    }

    /// Applies it to `[batch, channels, ...]`, rank 3 to 5.
    pub fn apply(&self, pass: &Pass, x: &Tensor) -> Tensor {
        let (gamma, beta) = (pass.tensor(self.gamma), pass.tensor(self.beta));
        let (mean, variance) = (pass.tensor(self.mean), pass.tensor(self.variance));
        let Ok(shape) = x.shape() else { return x.clone() };
        let per_channel: Vec<i64> = (0..shape.len()).map(|axis| if axis == 1 { -1 } else { 1 }).collect();
        let spread = |tensor: &Tensor| tensor.reshape(&per_channel);
        if !pass.is_training() {
            if mean.is_constant() && gamma.is_constant() {
                return x.batch_norm(&mean, &variance, Some(&gamma), Some(&beta), self.epsilon);
            }
            let rate = spread(&variance).rsqrt(self.epsilon);
            return x.sub(&spread(&mean)).mul(&rate).mul(&spread(&gamma)).add(&spread(&beta));
        }
        let axes: Vec<i64> = (0..shape.len() as i64).filter(|&axis| axis != 1).collect();
        let count = shape.iter().product::<usize>() / shape.get(1).copied().unwrap_or(1).max(1);
        let batch_mean = x.reduce_mean(axes.clone(), true);
        let squares = x.sub(&batch_mean).square().reduce_mean(axes.clone(), true);
        let unbiased = squares.muls(count as f64 / (count.max(2) - 1) as f64);
        for (parameter, running, batch) in [(self.mean, &mean, &batch_mean), (self.variance, &variance, &unbiased)] {
            let channels = running.shape().map_or(1, |shape| shape[0]) as i64;
            let batch = crate::detach(&batch.reshape(&[channels]));
            pass.update(parameter, running.add(&batch.sub(running).muls(self.momentum)));
        }
        // MIL's layer norm sums squares wider than fp16, over any axes.
        x.layer_norm(axes, None, None, self.epsilon).mul(&spread(&gamma)).add(&spread(&beta))
    }
}

/// Layer normalisation over the last axis, with `weight` and `bias` of its extent.
#[derive(Clone, Debug)]
pub struct LayerNorm {
    gamma: Parameter,
    beta: Parameter,
    /// Added to the variance.
    pub epsilon: f64,
}

impl LayerNorm {
    /// With epsilon 1e-5.
    ///
    /// # Errors
    /// [`NnError::DuplicateName`].
    pub fn new(scope: &mut Scope<'_>, width: usize) -> Result<Self, NnError> {
        let gamma = scope.parameter("weight", &[width], Initialiser::Ones)?;
        Ok(Self { gamma, beta: scope.parameter("bias", &[width], Initialiser::Zeros)?, epsilon: 1e-5 })
    }

    /// Applies it to `[..., width]`.
    pub fn apply(&self, pass: &Pass, x: &Tensor) -> Tensor {
        x.layer_norm(-1i64, Some(&pass.tensor(self.gamma)), Some(&pass.tensor(self.beta)), self.epsilon)
    }
}

/// Root mean square normalisation over the last axis, with `weight` of its extent.
#[derive(Clone, Debug)]
pub struct RmsNorm {
    gamma: Parameter,
    /// Added to the mean square.
    pub epsilon: f64,
}

impl RmsNorm {
    /// With epsilon 1e-5.
    ///
    /// # Errors
    /// [`NnError::DuplicateName`].
    pub fn new(scope: &mut Scope<'_>, width: usize) -> Result<Self, NnError> {
        Ok(Self { gamma: scope.parameter("weight", &[width], Initialiser::Ones)?, epsilon: 1e-5 })
    }

    /// Applies it to `[..., width]`.
    pub fn apply(&self, pass: &Pass, x: &Tensor) -> Tensor {
        x.rms_norm(-1, Some(&pass.tensor(self.gamma)), self.epsilon)
    }
}

/// Groups of channels of `[batch, channels, ...]` normalised for themselves, with `weight` and `bias` per channel.
#[derive(Clone, Debug)]
pub struct GroupNorm {
    gamma: Parameter,
    beta: Parameter,
    groups: usize,
    /// Added to the variance.
    pub epsilon: f64,
}

impl GroupNorm {
    /// With epsilon 1e-5.
    ///
    /// # Errors
    /// [`NnError::DuplicateName`], and [`NnError::Setting`] where groups do not divide the channels.
    pub fn new(scope: &mut Scope<'_>, groups: usize, channels: usize) -> Result<Self, NnError> {
        if groups == 0 || !channels.is_multiple_of(groups) {
            let rule = "the number of groups is positive and divides the channels";
            return Err(NnError::Setting { what: "groups of a group norm", got: groups.to_string(), rule });
        }
        let gamma = scope.parameter("weight", &[channels], Initialiser::Ones)?;
        Ok(Self { gamma, beta: scope.parameter("bias", &[channels], Initialiser::Zeros)?, groups, epsilon: 1e-5 })
    }

    /// Applies it to `[batch, channels, ...]`.
    pub fn apply(&self, pass: &Pass, x: &Tensor) -> Tensor {
        x.group_norm(self.groups as i64, Some(&pass.tensor(self.gamma)), Some(&pass.tensor(self.beta)), self.epsilon)
    }
}
