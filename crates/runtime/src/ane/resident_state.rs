//! States as ports: the engine takes no state types, but an output that is bound to the memory of an input keeps a value in place.
//!
//! Sources: the ANE guide, arXiv 2606.22283, chapters 2 and 8 (state types are refused, an accumulator bound to itself counts 1, 2, 3, 4
//! on M1); the Python package aneforge 0.4.0 keeps caches so.

use aneforge_mil::{Body, Output, ValueKind};
use std::collections::HashSet;

/// Where a state is among the ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resident {
    /// The input that reads it.
    pub(crate) input: usize,
    /// The output that replaces it, where the program does.
    pub(crate) output: Option<usize>,
}

/// The program with an input for each state behind its inputs, and an output behind its outputs for each that it changes.
pub(crate) fn as_ports(mut body: Body) -> (Body, Vec<Resident>) {
    let mut taken: HashSet<String> = body.values.iter().map(|value| value.name.clone()).collect();
    taken.extend(body.outputs.iter().map(|output| output.name.clone()));
    taken.extend(body.states.iter().map(|state| state.name.clone()));
    let mut residents = Vec::with_capacity(body.states.len());
    for state in std::mem::take(&mut body.states) {
        let value = &mut body.values[state.input.index()];
        value.kind = ValueKind::Input;
        body.inputs.push(state.input);
        let output = (state.result != state.input).then(|| {
            let mut name = format!("{}_next", state.name);
            while !taken.insert(name.clone()) {
                name.push('_');
            }
            body.outputs.push(Output { name, value: state.result });
            body.outputs.len() - 1
        });
        residents.push(Resident { input: body.inputs.len() - 1, output });
    }
    (body, residents)
}
