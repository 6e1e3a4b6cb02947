//! Optimizers as graph builders: one update of one parameter, in the range and precision of fp16.
//!
//! # Scales
//!
//! Gradients arrive times [`MOMENT_SCALE`], 1024, and moments are kept so: what counts between 6e-8 and 32 in the true gradient are
//! normal fp16 numbers. A step with a larger one is skipped like one that overflows; clipping by norm comes before the scale and
//! prevents that. Learning rates arrive times a power of two ([`Optimizer::rate_scale`]), since an update is added as an
//! increment of a [`Pair`], times 2048.
//!
//! The second moment is kept as its root, which has the gradient's range in place of its square's. With `r` the root, `a` the
//! gradient's magnitude and `c = 1 - beta2`, the new root is `sqrt((1 - c) r^2 + c a^2)`, and
//!
//! `r' - r = c (a - r) (a + r) / (r' + r)`
//!
//! exactly. That difference is far below fp16's step at `r` (half of 0.001 of it where a = 0), so `r` is a pair as well; the `r'` in the
//! denominator, which needs no more than fp16, is computed from `r` and `a` divided by the larger of both, so no square underflows and
//! no divisor is so small that its reciprocal is infinite.

use crate::NnError;
use crate::pair::{LOW, Pair};
use crate::state::Slots;
use aneforge_core::Tensor;
use half::f16;
use serde::{Deserialize, Serialize};

/// The factor of gradients and moments.
pub const MOMENT_SCALE: f64 = 1024.0;
/// The factor of the low part of the second moment's root. At the moments' scale the root may grow by 1000 at once, from 0 by 0.03 of
/// the first gradient; times 32 that is a number of fp16, times 2048 it is not.
const ROOT_LOW: f64 = 32.0;
/// The smallest normal number of fp16.
pub(crate) const SMALLEST_NORMAL: f64 = 1.0 / 16384.0;
/// The smallest number that is divided by. Where a quotient is written as a product with the reciprocal, as in models in memory, the
/// reciprocal of a smaller one may be infinite. At the moments' scale it is a gradient of 3e-8.
const SMALLEST_DIVISOR: f64 = 1.0 / 32768.0;

/// A rule by which gradients change parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Optimizer {
    /// Stochastic gradient descent: `v = momentum v + g`, `w -= rate v` (Nesterov: `rate (g + momentum v)`); `g` includes
    /// `weight_decay w`.
    Sgd {
        /// Share of the velocity that stays.
        momentum: f64,
        /// Whether the step looks ahead.
        nesterov: bool,
        /// L2 penalty.
        weight_decay: f64,
    },
    /// Adam (Kingma, Ba 2014) with bias correction; `g` includes `weight_decay w`.
    Adam {
        /// Shares of both moments that stay.
        betas: (f64, f64),
        /// Added to the root of the second moment.
        epsilon: f64,
        /// L2 penalty.
        weight_decay: f64,
    },
    /// Adam whose decay is not part of the gradient: `w -= rate weight_decay w` (Loshchilov, Hutter 2017).
    AdamW {
        /// Shares of both moments that stay.
        betas: (f64, f64),
        /// Added to the root of the second moment.
        epsilon: f64,
        /// Decay.
        weight_decay: f64,
    },
    /// Lion (Chen et al. 2023): `w -= rate (sign(beta1 m + (1 - beta1) g) + weight_decay w)`, then `m = beta2 m + (1 - beta2) g`.
    Lion {
        /// Share of the momentum in the step, and in the next momentum.
        betas: (f64, f64),
        /// Decay.
        weight_decay: f64,
    },
}

impl Optimizer {
    /// Plain gradient descent with momentum.
    pub fn sgd(momentum: f64) -> Self {
        Self::Sgd { momentum, nesterov: false, weight_decay: 0.0 }
    }

    /// Adam with betas 0.9 and 0.999 and epsilon 1e-8.
    pub fn adam() -> Self {
        Self::Adam { betas: (0.9, 0.999), epsilon: 1e-8, weight_decay: 0.0 }
    }

    /// AdamW with betas 0.9 and 0.999, epsilon 1e-8 and decay 0.01.
    pub fn adamw() -> Self {
        Self::AdamW { betas: (0.9, 0.999), epsilon: 1e-8, weight_decay: 0.01 }
    }

    /// Lion with betas 0.9 and 0.99 and no decay.
    pub fn lion() -> Self {
        Self::Lion { betas: (0.9, 0.99), weight_decay: 0.0 }
    }

    /// The same with another decay.
    #[must_use]
    pub fn with_weight_decay(mut self, decay: f64) -> Self {
        match &mut self {
            Self::Sgd { weight_decay, .. }
            | Self::Adam { weight_decay, .. }
            | Self::AdamW { weight_decay, .. }
            | Self::Lion { weight_decay, .. } => *weight_decay = decay,
        }
        self
    }

    /// What a learning rate is multiplied with before the program gets it.
    pub fn rate_scale(&self) -> f64 {
        match self {
            Self::Sgd { .. } => LOW / MOMENT_SCALE,
            _ => LOW,
        }
    }

    /// The settings as the program has them: shares that go, and epsilon, rounded to fp16 at the scale at which they are used.
    ///
    /// # Errors
    /// [`NnError::Setting`] for shares outside of 0 to 1, or so near 1 that what goes is lost in fp16, and for an epsilon that is.
    pub fn rounded(&self) -> Result<Self, NnError> {
        let share = |what, beta: f64| -> Result<f64, NnError> {
            let goes = 1.0 - beta;
            if (SMALLEST_NORMAL..=1.0).contains(&goes) {
                return Ok(1.0 - round(goes));
            }
            let rule = "it lies from 0 to 1 - 2^-14: what goes must be a normal number of fp16";
            Err(NnError::Setting { what, got: beta.to_string(), rule })
        };
        let small = |epsilon: f64| -> Result<f64, NnError> {
            let scaled = round(epsilon * MOMENT_SCALE);
            if scaled > 0.0 && scaled < 32768.0 {
                return Ok(scaled / MOMENT_SCALE);
            }
            let rule = "times the moments' scale of 1024 it is a positive number of fp16: from 3e-11 to 31";
            Err(NnError::Setting { what: "epsilon", got: epsilon.to_string(), rule })
        };
        let decay = self.weight_decay();
        if !(0.0..=16.0).contains(&decay) {
            let rule = "it lies from 0 to 16";
            return Err(NnError::Setting { what: "weight_decay", got: decay.to_string(), rule });
        }
        Ok(match *self {
            Self::Sgd { momentum, nesterov, weight_decay } => {
                if !(0.0..1.0).contains(&momentum) {
                    let rule = "it is 0 or more and below 1";
                    return Err(NnError::Setting { what: "momentum", got: momentum.to_string(), rule });
                }
                Self::Sgd { momentum: round(momentum), nesterov, weight_decay: round(weight_decay * MOMENT_SCALE) / MOMENT_SCALE }
            }
            Self::Adam { betas, epsilon, weight_decay } => Self::Adam {
                betas: (share("beta1", betas.0)?, share("beta2", betas.1)?),
                epsilon: small(epsilon)?,
                weight_decay: round(weight_decay * MOMENT_SCALE) / MOMENT_SCALE,
            },
            Self::AdamW { betas, epsilon, weight_decay } => Self::AdamW {
                betas: (share("beta1", betas.0)?, share("beta2", betas.1)?),
                epsilon: small(epsilon)?,
                weight_decay: round(weight_decay),
            },
            Self::Lion { betas, weight_decay } => {
                Self::Lion { betas: (share("beta1", betas.0)?, share("beta2", betas.1)?), weight_decay: round(weight_decay) }
            }
        })
    }

    /// Moves the count of steps on that bias correction needs: once per step, before the updates.
    ///
    /// # Errors
    /// As [`Self::rounded`].
    pub fn begin(&self, slots: &mut Slots) -> Result<(), NnError> {
        let (Self::Adam { betas, .. } | Self::AdamW { betas, .. }) = self.rounded()? else { return Ok(()) };
        // 1 - beta^t as a pair that starts at 0 and moves to 1 by 1 - beta of what is left.
        for (name, beta) in [("correction.first", betas.0), ("correction.second", betas.1)] {
            let pair = Pair::slot(slots, name, &[1], true, || vec![0.0])?;
            let left = 1.0 - &pair.value(slots);
            pair.add(slots, &left.muls((1.0 - beta) * LOW));
        }
        Ok(())
    }

    /// Changes one parameter, whose state has names that start with `name`. `gradient` is the true one times [`MOMENT_SCALE`],
    /// `rate` a tensor of shape `[1]` with the learning rate times [`Self::rate_scale`]. Gives the increment times [`LOW`].
    ///
    /// # Errors
    /// As [`Self::rounded`].
    pub fn update(
        &self,
        slots: &mut Slots,
        name: &str,
        weight: &Pair,
        gradient: &Tensor,
        rate: &Tensor,
    ) -> Result<Tensor, NnError> {
        let shape = gradient.shape()?.to_vec();
        let zeros = || vec![0.0; shape.iter().product()];
        let value = weight.value(slots);
        let decayed = |gradient: &Tensor, decay: f64| match decay {
            0.0 => gradient.clone(),
            decay => gradient.add(&value.muls(decay * MOMENT_SCALE)),
        };
        let step = match self.rounded()? {
            Self::Sgd { momentum, nesterov, weight_decay } => {
                let gradient = decayed(gradient, weight_decay);
                let direction = if momentum == 0.0 {
                    gradient
                } else {
                    let slot = slots.slot(&format!("{name}.velocity"), &shape, zeros)?;
                    let velocity = slots.get(slot).muls(momentum).add(&gradient);
                    slots.set(slot, velocity.clone());
                    if nesterov { gradient.add(&velocity.muls(momentum)) } else { velocity }
                };
                direction.mul(rate)
            }
            Self::Adam { betas, epsilon, weight_decay } => {
                adam(slots, name, &shape, &decayed(gradient, weight_decay), betas, epsilon)?.mul(rate)
            }
            Self::AdamW { betas, epsilon, weight_decay } => {
                let step = adam(slots, name, &shape, gradient, betas, epsilon)?.mul(rate);
                if weight_decay == 0.0 { step } else { step.add(&value.mul(&rate.muls(weight_decay))) }
            }
            Self::Lion { betas, weight_decay } => {
                let slot = slots.slot(&format!("{name}.momentum"), &shape, zeros)?;
                let momentum = slots.get(slot);
                let news = gradient.sub(&momentum);
                let direction = momentum.add(&news.muls(1.0 - betas.0)).sign();
                slots.set(slot, momentum.add(&news.muls(1.0 - betas.1)));
                let direction = if weight_decay == 0.0 { direction } else { direction.add(&value.muls(weight_decay)) };
                direction.mul(rate)
            }
        };
        let increment = step.neg();
        weight.add(slots, &increment);
        Ok(increment)
    }

    fn weight_decay(&self) -> f64 {
        match *self {
            Self::Sgd { weight_decay, .. }
            | Self::Adam { weight_decay, .. }
            | Self::AdamW { weight_decay, .. }
            | Self::Lion { weight_decay, .. } => weight_decay,
        }
    }
}

/// The corrected first moment over the corrected root of the second plus epsilon.
fn adam(
    slots: &mut Slots,
    name: &str,
    shape: &[usize],
    gradient: &Tensor,
    betas: (f64, f64),
    epsilon: f64,
) -> Result<Tensor, NnError> {
    let zeros = || vec![0.0; shape.iter().product()];
    let slot = slots.slot(&format!("{name}.first_moment"), shape, zeros)?;
    let first = slots.get(slot);
    let first = first.add(&gradient.sub(&first).muls(1.0 - betas.0));
    slots.set(slot, first.clone());

    let root = Pair::with_factor(slots, &format!("{name}.second_moment_root"), shape, Some(ROOT_LOW), zeros)?;
    let (old, size, goes) = (root.value(slots), gradient.abs(), 1.0 - betas.1);
    let larger = old.maximum(&size).maximum(&size.constant_like(SMALLEST_NORMAL));
    // Both over the larger one: what is divided by next is of the size of 1 or nothing at all.
    let (old_part, new_part) = (old.real_div(&larger), size.real_div(&larger));
    let next_part = old_part.square().muls(1.0 - goes).add(&new_part.square().muls(goes)).sqrt();
    let sum = next_part.add(&old_part).maximum(&size.constant_like(SMALLEST_DIVISOR));
    let ratio = new_part.add(&old_part).real_div(&sum);
    root.add(slots, &size.sub(&old).mul(&ratio.muls(goes * ROOT_LOW)));

    let correction = |slots: &mut Slots, name: &str| -> Result<Tensor, NnError> {
        let pair = Pair::slot(slots, name, &[1], true, || vec![0.0])?;
        Ok(pair.value(slots))
    };
    let (by_first, by_second) = (correction(slots, "correction.first")?, correction(slots, "correction.second")?.sqrt());
    let size = root.value(slots).real_div(&by_second).adds(epsilon * MOMENT_SCALE);
    let size = size.maximum(&size.constant_like(SMALLEST_DIVISOR));
    Ok(first.real_div(&size).real_div(&by_first))
}

fn round(value: f64) -> f64 {
    f16::from_f64(value).to_f64()
}
