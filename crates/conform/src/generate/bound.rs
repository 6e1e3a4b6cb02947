//! How far devices may differ on a program: the records' tolerances, carried through it.
//!
//! A record says how large the error of a careful device may be, relative to the largest magnitude in the exact result. Errors of
//! several times that size are added to the result of every operation, in one direction everywhere and then at random, and what
//! comes out of the program is compared with the exact outputs: the largest change is the bound. Where a value lies so near to a
//! jump that these errors push it over, the change is large, and the output says nothing.

use super::draws::Draws;
use super::trace::{Tracer, When};
use aneforge_mil::Array;
use aneforge_mil::op::{Arithmetic, MilOp, PortKind};

/// Whose errors are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arithmetics {
    /// fp16 storage, f32 accumulation.
    Processor,
    /// The engine's, of which part is modelled.
    Engine,
}

/// Bound of one output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    /// Largest difference allowed.
    pub allowed: f64,
    /// Whether that is small enough, against the largest value, for a comparison to say anything.
    pub sound: bool,
}

/// How many times its stated tolerance each operation errs.
const FACTOR: f64 = 4.0;

/// Evaluations with errors of random signs, beside the two in which all have the same sign.
const RANDOM_RUNS: usize = 4;

/// Half the distance of fp16 numbers near 1: every stored value may be off by so much.
const ROUNDING: f64 = 1.0 / 2048.0;

/// Share of the largest value beyond which a bound says nothing.
const LARGEST_SHARE: f64 = 0.25;

impl Arithmetics {
    /// Error of an operation relative to its largest result.
    fn tolerance(self, op: &MilOp) -> f64 {
        let stated = if op.tolerance == 0.0 { 0.0 } else { op.tolerance.max(ROUNDING) };
        if self == Self::Processor || stated == 0.0 || !is_modelled(op) {
            return stated;
        }
        // The engine's tables and reductions are modelled: right size, other bits. Near the seams of their domains the published
        // worst errors of these three are 0.04 to 0.12 (ANE guide, arXiv 2606.22283, chapter 3).
        stated.max(if matches!(op.name, "sin" | "cos" | "atan") { 4e-2 } else { 1e-2 })
    }

    /// Whether an operation may answer otherwise where its exact arguments lie on a jump: the engine rounds ties away from zero.
    fn jumps(self, op: &MilOp) -> bool {
        self == Self::Engine && op.tolerance == 0.0 && is_modelled(op)
    }

    /// Error whatever the size of the result: subnormal numbers on a processor, the grid of products on the engine.
    fn least(self) -> f64 {
        match self {
            Self::Processor => 6e-8,
            Self::Engine => 2.5e-4,
        }
    }
}

fn is_modelled(op: &MilOp) -> bool {
    matches!(op.arithmetic, Arithmetic::Modelled(_) | Arithmetic::Unknown)
}

/// The bound of each output; `exact` are the outputs without errors.
///
/// # Errors
/// Where an operator refuses a value with an error in it.
pub(super) fn bounds(
    tracer: &Tracer<'_>,
    inputs: &[Array],
    exact: &[Array],
    arithmetics: Arithmetics,
    seed: u64,
) -> Result<Vec<Bound>, String> {
    let mut draws = Draws::new(seed);
    let mut changes = vec![0.0f64; exact.len()];
    for run in 0..RANDOM_RUNS + 2 {
        let mut direction = || match run {
            0 => 1.0,
            1 => -1.0,
            _ => draws.unit() * 2.0 - 1.0,
        };
        let trace = tracer.run_with(inputs, &mut |operation, when| match when {
            When::Before(ports) if arithmetics.jumps(operation.op) => {
                for (spec, arguments) in operation.op.ports.iter().zip(ports) {
                    let moved = arguments.iter_mut().filter(|_| spec.kind != PortKind::Constant);
                    for array in moved.filter_map(|argument| argument.value.as_mut()).filter(|array| array.ty.dtype.is_float()) {
                        array.data.iter_mut().for_each(|value| *value += ROUNDING * value.abs() * direction());
                    }
                }
            }
            When::Before(_) => {}
            When::After(results) => {
                let tolerance = arithmetics.tolerance(operation.op);
                for result in results.iter_mut().filter(|result| tolerance > 0.0 && result.ty.dtype.is_float()) {
                    let amplitude = FACTOR * (tolerance * largest(result) + arithmetics.least());
                    result.data.iter_mut().for_each(|value| *value += amplitude * direction());
                }
            }
        })?;
        for ((changed, exact), change) in tracer.outputs(&trace).iter().zip(exact).zip(&mut changes) {
            *change = changed.data.iter().zip(&exact.data).map(|(a, b)| distance(*a, *b)).fold(*change, f64::max);
        }
    }
    let bound = |(change, exact): (f64, &Array)| {
        let scale = largest(exact);
        // Devices store fp16 also where the program says fp32.
        let rounding = ROUNDING * scale + arithmetics.least();
        let allowed = 1.5 * change + 2.0 * rounding;
        // What a change makes of a mask or an index is all or nothing.
        let sound = if exact.ty.dtype.is_float() { allowed <= LARGEST_SHARE * scale + 1e-3 } else { change == 0.0 };
        Bound { allowed: if exact.ty.dtype.is_float() { allowed } else { 0.0 }, sound }
    };
    Ok(changes.into_iter().zip(exact).map(bound).collect())
}

/// Largest magnitude.
pub(super) fn largest(array: &Array) -> f64 {
    array.data.iter().fold(0.0, |most, value| value.abs().max(most))
}

/// How far two values are apart; NaN is infinitely far from everything.
pub(super) fn distance(a: f64, b: f64) -> f64 {
    let apart = (a - b).abs();
    if a == b {
        0.0
    } else if apart.is_nan() {
        f64::INFINITY
    } else {
        apart
    }
}
