//! The epilogue in the engine's arithmetic: the sum is rounded at the output port, and every
//! further stage rounds as the separate operation would.

use super::super::epilogue::{Arithmetic, Sink};
use super::super::math::activate;
use super::super::simd::Simd;
use super::super::types::{Activation, Epilogue, Residual};
use super::round;
use half::f16;

/// Exact stages over sums in units of 2^-16.
#[derive(Clone, Copy)]
pub(crate) struct Exact;

/// Destination of an exact product.
pub(crate) type ExactSink<'a> = Sink<'a, f16, Exact>;

impl Arithmetic for Exact {
    type Sum = i32;

    #[inline(always)]
    unsafe fn value<S: Simd>(s: S, epilogue: &Epilogue<'_>, sums: *const i32, bias: Option<S::F>, residual: Option<S::F>) -> S::F {
        // SAFETY: the caller's promise.
        let mut value = round::round_units(s, unsafe { s.load_int(sums) });
        if let Some(scale) = epilogue.scale {
            value = round::mul(s, value, s.splat(scale));
        }
        if let Some(bias) = bias {
            value = round::add(s, value, round::coerce(s, bias));
        }
        match (residual, epilogue.residual) {
            (Some(add), Some(Residual { before_activation: true, .. })) => {
                function(s, epilogue.activation, round::add(s, value, round::coerce(s, add)))
            }
            (Some(add), _) => {
                let value = function(s, epilogue.activation, value);
                round::add(s, value, round::coerce(s, add))
            }
            _ => function(s, epilogue.activation, value),
        }
    }
}

/// Comparisons and squares are exact rules; every other function here is the f32 one, rounded
/// half away: a model of the engine's tables, not their bits.
#[inline(always)]
pub(crate) fn function<S: Simd>(s: S, activation: Activation, value: S::F) -> S::F {
    match activation {
        Activation::None | Activation::Relu | Activation::Clip(..) => activate(s, activation, value),
        Activation::Square => round::mul(s, value, value),
        other => round::half_away(s, activate(s, other, value), round::STORE_LIMIT),
    }
}
