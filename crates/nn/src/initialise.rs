//! How parameters start.

use crate::{NnError, Random};

/// The distribution that a parameter's first values are drawn from.
///
/// Fans are counted as usual for weights `[out, in, kernel...]`: `fan_in` = in x kernel taps, `fan_out` = out x kernel taps. A
/// vector has its length for both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Initialiser {
    /// All 0.
    Zeros,
    /// All 1.
    Ones,
    /// All the same.
    Constant(f64),
    /// Between -bound and bound.
    Uniform {
        /// The bound.
        bound: f64,
    },
    /// Normal around 0.
    Normal {
        /// The deviation.
        deviation: f64,
    },
    /// Normal around 0, drawn again where it lies beyond two deviations; `deviation` is that of the untruncated distribution.
    TruncatedNormal {
        /// The deviation.
        deviation: f64,
    },
    /// Uniform, bound = gain * sqrt(3 / fan_in) (He, Zhang, Ren, Sun 2015); gain is sqrt(2) for a relu.
    KaimingUniform {
        /// The gain.
        gain: f64,
    },
    /// Normal, deviation = gain / sqrt(fan_in).
    KaimingNormal {
        /// The gain.
        gain: f64,
    },
    /// Uniform, bound = gain * sqrt(6 / (fan_in + fan_out)) (Glorot, Bengio 2010).
    XavierUniform {
        /// The gain.
        gain: f64,
    },
    /// Normal, deviation = gain * sqrt(2 / (fan_in + fan_out)).
    XavierNormal {
        /// The gain.
        gain: f64,
    },
}

/// The gain of a layer whose activation is a relu, whose mean square is half its input's.
pub const RELU_GAIN: f64 = std::f64::consts::SQRT_2;

impl Initialiser {
    /// Values for a parameter of that shape.
    ///
    /// # Errors
    /// [`NnError::Setting`] for a bound, deviation or gain that is negative or not finite.
    pub fn draw(&self, shape: &[usize], random: &mut Random) -> Result<Vec<f32>, NnError> {
        let count = shape.iter().product();
        let (fan_in, fan_out) = fans(shape);
        let size = match *self {
            Self::Zeros => 0.0,
            Self::Ones => 1.0,
            Self::Constant(value) => value,
            Self::Uniform { bound } => bound,
            Self::Normal { deviation } | Self::TruncatedNormal { deviation } => deviation,
            Self::KaimingUniform { gain } => gain * (3.0 / fan_in).sqrt(),
            Self::KaimingNormal { gain } => gain / fan_in.sqrt(),
            Self::XavierUniform { gain } => gain * (6.0 / (fan_in + fan_out)).sqrt(),
            Self::XavierNormal { gain } => gain * (2.0 / (fan_in + fan_out)).sqrt(),
        };
        if !size.is_finite() || (size < 0.0 && !matches!(self, Self::Constant(_))) {
            let rule = "bounds, deviations and gains are finite and not negative";
            return Err(NnError::Setting { what: "size of an initialiser", got: size.to_string(), rule });
        }
        let mut draw = || match self {
            Self::Zeros | Self::Ones | Self::Constant(_) => size,
            Self::Uniform { .. } | Self::KaimingUniform { .. } | Self::XavierUniform { .. } => random.uniform(-size, size),
            Self::Normal { .. } | Self::KaimingNormal { .. } | Self::XavierNormal { .. } => size * random.normal(),
            Self::TruncatedNormal { .. } => loop {
                let value = random.normal();
                if value.abs() <= 2.0 {
                    break size * value;
                }
            },
        };
        Ok((0..count).map(|_| draw() as f32).collect())
    }
}

/// Inputs of each output and outputs of each input.
fn fans(shape: &[usize]) -> (f64, f64) {
    match shape {
        [] => (1.0, 1.0),
        [length] => (*length as f64, *length as f64),
        [out, inner, taps @ ..] => {
            let taps: usize = taps.iter().product();
            ((inner * taps) as f64, (out * taps) as f64)
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Mean, mean square and largest magnitude.
    fn moments(initialiser: Initialiser, shape: &[usize]) -> (f64, f64, f64) {
        let values = initialiser.draw(shape, &mut Random::new(7)).unwrap();
        let count = values.len() as f64;
        let sum = |f: fn(f64) -> f64| values.iter().map(|&value| f(f64::from(value))).sum::<f64>() / count;
        (sum(|v| v), sum(|v| v * v), values.iter().fold(0.0, |top, v| f64::from(v.abs()).max(top)))
    }

    #[test]
    fn moments_are_those_of_the_documented_distributions() {
        let shape = [64, 32, 3, 3];
        let (fan_in, fan_out) = (288.0, 576.0);
        // Mean square of the distribution, and the bound where there is one.
        let uniform = |bound: f64| (bound * bound / 3.0, bound);
        let cases = [
            (Initialiser::Uniform { bound: 0.25 }, uniform(0.25)),
            (Initialiser::Normal { deviation: 0.5 }, (0.25, f64::INFINITY)),
            // 1 - 2 * 2 * phi(2) / (Phi(2) - Phi(-2)), phi(2) = 0.0539910, Phi(2) - Phi(-2) = 0.9544997.
            (Initialiser::TruncatedNormal { deviation: 0.5 }, (0.25 * (1.0 - 4.0 * 0.053_991_0 / 0.954_499_7), 1.0)),
            (Initialiser::KaimingUniform { gain: RELU_GAIN }, uniform((6.0f64 / fan_in).sqrt())),
            (Initialiser::KaimingNormal { gain: RELU_GAIN }, (2.0 / fan_in, f64::INFINITY)),
            (Initialiser::XavierUniform { gain: 1.0 }, uniform((6.0f64 / (fan_in + fan_out)).sqrt())),
            (Initialiser::XavierNormal { gain: 1.0 }, (2.0 / (fan_in + fan_out), f64::INFINITY)),
        ];
        for (initialiser, (square, bound)) in cases {
            let (mean, mean_square, top) = moments(initialiser, &shape);
            assert!(mean.abs() < 0.02 * square.sqrt(), "{initialiser:?}: mean {mean}");
            assert!((mean_square / square - 1.0).abs() < 0.03, "{initialiser:?}: {mean_square} for {square}");
            assert!(top <= bound * 1.000_001 && (bound.is_infinite() || top > 0.99 * bound), "{initialiser:?}: {top} for {bound}");
        }
    }

    #[test]
    fn a_seed_gives_the_same_values_and_a_bad_size_is_refused() {
        let draw = |seed| Initialiser::Normal { deviation: 1.0 }.draw(&[8], &mut Random::new(seed)).unwrap();
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
        for bad in [-1.0, f64::NAN] {
            assert!(Initialiser::Uniform { bound: bad }.draw(&[2], &mut Random::new(0)).is_err());
        }
    }
}
