//! What a graph operator becomes on each target: the MIL text of its first case.

use aneforge_compile::{CompileOptions, compile};
use aneforge_core::op::Case;
use aneforge_core::{Attribute, Graph, GraphOp, Target, Tensor, chips};
use aneforge_mil::{BlobWriter, Body, EmitOptions, emit, print};
use serde::Serialize;
use std::io::Cursor;

use crate::claims::FAMILIES;

/// The same text for one or more targets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoweringText {
    /// `generic`, or families.
    pub targets: Vec<String>,
    /// The function in MIL; empty where the targets refuse the operator.
    pub mil: String,
    /// Why the targets refuse it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// MIL operators in it, each once.
    pub operators: Vec<&'static str>,
}

/// Lowers the first case for the generic target and for a chip of each family; equal texts are put together.
pub(super) fn texts(op: &'static GraphOp) -> Vec<LoweringText> {
    let Some(case) = op.cases.first() else { return Vec::new() };
    let mut texts: Vec<LoweringText> = Vec::new();
    for (name, target) in targets() {
        let new = text(op, case, name, target);
        match texts.iter_mut().find(|known| known.mil == new.mil && known.refused == new.refused) {
            Some(known) => known.targets.extend(new.targets),
            None => texts.push(new),
        }
    }
    texts
}

/// The generic target, and the plainest chip of each family.
fn targets() -> Vec<(String, Target)> {
    let family = |family| {
        let chip = chips().iter().find(|chip| chip.family == family)?;
        Some((chip.family.to_string(), Target::e5rt(chip)))
    };
    std::iter::once(("generic".to_string(), Target::Generic)).chain(FAMILIES.into_iter().filter_map(family)).collect()
}

fn text(op: &'static GraphOp, case: &Case, name: String, target: Target) -> LoweringText {
    let outputs = outputs(op, case);
    let named: Vec<_> = outputs.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let lowered = compile(&named, &CompileOptions { target, ..CompileOptions::default() })
        .map_err(|error| error.to_string())
        .and_then(|compiled| Ok((function(&compiled.body)?, operators(&compiled.body))));
    match lowered {
        Ok((mil, operators)) => LoweringText { targets: vec![name], mil, refused: None, operators },
        Err(problem) => LoweringText { targets: vec![name], mil: String::new(), refused: Some(problem), operators: Vec::new() },
    }
}

/// The case in a graph of its own, its inputs without values.
fn outputs(op: &'static GraphOp, case: &Case) -> Vec<(String, Tensor)> {
    let graph = Graph::new();
    let mut ports: Vec<Vec<Tensor>> = vec![Vec::new(); op.inputs.len()];
    for (index, sample) in case.inputs.iter().enumerate() {
        let count: usize = sample.shape.iter().product();
        let tensor = if !sample.constant {
            graph.input(&format!("{}{index}", sample.input), sample.dtype, sample.shape)
        } else if sample.values.is_empty() {
            graph.values(sample.dtype, sample.shape, &vec![op.domain.high; count])
        } else {
            graph.values(sample.dtype, sample.shape, sample.values)
        };
        if let Some(port) = op.input(sample.input) {
            ports[port].push(tensor);
        }
    }
    let attributes: Vec<(&str, Attribute)> = case.attributes.iter().map(|(name, value)| (*name, Attribute::from(*value))).collect();
    let results = graph.apply_lists(op, &ports, &attributes);
    results.into_iter().enumerate().map(|(index, tensor)| (format!("y{index}"), tensor)).collect()
}

/// The function of a body as text.
fn function(body: &Body) -> Result<String, String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let mut blob = BlobWriter::new(Cursor::new(Vec::new())).map_err(|error| text(&error))?;
    let options = EmitOptions { build_info: Vec::new(), ..EmitOptions::default() };
    let program = emit(body, &options, &mut blob).map_err(|error| text(&error))?;
    let mil = print(&program);
    let function = mil.split_once("    func ").map_or(mil.as_str(), |(_, function)| function);
    let function = function.trim_end().trim_end_matches('}').trim_end();
    Ok(format!("func {function}").lines().map(|line| line.strip_prefix("    ").unwrap_or(line)).collect::<Vec<_>>().join("\n"))
}

fn operators(body: &Body) -> Vec<&'static str> {
    let mut names: Vec<_> = body.operations.iter().map(|operation| operation.op.name).collect();
    names.sort_unstable();
    names.dedup();
    names
}
