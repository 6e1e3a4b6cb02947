//! A body with every intermediate rounded to its element type, which is harsher than any device.

use aneforge_mil::op::Arguments;
use aneforge_mil::{Array, Body, Constant, ValueKind};

/// The first result, for inputs in the order of the body.
pub fn run(body: &Body, inputs: &[Array]) -> Vec<f64> {
    let mut values: Vec<Option<Array>> = body
        .values
        .iter()
        .map(|value| match &value.kind {
            ValueKind::Constant(constant) => constant.to_array(&value.ty),
            _ => None,
        })
        .collect();
    for (&id, input) in body.inputs.iter().zip(inputs) {
        values[id.index()] = Some(input.clone());
    }
    for operation in &body.operations {
        let mut ports = body.argument_ports(&operation.arguments);
        for (port, operand) in ports.iter_mut().zip(&operation.arguments) {
            for (argument, id) in port.iter_mut().zip(operand.values()) {
                if !matches!(body.constant(*id), Some(Constant::Text(_))) {
                    argument.value = values[id.index()].clone();
                }
            }
        }
        let results = (operation.op.meaning)(&Arguments::checked(operation.op, &ports).unwrap()).unwrap();
        for (id, result) in operation.outputs.iter().zip(results) {
            values[id.index()] = Some(result.rounded());
        }
    }
    values[body.outputs[0].value.index()].take().unwrap().data
}
