//! Vector forms of the transcendental functions, accurate to a few f32 units in the last place
//! where the result is stored as fp16.

use super::simd::{Kernel, Simd};
use super::types::Activation;

/// `exp(x)`, relative error below 3e-7. Clamped to the range of finite, normal f32 results.
#[inline(always)]
pub(crate) fn exp<S: Simd>(s: S, x: S::F) -> S::F {
    // The constant is the first argument so that a NaN in x stays.
    let x = s.max(s.splat(-87.3), s.min(s.splat(88.7), x));
    let n = s.to_int_nearest(s.mul(x, s.splat(std::f32::consts::LOG2_E)));
    let whole = s.to_float(n);
    // ln 2 in two parts, the first short enough to be exact when multiplied by n.
    let r = s.fma(whole, s.splat(-0.693_359_4), x);
    let r = s.fma(whole, s.splat(2.121_944_4e-4), r);
    // Minimax polynomial of Cephes (expf) for (exp(r) - 1 - r) / r^2 on |r| <= ln 2 / 2.
    let mut p = s.splat(1.987_569_1e-4);
    for c in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_66, 0.5] {
        p = s.fma(p, r, s.splat(c));
    }
    let value = s.fma(p, s.mul(r, r), s.add(r, s.splat(1.0)));
    // n reaches 128 at the upper end: two steps keep the exponent field legal.
    let half = s.shift_right_signed::<1>(n);
    let rest = s.sub_int(n, half);
    let one = s.splat_int(127);
    let a = s.from_bits(s.shift_left::<23>(s.add_int(half, one)));
    let b = s.from_bits(s.shift_left::<23>(s.add_int(rest, one)));
    s.mul(s.mul(value, a), b)
}

/// `1 / (1 + exp(-x))`
#[inline(always)]
pub(crate) fn sigmoid<S: Simd>(s: S, x: S::F) -> S::F {
    let e = exp(s, s.sub(s.splat(0.0), x));
    s.div(s.splat(1.0), s.add(s.splat(1.0), e))
}

/// Hyperbolic tangent; a polynomial near zero (Cephes, tanhf), the exponential elsewhere.
#[inline(always)]
pub(crate) fn tanh<S: Simd>(s: S, x: S::F) -> S::F {
    let z = s.mul(x, x);
    let mut p = s.splat(-5.704_988_7e-3);
    for c in [2.063_909e-2, -5.373_971_5e-2, 0.133_314_42, -0.333_332_8] {
        p = s.fma(p, z, s.splat(c));
    }
    let near = s.fma(s.mul(p, z), x, x);
    let e = exp(s, s.add(x, x));
    let far = s.sub(s.splat(1.0), s.div(s.splat(2.0), s.add(e, s.splat(1.0))));
    s.select(s.less(s.abs(x), s.splat(0.625)), near, far)
}

/// `erfc(|z|)`, absolute error 1.5e-7 (Abramowitz and Stegun 7.1.26).
#[inline(always)]
fn complement<S: Simd>(s: S, magnitude: S::F) -> S::F {
    let t = s.div(s.splat(1.0), s.fma(magnitude, s.splat(0.327_591_1), s.splat(1.0)));
    let mut p = s.splat(1.061_405_4);
    for c in [-1.453_152_1, 1.421_413_8, -0.284_496_72, 0.254_829_6] {
        p = s.fma(p, t, s.splat(c));
    }
    let e = exp(s, s.sub(s.splat(0.0), s.mul(magnitude, magnitude)));
    s.mul(s.mul(p, t), e)
}

/// Error function.
#[inline(always)]
pub(crate) fn erf<S: Simd>(s: S, x: S::F) -> S::F {
    let z = s.mul(x, x);
    // The Taylor series, times 2 / sqrt(pi).
    let mut p = s.splat(-8.548_327e-4);
    for c in [5.223_977_6e-3, -2.686_617e-2, 0.112_837_92, -0.376_126_4, std::f32::consts::FRAC_2_SQRT_PI] {
        p = s.fma(p, z, s.splat(c));
    }
    let near = s.mul(p, x);
    let magnitude = s.abs(x);
    let far = s.sub(s.splat(1.0), complement(s, magnitude));
    let sign = s.and(s.bits(x), s.splat_int(i32::MIN));
    let far = s.from_bits(s.or(s.bits(far), sign));
    s.select(s.less(magnitude, s.splat(0.5)), near, far)
}

/// `x` times the normal distribution function, without cancellation on the negative side.
#[inline(always)]
pub(crate) fn gelu<S: Simd>(s: S, x: S::F) -> S::F {
    let magnitude = s.mul(s.abs(x), s.splat(std::f32::consts::FRAC_1_SQRT_2));
    let tail = s.mul(s.splat(0.5), complement(s, magnitude));
    let phi = s.select(s.less(x, s.splat(0.0)), tail, s.sub(s.splat(1.0), tail));
    s.mul(x, phi)
}

/// The tanh approximation of gelu.
#[inline(always)]
pub(crate) fn gelu_tanh<S: Simd>(s: S, x: S::F) -> S::F {
    // x * sigmoid(2 u) with u = sqrt(2 / pi) * (x + 0.044715 x^3) equals x / 2 * (1 + tanh(u)).
    let inner = s.fma(s.mul(x, x), s.splat(0.044_715), s.splat(1.0));
    let u = s.mul(s.mul(x, inner), s.splat(1.595_769));
    s.mul(x, sigmoid(s, u))
}

/// Applies an activation to one vector.
///
/// The longer functions are a call: they would otherwise be compiled into every epilogue.
#[inline(always)]
pub(crate) fn activate<S: Simd>(s: S, activation: Activation, x: S::F) -> S::F {
    match activation {
        Activation::None => x,
        Activation::Relu => s.max(x, s.splat(0.0)),
        Activation::Clip(low, high) => s.min(s.max(x, s.splat(low)), s.splat(high)),
        Activation::Square => s.mul(x, x),
        other => {
            let mut values = [0.0_f32; MOST_LANES];
            // SAFETY: the array holds at least LANES values.
            unsafe { s.store(values.as_mut_ptr(), x) };
            s.level().dispatch(Transcendental(other, &mut values));
            // SAFETY: as above.
            unsafe { s.load(values.as_ptr()) }
        }
    }
}

/// Lanes of the widest vector.
const MOST_LANES: usize = 16;

struct Transcendental<'a>(Activation, &'a mut [f32; MOST_LANES]);

impl Kernel for Transcendental<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let values = self.1.as_mut_ptr();
        // SAFETY: the array holds at least LANES values.
        let x = unsafe { s.load(values) };
        let value = match self.0 {
            Activation::Gelu => gelu(s, x),
            Activation::GeluTanh => gelu_tanh(s, x),
            Activation::Silu => s.mul(x, sigmoid(s, x)),
            Activation::Sigmoid => sigmoid(s, x),
            Activation::Tanh => tanh(s, x),
            Activation::Exp => exp(s, x),
            Activation::Erf => erf(s, x),
            Activation::None | Activation::Relu | Activation::Clip(..) | Activation::Square => x,
        };
        // SAFETY: as above.
        unsafe { s.store(values, value) };
    }
}

#[cfg(test)]
mod tests {
    use super::super::simd::{Kernel, Level, Simd};
    use super::*;

    struct Apply<'a>(Activation, &'a [f32], &'a mut [f32]);

    impl Kernel for Apply<'_> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, s: S) {
            for at in (0..self.1.len()).step_by(S::LANES) {
                // SAFETY: the test's slices have a multiple of 16 values.
                unsafe {
                    let x = s.load(self.1.as_ptr().add(at));
                    s.store(self.2.as_mut_ptr().add(at), activate(s, self.0, x));
                }
            }
        }
    }

    /// erf by its everywhere convergent series in f64.
    fn erf64(x: f64) -> f64 {
        let (mut term, mut sum) = (x, x);
        for n in 1..200 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        if x.abs() > 5.0 { x.signum() } else { sum * 2.0 / std::f64::consts::PI.sqrt() }
    }

    fn worst(activation: Activation, range: f32, f: impl Fn(f64) -> f64, relative: bool) -> f64 {
        let count = 16 * 2000;
        let inputs: Vec<f32> = (0..count).map(|i| (i as f32 / count as f32 * 2.0 - 1.0) * range).collect();
        let mut worst = 0.0_f64;
        for level in Level::available() {
            let mut outputs = vec![0.0; count];
            level.dispatch(Apply(activation, &inputs, &mut outputs));
            for (&x, &y) in inputs.iter().zip(&outputs) {
                let want = f(f64::from(x));
                let scale = if relative { want.abs().max(1e-30) } else { 1.0 };
                worst = worst.max((f64::from(y) - want).abs() / scale);
            }
        }
        worst
    }

    #[test]
    fn functions_agree_with_f64() {
        assert!(worst(Activation::Exp, 80.0, f64::exp, true) < 4e-7);
        assert!(worst(Activation::Tanh, 12.0, f64::tanh, true) < 1e-6);
        assert!(worst(Activation::Sigmoid, 30.0, |x| 1.0 / (1.0 + (-x).exp()), true) < 1e-6);
        assert!(worst(Activation::Silu, 20.0, |x| x / (1.0 + (-x).exp()), false) < 3e-6);
        assert!(worst(Activation::Erf, 4.0, erf64, false) < 5e-7);
        assert!(worst(Activation::Erf, 0.6, erf64, true) < 1e-6);
        let gelu = |x: f64| 0.5 * x * (1.0 + erf64(x / 2.0_f64.sqrt()));
        assert!(worst(Activation::Gelu, 6.0, gelu, false) < 2e-6);
        let tanh_form = |x: f64| 0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh());
        assert!(worst(Activation::GeluTanh, 6.0, tanh_form, false) < 3e-6);
    }
}
