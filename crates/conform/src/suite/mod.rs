//! The conformance suite: every operator of a table, by its own cases and by cases generated from them, on a device.
//!
//! A use of a MIL operator is a program of one operation, one of the engine's own layers a network of one unit; a use of a graph
//! operator is lowered and compiled for the device's chip. All go through the files that a compiler would read, and the results are held against the f64 meaning. The suite takes any list of records: operators
//! from outside these crates pass the same gate.
//!
//! ```
//! use aneforge_conform::suite::{Options, Suite};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // `&[&MY_OP]` for an operator of one's own.
//! let suite = Suite::of(&[&aneforge_core::op::RELU], &[]);
//! let report = suite.run("cpu", &Options::default(), &mut |_| ())?;
//! assert!(report.is_green());
//! # Ok(())
//! # }
//! ```

mod compare;
mod graph;
mod mil;
mod run;
mod usage;
mod values;

use crate::claims::{Claims, Status};
use crate::report::{ClaimSummary, Machine, OperatorResult, Place, Report, SCHEMA, Table, Totals};
use aneforge_core::GraphOp;
use aneforge_mil::op::MilOp;
use aneforge_runtime::{Device, DeviceError};
use run::Bench;
use std::sync::Arc;
use std::time::Instant;
use usage::Use;

/// The seed of generated uses where none is given.
pub const DEFAULT_SEED: u64 = 0x5eed;

/// Operators to run, by table.
#[derive(Clone, Debug, Default)]
pub struct Suite {
    /// Operators of the graph.
    pub graph: Vec<&'static GraphOp>,
    /// Operators of MIL.
    pub mil: Vec<&'static MilOp>,
    /// The engine's own layers.
    pub native: Vec<&'static MilOp>,
}

/// How many uses are generated, and of which operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Seed of all generated values and shapes; the same seed gives the same uses.
    pub seed: u64,
    /// Only operators with this in their name.
    pub filter: Option<String>,
    /// Uses per case with other values.
    pub reseeded: usize,
    /// Whether each case is also run on the ends and special points of the domain.
    pub edges: bool,
    /// Uses per case with other extents.
    pub reshaped: usize,
    /// A second device that must give the same bits for every program: the emulator of an engine's chip.
    pub twin: Option<String>,
    /// Where to begin: what comes before was run by another process.
    pub from: Place,
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: DEFAULT_SEED, filter: None, reseeded: 2, edges: true, reshaped: 2, twin: None, from: Place::default() }
    }
}

impl Options {
    /// The written cases alone.
    pub fn written_only() -> Self {
        Self { reseeded: 0, edges: false, reshaped: 0, ..Self::default() }
    }
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Finished operators.
    pub done: usize,
    /// All operators of the run.
    pub total: usize,
    /// The operator being run; empty when all are done.
    pub operator: &'a str,
}

/// Why a suite could not be run.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// The device cannot be had.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// No operator matches the filter.
    #[error("no operator has {filter:?} in its name; `aneforge ops` lists them all")]
    Nothing {
        /// The filter.
        filter: String,
    },
    /// A run cannot go on where there is nothing.
    #[error("there is no use {usage} of operator {operator} to go on from: {there}")]
    From {
        /// Number of the operator among those of the run.
        operator: usize,
        /// Number of the use among the operator's.
        usage: usize,
        /// What there is.
        there: String,
    },
    /// The committed claims cannot be read.
    #[error(transparent)]
    Claims(#[from] crate::claims::ClaimError),
    /// The folder for programs cannot be made.
    #[error("no folder for programs: {0}")]
    Folder(#[from] std::io::Error),
}

impl Suite {
    /// Every operator of these crates.
    pub fn builtin() -> Self {
        let native = aneforge_native::layers().iter().map(|layer| &layer.op).collect();
        Self { graph: aneforge_core::op::builtin().to_vec(), mil: aneforge_mil::op::builtin().all(), native }
    }

    /// The operators of a caller.
    pub fn of(graph: &[&'static GraphOp], mil: &[&'static MilOp]) -> Self {
        Self { graph: graph.to_vec(), mil: mil.to_vec(), native: Vec::new() }
    }

    /// Runs the suite on a device, as far as this process may compile: an engine takes so many programs of a process and no more. Where
    /// that ended the run, the report says where it [goes on](Report::next).
    ///
    /// # Errors
    /// [`SuiteError`]: what an operator does wrong stands in the report and is no error.
    pub fn run(&self, device: &str, options: &Options, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Report, SuiteError> {
        self.run_on(aneforge_runtime::open(device)?, options, progress)
    }

    /// Runs the suite on a device that is open, with options of the caller's.
    ///
    /// # Errors
    /// As [`Suite::run`].
    pub fn run_on(
        &self,
        device: Arc<dyn Device>,
        options: &Options,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Report, SuiteError> {
        let start = Instant::now();
        let claims = Claims::committed().map_err(Clone::clone)?;
        let bench = Bench::open(device, options.twin.as_deref(), claims)?;
        let chip = bench.chip();
        let chosen = |name: &str| options.filter.as_ref().is_none_or(|part| name.contains(part.as_str()));
        let graph: Vec<_> = self.graph.iter().copied().filter(|op| chosen(op.name)).collect();
        let mil: Vec<_> = self.mil.iter().copied().filter(|op| chosen(op.name)).collect();
        let native: Vec<_> = self.native.iter().copied().filter(|op| chosen(op.name)).collect();
        let total = graph.len() + mil.len() + native.len();
        if let (0, Some(filter)) = (total, &options.filter) {
            return Err(SuiteError::Nothing { filter: filter.clone() });
        }
        let beyond = |there: String| SuiteError::From { operator: options.from.operator, usage: options.from.usage, there };
        if options.from.operator >= total {
            return Err(beyond(format!("the run has {total} operators, counted from 0")));
        }
        let graph = graph.into_iter().map(Operator::Graph);
        let single = mil.into_iter().map(|op| (Table::Mil, op)).chain(native.into_iter().map(|op| (Table::Native, op)));
        let all = graph.chain(single.map(|(table, op)| Operator::Single(table, op)));
        let (mut operators, mut next) = (Vec::with_capacity(total), None);
        for (number, operator) in all.enumerate().skip(options.from.operator) {
            progress(Progress { done: number, total, operator: operator.name() });
            let skipped = if number == options.from.operator { options.from.usage } else { 0 };
            let mut results = Vec::new();
            let uses = operator.uses(options);
            // Nothing to skip is no error: an operator may have no uses.
            if skipped > 0 && skipped >= uses.len() {
                return Err(beyond(format!("{} has {} uses, counted from 0", operator.name(), uses.len())));
            }
            for (usage, one) in uses.iter().enumerate().skip(skipped) {
                let (result, spent) = bench.run(one);
                // A use that a fresh process cannot compile either has failed.
                if spent && !(operators.is_empty() && results.is_empty()) {
                    next = Some(Place { operator: number, usage });
                    break;
                }
                results.push(result);
            }
            if next.is_none() || !results.is_empty() {
                operators.push(OperatorResult::of(operator.table(), operator.name(), operator.claim(&bench), results));
            }
            if next.is_some() {
                break;
            }
        }
        let done = next.map_or(total, |place| place.operator);
        progress(Progress { done, total, operator: "" });
        let mut totals = Totals::default();
        operators.iter().for_each(|result| totals.add(result.totals));
        Ok(Report {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_string(),
            device: bench.name().to_string(),
            chip: chip.map(|chip| chip.name.to_string()),
            family: chip.map(|chip| chip.family),
            route: chip.map(|_| bench.route()),
            machine: Machine::here(),
            seed: options.seed,
            seconds: start.elapsed().as_secs_f64(),
            totals,
            operators,
            next,
        })
    }
}

/// An operator of one of the tables.
enum Operator {
    Graph(&'static GraphOp),
    Single(Table, &'static MilOp),
}

impl Operator {
    fn name(&self) -> &'static str {
        match self {
            Self::Graph(op) => op.name,
            Self::Single(_, op) => op.name,
        }
    }

    fn table(&self) -> Table {
        match self {
            Self::Graph(_) => Table::Graph,
            Self::Single(table, _) => *table,
        }
    }

    fn uses(&self, options: &Options) -> Vec<Use> {
        match self {
            Self::Graph(op) => graph::uses(op, options),
            Self::Single(table, op) => mil::uses(op, *table, options),
        }
    }

    fn claim(&self, bench: &Bench<'_>) -> Option<ClaimSummary> {
        match self {
            Self::Graph(_) => None,
            Self::Single(_, op) => bench.claim(op.name).filter(|claim| claim.status != Status::Unknown),
        }
    }
}
