//! Learning rates over the steps.

use serde::{Deserialize, Serialize};

/// A factor of the learning rate for each step, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Schedule {
    /// 1 throughout.
    Constant,
    /// Rises in a line over `warmup` steps, `(step + 1) / warmup`, then falls along half a cosine to `last` at step `total` and stays.
    WarmupCosine {
        /// Steps of the rise.
        warmup: u64,
        /// Steps in all.
        total: u64,
        /// The factor at the end.
        last: f64,
    },
    /// Multiplied by `factor` after every `every` steps.
    Step {
        /// Steps between changes.
        every: u64,
        /// The factor.
        factor: f64,
    },
}

impl Schedule {
    /// The factor at a step.
    pub fn factor(&self, step: u64) -> f64 {
        match *self {
            Self::Constant => 1.0,
            Self::WarmupCosine { warmup, .. } if step < warmup => (step + 1) as f64 / warmup as f64,
            Self::WarmupCosine { warmup, total, last } => {
                let length = total.saturating_sub(warmup).max(1);
                let way = (step - warmup).min(length) as f64 / length as f64;
                last + (1.0 - last) * 0.5 * (1.0 + (std::f64::consts::PI * way).cos())
            }
            Self::Step { every, factor } => factor.powf((step / every.max(1)) as f64),
        }
    }
}
