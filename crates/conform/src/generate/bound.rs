//! How far devices may differ on a program: the records' tolerances, carried through it.
//!
//! A record says how large the error of a careful device may be, relative to the largest magnitude in the exact result. Errors of
//! several times that size are added to the result of every operation, in one direction everywhere and then at random, and what
//! comes out of the program is compared with the exact outputs: the largest change is the bound. Where a value lies so near to a
//! jump that these errors push it over, the change is large, and the output says nothing. Equality is the one jump that errors
//! hide: values that a device rounds to the same number are never equal with errors in them, so that it is tried on a grid as well.

use super::draws::Draws;
use super::trace::{Tracer, When};
use aneforge_mil::op::family::TABLE;
use aneforge_mil::op::{Arithmetic, MilOp, PortKind};
use aneforge_mil::{Array, round_to_fp16};

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

/// What is done to the values of one evaluation.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Run {
    /// Every error has the same sign.
    Same(f64),
    /// Errors of random signs and sizes.
    Random,
    /// Results rounded to fp16, and what is compared for equality to a grid that begins here.
    Grid(f64),
}

/// Evaluations per bound.
const RUNS: [Run; 8] =
    [Run::Same(1.0), Run::Same(-1.0), Run::Grid(0.0), Run::Grid(0.5), Run::Random, Run::Random, Run::Random, Run::Random];

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

    /// Usual error of an operation, for values that come from several.
    fn coarse(self) -> f64 {
        match self {
            Self::Processor => 2e-3,
            Self::Engine => 1e-2,
        }
    }

    /// Error whatever the size of the result: subnormal numbers on a processor, the grid of products on the engine.
    fn least(self) -> f64 {
        match self {
            Self::Processor => 6e-8,
            Self::Engine => 2.5e-4,
        }
    }

    /// [`Self::least`] of one operation. The engine's tables err by an amount that does not shrink with the result: 0.0059 for
    /// gelu is the worst published of those without seams (ANE guide, arXiv 2606.22283, chapter 3).
    fn least_of(self, op: &MilOp) -> f64 {
        if self == Self::Engine && op.arithmetic == TABLE { 6e-3 } else { self.least() }
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
    for run in RUNS {
        let mut direction = || match run {
            Run::Same(sign) => sign,
            Run::Random => draws.unit() * 2.0 - 1.0,
            Run::Grid(_) => 0.0,
        };
        let trace = tracer.run_with(inputs, &mut |operation, when| match when {
            When::Before(ports) => {
                let equality = matches!(operation.op.name, "equal" | "not_equal");
                let values = ports.iter().flatten().filter_map(|argument| argument.value.as_ref());
                let step = FACTOR * arithmetics.coarse() * values.map(largest).fold(0.0, f64::max);
                for (spec, arguments) in operation.op.ports.iter().zip(ports) {
                    let compared = arguments.iter_mut().filter(|_| spec.kind != PortKind::Constant);
                    for array in compared.filter_map(|argument| argument.value.as_mut()).filter(|array| array.ty.dtype.is_float()) {
                        match run {
                            Run::Grid(begin) if equality => to_grid(array, begin, step),
                            Run::Grid(_) => {}
                            _ if arithmetics.jumps(operation.op) => {
                                array.data.iter_mut().for_each(|value| *value += ROUNDING * value.abs() * direction());
                            }
                            _ => {}
                        }
                    }
                }
            }
            When::After(results) => {
                let tolerance = arithmetics.tolerance(operation.op);
                for result in results.iter_mut().filter(|result| tolerance > 0.0 && result.ty.dtype.is_float()) {
                    let amplitude = FACTOR * (tolerance * largest(result) + arithmetics.least_of(operation.op));
                    result.data.iter_mut().for_each(|value| match run {
                        Run::Grid(_) => *value = round_to_fp16(*value).to_f64(),
                        _ => *value += amplitude * direction(),
                    });
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

/// Values moved to the nearest of a grid with some distance; a distance of 0 leaves them.
fn to_grid(array: &mut Array, begin: f64, step: f64) {
    if step > 0.0 {
        array.data.iter_mut().for_each(|value| *value = ((*value / step + begin).round() - begin) * step);
    }
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
