//! Which programs compute with whole numbers that every device holds exactly.

use super::trace::{Trace, Tracer};
use aneforge_mil::Array;
use aneforge_mil::op::{Arguments, Arithmetic, MilOp, PortKind};

/// Largest whole number up to which fp16 has every one.
pub(super) const LIMIT: f64 = 2048.0;

/// Operators that add and multiply: exact on whole numbers as long as their sums of magnitudes stay below [`LIMIT`], though their
/// tolerance on reals is not 0.
const SUMS: &[&str] = &[
    "add",
    "sub",
    "mul",
    "square",
    "matmul",
    "linear",
    "conv",
    "conv_transpose",
    "reduce_sum",
    "reduce_l1_norm",
    "reduce_sum_square",
    "cumsum",
    "cast",
];

fn sums(op: &MilOp) -> bool {
    SUMS.contains(&op.name)
}

/// Whether an operator gives exact results for whole numbers on every device: it moves or chooses values, or it is one of [`SUMS`].
fn exact(op: &MilOp) -> bool {
    sums(op) || op.arithmetic == Arithmetic::Copy || op.tolerance == 0.0
}

fn fits(array: &Array) -> bool {
    array.data.iter().all(|value| value.fract() == 0.0 && value.abs() <= LIMIT)
}

/// Whether every operation of a program is exact and every value it makes a whole number of at most [`LIMIT`], sums on the way to
/// it included: those are bounded by what the operator makes of the magnitudes of its arguments.
pub(super) fn holds(tracer: &Tracer<'_>, trace: &Trace, inputs: &[Array]) -> bool {
    let results = || tracer.body.operations.iter().flat_map(|operation| &operation.outputs);
    inputs.iter().all(fits)
        && tracer.body.operations.iter().all(|operation| exact(operation.op))
        && results().all(|&id| trace.get(id).is_some_and(fits))
        && tracer.body.operations.iter().filter(|operation| sums(operation.op)).all(|operation| {
            let mut ports = tracer.ports(operation, &|id| trace.get(id).cloned());
            for (spec, arguments) in operation.op.ports.iter().zip(&mut ports) {
                if spec.kind != PortKind::Constant {
                    let values = arguments.iter_mut().filter_map(|argument| argument.value.as_mut());
                    values.filter(|array| array.ty.dtype.is_float()).for_each(|array| {
                        array.data.iter_mut().for_each(|value| *value = value.abs());
                    });
                }
            }
            let bound = (operation.op.meaning)(&Arguments { op: operation.op, ports: &ports });
            bound.is_ok_and(|bounds| bounds.iter().all(|array| array.data.iter().all(|value| value.abs() <= LIMIT)))
        })
}
