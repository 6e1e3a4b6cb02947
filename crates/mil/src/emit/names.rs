//! Names of an emitted function: valid identifiers, each once, ports first.

use super::EmitError;
use crate::op::builtin;
use crate::{Body, DType, ValueId, ValueKind};
use std::collections::{HashMap, HashSet};

/// Words that the text uses itself.
const RESERVED: &[&str] =
    &["program", "func", "const", "tensor", "dict", "list", "tuple", "state", "true", "false", "inf", "nan", "BLOBFILE"];

/// The name of each value.
#[derive(Debug)]
pub(super) struct Names {
    names: Vec<String>,
    states: Vec<String>,
}

impl Names {
    /// Inputs, states and outputs come first, so that they get the names that their ports have; other values make way.
    pub fn assign(body: &Body) -> Result<Self, EmitError> {
        let mut names = vec![String::new(); body.values.len()];
        let mut pool = Pool::default();
        for &id in &body.inputs {
            names[id.index()] = pool.claim(&body.value(id).name);
        }
        let states = body.states.iter().map(|state| pool.claim(&state.name)).collect();
        for output in &body.outputs {
            let name = &mut names[output.value.index()];
            if name.is_empty() {
                *name = pool.claim(&output.name);
            } else if *name != identifier(&output.name) || body.value(output.value).kind != ValueKind::Input {
                return Err(EmitError::Output { output: output.name.clone(), name: name.clone() });
            }
        }
        for (name, value) in names.iter_mut().zip(&body.values).filter(|(name, _)| name.is_empty()) {
            // No reader needs it, but a text in which `matmul` is a value and an operator is hard on people.
            let clash = builtin().get(&value.name).is_some();
            *name = if clash { pool.claim(&format!("{}_0", value.name)) } else { pool.claim(&value.name) };
        }
        Ok(Self { names, states })
    }

    /// The name of a state, by its number.
    pub fn of_state(&self, index: usize) -> &str {
        &self.states[index]
    }

    pub fn of(&self, id: ValueId) -> &str {
        &self.names[id.index()]
    }
}

#[derive(Default)]
struct Pool {
    taken: HashSet<String>,
    /// Last number tried per name, so that many equal names do not cost a search each.
    numbers: HashMap<String, usize>,
}

impl Pool {
    fn claim(&mut self, wanted: &str) -> String {
        let base = identifier(wanted);
        if self.taken.insert(base.clone()) {
            return base;
        }
        let number = self.numbers.entry(base.clone()).or_insert(0);
        loop {
            *number += 1;
            let name = format!("{base}_{number}");
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// The nearest valid identifier: letters, digits and underscores, no digit first, no word of the language.
pub(super) fn identifier(wanted: &str) -> String {
    let mut name: String = wanted.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, '_');
    }
    if RESERVED.contains(&name.as_str()) || DType::from_keyword(&name).is_some() {
        name.push('_');
    }
    name
}
