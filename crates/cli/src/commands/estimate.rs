//! `aneforge estimate`

mod chart;

use super::check::{ALL, targets};
use crate::failure::Failure;
use crate::model::ModelOptions;
use crate::output;
use aneforge::core::CompilerTarget;
use aneforge::cost::body::{Item, items, work};
use aneforge::cost::{Basis, ChipModel, Estimate, HostClass, Model, Ranged};
use aneforge::{Chip, Target};
use serde::Serialize;
use std::path::PathBuf;

/// Estimate time and energy of a call on each target, with how far the estimate may be off.
#[derive(clap::Args)]
pub struct Options {
    #[command(flatten)]
    model: ModelOptions,
    /// Targets: all, or names of chips (m2pro) and of the compiler's targets (h16s), separated by commas.
    #[arg(long, default_value = "all")]
    target: String,
    /// The host converts fp16 results one by one in software, as some builds of numpy do.
    #[arg(long)]
    software_conversion: bool,
    /// Show what each operator takes.
    #[arg(long)]
    operators: bool,
    /// Write a page with a roofline for each chip and the model's operators on it.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON, with every operation.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    description: String,
    dispatches: usize,
    gigaflops: f64,
    weight_bytes: f64,
    /// SHA-256 of the measurements that the coefficients come from.
    data_sha256: String,
    chips: Vec<Row>,
    /// Targets that take no program.
    without: Vec<&'static str>,
}

/// A chip and what the model costs on it.
#[derive(Serialize)]
struct Row {
    target: &'static str,
    #[serde(flatten)]
    estimate: Estimate,
    operators: Vec<OperatorRow>,
}

/// All uses of one operator.
#[derive(Serialize)]
struct OperatorRow {
    op: &'static str,
    count: usize,
    milliseconds: f64,
    /// Of the engine's.
    millijoules: f64,
}

/// Estimates and tells.
pub fn run(options: &Options) -> Result<(), Failure> {
    let chosen = chosen(&options.target)?;
    let (description, body, _) = options.model.source(Target::Generic)?;
    // Weights above what one program may hold are cut alike for all chips.
    let target = chosen.iter().find_map(|(_, chip)| chip.map(Target::e5rt)).unwrap_or_default();
    let segments = aneforge::compile::segment::segment(&body, &target, &aneforge::compile::Limits::default())?;
    let dispatches = segments.as_ref().map_or(1, |segments| segments.parts.len());
    let items = items(&body);
    let work = work(&body, &items, dispatches);
    let model = Model::committed().map_err(|error| Failure::input(&error))?;
    let host = if options.software_conversion { HostClass::Software } else { HostClass::Native };
    let models: Vec<(&'static CompilerTarget, ChipModel)> =
        chosen.iter().filter_map(|(target, chip)| Some((*target, model.chip((*chip)?, host)))).collect();
    let row = |(target, chip): &(&'static CompilerTarget, ChipModel)| Row {
        target: target.name,
        estimate: chip.estimate(&work),
        operators: operators(chip, &items),
    };
    let report = Report {
        description,
        dispatches,
        gigaflops: work.flops() * 1e-9,
        weight_bytes: work.operations.iter().map(|operation| operation.weight_bytes * operation.count).sum(),
        data_sha256: model.coefficients().data_sha256.clone(),
        chips: models.iter().map(row).collect(),
        without: chosen.iter().filter(|(_, chip)| chip.is_none()).map(|(target, _)| target.name).collect(),
    };
    if let Some(file) = &options.html {
        let page = chart::page(&report.description, &models, &items);
        let unfinished = file.with_extension("html.unfinished");
        let written = std::fs::write(&unfinished, page).and_then(|()| std::fs::rename(&unfinished, file));
        written.map_err(|error| Failure::Input(format!("cannot write {}: {error}", file.display())))?;
        output::note(&format!("wrote {}", file.display()));
    }
    if options.json { output::json(&report) } else { output::data(&text(&report, options.operators)) }
}

/// Targets with their chips: where a name is a chip's, that chip alone.
fn chosen(names: &str) -> Result<Vec<(&'static CompilerTarget, Option<&'static Chip>)>, Failure> {
    let every = |target: &'static CompilerTarget| {
        let mut chips: Vec<_> = target.products().map(|chip| (target, Some(chip))).collect();
        if chips.is_empty() {
            chips.push((target, target.chip()));
        }
        chips
    };
    if names == ALL {
        return Ok(targets(ALL)?.into_iter().flat_map(every).collect());
    }
    let mut found = Vec::new();
    for name in names.split(',').map(str::trim) {
        let target = targets(name)?;
        match (CompilerTarget::find(name), Chip::find(name)) {
            (None, Some(chip)) => found.extend(target.into_iter().map(|target| (target, Some(chip)))),
            _ => found.extend(target.into_iter().flat_map(every)),
        }
    }
    Ok(found)
}

fn operators(chip: &ChipModel, items: &[Item]) -> Vec<OperatorRow> {
    let mut rows: Vec<OperatorRow> = Vec::new();
    for item in items {
        let (milliseconds, millijoules) = item
            .work
            .iter()
            .map(|work| chip.operation(work))
            .fold((0.0, 0.0), |(time, energy), (more, also)| (time + more, energy + also));
        match rows.iter_mut().find(|row| row.op == item.op) {
            Some(row) => {
                row.count += 1;
                row.milliseconds += milliseconds;
                row.millijoules += millijoules;
            }
            None => rows.push(OperatorRow { op: item.op, count: 1, milliseconds, millijoules }),
        }
    }
    rows.sort_by(|a, b| b.milliseconds.total_cmp(&a.milliseconds));
    rows
}

/// A number with three digits that count.
fn digits(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value if value >= 1.0 => format!("{value:.2}"),
        value => format!("{value:.3}"),
    }
}

fn ranged(value: Ranged) -> String {
    format!("{} ({} to {})", digits(value.value), digits(value.low), digits(value.high))
}

fn text(report: &Report, with_operators: bool) -> String {
    let head = ["target", "chip", "ms", "dispatch", "host", "engine", "package mJ", "engine mJ", "stands on"];
    let rows = report.chips.iter().map(|Row { target, estimate, .. }| {
        let basis = match &estimate.basis {
            Basis::Fitted { machines } => format!("{} machine(s)", machines.len()),
            Basis::Extrapolated { .. } => "extrapolated".to_string(),
        };
        vec![
            (*target).to_string(),
            estimate.chip.to_string(),
            ranged(estimate.total_ms),
            digits(estimate.latency.dispatch_ms),
            digits(estimate.latency.host_ms),
            digits(estimate.latency.engine_ms),
            ranged(estimate.package_mj),
            ranged(estimate.engine_mj),
            basis,
        ]
    });
    let mut shown = format!(
        "{}: {:.2} GFLOP, {} of fp16 weights, {} dispatch(es)\nnine in ten held-out measurements were inside the ranges\n\n",
        report.description,
        report.gigaflops,
        output::bytes(report.weight_bytes as u64),
        report.dispatches
    );
    let rows: Vec<_> = std::iter::once(head.map(str::to_string).to_vec()).chain(rows).collect();
    shown.push_str(&output::table(&rows, &[3, 4, 5]));
    if !report.without.is_empty() {
        shown.push_str(&format!("no program in MIL reaches {}\n", report.without.join(", ")));
    }
    if with_operators {
        for Row { estimate, operators, .. } in &report.chips {
            shown.push_str(&format!("\non {}\n", estimate.chip));
            let head = ["  operator", "uses", "ms", "engine mJ"].map(str::to_string).to_vec();
            let rows = operators.iter().map(|row| {
                vec![
                    format!("  {}", row.op),
                    row.count.to_string(),
                    format!("{:.4}", row.milliseconds),
                    format!("{:.4}", row.millijoules),
                ]
            });
            shown.push_str(&output::table(&std::iter::once(head).chain(rows).collect::<Vec<_>>(), &[1, 2, 3]));
        }
    }
    shown
}
