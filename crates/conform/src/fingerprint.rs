//! The report: every published figure beside ours.

use std::sync::Arc;

use aneforge_core::{Chip, Family};
use half::f16;
use serde::{Deserialize, Serialize};

use crate::case::{Case, Computation, HalfTensor, Program, Variation};
use crate::emulated::Emulated;
use crate::published::{PUBLISHED, Published, Status};
use crate::reference::{ErrorSum, Host};
use crate::workload::{WORKLOADS, Workload};

/// How far an exact row may lie from the published value: the hosts' BLAS orders its f64 sums
/// differently, which shows from the fourteenth digit on.
pub const EXACT_TOLERANCE: f64 = 1e-13;

/// One line of the report: a workload on a chip.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The workload's published name.
    pub workload: String,
    /// The chip, by its emulator's name (`m1`, `m5pro`).
    pub chips: String,
    /// The published relative error.
    pub published: f64,
    /// The relative error of the emulated engine.
    pub ours: f64,
    /// `ours - published`.
    pub difference: f64,
    /// How close our rules claim to come.
    pub status: Status,
}

impl Row {
    /// Whether the row is what its status claims: an exact one within [`EXACT_TOLERANCE`]. The others
    /// claim no digits.
    pub fn holds(&self) -> bool {
        self.status != Status::Exact || self.difference.abs() <= EXACT_TOLERANCE
    }
}

/// Which rows to compute. Empty fields select everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Part of the workload's name, in any case.
    pub workload: Option<String>,
    /// The chip's name.
    pub chip: Option<String>,
}

impl Filter {
    fn selects(&self, workload: &str, chip: &str) -> bool {
        let named = |wanted: &String| workload.to_lowercase().contains(&wanted.to_lowercase());
        self.workload.as_ref().is_none_or(named) && self.chip.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(chip))
    }
}

/// Where a run stands: `done` of `total` computations are finished, `workload` is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Finished computations.
    pub done: usize,
    /// All computations of the run.
    pub total: usize,
    /// The workload being computed; empty when all are done.
    pub workload: &'a str,
}

/// What computes a program's fp16 output for a chip.
pub trait Engine {
    /// Runs `program` on its inputs.
    ///
    /// # Errors
    /// What the engine reports; the caller adds workload and chip.
    fn run(&mut self, program: &Arc<Program>, inputs: &[HalfTensor]) -> Result<Vec<f16>, EngineError>;
}

/// An engine's own error.
pub type EngineError = Box<dyn std::error::Error + Send + Sync>;

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
pub enum FingerprintError {
    /// A chip of the table has no emulator.
    #[error("{workload}: no emulator for the chip {chip:?}")]
    Chip {
        /// The workload.
        workload: &'static str,
        /// The chip's name.
        chip: &'static str,
    },
    /// A row of published values names a workload that is not described.
    #[error("the published figure of {workload:?} has no workload of that name")]
    Workload {
        /// The name.
        workload: &'static str,
    },
    /// The engine failed.
    #[error("{workload} on {chip}: {source}")]
    Engine {
        /// The workload.
        workload: &'static str,
        /// The chip's name.
        chip: &'static str,
        /// What the engine reported.
        source: EngineError,
    },
    /// The engine's output has another size than the reference.
    #[error("{workload} on {chip}: the output has {got} elements, the reference {expected}")]
    Output {
        /// The workload.
        workload: &'static str,
        /// The chip's name.
        chip: &'static str,
        /// Elements of the output.
        got: usize,
        /// Elements of the reference.
        expected: usize,
    },
}

/// Recomputes the selected figures on the emulators of their chips. Rows come in the order of the table.
///
/// # Errors
/// [`FingerprintError`]; nothing is reported then.
pub fn run(filter: &Filter, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Vec<Row>, FingerprintError> {
    run_with(filter, &mut |chip| Ok(Box::new(Emulated::open(chip)?)), progress)
}

/// Recomputes the selected figures with the engines that `open` gives. Rows come in the order of the
/// table.
///
/// Workloads whose draws, reference and engine rules are the same are computed once and reported for
/// each of their chips.
///
/// # Errors
/// [`FingerprintError`]; nothing is reported then.
pub fn run_with<'e>(
    filter: &Filter,
    open: &mut dyn FnMut(&'static Chip) -> Result<Box<dyn Engine + 'e>, EngineError>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Vec<Row>, FingerprintError> {
    let (mut rows, mut groups) = plan(filter)?;
    let total = groups.len();
    for (done, group) in groups.iter_mut().enumerate() {
        progress(Progress { done, total, workload: group.workload.name });
        measure(group, open)?;
        for variant in &group.variants {
            for &index in &variant.rows {
                let row = &mut rows[index];
                row.ours = variant.error;
                row.difference = row.ours - row.published;
            }
        }
    }
    progress(Progress { done: total, total, workload: "" });
    Ok(rows)
}

/// Rows that share draws and reference.
struct Group {
    workload: &'static Workload,
    host: Host,
    variants: Vec<Variant>,
}

/// Rows that share the engine's rules too: one run serves them all.
struct Variant {
    chip: &'static Chip,
    rows: Vec<usize>,
    error: f64,
}

/// The rows still without a value of ours, and the computations that give it.
fn plan(filter: &Filter) -> Result<(Vec<Row>, Vec<Group>), FingerprintError> {
    let mut rows = Vec::new();
    let mut groups: Vec<Group> = Vec::new();
    for &Published { workload: name, chips, value, status, .. } in PUBLISHED {
        for &chip_name in chips.iter().filter(|chip| filter.selects(name, chip)) {
            let workload = Workload::find(name).ok_or(FingerprintError::Workload { workload: name })?;
            let chip = Chip::find(chip_name).ok_or(FingerprintError::Chip { workload: name, chip: chip_name })?;
            let host = workload.host(chip_name);
            let group = position_or_push(
                &mut groups,
                |group| group.workload.computation == workload.computation && group.host == host,
                || Group { workload, host, variants: Vec::new() },
            );
            let variant = position_or_push(
                &mut group.variants,
                |variant| same_rules(workload.computation, variant.chip, chip),
                || Variant { chip, rows: Vec::new(), error: f64::NAN },
            );
            variant.rows.push(rows.len());
            rows.push(Row {
                workload: name.to_string(),
                chips: chip_name.to_string(),
                published: value,
                ours: f64::NAN,
                difference: f64::NAN,
                status,
            });
        }
    }
    Ok((rows, groups))
}

fn position_or_push<T>(items: &mut Vec<T>, matches: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> &mut T {
    let index = items.iter().position(matches).unwrap_or_else(|| {
        items.push(make());
        items.len() - 1
    });
    &mut items[index]
}

fn same_rules(computation: Computation, left: &Chip, right: &Chip) -> bool {
    match computation.variation() {
        Variation::None => true,
        Variation::ConvolutionForm => left.winograd == right.winograd,
        Variation::Generation => (left.winograd, left.family < Family::A15) == (right.winograd, right.family < Family::A15),
    }
}

fn measure<'e>(
    group: &mut Group,
    open: &mut dyn FnMut(&'static Chip) -> Result<Box<dyn Engine + 'e>, EngineError>,
) -> Result<(), FingerprintError> {
    let workload = group.workload.name;
    let failed = |chip: &'static Chip| move |source| FingerprintError::Engine { workload, chip: chip.name, source };
    let mut engines = Vec::with_capacity(group.variants.len());
    for variant in &group.variants {
        engines.push((variant.chip, open(variant.chip).map_err(failed(variant.chip))?, Vec::<ErrorSum>::new()));
    }
    group.workload.computation.cases(group.host, &mut |Case { part, program, inputs, reference }| {
        for (chip, engine, parts) in &mut engines {
            let output = engine.run(&program, &inputs).map_err(failed(chip))?;
            if output.len() != reference.len() {
                let (got, expected) = (output.len(), reference.len());
                return Err(FingerprintError::Output { workload, chip: chip.name, got, expected });
            }
            parts.resize(parts.len().max(part + 1), ErrorSum::default());
            parts[part].add(output.iter().map(|value| value.to_f64()).zip(reference.iter().copied()));
        }
        Ok(())
    })?;
    for (variant, (_, _, parts)) in group.variants.iter_mut().zip(engines) {
        variant.error = parts.iter().map(ErrorSum::relative).sum::<f64>() / parts.len() as f64;
    }
    Ok(())
}

/// The names of all workloads, in the table's order.
pub fn workloads() -> impl Iterator<Item = &'static str> {
    WORKLOADS.iter().map(|workload| workload.name)
}
