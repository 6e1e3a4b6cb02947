//! The reference in `docs/reference`, written from the catalogue.

use super::{Catalogue, FamilySupport, Gradient, GraphEntry, Limit, ListedEntry, MilEntry, Port, Rule};
use crate::claims::FAMILIES;
use crate::report::write_atomically;
use std::fmt::Write;
use std::path::Path;

/// Files of the reference: name and text.
pub fn pages(catalogue: &Catalogue) -> Vec<(&'static str, String)> {
    let mil = page("Operators of MIL", &catalogue.mil, &catalogue.listed);
    let native = page("Layers of the engine", &catalogue.native, &catalogue.unusable);
    vec![("README.md", index(catalogue)), ("graph.md", graph(catalogue)), ("mil.md", mil), ("native.md", native)]
}

/// Writes the reference into a folder, which is made where it is missing.
///
/// # Errors
/// What the system reports; each file is written whole or not at all.
pub fn write(catalogue: &Catalogue, folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    pages(catalogue).iter().try_for_each(|(name, text)| write_atomically(&folder.join(name), text))
}

fn index(catalogue: &Catalogue) -> String {
    let families = FAMILIES.map(|family| format!("{family} (M{})", family.number() - 12)).join(", ");
    let mut text = format!(
        "# Operators\n\nWritten from the operator tables by `aneforge ops --markdown docs/reference`; a test fails where it is out of \
         date.\n\n- [Operators of the graph](graph.md): {} records, what people call.\n- [Operators of MIL](mil.md): {} records, \
         what the engine's compiler reads, and {} names without one.\n- [Layers of the engine](native.md): {} records, written as \
         net.plist, and {} names without one.\n\n`aneforge ops NAME` shows the same and the MIL text of an example for each target.\n\n\
         Families: {families}. A word such as *native* is what sources claim; how far it is known stands behind it: *reported* (a \
         source says so and none says otherwise), *emulated* (our emulator reproduces a published figure), *measured* (there is an \
         evidence file from a Mac), *contradicted*, *unknown*.\n\n## Sources disagree on\n\n",
        catalogue.graph.len(),
        catalogue.mil.len(),
        catalogue.listed.len(),
        catalogue.native.len(),
        catalogue.unusable.len()
    );
    let mil = catalogue.mil.iter().map(|entry| ("mil", entry.name, &entry.support));
    let listed = catalogue.listed.iter().map(|entry| ("mil", entry.name, &entry.support));
    let native = catalogue.native.iter().map(|entry| ("native", entry.name, &entry.support));
    for (page, name, support) in mil.chain(listed).chain(native) {
        let families: Vec<_> = support.iter().filter(|support| support.is_contradicted()).map(named).collect();
        if !families.is_empty() {
            let _ = writeln!(text, "- [{name}]({page}.md#{}): {}", name.to_lowercase(), families.join(", "));
        }
    }
    text
}

fn named(support: &FamilySupport) -> String {
    format!("{} through {}", support.family, support.route.word())
}

fn graph(catalogue: &Catalogue) -> String {
    let mut text = "# Operators of the graph\n".to_string();
    for entry in &catalogue.graph {
        graph_entry(&mut text, entry);
    }
    text
}

fn graph_entry(text: &mut String, entry: &GraphEntry) {
    let _ = writeln!(text, "\n## {}\n\n{}\n", entry.name, prose(entry.summary));
    for alias in &entry.aliases {
        let _ = writeln!(text, "Also `{}`: written as `{}`.\n", alias.name, alias.written);
    }
    let ports: Vec<_> =
        entry.inputs.iter().map(|port| ("input", port)).chain(entry.attributes.iter().map(|p| ("attribute", p))).collect();
    port_table(text, &ports);
    rule_list(text, &entry.rules);
    let _ = match entry.gradient {
        Gradient::Rule => writeln!(text, "Has a derivative.\n"),
        Gradient::None(reason) => writeln!(text, "No derivative: {}.\n", prose(reason)),
    };
    for lowering in &entry.lowering {
        let targets = lowering.targets.join(", ");
        let _ = match &lowering.refused {
            Some(reason) => writeln!(text, "Refused for {targets}: {}\n", prose(reason)),
            None => {
                let names: Vec<_> = lowering.operators.iter().map(|name| link(name)).collect();
                writeln!(text, "Made of {} for {targets}.\n", names.join(", "))
            }
        };
    }
    support_table(text, &entry.support);
}

fn link(operator: &str) -> String {
    let page = if aneforge_native::layer::find(operator).is_some() { "native" } else { "mil" };
    format!("[{operator}]({page}.md#{})", operator.to_lowercase())
}

fn page(title: &str, entries: &[MilEntry], listed: &[ListedEntry]) -> String {
    let mut text = format!("# {title}\n");
    for entry in entries {
        mil_entry(&mut text, entry);
    }
    for entry in listed {
        let _ = writeln!(text, "\n## {}\n\n{} No record: {}.\n", entry.name, prose(entry.summary), prose(entry.reason));
        support_table(&mut text, &entry.support);
        limit_list(&mut text, &entry.limits);
    }
    text
}

fn mil_entry(text: &mut String, entry: &MilEntry) {
    let _ = writeln!(text, "\n## {}\n\n{} From {} on.\n", entry.name, prose(entry.summary), entry.opset);
    port_table(text, &entry.ports.iter().map(|port| ("port", port)).collect::<Vec<_>>());
    rule_list(text, &entry.rules);
    let _ = writeln!(text, "Arithmetic on the engine: {}.\n", prose(&entry.arithmetic));
    support_table(text, &entry.support);
    limit_list(text, &entry.limits);
}

fn port_table(text: &mut String, ports: &[(&str, &Port)]) {
    if ports.is_empty() {
        return;
    }
    text.push_str("| | name | takes | default |\n|---|---|---|---|\n");
    for (kind, port) in ports {
        let default = port.default.as_deref().unwrap_or("");
        let _ = writeln!(text, "| {kind} | `{}` | {} | {} |", port.name, cell(&port.takes), cell(default));
    }
    text.push('\n');
}

fn rule_list(text: &mut String, rules: &[Rule]) {
    for rule in rules {
        let _ = writeln!(text, "- {}: {}", rule.label, prose(rule.rule));
    }
    if !rules.is_empty() {
        text.push('\n');
    }
}

/// Families with equal support share a row.
fn support_table(text: &mut String, support: &[FamilySupport]) {
    let mut rows: Vec<(Vec<String>, String)> = Vec::new();
    for family in support {
        let mut sides: Vec<String> = family.sides.iter().map(|side| format!("{} ({})", side.verdict.word(), side.source)).collect();
        sides.dedup();
        let verdict = family.verdict.map_or("-", |verdict| verdict.word());
        let row = format!("{} | {verdict} | {} | {}", family.route.word(), family.status.word(), cell(&sides.join("; ")));
        match rows.last_mut().filter(|(_, last)| *last == row) {
            Some((families, _)) => families.push(family.family.to_string()),
            None => rows.push((vec![family.family.to_string()], row)),
        }
    }
    text.push_str("| families | route | claim | status | who says what |\n|---|---|---|---|---|\n");
    for (families, row) in rows {
        let _ = writeln!(text, "| {} | {row} |", families.join(", "));
    }
    text.push('\n');
}

fn limit_list(text: &mut String, limits: &[Limit]) {
    for limit in limits {
        let families =
            if limit.first == limit.last { limit.first.to_string() } else { format!("{} to {}", limit.first, limit.last) };
        let uses = limit.uses.as_deref().or(limit.dtype.as_deref()).unwrap_or("some uses");
        let note = limit.note.as_deref().map_or(String::new(), |note| format!(" ({})", prose(note)));
        let (verdict, route) = (limit.verdict.word(), limit.route.word());
        let _ = writeln!(text, "- {families} through {route}, {}: {verdict}{note}; {}", prose(uses), limit.source);
    }
    if !limits.is_empty() {
        text.push('\n');
    }
}

/// Text whose angle brackets and stars mean themselves.
fn prose(text: &str) -> String {
    text.replace('<', "\\<").replace('*', "\\*").trim_end_matches('\n').to_string()
}

/// The same inside a table.
fn cell(text: &str) -> String {
    prose(text).replace('|', "\\|")
}
