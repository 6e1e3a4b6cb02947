//! How far results may lie from the exact ones.

use aneforge_mil::op::Arithmetic;
use aneforge_mil::{Array, Body};

/// Largest error of an operator whose arithmetic on the engine is modelled: the published errors of single operators (arXiv
/// 2606.17090, vocabulary sweep) go up to 1.9e-2, that of arctangent.
const MODELLED: f64 = 5e-2;
/// Smallest tolerance of a device that computes: one rounding to fp16.
const ROUNDING: f64 = 1e-3;

/// What kind of arithmetic a device has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arith {
    /// f64, results rounded once.
    Wide,
    /// fp16 values and wider sums.
    Half,
    /// The engine's.
    Engine,
    /// None: nothing to compare.
    Null,
}

/// The error allowed for a program on a device, relative to the largest exact result.
pub(super) fn allowed(body: &Body, arithmetic: Arith, tolerance: f64) -> f64 {
    let all = |wanted: fn(Arithmetic) -> bool| body.operations.iter().all(|operation| wanted(operation.op.arithmetic));
    match arithmetic {
        _ if all(|arithmetic| arithmetic == Arithmetic::Copy) => 0.0,
        Arith::Null => f64::INFINITY,
        Arith::Wide => ROUNDING,
        Arith::Engine if !all(|arithmetic| matches!(arithmetic, Arithmetic::Copy | Arithmetic::Exact(_))) => {
            MODELLED.max(tolerance)
        }
        Arith::Half | Arith::Engine => tolerance.max(ROUNDING),
    }
}

/// The largest difference relative to the largest finite magnitude of `wanted`; infinite where types differ, or where infinities and
/// NaN are in other places.
pub(super) fn difference(got: &Array, wanted: &Array) -> f64 {
    if got.ty != wanted.ty || got.data.len() != wanted.data.len() {
        return f64::INFINITY;
    }
    let scale = wanted.data.iter().filter(|value| value.is_finite()).fold(1e-3f64, |most, value| most.max(value.abs()));
    let worst = got.data.iter().zip(&wanted.data).map(|(got, wanted)| match () {
        () if got == wanted || (got.is_nan() && wanted.is_nan()) => 0.0,
        () if got.is_finite() && wanted.is_finite() => (got - wanted).abs() / scale,
        () => f64::INFINITY,
    });
    worst.fold(0.0, f64::max)
}
