//! `aneforge ops`

use crate::failure::Failure;
use crate::output;
use aneforge::core::op as graph;
use aneforge::core::{AttributeSpec, GraphOp};
use aneforge::mil::op::{Arithmetic, Default, MilOp, PortKind, PortSpec, builtin};
use serde::Serialize;

/// List the operators of the graph and of MIL, or show one of them with its rules.
#[derive(clap::Args)]
pub struct Options {
    /// Show what this operator takes, its rules, its arithmetic on the engine.
    name: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Tables {
    graph: Vec<GraphEntry>,
    mil: Vec<MilEntry>,
}

#[derive(Serialize)]
struct GraphEntry {
    name: &'static str,
    summary: &'static str,
    inputs: Vec<Input>,
    attributes: Vec<Input>,
    rules: Vec<Rule>,
    differentiable: bool,
}

#[derive(Serialize)]
struct MilEntry {
    name: &'static str,
    opset: &'static str,
    summary: &'static str,
    ports: Vec<Input>,
    rules: Vec<Rule>,
    arithmetic: String,
    native_from: Option<String>,
    /// Standing per family of the M1, M2, M3, and the M4 and later: N native, B bridged, G gated, X absent.
    families: String,
    limits: &'static str,
    source: &'static str,
}

#[derive(Serialize)]
struct Input {
    name: &'static str,
    takes: String,
    default: Option<String>,
}

#[derive(Serialize)]
struct Rule {
    label: &'static str,
    rule: &'static str,
}

/// Lists or shows.
pub fn run(options: &Options) -> Result<(), Failure> {
    let wanted = |name: &str| options.name.as_ref().is_none_or(|wanted| wanted == name);
    let mut graph: Vec<_> = graph::builtin().iter().filter(|op| wanted(op.name)).map(|op| graph_entry(op)).collect();
    graph.sort_by_key(|entry| entry.name);
    let mil: Vec<_> = builtin().all().into_iter().filter(|op| wanted(op.name)).map(mil_entry).collect();
    if let Some(name) = options.name.as_ref().filter(|_| graph.is_empty() && mil.is_empty()) {
        return Err(Failure::Input(format!("there is no operator {name:?}; `aneforge ops` lists them all")));
    }
    if options.json {
        return output::json(&Tables { graph, mil });
    }
    if options.name.is_none() {
        let rows = graph.iter().map(|op| vec!["graph".to_string(), op.name.to_string(), op.summary.to_string()]);
        let rows = rows.chain(mil.iter().map(|op| vec!["mil".to_string(), op.name.to_string(), op.summary.to_string()]));
        return output::data(&output::table(&rows.collect::<Vec<_>>(), &[]));
    }
    let shown: Vec<String> = graph.iter().map(show_graph).chain(mil.iter().map(show_mil)).collect();
    output::data(&shown.join("\n"))
}

fn graph_entry(op: &'static GraphOp) -> GraphEntry {
    let dtypes = |dtypes: &[aneforge::DType]| dtypes.iter().map(|dtype| dtype.keyword()).collect::<Vec<_>>().join(", ");
    let kind = |kind| match kind {
        graph::InputKind::One => "",
        graph::InputKind::Optional => "optional ",
        graph::InputKind::Variadic => "several of ",
    };
    GraphEntry {
        name: op.name,
        summary: op.summary,
        inputs: op
            .inputs
            .iter()
            .map(|input| {
                let constant = if input.constant { "constant " } else { "" };
                Input { name: input.name, takes: format!("{}{constant}{}", kind(input.kind), dtypes(input.dtypes)), default: None }
            })
            .collect(),
        attributes: op.attributes.iter().map(attribute).collect(),
        rules: op.constraints.iter().map(|rule| Rule { label: rule.label, rule: rule.rule }).collect(),
        differentiable: matches!(op.vjp, graph::Vjp::Rule(_)),
    }
}

fn attribute(spec: &AttributeSpec) -> Input {
    Input { name: spec.name, takes: format!("{:?}", spec.kind).to_lowercase(), default: default(spec.default) }
}

fn default(default: Default) -> Option<String> {
    match default {
        Default::Required => None,
        Default::Absent => Some("none".to_string()),
        Default::Int(value) => Some(value.to_string()),
        Default::Float(value) => Some(format!("{value:?}")),
        Default::Flag(value) => Some(value.to_string()),
        Default::Text(text) => Some(format!("{text:?}")),
        Default::Ints(values) => Some(format!("{values:?}")),
    }
}

fn mil_entry(op: &'static MilOp) -> MilEntry {
    let port = |port: &PortSpec| {
        let kind = match port.kind {
            PortKind::Tensor => "",
            PortKind::Constant | PortKind::Weight => "constant ",
            PortKind::Variadic => "several of ",
            PortKind::Constants => "several constant ",
        };
        let dtypes = port.dtypes.iter().map(|dtype| dtype.keyword()).collect::<Vec<_>>().join(", ");
        Input { name: port.name, takes: format!("{kind}{dtypes}"), default: default(port.default) }
    };
    MilEntry {
        name: op.name,
        opset: op.opset,
        summary: op.summary,
        ports: op.ports.iter().map(port).collect(),
        rules: op.constraints.iter().map(|rule| Rule { label: rule.label, rule: rule.rule }).collect(),
        arithmetic: match op.arithmetic {
            Arithmetic::Exact(rule) => format!("exact: {rule}"),
            Arithmetic::Modelled(rule) => format!("modelled: {rule}"),
            Arithmetic::Copy => "moves elements".to_string(),
            Arithmetic::Unknown => "unknown".to_string(),
        },
        native_from: op.support.native_from().map(|family| format!("A{family}")),
        families: op.support.families.iter().map(|standing| standing.letter()).collect(),
        limits: op.support.limits,
        source: op.support.source,
    }
}

fn show_graph(op: &GraphEntry) -> String {
    let mut text = format!("graph {}: {}\n", op.name, op.summary);
    text.push_str(&inputs("input", &op.inputs));
    text.push_str(&inputs("attribute", &op.attributes));
    text.push_str(&rules(&op.rules));
    text.push_str(if op.differentiable { "  has a derivative\n" } else { "  has no derivative\n" });
    text
}

fn show_mil(op: &MilEntry) -> String {
    let mut text = format!("mil {} (from {}): {}\n", op.name, op.opset, op.summary);
    text.push_str(&inputs("port", &op.ports));
    text.push_str(&rules(&op.rules));
    text.push_str(&format!("  arithmetic on the engine: {}\n", op.arithmetic));
    let native = op.native_from.as_deref().map_or("no engine".to_string(), |family| format!("{family} on"));
    text.push_str(&format!("  native from {native}, {} on M1, M2, M3, M4 ({})\n", op.families, op.source));
    if !op.limits.is_empty() {
        text.push_str(&format!("  limits: {}\n", op.limits));
    }
    text
}

fn inputs(kind: &str, inputs: &[Input]) -> String {
    let rows: Vec<_> = inputs
        .iter()
        .map(|input| {
            let default = input.default.as_ref().map_or(String::new(), |default| format!("default {default}"));
            vec![format!("  {kind}"), input.name.to_string(), input.takes.clone(), default]
        })
        .collect();
    output::table(&rows, &[])
}

fn rules(rules: &[Rule]) -> String {
    rules.iter().map(|rule| format!("  rule {}: {}\n", rule.label, rule.rule)).collect()
}
