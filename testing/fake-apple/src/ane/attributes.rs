//! What a loaded model says of itself: symbols, procedures and, for networks, the layout of each port.

use crate::foundation::{array, dictionary, index_set, integer, string};
use crate::interface::{Function, Port, ProgramKind};
use crate::objc::Strong;
use crate::settings::{self, SymbolOrder};

/// For each function its inputs and its outputs in the order of the symbol table, as places in the function's own order.
pub type Tables = Vec<[Vec<usize>; 2]>;

/// The symbol tables that a load makes.
pub fn tables(functions: &[Function]) -> Tables {
    functions.iter().map(|function| [order(&function.inputs, false), order(&function.outputs, true)]).collect()
}

fn order(ports: &[Port], outputs: bool) -> Vec<usize> {
    let settings = settings::current();
    let mut order: Vec<usize> = (0..ports.len()).collect();
    if settings.symbol_order != SymbolOrder::Declared {
        order.sort_by(|one, other| ports[*one].name.cmp(&ports[*other].name));
    }
    let injected = outputs && settings.faults.iter().any(|fault| fault.kind == "output-order");
    if settings.symbol_order == SymbolOrder::Reversed || injected {
        order.reverse();
    }
    order
}

/// First symbol of a function's inputs or outputs: each function has symbols of its own (thebasedcapital/ane-infer, M5).
pub fn first_symbol(functions: &[Function], function: usize, outputs: bool) -> usize {
    functions.iter().take(function).map(|function| if outputs { function.outputs.len() } else { function.inputs.len() }).sum()
}

fn whole(value: usize) -> Strong {
    integer(i64::try_from(value).unwrap_or(i64::MAX))
}

/// `modelAttributes` after a load.
pub fn describe(functions: &[Function], tables: &Tables, kind: ProgramKind) -> Strong {
    let mut entries = vec![("ANEFModelDescription", description(functions, tables))];
    if kind == ProgramKind::Network {
        let network = functions.first().zip(tables.first()).map(|(function, [inputs, outputs])| {
            dictionary([
                ("Name", string(&function.name)),
                ("LiveInputList", live(&function.inputs, inputs)),
                ("LiveOutputList", live(&function.outputs, outputs)),
            ])
        });
        entries.push(("NetworkStatusList", array(network.into_iter().collect())));
    }
    dictionary(entries)
}

fn description(functions: &[Function], tables: &Tables) -> Strong {
    let names = |outputs: bool| {
        let symbols = functions.iter().zip(tables).flat_map(|(function, [inputs_order, outputs_order])| {
            let (ports, order) = if outputs { (&function.outputs, outputs_order) } else { (&function.inputs, inputs_order) };
            // Names of outputs carry a suffix (thebasedcapital/ane-infer).
            let suffix = if outputs { "@output" } else { "" };
            order.iter().map(move |at| string(&format!("{}{suffix}", ports[*at].name)))
        });
        array(symbols.collect())
    };
    let procedures = functions.iter().enumerate().map(|(number, function)| {
        let indices = |outputs: bool, count: usize| {
            let first = first_symbol(functions, number, outputs);
            array((first..first + count).map(whole).collect())
        };
        dictionary([
            ("ProcedureID", whole(number)),
            ("InputSymbolIndexArray", indices(false, function.inputs.len())),
            ("OutputSymbolIndexArray", indices(true, function.outputs.len())),
        ])
    });
    let numbers = functions.iter().enumerate().map(|(number, function)| (function.name.as_str(), whole(number)));
    dictionary([
        ("InputSymbols", names(false)),
        ("OutputSymbols", names(true)),
        ("ANEFModelProcedures", array(procedures.collect())),
        ("ProcedureNameToIDMap", dictionary(numbers)),
    ])
}

/// A live list of a network. Keys as the PyPI package aneforge 0.4.0 reads them.
fn live(ports: &[Port], order: &[usize]) -> Strong {
    array(order.iter().map(|at| live_port(&ports[*at])).collect())
}

fn live_port(port: &Port) -> Strong {
    // Batch, channel, depth, height, width; a port of rank four has no depth.
    let (shape, strides) = match port.shape.len() {
        4 => {
            let depth = port.strides[0];
            let shape = [port.shape[0], port.shape[1], 1, port.shape[2], port.shape[3]];
            (shape.to_vec(), vec![port.strides[0], port.strides[1], depth, port.strides[2], port.strides[3]])
        }
        _ => (port.shape.clone(), port.strides.clone()),
    };
    let at = |list: &[usize], axis: usize| whole(list.get(axis).copied().unwrap_or(1));
    dictionary([
        ("Symbol", string(&port.name)),
        ("Name", string(&port.name)),
        ("Type", string(port.element.name())),
        ("Batches", at(&shape, 0)),
        ("Channels", at(&shape, 1)),
        ("Depth", at(&shape, 2)),
        ("Height", at(&shape, 3)),
        ("Width", at(&shape, 4)),
        ("BatchStride", at(&strides, 0)),
        ("PlaneStride", at(&strides, 1)),
        ("DepthStride", at(&strides, 2)),
        ("RowStride", at(&strides, 3)),
    ])
}

/// Symbol indices of a procedure as an index set.
pub fn symbols(functions: &[Function], procedure: usize, outputs: bool) -> Option<Strong> {
    let function = functions.get(procedure)?;
    let first = first_symbol(functions, procedure, outputs);
    let count = if outputs { function.outputs.len() } else { function.inputs.len() };
    Some(index_set(first..first + count))
}
