//! The meaning of a body, computed in f64 with nothing rounded on the way.

use aneforge_mil::op::{Argument, Arguments, OpError};
use aneforge_mil::{Array, Body, Constant, Operation, TensorType, ValueId};

/// Why a body cannot be evaluated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EvaluateError {
    /// Another number of inputs than the body has.
    #[error("the program takes {needed} inputs ({names}), {given} were given")]
    InputCount {
        /// Inputs of the body.
        needed: usize,
        /// Their names.
        names: String,
        /// Inputs given.
        given: usize,
    },
    /// An input of another type or shape.
    #[error("input {name:?} is {needed}, got {given}")]
    Input {
        /// Name of the input.
        name: String,
        /// Its type.
        needed: TensorType,
        /// What was given.
        given: TensorType,
    },
    /// A constant whose data cannot be read.
    #[error("constant {name:?} cannot be read")]
    Constant {
        /// Its name.
        name: String,
    },
    /// An operator refuses its arguments.
    #[error("{value}: {source}")]
    Operator {
        /// Name of the result.
        value: String,
        /// Why.
        source: OpError,
    },
    /// A value is used before it is computed.
    #[error("value {name:?} is used before it is computed")]
    Order {
        /// Its name.
        name: String,
    },
}

/// What sees the operations of a program while it is evaluated.
pub type Observer<'a> = dyn FnMut(&Operation, &[&Array], &[Array]) + 'a;

/// Computes the outputs of `body` for `inputs`, given in the order of [`Body::inputs`].
///
/// Each operation's meaning is applied to f64 values as they are; constants are read at each use and values are dropped after
/// their last use, so memory stays near that of the live activations.
///
/// # Errors
/// [`EvaluateError`], naming the value that could not be computed.
pub fn evaluate(body: &Body, inputs: &[Array]) -> Result<Vec<Array>, EvaluateError> {
    evaluate_with(body, inputs, &mut |_, _, _| {})
}

/// [`evaluate`] that shows each operation to an observer, with the values of its arguments, port by port, and of its results.
///
/// # Errors
/// As [`evaluate`].
pub fn evaluate_with(body: &Body, inputs: &[Array], observe: &mut Observer<'_>) -> Result<Vec<Array>, EvaluateError> {
    let mut values: Vec<Option<Array>> = vec![None; body.values.len()];
    if inputs.len() != body.inputs.len() {
        let names: Vec<_> = body.inputs.iter().map(|&id| body.value(id).name.as_str()).collect();
        return Err(EvaluateError::InputCount { needed: body.inputs.len(), names: names.join(", "), given: inputs.len() });
    }
    for (&id, array) in body.inputs.iter().zip(inputs) {
        if array.ty != *body.ty(id) {
            let value = body.value(id);
            return Err(EvaluateError::Input { name: value.name.clone(), needed: value.ty.clone(), given: array.ty.clone() });
        }
        values[id.index()] = Some(array.clone());
    }
    let mut remaining = body.use_counts();
    for operation in &body.operations {
        let mut ports = Vec::with_capacity(operation.arguments.len());
        for operand in &operation.arguments {
            ports.push(operand.values().iter().map(|&id| argument(body, &values, id)).collect::<Result<Vec<_>, _>>()?);
        }
        let name = || operation.outputs.first().map_or(String::new(), |&id| body.value(id).name.clone());
        let results = Arguments::checked(operation.op, &ports)
            .and_then(|arguments| (operation.op.meaning)(&arguments))
            .map_err(|source| EvaluateError::Operator { value: name(), source })?;
        let given: Vec<&Array> = ports.iter().flatten().filter_map(|argument| argument.value.as_ref()).collect();
        observe(operation, &given, &results);
        for (&id, result) in operation.outputs.iter().zip(results) {
            values[id.index()] = Some(result);
        }
        for &id in operation.arguments.iter().flat_map(|operand| operand.values()) {
            remaining[id.index()] -= 1;
            if remaining[id.index()] == 0 {
                values[id.index()] = None;
            }
        }
    }
    body.outputs.iter().map(|output| array(body, &values, output.value)).collect()
}

fn argument(body: &Body, values: &[Option<Array>], id: ValueId) -> Result<Argument, EvaluateError> {
    match body.constant(id) {
        Some(Constant::Text(text)) => Ok(Argument::string(text.clone())),
        _ => array(body, values, id).map(Argument::valued),
    }
}

fn array(body: &Body, values: &[Option<Array>], id: ValueId) -> Result<Array, EvaluateError> {
    let value = body.value(id);
    match body.constant(id) {
        Some(constant) => constant.to_array(&value.ty).ok_or_else(|| EvaluateError::Constant { name: value.name.clone() }),
        None => values[id.index()].clone().ok_or_else(|| EvaluateError::Order { name: value.name.clone() }),
    }
}
