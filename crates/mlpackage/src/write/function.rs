//! Functions of a program as messages.

use super::WriteError;
use super::value::{text, value, value_type};
use crate::{OpSet, proto};
use aneforge_mil::{Argument, Function, Literal, LiteralValue, Port, Statement};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A function as a message with one block, for the given op-set.
pub fn function(function: &Function, opset: OpSet) -> Result<proto::Function, WriteError> {
    let inlined = Inlined::of(function);
    let operations = function.body.iter().filter(|statement| !inlined.is_dropped(statement));
    let block = proto::Block {
        inputs: Vec::new(),
        outputs: function.outputs.clone(),
        operations: operations.map(|statement| operation(statement, &inlined)).collect::<Result<_, _>>()?,
    };
    Ok(proto::Function {
        inputs: ports(&function.inputs)?,
        opset: opset.package_name().to_string(),
        blocks: BTreeMap::from([(opset.package_name().to_string(), block)]),
    })
}

/// Constants that stand where they are used: Core ML takes the data of constexpr operators only there, and where nothing else
/// uses such a constant, no statement is left of it.
struct Inlined<'a> {
    literals: HashMap<&'a str, &'a Literal>,
    dropped: HashSet<&'a str>,
}

impl<'a> Inlined<'a> {
    fn of(function: &'a Function) -> Self {
        let literal = |statement: &'a Statement| {
            let value = statement.attributes.iter().find(|attribute| attribute.name == "val")?;
            Some((statement.outputs.first()?.name.as_str(), &value.value))
        };
        let literals: HashMap<_, _> =
            function.body.iter().filter(|statement| statement.op == "const").filter_map(literal).collect();
        let (mut dropped, mut kept) = (HashSet::new(), HashSet::new());
        kept.extend(function.outputs.iter().map(String::as_str));
        for statement in &function.body {
            let uses = if is_constexpr(statement) { &mut dropped } else { &mut kept };
            for (_, argument) in &statement.arguments {
                uses.extend(names(argument));
            }
        }
        dropped.retain(|name| literals.contains_key(name) && !kept.contains(name));
        Self { literals, dropped }
    }

    fn is_dropped(&self, statement: &Statement) -> bool {
        statement.op == "const" && statement.outputs.first().is_some_and(|port| self.dropped.contains(port.name.as_str()))
    }
}

fn is_constexpr(statement: &Statement) -> bool {
    statement.op.starts_with("constexpr_")
}

fn names(argument: &Argument) -> Vec<&str> {
    match argument {
        Argument::Name(name) => vec![name],
        Argument::Literal(_) => Vec::new(),
        Argument::Tuple(parts) => parts.iter().flat_map(names).collect(),
    }
}

fn operation(statement: &Statement, inlined: &Inlined<'_>) -> Result<proto::Operation, WriteError> {
    let label = statement.attributes.iter().find(|attribute| attribute.name == "name").map(|attribute| &attribute.value.value);
    let name = match (statement.outputs.first(), label) {
        (Some(port), _) => port.name.as_str(),
        (None, Some(LiteralValue::Text(label))) => label.as_str(),
        (None, _) => statement.op.as_str(),
    };
    let mut inputs = BTreeMap::new();
    for (port, argument) in &statement.arguments {
        let mut bindings = Vec::new();
        bind(name, argument, is_constexpr(statement).then_some(inlined), &mut bindings)?;
        inputs.insert(port.clone(), proto::Argument { arguments: bindings });
    }
    let mut attributes = BTreeMap::from([("name".to_string(), text(name))]);
    for attribute in statement.attributes.iter().filter(|attribute| attribute.name != "name") {
        attributes.insert(attribute.name.clone(), value(name, &attribute.value)?);
    }
    Ok(proto::Operation { op: statement.op.clone(), inputs, outputs: ports(&statement.outputs)?, blocks: Vec::new(), attributes })
}

fn bind(
    operation: &str,
    argument: &Argument,
    inlined: Option<&Inlined<'_>>,
    bindings: &mut Vec<proto::Binding>,
) -> Result<(), WriteError> {
    let bound = match argument {
        Argument::Name(name) => match inlined.and_then(|inlined| inlined.literals.get(name.as_str())) {
            Some(literal) => proto::Bound::Value(value(name, literal)?),
            None => proto::Bound::Name(name.clone()),
        },
        Argument::Literal(literal) => proto::Bound::Value(value(operation, literal)?),
        Argument::Tuple(parts) => return parts.iter().try_for_each(|part| bind(operation, part, inlined, bindings)),
    };
    bindings.push(proto::Binding { bound: Some(bound) });
    Ok(())
}

fn ports(ports: &[Port]) -> Result<Vec<proto::NamedValueType>, WriteError> {
    let named = |port: &Port| Ok(proto::NamedValueType { name: port.name.clone(), ty: Some(value_type(&port.name, &port.ty)?) });
    ports.iter().map(named).collect()
}
