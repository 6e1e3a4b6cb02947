//! From text to computation: a function's names bound to values, its operators to their records, its literals to constants.

mod error;
mod source;
mod state;

pub use error::{ResolveError, ResolveFault};
pub use source::{BlobFolder, BlobSource, NoBlobs, SourceError};

use crate::op::{MilOp, OpError, OpTable};
use crate::{
    Argument, Body, Constant, Function, Literal, LiteralValue, Location, Operand, Output, Port, Program, Statement, TensorType,
    ValueId, modern_form,
};
use std::collections::{HashMap, HashSet};

/// Largest integer magnitude up to which f64 holds every integer.
const EXACT_INTEGER: u128 = 1 << 53;

/// Resolves one function of a program.
///
/// Constants written in the text become [`Constant::Values`] or [`Constant::Text`], those in weight files [`Constant::Weight`],
/// mapped and not copied. A literal that stands at an argument becomes a constant named after the statement and the port.
/// Every operation is checked against its record in `table`, and the declared result types against the inferred ones.
///
/// # Errors
/// The first fault, with its place in the text.
pub fn resolve(program: &Program, function: &str, table: &OpTable, blobs: &dyn BlobSource) -> Result<Body, ResolveError> {
    let Some(found) = program.functions.iter().find(|candidate| candidate.name == function) else {
        let known = program.functions.iter().map(|function| function.name.clone()).collect();
        let fault = ResolveFault::NoFunction { name: function.to_string(), known };
        return Err(ResolveError::new(Location::default(), "func", "", fault));
    };
    let mut resolver = Resolver {
        table,
        blobs,
        body: Body { name: found.name.clone(), ..Body::default() },
        scope: HashMap::new(),
        states: HashMap::new(),
        named: Vec::new(),
        taken: names(found).map(str::to_string).collect(),
        function: found,
    };
    resolver.inputs()?;
    for statement in &found.body {
        resolver.statement(statement).map_err(|fault| {
            let name = statement.outputs.first().map_or("", |port| port.name.as_str());
            ResolveError::new(statement.location, &statement.op, name, fault)
        })?;
    }
    resolver.outputs()?;
    Ok(resolver.body)
}

struct Resolver<'a> {
    table: &'a OpTable,
    blobs: &'a dyn BlobSource,
    body: Body,
    scope: HashMap<&'a str, ValueId>,
    /// States by name, as indices into [`Body::states`].
    states: HashMap<&'a str, usize>,
    /// Per state, whether the text has named what it holds at the start.
    named: Vec<bool>,
    /// Every name that the function declares and every name made up so far.
    taken: HashSet<String>,
    function: &'a Function,
}

impl<'a> Resolver<'a> {
    fn inputs(&mut self) -> Result<(), ResolveError> {
        for port in &self.function.inputs {
            let fail = |fault| ResolveError::new(Location::default(), "func", &port.name, fault);
            if let crate::Type::State(_) = port.ty {
                self.state(&port.name, &port.ty).map_err(fail)?;
                continue;
            }
            let ty = static_type(port).map_err(fail)?;
            let id = self.body.add_input(port.name.clone(), ty);
            self.bind(&port.name, id).map_err(fail)?;
        }
        Ok(())
    }

    fn outputs(&mut self) -> Result<(), ResolveError> {
        for name in &self.function.outputs {
            let value = self.lookup(name).map_err(|fault| ResolveError::new(Location::default(), "return", name, fault))?;
            self.body.outputs.push(Output { name: name.clone(), value });
        }
        Ok(())
    }

    fn statement(&mut self, statement: &'a Statement) -> Result<(), ResolveFault> {
        if statement.op == "const" {
            return self.constant(statement);
        }
        if self.effect(statement)? {
            return Ok(());
        }
        let op = self.table.get(&statement.op).ok_or_else(|| self.unknown_op(&statement.op))?;
        let operands = self.operands(op, statement)?;
        let inferred = self.body.infer(op, &operands)?;
        if inferred.len() != statement.outputs.len() {
            return Err(ResolveFault::ResultCount { declared: statement.outputs.len(), inferred: inferred.len() });
        }
        let mut results = Vec::with_capacity(inferred.len());
        for (port, inferred) in statement.outputs.iter().zip(inferred) {
            let declared = static_type(port)?;
            if declared != inferred {
                return Err(ResolveFault::ResultType {
                    name: port.name.clone(),
                    declared: declared.to_string(),
                    inferred: inferred.to_string(),
                });
            }
            results.push((port.name.clone(), inferred));
        }
        let ids = self.body.add_operation(op, operands, results);
        for (port, id) in statement.outputs.iter().zip(ids) {
            self.bind(&port.name, id)?;
        }
        Ok(())
    }

    fn constant(&mut self, statement: &'a Statement) -> Result<(), ResolveFault> {
        let [port] = statement.outputs.as_slice() else {
            return Err(ResolveFault::ResultCount { declared: statement.outputs.len(), inferred: 1 });
        };
        let attribute = statement.attributes.iter().find(|attribute| attribute.name == "val").map(|attribute| &attribute.value);
        let argument = statement.arguments.iter().find_map(|(name, value)| match value {
            Argument::Literal(literal) if name == "val" => Some(literal),
            _ => None,
        });
        let literal = attribute.or(argument).ok_or(ResolveFault::NoValue)?;
        let declared = static_type(port)?;
        let (ty, constant) = self.literal(literal)?;
        if ty != declared {
            let (declared, inferred) = (declared.to_string(), ty.to_string());
            return Err(ResolveFault::ResultType { name: port.name.clone(), declared, inferred });
        }
        let id = self.body.add_constant(port.name.clone(), ty, constant);
        self.bind(&port.name, id)
    }

    /// What stands at each port of the record.
    fn operands(&mut self, op: &'static MilOp, statement: &'a Statement) -> Result<Vec<Operand>, ResolveFault> {
        let mut operands = vec![Operand::Absent; op.ports.len()];
        let prefix = statement.outputs.first().map_or("c", |port| port.name.as_str());
        if op.expands_weight() {
            self.constexpr(op, statement, prefix, &mut operands)?;
            return Ok(operands);
        }
        for (name, argument) in &statement.arguments {
            let index = free_port(op, name, &operands)?;
            operands[index] = match (argument, op.ports[index].kind.is_tuple()) {
                (Argument::Tuple(parts), true) => {
                    let ids: Result<_, _> = parts.iter().map(|part| self.operand(part, prefix, name)).collect();
                    Operand::Many(ids?)
                }
                (argument, true) => Operand::Many(vec![self.operand(argument, prefix, name)?]),
                (argument, false) => Operand::One(self.operand(argument, prefix, name)?),
            };
        }
        for attribute in statement.attributes.iter().filter(|attribute| attribute.name != "name") {
            if op.port(&attribute.name).is_some() {
                let index = free_port(op, &attribute.name, &operands)?;
                let id = self.anonymous(&attribute.value, prefix, &attribute.name)?;
                operands[index] = if op.ports[index].kind.is_tuple() { Operand::Many(vec![id]) } else { Operand::One(id) };
            }
        }
        Ok(operands)
    }

    /// Compilers write the parameters of constexpr operators as attributes; other operators carry only labels there.
    fn constexpr(
        &mut self,
        op: &'static MilOp,
        statement: &'a Statement,
        prefix: &str,
        operands: &mut [Operand],
    ) -> Result<(), ResolveFault> {
        let mut given = Vec::with_capacity(op.ports.len());
        for (name, argument) in &statement.arguments {
            given.push((name.clone(), self.operand(argument, prefix, name)?));
        }
        for attribute in statement.attributes.iter().filter(|attribute| attribute.name != "name") {
            given.push((attribute.name.clone(), self.anonymous(&attribute.value, prefix, &attribute.name)?));
        }
        modern_form(&mut self.body, op, &mut given)?;
        for (name, id) in given {
            let index = free_port(op, &name, operands)?;
            operands[index] = Operand::One(id);
        }
        Ok(())
    }

    fn operand(&mut self, argument: &Argument, prefix: &str, port: &str) -> Result<ValueId, ResolveFault> {
        match argument {
            Argument::Name(name) => self.lookup(name),
            Argument::Literal(literal) => self.anonymous(literal, prefix, port),
            Argument::Tuple(parts) => match parts.as_slice() {
                [one] => self.operand(one, prefix, port),
                _ => Err(ResolveFault::Tuple { port: port.to_string() }),
            },
        }
    }

    fn anonymous(&mut self, literal: &Literal, prefix: &str, port: &str) -> Result<ValueId, ResolveFault> {
        let (ty, constant) = self.literal(literal)?;
        let name = self.unique(&format!("{prefix}_{port}"));
        Ok(self.body.add_constant(name, ty, constant))
    }

    /// A name that the function does not use: the wanted one, or the same with a number.
    fn unique(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_string();
        let mut number = 0;
        while !self.taken.insert(name.clone()) {
            number += 1;
            name = format!("{wanted}_{number}");
        }
        name
    }

    fn literal(&self, literal: &Literal) -> Result<(TensorType, Constant), ResolveFault> {
        let ty = literal.ty.as_tensor().ok_or_else(|| ResolveFault::Type { ty: literal.ty.to_string() })?;
        let constant = match &literal.value {
            LiteralValue::Text(text) => Constant::Text(text.clone()),
            LiteralValue::Blob { path, offset } => Constant::Weight(self.blobs.file(path)?.weight(*offset, &ty)?),
            LiteralValue::Elements(elements) => Constant::Values(elements.iter().map(number).collect::<Result<_, _>>()?),
            scalar => Constant::Values(vec![number(scalar)?]),
        };
        match &constant {
            Constant::Values(values) if ty.checked_count() != Some(values.len()) => {
                Err(ResolveFault::Literal { problem: format!("{ty} cannot hold {} elements", values.len()) })
            }
            _ => Ok((ty, constant)),
        }
    }

    fn bind(&mut self, name: &'a str, id: ValueId) -> Result<(), ResolveFault> {
        if self.is_state(name) {
            return Err(ResolveFault::Duplicate { name: name.to_string() });
        }
        match self.scope.insert(name, id) {
            None => Ok(()),
            Some(_) => Err(ResolveFault::Duplicate { name: name.to_string() }),
        }
    }

    fn lookup(&self, name: &str) -> Result<ValueId, ResolveFault> {
        if let Some(&id) = self.scope.get(name) {
            return Ok(id);
        }
        if self.is_state(name) {
            return Err(ResolveFault::State { problem: format!("{name:?} is a state; take its contents with read_state") });
        }
        let name = name.to_string();
        if names(self.function).any(|declared| declared == name) {
            return Err(ResolveFault::UsedBefore { name });
        }
        let closest = closest(&name, self.scope.keys().copied()).map(str::to_string);
        Err(ResolveFault::Undefined { name, closest })
    }

    fn unknown_op(&self, name: &str) -> ResolveFault {
        if let Some(row) = crate::op::listed().iter().find(|row| row.name == name) {
            return ResolveFault::Listed { name: row.name, reason: row.reason };
        }
        let known = self.table.all();
        let closest = closest(name, known.iter().map(|op| op.name)).map(str::to_string);
        ResolveFault::UnknownOp { name: name.to_string(), closest }
    }
}

/// Every name that a function declares.
fn names(function: &Function) -> impl Iterator<Item = &str> {
    let results = function.body.iter().flat_map(|statement| &statement.outputs);
    function.inputs.iter().chain(results).map(|port| port.name.as_str())
}

fn static_type(port: &Port) -> Result<TensorType, ResolveFault> {
    match &port.ty {
        crate::Type::State(_) => Err(ResolveFault::Type { ty: port.ty.to_string() }),
        ty => ty.as_tensor().ok_or_else(|| ResolveFault::Type { ty: ty.to_string() }),
    }
}

fn free_port(op: &'static MilOp, name: &str, operands: &[Operand]) -> Result<usize, ResolveFault> {
    let Some(index) = op.port(name) else {
        let known: Vec<_> = op.ports.iter().map(|spec| spec.name).collect();
        return Err(OpError::UnknownPort { op: op.name, port: name.to_string(), known: known.join(", ") }.into());
    };
    match operands[index] {
        Operand::Absent => Ok(index),
        _ => Err(ResolveFault::DuplicateArgument { port: name.to_string() }),
    }
}

fn number(value: &LiteralValue) -> Result<f64, ResolveFault> {
    match value {
        LiteralValue::Bool(flag) => Ok(f64::from(u8::from(*flag))),
        LiteralValue::Int(value) if value.unsigned_abs() <= EXACT_INTEGER => Ok(*value as f64),
        LiteralValue::Int(value) => Err(ResolveFault::Literal { problem: format!("{value} is larger than 2^53") }),
        LiteralValue::Float(value) => Ok(*value),
        _ => Err(ResolveFault::Literal { problem: "holds something else than numbers".to_string() }),
    }
}

/// The candidate that differs in the fewest letters, if they are few.
fn closest<'n>(name: &str, candidates: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let limit = (name.chars().count() / 3).min(4);
    // A name far longer than any keyword has nothing close; comparing would only cost time.
    let candidates = candidates.filter(|candidate| name.len() <= 64 && candidate.len() <= 64);
    let ranked = candidates.map(|candidate| (distance(name, candidate), candidate));
    ranked.filter(|(distance, _)| *distance <= limit).min().map(|(_, candidate)| candidate)
}

/// Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &right) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(left != right);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
