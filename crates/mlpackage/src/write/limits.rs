//! What Core ML does not take although the engine's language does.

use super::WriteError;
use aneforge_mil::op::PortKind;
use aneforge_mil::{Body, Operation, ValueId, ValueKind};

/// Ports whose values Core ML must know when it compiles, although an engine takes computed ones (coremltools 9.0).
const KNOWN: &[(&str, &str)] = &[("conv", "bias"), ("conv_transpose", "weight"), ("conv_transpose", "bias")];

/// Checks a body for what no package can say.
///
/// # Errors
/// [`WriteError::Computed`], [`WriteError::Limit`] and [`WriteError::Passed`].
pub fn check(body: &Body) -> Result<(), WriteError> {
    body.operations.iter().try_for_each(|operation| check_operation(body, operation))?;
    let made = |id: ValueId| matches!(body.value(id).kind, ValueKind::Result { .. } | ValueKind::State);
    match body.outputs.iter().find(|output| !made(output.value)) {
        Some(output) => Err(WriteError::Passed { name: output.name.clone() }),
        None => Ok(()),
    }
}

fn check_operation(body: &Body, operation: &Operation) -> Result<(), WriteError> {
    let op = operation.op;
    let name = || operation.outputs.first().map_or_else(String::new, |&id| body.value(id).name.clone());
    if op.name == "prelu" && !is_prelu(body, operation) {
        let limit = "slopes that differ need an input of four axes: add an axis with expand_dims";
        return Err(WriteError::Limit { op: op.name, name: name(), limit });
    }
    let dilated = op.port("dilations").and_then(|port| operation.arguments.get(port)).is_some_and(|operand| {
        let constant = operand.values().first().and_then(|&id| body.constant(id)?.to_array(body.ty(id)));
        constant.is_some_and(|array| array.data.iter().any(|&step| step != 1.0))
    });
    for (spec, operand) in op.ports.iter().zip(&operation.arguments) {
        let needed = match spec.kind {
            PortKind::Weight | PortKind::Constant | PortKind::Constants => true,
            _ => KNOWN.contains(&(op.name, spec.name)) || (dilated && (op.name, spec.name) == ("conv", "weight")),
        };
        if needed && operand.values().iter().any(|&id| !body.argument(id).constant) {
            return Err(WriteError::Computed { op: op.name, name: name(), port: spec.name });
        }
    }
    Ok(())
}

/// Whether Core ML takes this prelu (coremltools 9.0).
fn is_prelu(body: &Body, operation: &Operation) -> bool {
    let at = |port: &str| operation.op.port(port).and_then(|index| operation.arguments.get(index)?.values().first().copied());
    let slopes = at("alpha").and_then(|id| body.constant(id)?.to_array(body.ty(id)));
    at("x").is_none_or(|id| body.ty(id).rank() == 4)
        || slopes.is_some_and(|slopes| slopes.data.windows(2).all(|pair| pair[0] == pair[1]))
}
