//! A function of a package as a body: names bound to values, operators to their records.

use super::ReadFault;
use super::value::{DeclaredType, constant, declared};
use crate::proto::{self, Bound};
use aneforge_mil::op::{Arguments, MilOp, OpTable, listed};
use aneforge_mil::{Array, BlobSource, Body, Constant, DType, Operand, Output, SMALL_CONSTANT, TensorType, ValueId, modern_form};
use std::collections::{HashMap, HashSet};

/// What is said of an operator that nobody listed.
const UNKNOWN: &str = "it is not known; convert the model so that it does without, or add a record for it";

/// Reads the operations of one block.
pub struct Importer<'a> {
    table: &'a OpTable,
    blobs: &'a dyn BlobSource,
    pub(super) body: Body,
    pub(super) scope: HashMap<&'a str, ValueId>,
    /// States by name, as indices into [`Body::states`].
    pub(super) states: HashMap<&'a str, usize>,
    /// Every name that the block declares and every name made up so far.
    pub(super) taken: HashSet<String>,
}

/// What stands at the ports of an operation, by name.
pub type Ports<'a> = Vec<(&'a str, Vec<ValueId>)>;

impl<'a> Importer<'a> {
    /// An importer of a function that is called `name` and declares the names of `block`.
    pub fn new(name: &str, block: &'a proto::Block, table: &'a OpTable, blobs: &'a dyn BlobSource) -> Self {
        let results = block.operations.iter().flat_map(|operation| &operation.outputs);
        let taken = results.map(|port| port.name.clone()).collect();
        let body = Body { name: name.to_string(), ..Body::default() };
        Self { table, blobs, body, scope: HashMap::new(), states: HashMap::new(), taken }
    }

    /// Adds a function input.
    pub fn input(&mut self, name: &'a str, ty: TensorType) -> Result<(), ReadFault> {
        let id = self.body.add_input(name, ty);
        self.taken.insert(name.to_string());
        self.bind(name, id)
    }

    /// Adds one operation.
    pub fn operation(&mut self, operation: &'a proto::Operation) -> Result<(), ReadFault> {
        if operation.op == "const" {
            return self.constant(operation);
        }
        if self.effect(operation)? {
            return Ok(());
        }
        let Some(op) = self.table.get(&operation.op) else {
            return Err(match operation.op.as_str() {
                _ if !operation.blocks.is_empty() => ReadFault::ControlFlow,
                name => {
                    ReadFault::UnknownOp { reason: listed().iter().find(|row| row.name == name).map_or(UNKNOWN, |row| row.reason) }
                }
            });
        };
        if !operation.blocks.is_empty() {
            return Err(ReadFault::ControlFlow);
        }
        let ports = self.ports(operation)?;
        let ports = if op.expands_weight() { self.modern(op, ports)? } else { ports };
        let operands = operands(op, ports)?;
        if let Some(values) = self.folded(op, &operands)? {
            return self.fold(operation, values);
        }
        let inferred = self.body.infer(op, &operands)?;
        let results = check(operation, inferred)?;
        let ids = self.body.add_operation(op, operands, results);
        operation.outputs.iter().zip(ids).try_for_each(|(port, id)| self.bind(&port.name, id))
    }

    /// The body, with the named results.
    pub fn finish(mut self, outputs: &[String]) -> Result<Body, ReadFault> {
        let mut seen = HashSet::new();
        for name in outputs {
            let value = self.lookup(name)?;
            if !seen.insert(name) {
                return Err(ReadFault::Duplicate { name: name.clone() });
            }
            self.body.outputs.push(Output { name: name.clone(), value });
        }
        self.body.compact();
        Ok(self.body)
    }

    fn constant(&mut self, operation: &'a proto::Operation) -> Result<(), ReadFault> {
        let [port] = operation.outputs.as_slice() else {
            return Err(ReadFault::ResultCount { declared: operation.outputs.len(), inferred: 1 });
        };
        let missing = || ReadFault::Literal { name: port.name.clone(), problem: "is missing".to_string() };
        let value = operation.attributes.get("val").ok_or_else(missing)?;
        let (ty, constant) = constant(&port.name, value, self.blobs)?;
        let declared = declared(&port.name, port.ty.as_ref())?;
        if !declared.admits(&ty) {
            return Err(mismatch(&port.name, &declared, &ty));
        }
        let id = self.body.add_constant(port.name.clone(), ty, constant);
        self.bind(&port.name, id)
    }

    /// Everything that the operation is given: arguments, and attributes where an older form keeps its parameters.
    fn ports(&mut self, operation: &'a proto::Operation) -> Result<Ports<'a>, ReadFault> {
        let prefix = operation.outputs.first().map_or("c", |port| port.name.as_str());
        let mut ports = Ports::new();
        for (name, argument) in &operation.inputs {
            let mut ids = Vec::new();
            for binding in &argument.arguments {
                ids.push(match &binding.bound {
                    Some(Bound::Name(value)) => self.lookup(value)?,
                    Some(Bound::Value(value)) => self.anonymous(prefix, name, value)?,
                    None => return Err(ReadFault::Count { port: name.clone(), count: 0 }),
                });
            }
            ports.push((name, ids));
        }
        for (name, value) in operation.attributes.iter().filter(|(name, _)| *name != "name") {
            let id = self.anonymous(prefix, name, value)?;
            ports.push((name, vec![id]));
        }
        Ok(ports)
    }

    /// The ports of a compressed weight in the form that its record describes.
    fn modern(&mut self, op: &'static MilOp, ports: Ports<'a>) -> Result<Ports<'a>, ReadFault> {
        let single = ports.into_iter().map(|(name, ids)| match ids.as_slice() {
            [one] => Ok((name, *one)),
            many => Err(ReadFault::Count { port: name.to_string(), count: many.len() }),
        });
        let mut single = single.collect::<Result<Vec<_>, _>>()?;
        modern_form(&mut self.body, op, &mut single)?;
        Ok(single.into_iter().map(|(name, id)| (name, vec![id])).collect())
    }

    fn anonymous(&mut self, prefix: &str, port: &str, value: &proto::Value) -> Result<ValueId, ReadFault> {
        let name = self.unique(&format!("{prefix}_{port}"));
        let (ty, constant) = constant(&name, value, self.blobs)?;
        Ok(self.body.add_constant(name, ty, constant))
    }

    /// A name that the block does not use: the wanted one, or the same with a number.
    pub(super) fn unique(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_string();
        let mut number = 0;
        while !self.taken.insert(name.clone()) {
            number += 1;
            name = format!("{wanted}_{number}");
        }
        name
    }

    /// Values of an operation on integers or bools that are known now, as computations of shapes are once the inputs' shapes are
    /// bound: ports that must be constant take them only as constants.
    fn folded(&self, op: &'static MilOp, operands: &[Operand]) -> Result<Option<Vec<Array>>, ReadFault> {
        let ids = || operands.iter().flat_map(Operand::values).copied();
        if op.name == "shape" {
            let extents = ids().next().map(|id| self.body.ty(id).shape.iter().map(|&extent| extent as f64).collect::<Vec<_>>());
            return Ok(extents.map(|extents| vec![Array::new(DType::Int32, [extents.len()], extents)]));
        }
        if op.expands_weight() || !ids().all(|id| self.body.constant(id).is_some()) {
            return Ok(None);
        }
        let inferred = self.body.infer(op, operands)?;
        let exact = |ty: &TensorType| !ty.dtype.is_float() && ty.dtype != DType::String && ty.count() <= SMALL_CONSTANT;
        let ports = self.body.argument_ports(operands);
        let known = ports.iter().flatten().all(|argument| argument.value.is_some() || argument.text.is_some());
        if !known || !inferred.iter().all(exact) {
            return Ok(None);
        }
        Ok(Some((op.meaning)(&Arguments::checked(op, &ports)?)?))
    }

    fn fold(&mut self, operation: &'a proto::Operation, values: Vec<Array>) -> Result<(), ReadFault> {
        let results = check(operation, values.iter().map(|value| value.ty.clone()).collect())?;
        for ((port, (name, ty)), value) in operation.outputs.iter().zip(results).zip(values) {
            let id = self.body.add_constant(name, ty, Constant::Values(value.data));
            self.bind(&port.name, id)?;
        }
        Ok(())
    }

    pub(super) fn bind(&mut self, name: &'a str, id: ValueId) -> Result<(), ReadFault> {
        match self.scope.insert(name, id) {
            None => Ok(()),
            Some(_) => Err(ReadFault::Duplicate { name: name.to_string() }),
        }
    }

    pub(super) fn lookup(&self, name: &str) -> Result<ValueId, ReadFault> {
        self.scope.get(name).copied().ok_or_else(|| ReadFault::Undefined { name: name.to_string() })
    }
}

/// One operand per port of the record.
fn operands(op: &'static MilOp, ports: Ports<'_>) -> Result<Vec<Operand>, ReadFault> {
    let mut operands = vec![Operand::Absent; op.ports.len()];
    for (name, ids) in ports {
        let Some(index) = op.port(name) else {
            let known: Vec<_> = op.ports.iter().map(|spec| spec.name).collect();
            return Err(ReadFault::UnknownPort { what: "an argument", name: name.to_string(), known: known.join(", ") });
        };
        operands[index] = match (op.ports[index].kind, ids.as_slice()) {
            _ if operands[index] != Operand::Absent => return Err(ReadFault::Duplicate { name: name.to_string() }),
            (kind, _) if kind.is_tuple() => Operand::Many(ids),
            (_, [one]) => Operand::One(*one),
            (_, many) => return Err(ReadFault::Count { port: name.to_string(), count: many.len() }),
        };
    }
    Ok(operands)
}

/// Names and types of the results, if they are what the operation declares.
fn check(operation: &proto::Operation, inferred: Vec<TensorType>) -> Result<Vec<(String, TensorType)>, ReadFault> {
    if inferred.len() != operation.outputs.len() {
        return Err(ReadFault::ResultCount { declared: operation.outputs.len(), inferred: inferred.len() });
    }
    let checked = operation.outputs.iter().zip(inferred).map(|(port, inferred)| {
        let declared = declared(&port.name, port.ty.as_ref())?;
        if declared.admits(&inferred) { Ok((port.name.clone(), inferred)) } else { Err(mismatch(&port.name, &declared, &inferred)) }
    });
    checked.collect()
}

pub(super) fn mismatch(name: &str, declared: &DeclaredType, inferred: &TensorType) -> ReadFault {
    ReadFault::ResultType { name: name.to_string(), declared: declared.to_string(), inferred: inferred.to_string() }
}
