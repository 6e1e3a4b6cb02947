//! `aneforge ops`

use crate::failure::Failure;
use crate::output;
use aneforge::conform::catalogue::{
    Catalogue, FamilySupport, Gradient, GraphEntry, Limit, ListedEntry, MilEntry, Port, Rule, markdown,
};
use std::path::PathBuf;

/// List the operators of the graph, of MIL and of the engine, or show some of them with all that is known of them.
#[derive(clap::Args)]
pub struct Options {
    /// `show NAME...` or NAME: what the operator takes, its rules, its lowering, which chips have it and who says so.
    names: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Write the reference as Markdown into this folder.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["json", "names"])]
    markdown: Option<PathBuf>,
}

/// Lists or shows.
pub fn run(options: &Options) -> Result<(), Failure> {
    let catalogue = Catalogue::builtin().map_err(|error| Failure::input(&error))?;
    if let Some(folder) = &options.markdown {
        return Ok(markdown::write(&catalogue, folder)?);
    }
    // `ops show relu` and `ops relu` are the same; no operator is called show.
    let names = match options.names.split_first() {
        Some((first, rest)) if first == "show" && !rest.is_empty() => rest,
        _ => &options.names,
    };
    if names.is_empty() {
        return if options.json { output::json(&catalogue) } else { output::data(&list(&catalogue)) };
    }
    let chosen = names.iter().map(|name| catalogue.only(name)).collect::<Vec<_>>();
    if let Some((name, _)) = names.iter().zip(&chosen).find(|(_, found)| found.is_empty()) {
        return Err(Failure::Input(format!("there is no operator {name:?}; `aneforge ops` lists them all")));
    }
    if options.json {
        return output::json(&Catalogue::joined(chosen));
    }
    output::data(&chosen.iter().map(show).collect::<Vec<_>>().join("\n"))
}

/// One line per operator and alias.
fn list(catalogue: &Catalogue) -> String {
    let row = |table: &str, name: &str, summary: &str| vec![table.to_string(), name.to_string(), summary.to_string()];
    let mut rows = Vec::new();
    for op in &catalogue.graph {
        rows.push(row("graph", op.name, op.summary));
        rows.extend(op.aliases.iter().map(|alias| row("graph", alias.name, &format!("Written as {} here.", alias.written))));
    }
    rows.extend(catalogue.nodes.iter().map(|node| row("graph", node.name, &format!("Written as {} here.", node.written))));
    rows.extend(catalogue.mil.iter().map(|op| row("mil", op.name, op.summary)));
    rows.extend(catalogue.listed.iter().map(|op| row("mil", op.name, &format!("No record: {}.", op.reason))));
    rows.extend(catalogue.native.iter().map(|op| row("native", op.name, op.summary)));
    rows.extend(catalogue.unusable.iter().map(|op| row("native", op.name, &format!("No record: {}.", op.reason))));
    output::table(&rows, &[])
}

fn show(found: &Catalogue) -> String {
    let graph = found.graph.iter().map(show_graph);
    let mil = found.mil.iter().map(|op| show_mil("mil", op)).chain(found.native.iter().map(|op| show_mil("native", op)));
    let listed =
        found.listed.iter().map(|op| show_listed("mil", op)).chain(found.unusable.iter().map(|op| show_listed("native", op)));
    let nodes = found.nodes.iter().map(|node| format!("graph {}: written as {}\n", node.name, node.written));
    graph.chain(nodes).chain(mil).chain(listed).collect::<Vec<_>>().join("\n")
}

fn show_listed(table: &str, op: &ListedEntry) -> String {
    let mut text = format!("{table} {}: {}\n  no record: {}\n", op.name, op.summary, op.reason);
    text.push_str(&support(&op.support));
    op.limits.iter().for_each(|limit| text.push_str(&limit_line(limit)));
    text
}

fn show_graph(op: &GraphEntry) -> String {
    let mut text = format!("graph {}: {}\n", op.name, op.summary);
    for alias in &op.aliases {
        text.push_str(&format!("  also {}: written as {}\n", alias.name, alias.written));
    }
    text.push_str(&ports("input", &op.inputs));
    text.push_str(&ports("attribute", &op.attributes));
    text.push_str(&rules(&op.rules));
    match op.gradient {
        Gradient::Rule => text.push_str("  has a derivative\n"),
        Gradient::None(reason) => text.push_str(&format!("  has no derivative: {reason}\n")),
    }
    for lowering in &op.lowering {
        text.push_str(&format!("  for {}:\n", lowering.targets.join(", ")));
        match &lowering.refused {
            Some(reason) => text.push_str(&format!("    refused: {reason}\n")),
            None => lowering.mil.lines().for_each(|line| text.push_str(&format!("    {line}\n"))),
        }
    }
    text.push_str(&support(&op.support));
    text
}

fn show_mil(table: &str, op: &MilEntry) -> String {
    let mut text = format!("{table} {} (from {}): {}\n", op.name, op.opset, op.summary);
    text.push_str(&ports("port", &op.ports));
    text.push_str(&rules(&op.rules));
    text.push_str(&format!("  arithmetic on the engine: {}\n", op.arithmetic));
    text.push_str(&support(&op.support));
    op.limits.iter().for_each(|limit| text.push_str(&limit_line(limit)));
    text
}

/// One line per family, with every side where sources disagree.
fn support(families: &[FamilySupport]) -> String {
    let mut text = String::new();
    for support in families {
        let verdict = support.verdict.map_or("nothing is claimed", |verdict| verdict.word());
        text.push_str(&format!("  {} through {}: {verdict}, {}\n", support.family, support.route.word(), support.status.word()));
        for side in &support.sides {
            let how = if side.tried { "tried" } else { "predicted" };
            let figure = side.figure.map_or(String::new(), |figure| format!(", error {figure:e}"));
            let note = side.note.as_ref().map_or(String::new(), |note| format!(": {note}"));
            text.push_str(&format!("    {} ({how}{figure}){note} [{}]\n", side.verdict.word(), side.source));
        }
    }
    text
}

fn limit_line(limit: &Limit) -> String {
    let families = if limit.first == limit.last { limit.first.to_string() } else { format!("{} to {}", limit.first, limit.last) };
    let uses = limit.uses.as_deref().or(limit.dtype.as_deref()).unwrap_or("some uses");
    let note = limit.note.as_ref().map_or(String::new(), |note| format!(": {note}"));
    format!("  limit on {families} through {}: {uses}, {}{note} [{}]\n", limit.route.word(), limit.verdict.word(), limit.source)
}

fn ports(kind: &str, ports: &[Port]) -> String {
    let rows: Vec<_> = ports
        .iter()
        .map(|port| {
            let default = port.default.as_ref().map_or(String::new(), |default| format!("default {default}"));
            vec![format!("  {kind}"), port.name.to_string(), port.takes.clone(), default]
        })
        .collect();
    output::table(&rows, &[])
}

fn rules(rules: &[Rule]) -> String {
    rules.iter().map(|rule| format!("  rule {}: {}\n", rule.label, rule.rule)).collect()
}
