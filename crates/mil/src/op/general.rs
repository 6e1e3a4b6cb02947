//! Rules that hold for every operator, and the only way an operator states its results.

use super::{Argument, Arguments, Constraint, OpError, PortKind};
use crate::{DType, TensorType};

/// Most axes a tensor may have (ANE guide, arXiv 2606.22283, chapter 4: rank 6 is refused).
pub const MAX_RANK: usize = 5;

/// Most elements a tensor may have: the engine's address window is 3.5 GiB (ANE guide, chapter 21).
pub const MAX_ELEMENTS: usize = 1 << 32;

/// Rules checked for every operator before its own. Constants that only configure an operator are exempt.
pub const GENERAL: &[Constraint] = &[
    Constraint {
        label: "G1",
        rule: "a tensor has at most 5 axes: merge axes with reshape first",
        holds: |a| activations(a).all(|argument| argument.ty.rank() <= MAX_RANK),
    },
    Constraint {
        label: "G2",
        rule: "no axis is empty: drop operations on empty tensors",
        holds: |a| activations(a).all(|argument| !argument.ty.shape.contains(&0)),
    },
    Constraint {
        label: "G3",
        rule: "a tensor has at most 2^32 elements: split it",
        holds: |a| a.ports.iter().flatten().all(|argument| small_enough(&argument.ty)),
    },
];

fn activations<'a>(a: &Arguments<'a>) -> impl Iterator<Item = &'a Argument> {
    let moving = |kind| matches!(kind, PortKind::Tensor | PortKind::Variadic);
    a.op.ports.iter().zip(a.ports).filter(move |(spec, _)| moving(spec.kind)).flat_map(|(_, given)| given)
}

fn small_enough(ty: &TensorType) -> bool {
    ty.checked_count().is_some_and(|count| count <= MAX_ELEMENTS)
}

/// One result type, checked against the rules above.
pub fn result(a: &Arguments<'_>, dtype: DType, shape: Vec<usize>) -> Result<Vec<TensorType>, OpError> {
    let ty = TensorType::new(dtype, shape);
    let broken = match () {
        () if ty.rank() > MAX_RANK => 0,
        () if ty.shape.contains(&0) => 1,
        () if !small_enough(&ty) => 2,
        () => return Ok(vec![ty]),
    };
    let arguments = format!("{}; the result would be {ty}", a.describe());
    Err(OpError::Constraint { op: a.op.name, label: GENERAL[broken].label, rule: GENERAL[broken].rule, arguments })
}

/// One result type whose extents were computed in wide integers; negative and huge ones break the same rules.
pub fn computed(a: &Arguments<'_>, dtype: DType, shape: Vec<i128>) -> Result<Vec<TensorType>, OpError> {
    let clamped = shape.into_iter().map(|extent| if extent < 0 { 0 } else { usize::try_from(extent).unwrap_or(usize::MAX) });
    result(a, dtype, clamped.collect())
}
