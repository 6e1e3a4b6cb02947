//! What the rewrites look for things with.

use crate::rewrite::{Rewriter, known_values, one};
use crate::{CompileError, Notes};
use aneforge_mil::{Body, Operand, Operation, ValueId};

/// Who reads each value.
pub(super) struct Uses {
    counts: Vec<u32>,
    readers: Vec<Option<u32>>,
}

impl Uses {
    /// The uses of a body's values.
    pub(super) fn of(body: &Body) -> Self {
        let mut readers = vec![None; body.values.len()];
        for (index, operation) in body.operations.iter().enumerate() {
            for id in operation.arguments.iter().flat_map(Operand::values) {
                readers[id.index()].get_or_insert(index as u32);
            }
        }
        Self { counts: body.use_counts(), readers }
    }

    /// The only operation that reads a value, where it is read once and is no result.
    pub(super) fn only<'a>(&self, body: &'a Body, id: ValueId) -> Option<&'a Operation> {
        let reader = self.readers[id.index()].filter(|_| self.counts[id.index()] == 1)?;
        body.operations.get(reader as usize)
    }
}

/// The flag at a port; `None` where it is computed.
pub(super) fn flag(body: &Body, operation: &Operation, port: &str) -> Option<bool> {
    match one(operation, port) {
        None => Some(false),
        Some(id) => known_values(body, id)?.first().map(|&value| value != 0.0),
    }
}

/// The number at a port.
pub(super) fn number(body: &Body, operation: &Operation, port: &str) -> Option<f64> {
    known_values(body, one(operation, port)?)?.first().copied()
}

/// Whether an axis of a value of that rank, counted from the front or the back, is the last.
pub(super) fn is_last(axis: f64, rank: usize) -> bool {
    axis == -1.0 || axis == rank as f64 - 1.0
}

/// The name of an operation's first result.
pub(super) fn name<'a>(body: &'a Body, operation: &Operation) -> &'a str {
    operation.outputs.first().map_or("", |&id| body.value(id).name.as_str())
}

/// Extents as MIL wants them.
pub(super) fn wide(shape: &[usize]) -> Vec<i64> {
    shape.iter().map(|&extent| extent as i64).collect()
}

/// A block of a value along one axis; the value itself where the block is all of it.
pub(super) fn block(
    rewriter: &mut Rewriter<'_>,
    value: ValueId,
    axis: usize,
    range: std::ops::Range<usize>,
    name: &str,
) -> Result<ValueId, CompileError> {
    let builder = rewriter.builder();
    let mut size = wide(&builder.ty(value).shape);
    if range == (0..size[axis] as usize) {
        return Ok(value);
    }
    let mut begin = vec![0i64; size.len()];
    begin[axis] = range.start as i64;
    size[axis] = range.len() as i64;
    Ok(builder.op_named("slice_by_size", &[("x", value.into()), ("begin", begin.into()), ("size", size.into())], name)?)
}

/// Removes what a rewrite left unused, and nothing else: operations that had no use before are kept for the note that says so.
pub(super) fn finished(mut body: Body, changed: bool) -> Body {
    if changed {
        body.compact();
    }
    body
}

/// Notes near misses where there are any to speak of.
pub(super) fn missed(notes: &mut Notes, value: &str, reason: Option<String>) {
    if let Some(reason) = reason {
        notes.missed(value, reason);
    }
}

/// Whether a shape that broadcasts against `of` has the extents of those axes and is constant along all others.
pub(super) fn per_feature(shape: &[usize], of: &[usize], axes: &[usize]) -> bool {
    let Some(front) = of.len().checked_sub(shape.len()) else { return false };
    let extents = std::iter::repeat_n(1, front).chain(shape.iter().copied());
    extents.zip(of).enumerate().all(|(axis, (extent, &whole))| extent == if axes.contains(&axis) { whole } else { 1 })
}
