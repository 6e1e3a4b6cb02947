//! Operators that are layers of the engine itself, reached through a net.plist beside the program's text.
//!
//! They lower to records of [`aneforge_native`], which MIL text cannot name: a program that uses one is cut into segments when it is
//! compiled. Limits are those of the layers; where a layer takes one fixed layout, the lowering moves the axes there and back.

mod attention;
mod geometry;
mod normal;
mod parts;
mod rank;
mod rearrange;

pub use attention::*;
pub use geometry::*;
pub use normal::*;
pub use parts::*;
pub use rank::*;
pub use rearrange::*;

use super::*;
use aneforge_native::Layer;

/// What the engine's layers hold.
pub(super) const HALF: &[DType] = &[DType::Fp16];

/// A single input of a native layer.
pub(super) const X_HALF: &[InputSpec] = &[input("x", HALF)];

/// A record of an operator on native layers.
pub(super) const fn native(name: &'static str, summary: &'static str, lower: LowerRule) -> GraphOp {
    GraphOp { inputs: X_HALF, lower, ..direct(name, summary) }
}

/// Adds a layer.
pub(super) fn layer(l: &mut Lowering, layer: &'static Layer, arguments: &[(&str, Arg)]) -> Result<ValueId, GraphError> {
    let results = l.record(&layer.op, arguments)?;
    results.first().copied().ok_or(GraphError::NoOutputs)
}

/// A value with four axes, the missing ones of extent 1 in front.
pub(super) fn four(l: &mut Lowering, value: ValueId) -> Result<ValueId, GraphError> {
    let shape = padded(l.shape(value));
    l.reshaped(value, &shape)
}

/// A shape of up to four axes with ones in front.
pub(super) fn padded(shape: &[usize]) -> Vec<usize> {
    let mut padded = vec![1; 4usize.saturating_sub(shape.len())];
    padded.extend_from_slice(shape);
    padded
}

/// Extents as the numbers that tensors' methods take.
fn signed(extents: &[usize]) -> Vec<i64> {
    extents.iter().map(|&extent| extent as i64).collect()
}

/// Whether a shape fits the four axes of a layer.
pub(super) fn fits(s: &Site<'_>, input: &str) -> bool {
    (1..=4).contains(&s.rank(input))
}

/// The name of an axis of a tensor of up to four axes; `None` for the batch, the first of four.
pub(super) fn dimension(rank: usize, axis: usize) -> Option<&'static str> {
    [None, Some("Channel"), Some("Height"), Some("Width")].get(axis + 4usize.checked_sub(rank)?).copied().flatten()
}

/// A word for a layer's parameter.
pub(super) fn word(text: &str) -> Arg {
    Arg::from(text)
}

/// An integer for a layer's parameter.
pub(super) fn int_arg(value: usize) -> Arg {
    Arg::Int(DType::Int32, i64::try_from(value).unwrap_or(i64::MAX))
}

/// The rule that a tensor has one to four axes, with a use that breaks it.
pub(super) const AXES: &str = "x has one to four axes: merge some with reshape";

/// The operators of this family, in the order of the public list of native layers.
pub(super) const ALL: &[&GraphOp] = &[
    &SDPA,
    &ARGMAX,
    &TOPK,
    &SORT,
    &CROSS_PRODUCT,
    &CROSS_CORRELATION,
    &COST_VOLUME,
    &FPS,
    &RADIUS_SEARCH,
    &MINMAX_NORM,
    &LRN,
    &SPACE_TO_CHANNEL,
    &CHANNEL_TO_SPACE,
    &SPACE_TO_BATCH,
    &BATCH_TO_SPACE,
    &FLATTEN,
    &INPUT_VIEW,
    &DYNAMIC_SLICE,
    &SCALED_ELEMENTWISE,
];
