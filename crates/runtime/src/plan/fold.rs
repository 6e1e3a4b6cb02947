//! Evaluates what does not depend on the inputs, once, when a program is loaded.

use crate::reference::argument_ports;
use crate::{DeviceError, element};
use aneforge_mil::op::Arguments;
use aneforge_mil::{Body, Constant, Operand, ValueKind, Weight, pack};

/// Rounds results of the f64 meaning to what a device stores.
pub(crate) type Store<'a> = dyn Fn(&mut [f64]) + 'a;

/// Replaces every operation whose operands are all constants (compressed weights first of all) by its results, and drops
/// operations that nothing uses. `store` rounds fp16 results the way the device does.
pub(crate) fn fold(body: &Body, store: &Store<'_>) -> Result<Body, DeviceError> {
    let mut folded = body.clone();
    for operation in &body.operations {
        let operands: Vec<_> = operation.arguments.iter().flat_map(Operand::values).collect();
        if operands.is_empty() || !operands.iter().all(|id| folded.constant(**id).is_some()) {
            continue;
        }
        let ports = argument_ports(&folded, operation, &|_| None);
        let results = (operation.op.meaning)(&Arguments { op: operation.op, ports: &ports })?;
        for (&id, mut result) in operation.outputs.iter().zip(results) {
            let ty = folded.ty(id).clone();
            // Weights are expanded by the compiler, not by the engine: written below, to nearest even on every device.
            if !operation.op.expands_weight() {
                store(&mut result.data);
            }
            let mut bytes = vec![0; element::byte_length(&ty).unwrap_or(0)];
            if ty.dtype.bits() < 8 {
                // The mask of a sparse weight on its way to the operator that fills in the zeros.
                bytes = pack(ty.dtype, &result.data);
            } else {
                element::write(ty.dtype, &result.data, &mut bytes)
                    .ok_or_else(|| DeviceError::internal("fold", format!("{} gave something else than {ty}", operation.op.name)))?;
            }
            folded.values[id.index()].kind = ValueKind::Constant(Constant::Weight(Weight::from_bytes(ty, bytes)?));
        }
    }
    sweep(&mut folded);
    Ok(folded)
}

/// Drops operations whose results are constants by now or lead nowhere.
fn sweep(body: &mut Body) {
    let mut needed = vec![false; body.values.len()];
    body.roots().for_each(|root| needed[root.index()] = true);
    let mut kept = Vec::with_capacity(body.operations.len());
    for operation in std::mem::take(&mut body.operations).into_iter().rev() {
        let is_needed =
            |id: &aneforge_mil::ValueId| needed[id.index()] && matches!(body.values[id.index()].kind, ValueKind::Result { .. });
        if operation.outputs.iter().any(is_needed) {
            for id in operation.arguments.iter().flat_map(Operand::values) {
                needed[id.index()] = true;
            }
            kept.push(operation);
        }
    }
    kept.reverse();
    for (index, operation) in kept.iter().enumerate() {
        for (output, id) in operation.outputs.iter().enumerate() {
            if let ValueKind::Result { .. } = body.values[id.index()].kind {
                body.values[id.index()].kind = ValueKind::Result { operation: index as u32, output: output as u32 };
            }
        }
    }
    body.operations = kept;
}
