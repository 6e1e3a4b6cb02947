//! A run and the claims as one page: a matrix of operators and chips, with a detail for every operator.
//!
//! One file without anything loaded from elsewhere. Colours are never alone: each verdict has a symbol, each status a letter.

use super::style::{SCRIPT, STYLE};
use super::{OperatorResult, Outcome, Report, Table};
use crate::catalogue::{Catalogue, FamilySupport, Gradient, GraphEntry, Limit, ListedEntry, MilEntry, Rule};
use crate::claims::{Claims, FAMILIES, Status, Verdict};
use aneforge_core::{Family, chips};
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The page of a run, with the catalogue that the claims give.
pub fn page(report: &Report, claims: &Claims) -> String {
    let catalogue = Catalogue::with(claims);
    let result = |table, name: &str| report.operators.iter().find(|found| found.table == table && found.name == name);
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Operators and chips: " (report.device) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { "Operators and chips" }
                    p { (summary(report)) }
                    (legend())
                    label for="filter" { "Filter " input id="filter" type="search" placeholder="operator, chip word or status" autocomplete="off"; }
                }
                main {
                    h2 { "Graph" }
                    (matrix(catalogue.graph.iter().map(|entry| (Table::Graph, entry.name, entry.support.as_slice())), &result))
                    h2 { "MIL" }
                    (matrix(catalogue.mil.iter().map(|entry| (Table::Mil, entry.name, entry.support.as_slice())), &result))
                    h2 { "Layers of the engine" }
                    (matrix(catalogue.native.iter().map(|entry| (Table::Native, entry.name, entry.support.as_slice())), &result))
                    h2 { "Known by name alone" }
                    (matrix(catalogue.listed.iter().map(|entry| (Table::Mil, entry.name, entry.support.as_slice())), &result))
                    (matrix(catalogue.unusable.iter().map(|entry| (Table::Native, entry.name, entry.support.as_slice())), &result))
                    h2 { "Details" }
                    @for entry in &catalogue.graph { (graph_detail(entry, result(Table::Graph, entry.name))) }
                    @for entry in &catalogue.mil { (mil_detail(Table::Mil, entry, result(Table::Mil, entry.name))) }
                    @for entry in &catalogue.native { (mil_detail(Table::Native, entry, result(Table::Native, entry.name))) }
                    @for entry in &catalogue.listed { (listed_detail(Table::Mil, entry)) }
                    @for entry in &catalogue.unusable { (listed_detail(Table::Native, entry)) }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    markup.into_string()
}

fn summary(report: &Report) -> String {
    let totals = report.totals;
    format!(
        "Device {}: {} uses of {} operators, {} passed, {} failed, {} refused, {} not on the chip. Seed {}, {:.1} s, version {}.",
        report.device,
        totals.uses(),
        report.operators.len(),
        totals.passed,
        totals.failed,
        totals.refused,
        totals.unsupported,
        report.seed,
        report.seconds,
        report.version
    )
}

fn legend() -> Markup {
    let verdicts = [Some(Verdict::Native), Some(Verdict::Bridged), Some(Verdict::Gated), Some(Verdict::Absent), None];
    let statuses = [Status::Reported, Status::Emulated, Status::Measured, Status::Contradicted, Status::Unknown];
    html! {
        ul class="legend" aria-label="Legend" {
            @for verdict in verdicts {
                li { span class={ "key " (class(verdict)) } aria-hidden="true" { (symbol(verdict)) } " " (word(verdict)) }
            }
            @for status in statuses { li { b { (letter(status)) } " " (status.word()) } }
        }
    }
}

/// Which symbol a verdict has.
fn symbol(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Native | Verdict::Computes | Verdict::Runs) => "●",
        Some(Verdict::Bridged) => "◐",
        Some(Verdict::Gated) => "○",
        Some(Verdict::Absent | Verdict::Refused) => "✕",
        None => "·",
    }
}

fn class(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Native | Verdict::Computes | Verdict::Runs) => "on",
        Some(Verdict::Bridged) => "around",
        Some(Verdict::Gated) => "gated",
        Some(Verdict::Absent | Verdict::Refused) => "off",
        None => "silent",
    }
}

fn word(verdict: Option<Verdict>) -> &'static str {
    verdict.map_or("nothing claimed", Verdict::word)
}

fn letter(status: Status) -> &'static str {
    match status {
        Status::Reported => "r",
        Status::Emulated => "e",
        Status::Measured => "m",
        Status::Contradicted => "!",
        Status::Unknown => "?",
    }
}

fn anchor(table: Table, name: &str) -> String {
    format!("{}-{name}", table.word())
}

/// Where the detail of an operator of a lowering is.
fn part(name: &str) -> String {
    let table = if aneforge_native::layer::find(name).is_some() { Table::Native } else { Table::Mil };
    format!("#{}", anchor(table, name))
}

/// The plainest chip of a family.
fn chip(family: Family) -> &'static str {
    chips().iter().find(|chip| chip.family == family).map_or("", |chip| chip.product)
}

type Rows<'a> = (Table, &'static str, &'a [FamilySupport]);

fn matrix<'a, 'r>(rows: impl Iterator<Item = Rows<'a>>, result: &dyn Fn(Table, &str) -> Option<&'r OperatorResult>) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="Matrix" {
            table class="matrix" {
                thead {
                    tr {
                        th scope="col" { "operator" }
                        @for family in FAMILIES { th scope="col" { (chip(family)) br; small { (family) } } }
                        th scope="col" { "run" }
                    }
                }
                tbody { @for (table, name, support) in rows { (row(table, name, support, result(table, name))) } }
            }
        }
    }
}

fn row(table: Table, name: &str, support: &[FamilySupport], result: Option<&OperatorResult>) -> Markup {
    let link = format!("#{}", anchor(table, name));
    // The main route comes first.
    let of = |family| support.iter().find(|support| support.family == family);
    let words: Vec<String> = support.iter().map(|support| format!("{} {}", word(support.verdict), support.status.word())).collect();
    html! {
        tr data-words=(format!("{name} {} {}", words.join(" "), result.map_or("", |result| result.outcome.word()))) {
            th scope="row" { a href=(link) { (name) } }
            @for family in FAMILIES {
                @let (verdict, status) = of(family).map_or((None, Status::Unknown), |support| (support.verdict, support.status));
                @let text = format!("{} on {}: {}, {}", name, chip(family), word(verdict), status.word());
                td class=(class(verdict)) {
                    a href=(link) title=(text) aria-label=(text) { (symbol(verdict)) sup { (letter(status)) } }
                }
            }
            td { (outcome(result)) }
        }
    }
}

fn outcome(result: Option<&OperatorResult>) -> Markup {
    let (symbol, word) = match result.map(|result| result.outcome) {
        Some(Outcome::Pass) => ("✓", "pass"),
        Some(Outcome::Unsupported) => ("–", "not on the chip"),
        Some(Outcome::Refused) => ("✕", "refused"),
        Some(Outcome::Fail) => ("✕", "fail"),
        None => ("", "not run"),
    };
    html! { span class={ "outcome " (word.replace(' ', "-")) } title=(word) aria-label=(word) { (symbol) } }
}

fn graph_detail(entry: &GraphEntry, result: Option<&OperatorResult>) -> Markup {
    html! {
        details id=(anchor(Table::Graph, entry.name)) data-words=(entry.name) {
            summary { "graph " b { (entry.name) } ": " (entry.summary) }
            @for alias in &entry.aliases { p { "Also " code { (alias.name) } ": written as " code { (alias.written) } "." } }
            (rules(&entry.rules))
            p {
                @match entry.gradient {
                    Gradient::Rule => { "Has a derivative." }
                    Gradient::None(reason) => { "No derivative: " (reason) "." }
                }
            }
            @for lowering in &entry.lowering {
                p {
                    "For " (lowering.targets.join(", ")) ": "
                    @if let Some(reason) = &lowering.refused { "refused: " (reason) }
                    @for name in &lowering.operators { a href=(part(name)) { (name) } " " }
                }
                @if lowering.refused.is_none() { pre { (lowering.mil) } }
            }
            (sides(&entry.support))
            (run(result))
        }
    }
}

fn listed_detail(table: Table, entry: &ListedEntry) -> Markup {
    html! {
        details id=(anchor(table, entry.name)) data-words=(entry.name) {
            summary { (table.word()) " " b { (entry.name) } ": " (entry.summary) }
            p { "No record: " (entry.reason) "." }
            (sides(&entry.support))
            (limits(&entry.limits))
        }
    }
}

fn mil_detail(table: Table, entry: &MilEntry, result: Option<&OperatorResult>) -> Markup {
    html! {
        details id=(anchor(table, entry.name)) data-words=(entry.name) {
            summary { (table.word()) " " b { (entry.name) } ": " (entry.summary) }
            (rules(&entry.rules))
            p { "Arithmetic on the engine: " (entry.arithmetic) "." }
            (sides(&entry.support))
            (limits(&entry.limits))
            (run(result))
        }
    }
}

fn rules(rules: &[Rule]) -> Markup {
    html! { @if !rules.is_empty() { ul { @for rule in rules { li { b { (rule.label) } " " (rule.rule) } } } } }
}

fn sides(support: &[FamilySupport]) -> Markup {
    html! {
        div class="scroll" {
            table class="sides" {
                thead { tr { th { "chip" } th { "route" } th { "claim" } th { "status" } th { "who says what" } } }
                tbody {
                    @for family in support {
                        tr class=(if family.is_contradicted() { "contradicted" } else { "agreed" }) {
                            td { (chip(family.family)) }
                            td { (family.route.word()) }
                            td class=(class(family.verdict)) { (symbol(family.verdict)) " " (word(family.verdict)) }
                            td { (family.status.word()) }
                            td {
                                @for side in &family.sides {
                                    div {
                                        b { (side.verdict.word()) } " "
                                        (if side.tried { "(tried)" } else { "(predicted)" })
                                        @if let Some(figure) = side.figure { ", error " (format!("{figure:e}")) }
                                        @if let Some(note) = &side.note { ": " (note) }
                                        " " cite { (side.source) }
                                    }
                                }
                                @for figure in &family.figures {
                                    div { "emulated: " (figure.workload) " on " (figure.chips.join(", ")) ", " (figure.value) " " cite { (figure.source) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn limits(limits: &[Limit]) -> Markup {
    html! {
        @if !limits.is_empty() {
            ul {
                @for limit in limits {
                    li {
                        (limit.first) " to " (limit.last) " through " (limit.route.word()) ", "
                        (limit.uses.as_deref().or(limit.dtype.as_deref()).unwrap_or("some uses")) ": " (limit.verdict.word())
                        @if let Some(note) = &limit.note { " (" (note) ")" }
                        " " cite { (limit.source) }
                    }
                }
            }
        }
    }
}

fn run(result: Option<&OperatorResult>) -> Markup {
    html! {
        @if let Some(result) = result {
            p {
                "Run: " (result.totals.passed) " of " (result.totals.uses()) " uses passed, largest error "
                (format!("{:.1e}", result.worst_error)) ", " (format!("{:.0}", result.micros)) " µs."
            }
            @for usage in result.uses.iter().filter(|usage| usage.outcome != Outcome::Pass) {
                p { b { (usage.outcome.word()) } " " (usage.case) ": " (usage.reason.as_deref().unwrap_or("")) }
            }
        }
    }
}
