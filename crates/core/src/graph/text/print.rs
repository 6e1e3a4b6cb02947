//! Graph to text.

use super::SHOWN_ELEMENTS;
use crate::graph::{ConstantData, Graph, Node, NodeKind, Port, Tensor};
use crate::op::InputKind;
use crate::{Attribute, TensorType, Weight};
use aneforge_mil::unpack;
use std::fmt::Write;

pub(super) fn print(graph: &Graph, outputs: &[(String, Tensor)]) -> String {
    let arena = graph.read();
    let mut text = String::new();
    for (index, node) in arena.nodes.iter().enumerate() {
        let seed = arena.seeds.get(&(index as u32)).copied().unwrap_or(index as u64);
        let several = |port: &Port| arena.node(port.node).outputs.len() > 1;
        let _ = write!(text, "%{index} = ");
        line(&mut text, node, seed, &several);
        text.push('\n');
    }
    for (name, tensor) in outputs {
        if let Ok(port) = tensor.port() {
            let several = arena.node(port.node).outputs.len() > 1;
            let _ = writeln!(text, "output {} = {}", quoted(name), reference(port, several));
        }
    }
    text
}

fn line(text: &mut String, node: &Node, seed: u64, several: &impl Fn(&Port) -> bool) {
    let ty = &node.outputs[0];
    let _ = match &node.kind {
        NodeKind::Input { name } => write!(text, "input {} {ty}", quoted(name)),
        NodeKind::Parameter { name, weight } => write!(text, "parameter {} {ty} {}", quoted(name), weight_data(weight, seed)),
        NodeKind::Constant(data) => {
            let data = match data {
                ConstantData::Values(values) if values.len() <= SHOWN_ELEMENTS => numbers(values),
                ConstantData::Weight(weight) => weight_data(weight, seed),
                // Integers above the limit are indices: a stand-in would point elsewhere.
                ConstantData::Values(values) => numbers(values),
            };
            write!(text, "constant {ty} {data}")
        }
        NodeKind::Apply { op, inputs, attributes } => {
            let mut arguments = Vec::new();
            for (spec, ports) in op.inputs.iter().zip(inputs) {
                let references: Vec<String> = ports.iter().map(|port| reference(*port, several(port))).collect();
                match spec.kind {
                    InputKind::Variadic => arguments.push(format!("{} = ({})", spec.name, references.join(", "))),
                    _ => arguments.extend(references.first().map(|reference| format!("{} = {reference}", spec.name))),
                }
            }
            let set = op.attributes.iter().zip(attributes).filter(|(_, value)| **value != Attribute::Absent);
            let set: Vec<String> = set.map(|(spec, value)| format!("{} = {}", spec.name, attribute(value))).collect();
            let types: Vec<String> = node.outputs.iter().map(TensorType::to_string).collect();
            write!(text, "{}({}) [{}] -> {}", op.name, arguments.join(", "), set.join(", "), types.join(", "))
        }
    };
    // Inputs and parameters carry their names already.
    if let (Some(name), NodeKind::Constant(_) | NodeKind::Apply { .. }) = (&node.name, &node.kind) {
        let _ = write!(text, " named {}", quoted(name));
    }
}

fn attribute(value: &Attribute) -> String {
    match value {
        Attribute::Text(word) => quoted(word),
        Attribute::Float(number) => float(*number),
        other => other.to_string(),
    }
}

fn reference(port: Port, several: bool) -> String {
    if several { format!("%{}.{}", port.node.0, port.output) } else { format!("%{}", port.node.0) }
}

fn weight_data(weight: &Weight, seed: u64) -> String {
    let (ty, bytes) = (weight.ty(), weight.direct_bytes());
    let small = bytes.filter(|_| ty.count() <= SHOWN_ELEMENTS);
    match small.and_then(|bytes| unpack(ty.dtype, bytes, ty.count())) {
        Some(values) => numbers(&values),
        None => format!("seeded({seed})"),
    }
}

fn numbers(values: &[f64]) -> String {
    let shown: Vec<String> = values.iter().map(|&value| float(value)).collect();
    format!("[{}]", shown.join(", "))
}

/// The shortest text that reads back as the same f64.
fn float(value: f64) -> String {
    match value {
        value if value.is_nan() => "nan".to_string(),
        value if value.is_infinite() => if value > 0.0 { "inf" } else { "-inf" }.to_string(),
        value => format!("{value:?}"),
    }
}

/// A string in quotes, with backslash escapes for quotes, backslashes and control characters.
fn quoted(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 2);
    text.push('"');
    for c in name.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(text, "\\u{{{:x}}}", u32::from(c));
            }
            c => text.push(c),
        }
    }
    text.push('"');
    text
}
