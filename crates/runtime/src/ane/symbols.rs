//! Ports by name: which index each has in the tables of a loaded model.
//!
//! Surfaces are bound by index, and sources disagree on the order of the tables (alphabetical: Orion, arXiv 2603.06728; as declared:
//! maderix/ANE, pull request 22): so the tables are read. Keys as ane-infer (thebasedcapital) and the PyPI package aneforge 0.4.0 give them.

use super::error::Step;
use super::fault::{Fault, Kind};
use super::layout::Strided;
use crate::Port;
use crate::device::Ports;
use aneforge_sys::objc::Value;

/// The tables of a model for one of its functions.
#[derive(Clone, Debug)]
pub(crate) struct Symbols {
    pub(crate) procedure: u32,
    /// Index of each input, in the order of the program's ports.
    pub(crate) inputs: Vec<u64>,
    pub(crate) outputs: Vec<u64>,
    /// Layout of each input, where it is stated.
    pub(crate) input_layouts: Vec<Option<Strided>>,
    pub(crate) output_layouts: Vec<Option<Strided>>,
}

impl Symbols {
    pub(crate) fn read(attributes: &Value, function: &str, ports: &Ports) -> Result<Self, Fault> {
        let live = attributes.get("NetworkStatusList").map(Value::list).unwrap_or_default().first();
        let description = attributes.get("ANEFModelDescription");
        let named = description.and_then(|tables| tables.get("ProcedureNameToIDMap")?.get(function)?.integer());
        let procedure = named.and_then(|id| u32::try_from(id).ok()).unwrap_or(0);
        let tables = |all: &str, own: &str, live_list: &str| Table::of(description, live, procedure, [all, own, live_list]);
        let (into, out) = (
            tables("InputSymbols", "InputSymbolIndexArray", "LiveInputList"),
            tables("OutputSymbols", "OutputSymbolIndexArray", "LiveOutputList"),
        );
        let indices = |table: &Table<'_>, kind, ports: &[Port]| {
            ports
                .iter()
                .map(|port| table.index(&port.name).ok_or_else(|| table.missing(kind, &port.name)))
                .collect::<Result<Vec<_>, _>>()
        };
        let layouts = |table: &Table<'_>, ports: &[Port]| ports.iter().map(|port| table.layout(port)).collect::<Vec<_>>();
        Ok(Self {
            procedure,
            inputs: indices(&into, "input", &ports.inputs)?,
            outputs: indices(&out, "output", &ports.outputs)?,
            input_layouts: layouts(&into, &ports.inputs),
            output_layouts: layouts(&out, &ports.outputs),
        })
    }
}

/// Names with their indices.
struct Table<'a> {
    names: Vec<(&'a str, u64)>,
    live: &'a [Value],
}

impl<'a> Table<'a> {
    fn of(description: Option<&'a Value>, live: Option<&'a Value>, procedure: u32, [all, own, live_list]: [&str; 3]) -> Self {
        let live = live.and_then(|network| network.get(live_list)).map(Value::list).unwrap_or_default();
        // Outputs carry a suffix.
        let plain = |value: &'a Value| value.text().map(|text| text.strip_suffix("@output").unwrap_or(text));
        let symbols: Vec<Option<&str>> =
            description.and_then(|tables| tables.get(all)).map(Value::list).unwrap_or_default().iter().map(plain).collect();
        if symbols.is_empty() {
            let numbered = (0..).zip(live);
            let names = numbered.filter_map(|(index, entry)| Some((entry.get("Symbol")?.text()?, index))).collect();
            return Self { names, live };
        }
        let procedures = description.and_then(|tables| tables.get("ANEFModelProcedures")).map(Value::list).unwrap_or_default();
        let is_it = |entry: &&Value| entry.get("ProcedureID").and_then(Value::integer) == Some(i64::from(procedure));
        let listed = procedures.iter().find(is_it).and_then(|entry| entry.get(own)).map(Value::list).unwrap_or_default();
        let mut indices: Vec<u64> =
            listed.iter().filter_map(Value::integer).filter_map(|index| u64::try_from(index).ok()).collect();
        if indices.is_empty() {
            indices = (0..symbols.len() as u64).collect();
        }
        let name = |index: u64| symbols.get(usize::try_from(index).ok()?).copied().flatten().map(|name| (name, index));
        Self { names: indices.into_iter().filter_map(name).collect(), live }
    }

    fn index(&self, port: &str) -> Option<u64> {
        self.names.iter().find(|(name, _)| *name == port).map(|(_, index)| *index)
    }

    fn missing(&self, kind: &'static str, port: &str) -> Fault {
        let known = self.names.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        Fault::kind(Step::Bind, Kind::Symbols { kind, port: port.to_string() }, known)
    }

    fn layout(&self, port: &Port) -> Option<Strided> {
        let entry = self.live.iter().find(|entry| entry.get("Symbol").and_then(Value::text) == Some(port.name.as_str()))?;
        Strided::read(entry, port.ty.dtype.bits() / 8, port.ty.count())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use aneforge_mil::{DType, TensorType};

    fn texts(all: &[&str]) -> Value {
        Value::List(all.iter().map(|text| Value::Text(text.to_string())).collect())
    }

    fn numbers(all: &[i64]) -> Value {
        Value::List(all.iter().map(|number| Value::Integer(*number)).collect())
    }

    fn dictionary(entries: Vec<(&str, Value)>) -> Value {
        Value::Dictionary(entries.into_iter().map(|(key, value)| (key.to_string(), value)).collect())
    }

    fn ports(inputs: &[&str], outputs: &[&str]) -> Ports {
        let port = |name: &&str| Port::of("main", name, &TensorType::new(DType::Fp16, [1, 4])).unwrap();
        Ports { inputs: inputs.iter().map(port).collect(), outputs: outputs.iter().map(port).collect() }
    }

    fn two_functions() -> Value {
        let procedure = |id: i64, inputs: &[i64], outputs: &[i64]| {
            dictionary(vec![
                ("ProcedureID", Value::Integer(id)),
                ("InputSymbolIndexArray", numbers(inputs)),
                ("OutputSymbolIndexArray", numbers(outputs)),
            ])
        };
        let description = dictionary(vec![
            ("InputSymbols", texts(&["a", "b", "a", "c"])),
            ("OutputSymbols", texts(&["y@output", "z@output"])),
            ("ProcedureNameToIDMap", dictionary(vec![("first", Value::Integer(0)), ("second", Value::Integer(1))])),
            ("ANEFModelProcedures", Value::List(vec![procedure(0, &[0, 1], &[0]), procedure(1, &[2, 3], &[1])])),
        ]);
        dictionary(vec![("ANEFModelDescription", description)])
    }

    #[test]
    fn ports_are_found_by_name_among_those_of_their_function() {
        let first = Symbols::read(&two_functions(), "first", &ports(&["b", "a"], &["y"])).unwrap();
        assert_eq!((first.procedure, first.inputs, first.outputs), (0, vec![1, 0], vec![0]));
        let second = Symbols::read(&two_functions(), "second", &ports(&["a", "c"], &["z"])).unwrap();
        assert_eq!((second.procedure, second.inputs, second.outputs), (1, vec![2, 3], vec![1]));
    }

    #[test]
    fn a_port_that_the_tables_leave_out_is_an_error_that_lists_them() {
        let fault = Symbols::read(&two_functions(), "first", &ports(&["c"], &["y"])).unwrap_err();
        assert_eq!(fault.kind, Kind::Symbols { kind: "input", port: "c".to_string() });
        assert_eq!(fault.text, "a, b");
    }

    #[test]
    fn a_network_without_a_description_is_numbered_by_its_live_lists() {
        let live = |name: &str, row: i64| {
            dictionary(vec![
                ("Symbol", Value::Text(name.to_string())),
                ("Width", Value::Integer(4)),
                ("RowStride", Value::Integer(row)),
            ])
        };
        let network = dictionary(vec![
            ("LiveInputList", Value::List(vec![live("q", 64), live("k", 8)])),
            ("LiveOutputList", Value::List(vec![live("o", 8)])),
        ]);
        let attributes = dictionary(vec![("NetworkStatusList", Value::List(vec![network]))]);
        let symbols = Symbols::read(&attributes, "main", &ports(&["k", "q"], &["o"])).unwrap();
        assert_eq!((symbols.inputs, symbols.outputs), (vec![1, 0], vec![0]));
        assert!(symbols.input_layouts.iter().all(Option::is_some));
    }
}
