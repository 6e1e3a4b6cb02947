//! States in an emitted function: ports of the signature, one read at the start, one write where the new contents are made.

use super::{label, names::Names, port};
use crate::{Argument, Body, Location, Port, Statement, Type, ValueId};

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
    let counts = if body.states.is_empty() { Vec::new() } else { body.use_counts() };
    for (index, state) in body.states.iter().enumerate() {
        // Keeping what it holds is no use of it.
        if counts[state.input.index()] > u32::from(state.result == state.input) {
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
