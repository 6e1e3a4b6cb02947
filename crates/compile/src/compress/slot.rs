//! Where a program keeps its large weights, and which of their axes are channels.

use crate::rewrite::{known_values, one};
use aneforge_mil::{Body, Constant, DType, Operation, ValueId};
use std::collections::HashMap;

/// Elements below which a weight is left alone: what it would save is less than what it costs. coremltools has the same default.
pub const WEIGHT_THRESHOLD: usize = 2048;

/// A weight that can be compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The constant.
    pub value: ValueId,
    /// Operator that uses it first.
    pub op: &'static str,
    /// SSA name of that operator's result.
    pub user: String,
    /// Axis of the output channels: each has its own scale.
    pub channel_axis: usize,
    /// Axis of the input channels, along which products are summed; blocks are cut along it.
    pub input_axis: usize,
}

/// The fp16 weights of at least `threshold` elements that `conv`, `conv_transpose`, `linear`, `matmul` and `gather` read, in
/// program order.
pub fn slots(body: &Body, threshold: usize) -> Vec<Slot> {
    let mut found: HashMap<ValueId, Slot> = HashMap::new();
    let mut order = Vec::new();
    for operation in &body.operations {
        for (value, channel_axis, input_axis) in weights(body, operation) {
            let ty = body.ty(value);
            let large = ty.dtype == DType::Fp16 && ty.count() >= threshold;
            if !large || !matches!(body.constant(value), Some(Constant::Weight(_))) || found.contains_key(&value) {
                continue;
            }
            let user = operation.outputs.first().map(|&id| body.value(id).name.clone()).unwrap_or_default();
            order.push(value);
            found.insert(value, Slot { value, op: operation.op.name, user, channel_axis, input_axis });
        }
    }
    order.into_iter().filter_map(|value| found.remove(&value)).collect()
}

/// The weights of an operation with their axes of output and input channels.
fn weights(body: &Body, operation: &Operation) -> Vec<(ValueId, usize, usize)> {
    let port = |name| one(operation, name);
    let rank = |value: ValueId| body.ty(value).rank();
    match operation.op.name {
        "conv" | "linear" => port("weight").filter(|&value| rank(value) >= 2).map(|value| (value, 0, 1)).into_iter().collect(),
        "conv_transpose" => port("weight").filter(|&value| rank(value) >= 2).map(|value| (value, 1, 0)).into_iter().collect(),
        "gather" => {
            let axis = port("axis").and_then(|axis| known_values(body, axis)).and_then(|axis| axis.first().copied());
            let table = port("x").filter(|&value| rank(value) == 2 && axis == Some(0.0));
            table.map(|value| (value, 0, 1)).into_iter().collect()
        }
        "matmul" => [("x", "transpose_x", false), ("y", "transpose_y", true)]
            .into_iter()
            .filter_map(|(name, flag, right)| {
                let value = port(name).filter(|&value| rank(value) >= 2)?;
                let transposed =
                    port(flag).and_then(|flag| known_values(body, flag)).is_some_and(|flag| flag.first() == Some(&1.0));
                let last = rank(value) - 1;
                // y is [..., input, output], x is [..., output, input]; transposing swaps them.
                Some(if right != transposed { (value, last, last - 1) } else { (value, last - 1, last) })
            })
            .collect(),
        _ => Vec::new(),
    }
}
