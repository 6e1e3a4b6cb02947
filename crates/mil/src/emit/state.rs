//! States in an emitted function: ports of the signature, one read at the start, one write where the new contents are made.

use super::{label, names::Names, port};
use crate::{Argument, Body, Location, Operand, Port, Statement, Type, ValueId};

/// The states of the signature.
pub(super) fn ports(body: &Body, names: &Names) -> Vec<Port> {
    let state = |(index, state): (usize, &crate::State)| Port {
        name: names.of_state(index).to_string(),
        ty: Type::State(body.ty(state.input).clone()),
    };
    body.states.iter().enumerate().map(state).collect()
}

/// One read of every state whose old contents somebody uses.
pub(super) fn reads(body: &Body, names: &Names, statements: &mut Vec<Statement>) {
    for (index, state) in body.states.iter().enumerate() {
        let used = |id: ValueId| id == state.input;
        let in_operations = body.operations.iter().flat_map(|operation| operation.arguments.iter().flat_map(Operand::values));
        let elsewhere = body.states.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, other)| other.result);
        let outputs = body.outputs.iter().map(|output| output.value);
        if in_operations.copied().chain(outputs).chain(elsewhere).any(used) {
            statements.push(Statement {
                outputs: vec![port(body, names, state.input)],
                op: "read_state".to_string(),
                arguments: vec![("input".to_string(), Argument::Name(names.of_state(index).to_string()))],
                attributes: vec![label(names.of(state.input))],
                location: Location::default(),
            });
        }
    }
}

/// Writes of the states whose new contents `made` picks.
pub(super) fn writes(body: &Body, names: &Names, made: impl Fn(ValueId) -> bool, statements: &mut Vec<Statement>) {
    let changed = body.states.iter().enumerate().filter(|(_, state)| state.result != state.input && made(state.result));
    for (index, state) in changed {
        let name = names.of_state(index);
        statements.push(Statement {
            outputs: Vec::new(),
            op: "write_state".to_string(),
            arguments: vec![
                ("data".to_string(), Argument::Name(names.of(state.result).to_string())),
                ("input".to_string(), Argument::Name(name.to_string())),
            ],
            attributes: vec![label(&format!("{name}_write"))],
            location: Location::default(),
        });
    }
}
