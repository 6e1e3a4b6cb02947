//! Piecewise-linear curves with 33 knots, the form of the engine's activation tables.

/// Number of segments of an engine table: 33 knots (ANE guide, chapter 3).
pub const SEGMENTS: usize = 32;

/// Points per segment in the least-squares fit.
const SAMPLES: usize = 64;

/// A curve through 33 equally spaced knots; outside its domain it follows the tails.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    low: f64,
    step: f64,
    knots: Vec<f64>,
    below: Tail,
    above: Tail,
}

/// What a curve does outside its domain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tail {
    /// A constant.
    Constant(f64),
    /// The argument itself: the right tail of gelu and its kin.
    Argument,
    /// The nearest knot.
    Knot,
}

impl Curve {
    /// The least-squares curve of `function` on `low..high`.
    ///
    /// The engine's own knots are not published. That they are not on the exact curve is: gelu(0) is negative on the engine, which a
    /// fit by least squares gives and interpolation does not.
    pub fn fit(function: impl Fn(f64) -> f64, low: f64, high: f64, below: Tail, above: Tail) -> Self {
        let step = (high - low) / SEGMENTS as f64;
        // Normal equations of hat functions are tridiagonal: `diagonal`, `off` (symmetric), `right`.
        let mut diagonal = [0.0; SEGMENTS + 1];
        let mut off = [0.0; SEGMENTS];
        let mut right = [0.0; SEGMENTS + 1];
        for segment in 0..SEGMENTS {
            for sample in 0..SAMPLES {
                let t = (sample as f64 + 0.5) / SAMPLES as f64;
                let value = function(low + (segment as f64 + t) * step);
                diagonal[segment] += (1.0 - t) * (1.0 - t);
                diagonal[segment + 1] += t * t;
                off[segment] += t * (1.0 - t);
                right[segment] += (1.0 - t) * value;
                right[segment + 1] += t * value;
            }
        }
        for row in 1..=SEGMENTS {
            let factor = off[row - 1] / diagonal[row - 1];
            diagonal[row] -= factor * off[row - 1];
            right[row] -= factor * right[row - 1];
        }
        let mut knots = vec![0.0; SEGMENTS + 1];
        knots[SEGMENTS] = right[SEGMENTS] / diagonal[SEGMENTS];
        for row in (0..SEGMENTS).rev() {
            knots[row] = (right[row] - off[row] * knots[row + 1]) / diagonal[row];
        }
        Self { low, step, knots, below, above }
    }

    /// The curve's value.
    pub fn at(&self, x: f64) -> f64 {
        let position = (x - self.low) / self.step;
        if position < 0.0 {
            return self.tail(self.below, x, 0);
        }
        if position >= SEGMENTS as f64 {
            return self.tail(self.above, x, SEGMENTS);
        }
        let segment = position as usize;
        let t = position - segment as f64;
        self.knots[segment] + (self.knots[segment + 1] - self.knots[segment]) * t
    }

    fn tail(&self, tail: Tail, x: f64, knot: usize) -> f64 {
        match tail {
            Tail::Constant(value) => value,
            Tail::Argument => x,
            Tail::Knot => self.knots[knot],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_reproduced() {
        let curve = Curve::fit(|x| 3.0 * x - 1.0, -2.0, 6.0, Tail::Knot, Tail::Argument);
        for x in [-2.0, -0.3, 0.0, 1.7, 5.99] {
            assert!((curve.at(x) - (3.0 * x - 1.0)).abs() < 1e-12, "{x}");
        }
        assert!((curve.at(-50.0) - -7.0).abs() < 1e-12);
        assert_eq!(curve.at(50.0), 50.0);
    }

    #[test]
    fn the_error_of_a_parabola_is_that_of_the_best_line_per_segment() {
        // Interior segments of the least-squares spline of x^2 are off by h^2/6 at most (the midpoint) and h^2/12 at the knots.
        let curve = Curve::fit(|x| x * x, 0.0, 32.0, Tail::Knot, Tail::Knot);
        let worst = (0..3200).map(|i| f64::from(i) / 100.0).map(|x| (curve.at(x) - x * x).abs()).fold(0.0, f64::max);
        assert!(worst < 0.2, "{worst}");
    }
}
