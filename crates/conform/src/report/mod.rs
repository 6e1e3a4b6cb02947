//! What a conformance run found: plain data that goes to JSON and comes back from it.

mod file;
mod html;
mod style;

pub use file::{Pending, write_atomically};
pub use html::page;

use crate::claims::{Route, Status, Verdict};
use aneforge_core::Family;
use serde::{Deserialize, Serialize};

/// Version of the layout of [`Report`] as JSON.
pub const SCHEMA: u32 = 1;

/// A run of the suite on a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Version of this crate.
    pub version: String,
    /// Device, by the name it is opened with.
    pub device: String,
    /// Chip whose engine answered or was emulated, where there is one.
    pub chip: Option<String>,
    /// Generation of that chip.
    pub family: Option<Family>,
    /// Way to the engine; absent where no engine answered.
    pub route: Option<Route>,
    /// The machine.
    pub machine: Machine,
    /// Seed of the generated uses.
    pub seed: u64,
    /// Wall time of the run in seconds.
    pub seconds: f64,
    /// Counts over all uses.
    pub totals: Totals,
    /// What was found, operator by operator.
    pub operators: Vec<OperatorResult>,
    /// Where another process goes on, where this one had no compilations left.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next: Option<Place>,
}

/// A use among all that a run of the suite has, counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Number of the operator among those that were chosen.
    pub operator: usize,
    /// Number of the use among those of the operator.
    pub usage: usize,
}

/// Where a run took place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Operating system, as Rust names it: `macos`, `linux`.
    pub os: String,
    /// Processor architecture: `aarch64`, `x86_64`.
    pub arch: String,
}

impl Machine {
    /// This machine.
    pub fn here() -> Self {
        Self { os: std::env::consts::OS.to_string(), arch: std::env::consts::ARCH.to_string() }
    }
}

/// Uses by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Right within the tolerance.
    pub passed: usize,
    /// Wrong results, or an error while running.
    pub failed: usize,
    /// Refused though nobody says that it should be.
    pub refused: usize,
    /// Not run or refused, as the claims about the chip have it.
    pub unsupported: usize,
}

/// Which table an operator comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Table {
    /// The graph's.
    Graph,
    /// MIL's.
    Mil,
    /// The engine's own layers.
    Native,
}

impl Table {
    /// The word of the report.
    pub fn word(self) -> &'static str {
        match self {
            Self::Graph => "graph",
            Self::Mil => "mil",
            Self::Native => "native",
        }
    }
}

/// All uses of one operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperatorResult {
    /// Table.
    pub table: Table,
    /// Name in that table.
    pub name: String,
    /// The worst outcome of its uses.
    pub outcome: Outcome,
    /// Counts.
    pub totals: Totals,
    /// Largest error of its uses, relative to the largest exact result.
    pub worst_error: f64,
    /// Time on the device, all uses together, in microseconds.
    pub micros: f64,
    /// What the claims say of it on the chip's family.
    pub claim: Option<ClaimSummary>,
    /// Each use.
    pub uses: Vec<UseResult>,
}

/// The claims about an operator in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimSummary {
    /// What is claimed.
    pub verdict: Option<Verdict>,
    /// How far it is known.
    pub status: Status,
}

/// One use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UseResult {
    /// The written case it is or derives from.
    pub case: String,
    /// How it derives.
    pub origin: Origin,
    /// What came of it.
    pub outcome: Outcome,
    /// Error relative to the largest exact result, where it ran.
    pub error: Option<f64>,
    /// Error allowed.
    pub allowed: f64,
    /// Time on the device in microseconds.
    pub micros: f64,
    /// Why it was not run or failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

/// Where a use comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// Written down in the record.
    Written,
    /// The same with other values.
    Reseeded,
    /// The same with the ends and special points of the domain as values.
    Edges,
    /// The same with other extents and values.
    Reshaped,
}

/// What came of a use, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Right within the tolerance.
    Pass,
    /// The chip lacks the operator, as the claims have it.
    Unsupported,
    /// Refused though nobody says that it should be.
    Refused,
    /// Wrong, or an error while running.
    Fail,
}

impl Outcome {
    /// The word of the report.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Unsupported => "unsupported",
            Self::Refused => "refused",
            Self::Fail => "fail",
        }
    }
}

impl Totals {
    /// Counts one outcome.
    pub fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Pass => self.passed += 1,
            Outcome::Unsupported => self.unsupported += 1,
            Outcome::Refused => self.refused += 1,
            Outcome::Fail => self.failed += 1,
        }
    }

    /// Adds the counts of another.
    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.refused += other.refused;
        self.unsupported += other.unsupported;
    }

    /// All uses.
    pub fn uses(&self) -> usize {
        self.passed + self.failed + self.refused + self.unsupported
    }
}

impl OperatorResult {
    /// The uses of an operator, summed up.
    pub fn of(table: Table, name: &str, claim: Option<ClaimSummary>, uses: Vec<UseResult>) -> Self {
        let mut totals = Totals::default();
        uses.iter().for_each(|result| totals.count(result.outcome));
        let errors = uses.iter().filter_map(|result| result.error);
        Self {
            table,
            name: name.to_string(),
            outcome: uses.iter().map(|result| result.outcome).max().unwrap_or(Outcome::Unsupported),
            totals,
            worst_error: errors.filter(|error| error.is_finite()).fold(0.0, f64::max),
            micros: uses.iter().map(|result| result.micros).fold(0.0, |sum, micros| sum + micros),
            claim,
            uses,
        }
    }
}

impl Report {
    /// Whether all was run, nothing failed and nothing was refused against the claims.
    pub fn is_green(&self) -> bool {
        self.next.is_none() && self.totals.failed == 0 && self.totals.refused == 0
    }

    /// Adds what another process found from [`next`](Self::next) on.
    pub fn append(&mut self, rest: Self) {
        self.seconds += rest.seconds;
        self.next = rest.next;
        self.totals.add(rest.totals);
        let mut rest = rest.operators.into_iter().peekable();
        if let Some(last) = self.operators.last_mut()
            && let Some(same) = rest.next_if(|first| first.table == last.table && first.name == last.name)
        {
            let uses = last.uses.drain(..).chain(same.uses).collect();
            *last = OperatorResult::of(last.table, &last.name, last.claim, uses);
        }
        self.operators.extend(rest);
    }
}
