//! Rewrites a body operation by operation: each is copied or replaced by others, uses follow.

use crate::CompileError;
use aneforge_mil::op::OpTable;
use aneforge_mil::{Body, Builder, Constant, DType, Operand, Operation, Output, TensorType, ValueId, ValueKind};
use std::collections::HashMap;

/// Copies `source` into a new body while a pass decides about each operation.
pub struct Rewriter<'a> {
    source: &'a Body,
    builder: Builder,
    mapped: Vec<Option<ValueId>>,
}

impl<'a> Rewriter<'a> {
    /// Starts with the inputs and states of `source` in place.
    pub fn new(source: &'a Body) -> Self {
        let mut table = aneforge_mil::op::builtin().clone();
        // Operators from outside this crate travel with the body that uses them.
        let foreign: Vec<_> =
            source.operations.iter().map(|operation| operation.op).filter(|op| table.get(op.name).is_none()).collect();
        if !foreign.is_empty() {
            table = OpTable::with(&foreign);
        }
        let mut builder = Builder::extending(Body { name: source.name.clone(), ..Body::default() }, table);
        let mut mapped = vec![None; source.values.len()];
        for &input in &source.inputs {
            let value = source.value(input);
            mapped[input.index()] = Some(builder.input(&value.name, value.ty.clone()));
        }
        for state in &source.states {
            let value = source.value(state.input);
            let name = builder.fresh(&value.name);
            mapped[state.input.index()] = Some(builder.body_mut().add_state(&state.name, name, value.ty.clone()));
        }
        Self { source, builder, mapped }
    }

    /// The body that is rewritten.
    pub fn source(&self) -> &'a Body {
        self.source
    }

    /// Writes new operations.
    pub fn builder(&mut self) -> &mut Builder {
        &mut self.builder
    }

    /// The new value for an old one; constants are copied when they are first used.
    ///
    /// # Errors
    /// [`CompileError::Internal`] where the operation that makes it has been neither copied nor replaced yet.
    pub fn value(&mut self, old: ValueId) -> Result<ValueId, CompileError> {
        if let Some(new) = self.mapped[old.index()] {
            return Ok(new);
        }
        let value = self.source.value(old);
        let new = match &value.kind {
            ValueKind::Constant(Constant::Text(text)) => self.builder.text(text),
            ValueKind::Constant(Constant::Values(values)) => self.builder.values(value.ty.clone(), values.clone()),
            ValueKind::Constant(Constant::Weight(weight)) => self.builder.weight(&value.name, weight.clone()),
            _ => return Err(CompileError::internal(format!("value {:?} is used before it is rewritten", value.name))),
        };
        self.mapped[old.index()] = Some(new);
        Ok(new)
    }

    /// The new operand for an old one.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn operand(&mut self, old: &Operand) -> Result<Operand, CompileError> {
        let mut new = old.clone();
        for id in new.values_mut() {
            *id = self.value(*id)?;
        }
        Ok(new)
    }

    /// Copies an operation with its names.
    ///
    /// # Errors
    /// As [`Self::value`]; the operator's rules, where a replaced operand changed a type.
    pub fn copy(&mut self, operation: &Operation) -> Result<(), CompileError> {
        let arguments = operation.arguments.iter().map(|operand| self.operand(operand)).collect::<Result<Vec<_>, _>>()?;
        let mut results = Vec::with_capacity(operation.outputs.len());
        for &id in &operation.outputs {
            let value = self.source.value(id);
            let name = self.builder.fresh(&value.name);
            results.push((name, value.ty.clone()));
        }
        let new = self.builder.body_mut().add_operation(operation.op, arguments, results);
        for (old, new) in operation.outputs.iter().zip(new) {
            self.replace(*old, new);
        }
        Ok(())
    }

    /// Makes `new` stand for `old` from now on.
    pub fn replace(&mut self, old: ValueId, new: ValueId) {
        self.mapped[old.index()] = Some(new);
    }

    /// The SSA name of an old value.
    pub fn name(&self, old: ValueId) -> &'a str {
        &self.source.value(old).name
    }

    /// The type of an old value.
    pub fn ty(&self, old: ValueId) -> &'a TensorType {
        self.source.ty(old)
    }

    /// The finished body; outputs and states keep their names and order.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn finish(mut self) -> Result<Body, CompileError> {
        let mut outputs = Vec::with_capacity(self.source.outputs.len());
        for output in &self.source.outputs {
            outputs.push(Output { name: output.name.clone(), value: self.value(output.value)? });
        }
        let results = self.source.states.iter().map(|state| self.value(state.result)).collect::<Result<Vec<_>, _>>()?;
        let mut body = self.builder.finish();
        body.outputs = outputs;
        body.states.iter_mut().zip(results).for_each(|(state, result)| state.result = result);
        Ok(body)
    }
}

/// Runs `visit` over every operation; it returns false to have the operation copied.
///
/// # Errors
/// What `visit` and the copying report.
pub fn rewrite(
    body: &Body,
    mut visit: impl FnMut(&mut Rewriter<'_>, &Operation) -> Result<bool, CompileError>,
) -> Result<Body, CompileError> {
    let mut rewriter = Rewriter::new(body);
    for operation in &body.operations {
        if !visit(&mut rewriter, operation)? {
            rewriter.copy(operation)?;
        }
    }
    rewriter.finish()
}

/// An operation as a program of its own: its constants are constants there, as is what `known` gives for other operands or in their
/// place, and the rest are inputs, in the order in which the operation first reads them.
pub fn alone(body: &Body, operation: &Operation, known: impl Fn(ValueId) -> Option<Constant>) -> Body {
    let mut single = Body { name: body.name.clone(), ..Body::default() };
    let mut mapped: HashMap<ValueId, ValueId> = HashMap::new();
    let mut arguments = operation.arguments.clone();
    for id in arguments.iter_mut().flat_map(Operand::values_mut) {
        let value = body.value(*id);
        *id = *mapped.entry(*id).or_insert_with(|| match (known(*id), &value.kind) {
            (Some(constant), _) => single.add_constant(value.name.clone(), value.ty.clone(), constant),
            (None, ValueKind::Constant(constant)) => single.add_constant(value.name.clone(), value.ty.clone(), constant.clone()),
            (None, _) => single.add_input(value.name.clone(), value.ty.clone()),
        });
    }
    let results = operation.outputs.iter().map(|&id| (body.value(id).name.clone(), body.ty(id).clone())).collect();
    let outputs = single.add_operation(operation.op, arguments, results);
    single.outputs = outputs.iter().map(|&value| Output { name: single.value(value).name.clone(), value }).collect();
    single
}

/// What stands at a port of an operation.
pub fn operand<'a>(operation: &'a Operation, port: &str) -> &'a Operand {
    operation.op.port(port).and_then(|index| operation.arguments.get(index)).unwrap_or(&Operand::Absent)
}

/// The single value at a port.
pub fn one(operation: &Operation, port: &str) -> Option<ValueId> {
    match operand(operation, port) {
        Operand::One(id) => Some(*id),
        _ => None,
    }
}

/// All elements of a small constant.
pub fn known_values(body: &Body, id: ValueId) -> Option<Vec<f64>> {
    let ty = body.ty(id);
    let constant = body.constant(id)?;
    (ty.count() <= aneforge_mil::SMALL_CONSTANT).then(|| constant.to_array(ty).map(|array| array.data)).flatten()
}

/// The number that every element of a small constant equals.
pub fn uniform(body: &Body, id: ValueId) -> Option<f64> {
    if let Some(Constant::Weight(weight)) = body.constant(id)
        && weight.ty().dtype == DType::Fp16
        && body.ty(id).count() <= aneforge_mil::SMALL_CONSTANT
    {
        // Every bias passes here more than once: no wider array of it is made.
        let values = weight.to_fp16().ok()?;
        let first = *values.first()?;
        return values.iter().all(|value| value.to_bits() == first.to_bits()).then(|| first.to_f64());
    }
    let values = known_values(body, id)?;
    let first = *values.first()?;
    values.iter().all(|value| value.to_bits() == first.to_bits()).then_some(first)
}
