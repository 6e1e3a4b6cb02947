//! Reads and writes of buffers that live across calls: the order of effects becomes one value before and one after.

use super::ReadFault;
use super::function::{Importer, mismatch};
use super::value::{DeclaredType, declared};
use crate::proto::{self, Bound};
use aneforge_mil::{TensorType, ValueId};

impl<'a> Importer<'a> {
    /// Adds a state of the signature.
    pub fn state(&mut self, name: &'a str, ty: TensorType) -> Result<(), ReadFault> {
        if self.scope.contains_key(name) || self.states.contains_key(name) {
            return Err(ReadFault::Duplicate { name: name.to_string() });
        }
        self.states.insert(name, self.body.states.len());
        self.taken.insert(name.to_string());
        let contents = self.unique(&format!("{name}_contents"));
        self.body.add_state(name, contents, ty);
        Ok(())
    }

    /// Whether the operation reads or writes a state, which is then done.
    pub(super) fn effect(&mut self, operation: &'a proto::Operation) -> Result<bool, ReadFault> {
        let (state, data) = match operation.op.as_str() {
            "read_state" => ("input", None),
            "write_state" => ("input", Some("data")),
            // coremltools' word for a write that gives what it wrote.
            "coreml_update_state" => ("state", Some("value")),
            _ => return Ok(false),
        };
        let index = match self.named(operation, state)? {
            name if self.states.contains_key(name) => self.states[name],
            name => return Err(ReadFault::Undefined { name: name.to_string() }),
        };
        if let Some(data) = data {
            let value = self.lookup(self.named(operation, data)?)?;
            let (held, given) = (self.body.ty(self.body.states[index].input), self.body.ty(value));
            if held != given {
                let declared = DeclaredType { dtype: held.dtype, shape: held.shape.iter().copied().map(Some).collect() };
                return Err(mismatch(&self.body.states[index].name, &declared, given));
            }
            self.body.states[index].result = value;
            if operation.outputs.is_empty() {
                return Ok(true);
            }
        }
        self.gives(operation, self.body.states[index].result)?;
        Ok(true)
    }

    /// The name at a port that takes one.
    fn named(&self, operation: &'a proto::Operation, port: &str) -> Result<&'a str, ReadFault> {
        let count = |count| ReadFault::Count { port: port.to_string(), count };
        let argument = operation.inputs.get(port).ok_or_else(|| count(0))?;
        match argument.arguments.as_slice() {
            [proto::Binding { bound: Some(Bound::Name(name)) }] => Ok(name),
            others => Err(count(others.len())),
        }
    }

    fn gives(&mut self, operation: &'a proto::Operation, value: ValueId) -> Result<(), ReadFault> {
        let [port] = operation.outputs.as_slice() else {
            return Err(ReadFault::ResultCount { declared: operation.outputs.len(), inferred: 1 });
        };
        let declared = declared(&port.name, port.ty.as_ref())?;
        let ty = self.body.ty(value);
        if !declared.admits(ty) {
            return Err(mismatch(&port.name, &declared, ty));
        }
        self.bind(&port.name, value)
    }
}
