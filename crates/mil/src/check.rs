//! Types the operations of a [`Body`] from the operator table: what every builder, pass and reader of bodies checks with.

use crate::op::{Argument, Arguments, MilOp, OpError};
use crate::{Body, Constant, Operand, TensorType, ValueId};

/// Constants up to this many elements are handed to an operator's rules with their values; larger ones with their type alone.
pub const SMALL_CONSTANT: usize = 4096;

impl Body {
    /// A value as an operator's rules see it.
    pub fn argument(&self, id: ValueId) -> Argument {
        let ty = self.ty(id);
        match self.constant(id) {
            // A compressed weight is known when the program is compiled, though nobody expands it to look.
            None if self.producer(id).is_some_and(|producer| producer.op.expands_weight()) => Argument::known(ty.clone()),
            None => Argument::typed(ty.clone()),
            Some(Constant::Text(text)) => Argument::string(text.clone()),
            Some(constant) if ty.count() <= SMALL_CONSTANT => {
                constant.to_array(ty).map_or_else(|| Argument::known(ty.clone()), Argument::valued)
            }
            Some(_) => Argument::known(ty.clone()),
        }
    }

    /// The arguments of a use of an operator, one list per port.
    pub fn argument_ports(&self, arguments: &[Operand]) -> Vec<Vec<Argument>> {
        arguments.iter().map(|operand| operand.values().iter().map(|&id| self.argument(id)).collect()).collect()
    }

    /// Checks a use of an operator against its record and gives the types of its results.
    ///
    /// # Errors
    /// The first rule broken.
    pub fn infer(&self, op: &'static MilOp, arguments: &[Operand]) -> Result<Vec<TensorType>, OpError> {
        let ports = self.argument_ports(arguments);
        (op.infer)(&Arguments::checked(op, &ports)?)
    }

    /// Checks the whole body: uses come after definitions, every operation is legal and has the types its record infers,
    /// states keep their types.
    ///
    /// # Errors
    /// The first fault, with the operation's place and name.
    pub fn verify(&self) -> Result<(), VerifyError> {
        let mut defined: Vec<bool> = self.values.iter().map(|v| !matches!(v.kind, crate::ValueKind::Result { .. })).collect();
        for (index, operation) in self.operations.iter().enumerate() {
            let fault = |problem: String| VerifyError {
                op: operation.op.name,
                index,
                name: operation.outputs.first().map(|&id| self.value(id).name.clone()).unwrap_or_default(),
                problem,
            };
            let used = operation.arguments.iter().flat_map(Operand::values);
            if let Some(id) = used.copied().find(|id| !defined.get(id.index()).copied().unwrap_or(false)) {
                return Err(fault(format!("uses value {} before it is made", id.0)));
            }
            let inferred = self.infer(operation.op, &operation.arguments).map_err(|error| fault(error.to_string()))?;
            let held: Vec<TensorType> = operation.outputs.iter().map(|&id| self.ty(id).clone()).collect();
            if inferred != held {
                let show = |types: &[TensorType]| types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                return Err(fault(format!("holds {} but its record gives {}", show(&held), show(&inferred))));
            }
            for id in &operation.outputs {
                defined[id.index()] = true;
            }
        }
        let end = |op, name: &str, problem: &str| VerifyError {
            op,
            index: self.operations.len(),
            name: name.to_string(),
            problem: problem.to_string(),
        };
        let made = |id: ValueId| defined.get(id.index()).copied().unwrap_or(false);
        if let Some(output) = self.outputs.iter().find(|output| !made(output.value)) {
            return Err(end("return", &output.name, "is never made"));
        }
        for state in &self.states {
            if !made(state.result) {
                return Err(end("write_state", &state.name, "is never made"));
            }
            if self.ty(state.input) != self.ty(state.result) {
                let problem = format!("keeps {} in a state of type {}", self.ty(state.result), self.ty(state.input));
                return Err(end("write_state", &state.name, &problem));
            }
        }
        Ok(())
    }
}

/// A body that breaks its own rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("operation {index} ({op} {name:?}): {problem}")]
pub struct VerifyError {
    /// Operator keyword.
    pub op: &'static str,
    /// Position in the body.
    pub index: usize,
    /// First result, or the output's name.
    pub name: String,
    /// What is wrong.
    pub problem: String,
}
