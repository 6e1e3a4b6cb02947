//! A body in f64 with every value kept.

use aneforge_mil::op::{Argument, Arguments};
use aneforge_mil::{Array, Body, Constant, Operation, ValueId};

/// A body with its constants read once.
pub(super) struct Tracer<'a> {
    pub body: &'a Body,
    constants: Vec<Option<Argument>>,
}

/// What of an operation may be altered.
pub(super) enum When<'a> {
    /// Its arguments, per port.
    Before(&'a mut [Vec<Argument>]),
    /// Its results.
    After(&'a mut [Array]),
}

/// Every value of one evaluation.
pub(super) struct Trace(Vec<Option<Array>>);

impl Trace {
    pub fn get(&self, id: ValueId) -> Option<&Array> {
        self.0.get(id.index()).and_then(Option::as_ref)
    }
}

impl<'a> Tracer<'a> {
    /// Reads the constants.
    ///
    /// # Errors
    /// The name of a constant that cannot be read.
    pub fn new(body: &'a Body) -> Result<Self, String> {
        let mut constants = Vec::with_capacity(body.values.len());
        for (index, value) in body.values.iter().enumerate() {
            constants.push(match body.constant(ValueId(index as u32)) {
                None => None,
                Some(Constant::Text(text)) => Some(Argument::string(text.clone())),
                Some(constant) => {
                    let array = constant.to_array(&value.ty).ok_or_else(|| format!("constant {:?} cannot be read", value.name))?;
                    Some(Argument::valued(array))
                }
            });
        }
        Ok(Self { body, constants })
    }

    /// Evaluates; `change` may alter the results of each operation before they are used.
    ///
    /// # Errors
    /// As [`Self::run_with`].
    pub fn run(&self, inputs: &[Array], change: &mut dyn FnMut(&Operation, &mut [Array])) -> Result<Trace, String> {
        self.run_with(inputs, &mut |operation, when| {
            if let When::After(results) = when {
                change(operation, results)
            }
        })
    }

    /// Evaluates; `change` may alter the arguments and the results of each operation.
    ///
    /// # Errors
    /// What an operator refuses, with the name of its first result.
    pub fn run_with(&self, inputs: &[Array], change: &mut dyn FnMut(&Operation, When<'_>)) -> Result<Trace, String> {
        let mut values: Vec<Option<Array>> = vec![None; self.body.values.len()];
        for (&id, array) in self.body.inputs.iter().zip(inputs) {
            values[id.index()] = Some(array.clone());
        }
        for operation in &self.body.operations {
            let mut ports = self.ports(operation, &|id| values[id.index()].clone());
            change(operation, When::Before(&mut ports));
            let meant = Arguments::checked(operation.op, &ports).and_then(|arguments| (operation.op.meaning)(&arguments));
            let mut results = meant.map_err(|error| {
                let name = operation.outputs.first().map_or("", |&id| &self.body.value(id).name);
                format!("{name}: {error}")
            })?;
            change(operation, When::After(&mut results));
            for (&id, result) in operation.outputs.iter().zip(results) {
                values[id.index()] = Some(result);
            }
        }
        Ok(Trace(values))
    }

    /// The arguments of an operation per port.
    pub fn ports(&self, operation: &Operation, value: &dyn Fn(ValueId) -> Option<Array>) -> Vec<Vec<Argument>> {
        let argument = |&id: &ValueId| match (&self.constants[id.index()], value(id)) {
            (Some(constant), _) => constant.clone(),
            (None, Some(array)) => Argument { constant: false, ..Argument::valued(array) },
            (None, None) => Argument::typed(self.body.ty(id).clone()),
        };
        operation.arguments.iter().map(|operand| operand.values().iter().map(argument).collect()).collect()
    }

    /// The outputs of an evaluation, not rounded.
    pub fn outputs(&self, trace: &Trace) -> Vec<Array> {
        let output = |id: ValueId| match &self.constants[id.index()] {
            Some(constant) => constant.value.clone(),
            None => trace.get(id).cloned(),
        };
        self.body.outputs.iter().filter_map(|found| output(found.value)).collect()
    }
}
