//! Reads and writes of states: the text's order of effects becomes one value before and one after.

use super::{ResolveFault, Resolver, static_type};
use crate::{Argument, Statement, TensorType, Type, ValueId};

/// Statements that touch a state, with their arguments for the state and for the new contents.
const READS: &[(&str, &str)] = &[("read_state", "input")];
const WRITES: &[(&str, &str, &str)] = &[("write_state", "input", "data"), ("coreml_update_state", "state", "value")];

impl<'a> Resolver<'a> {
    /// Binds the states of the signature.
    pub(super) fn state(&mut self, name: &'a str, ty: &Type) -> Result<(), ResolveFault> {
        let Type::State(inner) = ty else { return Ok(()) };
        if self.scope.contains_key(name) || self.states.contains_key(name) {
            return Err(ResolveFault::Duplicate { name: name.to_string() });
        }
        let contents = self.unique(&format!("{name}_contents"));
        self.states.insert(name, self.body.states.len());
        self.named.push(false);
        self.body.add_state(name, contents, inner.clone());
        Ok(())
    }

    /// Whether the statement reads or writes a state, which is then done.
    ///
    /// `coreml_update_state`, coremltools' word, writes and gives what it wrote.
    pub(super) fn effect(&mut self, statement: &'a Statement) -> Result<bool, ResolveFault> {
        if let Some((_, port)) = READS.iter().find(|row| row.0 == statement.op) {
            let [index] = self.at(statement, [*port])?;
            let index = self.state_named(index)?;
            self.gives(statement, index, self.body.states[index].result)?;
            return Ok(true);
        }
        let Some((_, port, data)) = WRITES.iter().find(|row| row.0 == statement.op) else { return Ok(false) };
        let [state, value] = self.at(statement, [*port, *data])?;
        let index = self.state_named(state)?;
        let value = self.operand(value, self.state_name(index).as_str(), data)?;
        let (held, given) = (self.body.ty(self.body.states[index].input), self.body.ty(value));
        if held != given {
            return Err(ResolveFault::State {
                problem: format!(
                    "{:?} holds {held} and cannot take {given}: cast or reshape it first",
                    self.body.states[index].name
                ),
            });
        }
        self.body.states[index].result = value;
        if !statement.outputs.is_empty() {
            self.gives(statement, index, value)?;
        }
        Ok(true)
    }

    /// Whether a name is that of a state.
    pub(super) fn is_state(&self, name: &str) -> bool {
        self.states.contains_key(name)
    }

    fn state_name(&self, index: usize) -> String {
        self.body.states[index].name.clone()
    }

    /// The arguments of those names, and no others.
    fn at<const N: usize>(&self, statement: &'a Statement, ports: [&str; N]) -> Result<[&'a Argument; N], ResolveFault> {
        let wrong = || ResolveFault::State { problem: format!("takes {}, once each and nothing else", ports.join(" and ")) };
        let find = |port: &str| statement.arguments.iter().find(|(name, _)| name == port).map(|(_, argument)| argument);
        let found: Vec<_> = ports.iter().filter_map(|port| find(port)).collect();
        let found: [&'a Argument; N] = found.try_into().map_err(|_| wrong())?;
        if statement.arguments.len() == N { Ok(found) } else { Err(wrong()) }
    }

    fn state_named(&self, argument: &Argument) -> Result<usize, ResolveFault> {
        match argument {
            Argument::Name(name) if self.states.contains_key(name.as_str()) => Ok(self.states[name.as_str()]),
            Argument::Name(name) => Err(ResolveFault::State {
                problem: format!("{name:?} is no state; declare it as state<tensor<...>> {name} in the signature"),
            }),
            _ => Err(ResolveFault::State { problem: "needs the name of a state".to_string() }),
        }
    }

    /// Makes `value` the only result of the statement.
    fn gives(&mut self, statement: &'a Statement, state: usize, value: ValueId) -> Result<(), ResolveFault> {
        let [port] = statement.outputs.as_slice() else {
            return Err(ResolveFault::ResultCount { declared: statement.outputs.len(), inferred: 1 });
        };
        let (declared, ty): (TensorType, _) = (static_type(port)?, self.body.ty(value).clone());
        if declared != ty {
            let (declared, inferred) = (declared.to_string(), ty.to_string());
            return Err(ResolveFault::ResultType { name: port.name.clone(), declared, inferred });
        }
        // The first name that the text gives the contents is the one to keep.
        if self.body.states[state].input == value && !std::mem::replace(&mut self.named[state], true) {
            self.body.values[value.index()].name.clone_from(&port.name);
        }
        self.bind(&port.name, value)
    }
}
