//! What the tests over native layers share.
#![allow(dead_code, clippy::unwrap_used)]

pub mod broken;

use aneforge_mil::op::{Argument, Arguments, Case, MilOp, OpError, PortKind};
use aneforge_mil::{Array, Body, Constant, Operand, Output, ValueId};
use std::collections::HashMap;

/// Result of one use.
pub fn run(op: &'static MilOp, ports: &[Vec<Argument>]) -> Result<Vec<Array>, OpError> {
    let arguments = Arguments::checked(op, ports)?;
    let types = (op.infer)(&arguments)?;
    let values = (op.meaning)(&arguments)?;
    assert_eq!(types, values.iter().map(|value| value.ty.clone()).collect::<Vec<_>>(), "{}", op.name);
    Ok(values)
}

/// A body of one layer: its activations are inputs, everything else is constant.
pub fn single(op: &'static MilOp, case: &Case) -> (Body, Vec<Array>) {
    let mut body = Body { name: "net".to_string(), ..Body::default() };
    let (mut operands, mut inputs) = (Vec::new(), Vec::new());
    for (spec, given) in op.ports.iter().zip(case.arguments(op)) {
        let mut ids = Vec::new();
        for (index, argument) in given.into_iter().enumerate() {
            let name = format!("{}{}", spec.name, if index == 0 { String::new() } else { index.to_string() });
            let free = matches!(spec.kind, PortKind::Tensor | PortKind::Variadic) && argument.ty.dtype == aneforge_mil::DType::Fp16;
            ids.push(match (argument.value, argument.text) {
                (Some(array), _) if free => {
                    inputs.push(array);
                    body.add_input(name, argument.ty)
                }
                (Some(array), _) => body.add_constant(name, argument.ty, Constant::Values(array.data)),
                (None, text) => body.add_constant(name, argument.ty, Constant::Text(text.unwrap())),
            });
        }
        operands.push(match (spec.kind, ids.as_slice()) {
            (_, []) => Operand::Absent,
            (PortKind::Variadic, _) => Operand::Many(ids),
            _ => Operand::One(ids[0]),
        });
    }
    let types = body.infer(op, &operands).unwrap();
    let results = types.into_iter().map(|ty| ("result".to_string(), ty)).collect();
    let value = body.add_operation(op, operands, results)[0];
    body.outputs.push(Output { name: "y".to_string(), value });
    (body, inputs)
}

/// Values of a body's outputs in f64.
pub fn evaluate(body: &Body, inputs: &[Array]) -> Vec<Array> {
    let mut values: HashMap<ValueId, Array> = body.inputs.iter().copied().zip(inputs.iter().cloned()).collect();
    for operation in &body.operations {
        let argument = |&id: &ValueId| match body.constant(id) {
            Some(Constant::Text(text)) => Argument::string(text.clone()),
            Some(constant) => Argument::valued(constant.to_array(body.ty(id)).unwrap()),
            None => Argument { constant: false, ..Argument::valued(values[&id].clone()) },
        };
        let ports: Vec<Vec<Argument>> = operation.arguments.iter().map(|o| o.values().iter().map(argument).collect()).collect();
        let results = (operation.op.meaning)(&Arguments { op: operation.op, ports: &ports }).unwrap();
        values.extend(operation.outputs.iter().copied().zip(results));
    }
    body.outputs.iter().map(|output| values[&output.value].clone()).collect()
}
