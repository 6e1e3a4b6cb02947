//! Evidence: the report of a run on an engine, made by `aneforge conform --json` on a Mac.

use super::{Claim, Route, Source, Verdict};
use crate::report::{OperatorResult, Outcome, Report, SCHEMA, Table};
use aneforge_core::{Chip, Family};
use std::path::Path;

/// Largest evidence file that is read.
const MAX_BYTES: u64 = 64 << 20;

/// A report that may stand behind the word `measured`.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    name: String,
    chip: String,
    family: Family,
    route: Route,
    report: Report,
}

/// Why a file is no evidence.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// It cannot be read.
    #[error("{file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// It is no report.
    #[error("{file} is no report of `aneforge conform --json`: {source}")]
    Json {
        /// The file.
        file: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// It is a report, but not of an engine.
    #[error("{file} proves nothing about an engine: {problem}")]
    NoEngine {
        /// The file.
        file: String,
        /// Why.
        problem: String,
    },
}

impl Evidence {
    /// Reads an evidence file.
    ///
    /// # Errors
    /// [`EvidenceError`]: only a report of the device `ane` on macOS counts, with chip and route, in this version's layout.
    pub fn read(path: &Path) -> Result<Self, EvidenceError> {
        let file = path.display().to_string();
        let read = |source| EvidenceError::Read { file: file.clone(), source };
        if std::fs::metadata(path).map_err(read)?.len() > MAX_BYTES {
            return Err(EvidenceError::NoEngine { file, problem: format!("it is larger than {MAX_BYTES} bytes") });
        }
        Self::parse(&file, &std::fs::read_to_string(path).map_err(read)?)
    }

    /// Reads evidence from its text; `file` names it in errors and as a source.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn parse(file: &str, text: &str) -> Result<Self, EvidenceError> {
        let report: Report = serde_json::from_str(text).map_err(|source| EvidenceError::Json { file: file.to_string(), source })?;
        let no_engine = |problem: String| EvidenceError::NoEngine { file: file.to_string(), problem };
        if report.schema != SCHEMA {
            return Err(no_engine(format!("its layout is version {}, this program reads {SCHEMA}", report.schema)));
        }
        if report.device != "ane" || report.machine.os != "macos" {
            return Err(no_engine(format!(
                "it ran on device {:?} under {:?}, not on ane under macos",
                report.device, report.machine.os
            )));
        }
        let chip = report.chip.as_deref().and_then(Chip::find).ok_or_else(|| no_engine("it names no known chip".to_string()))?;
        if report.family.is_some_and(|family| family != chip.family) {
            return Err(no_engine(format!("it gives {} another family than {}", chip.product, chip.family)));
        }
        let route = report.route.ok_or_else(|| no_engine("it names no route to the engine".to_string()))?;
        Ok(Self { name: file.to_string(), chip: chip.product.to_string(), family: chip.family, route, report })
    }

    pub(super) fn source(&self) -> Source {
        Source {
            key: self.name.clone(),
            citation: format!("measured on {}, aneforge {}, {}", self.chip, self.report.version, self.name),
            tried: vec![self.family],
        }
    }

    pub(super) fn claims(&self) -> impl Iterator<Item = Claim> + '_ {
        let claim = |result: &OperatorResult| {
            let (verdict, note) = match result.outcome {
                Outcome::Pass => (Verdict::Computes, None),
                Outcome::Unsupported | Outcome::Refused => (Verdict::Refused, None),
                Outcome::Fail => (Verdict::Runs, Some("gives other results than the definition".to_string())),
            };
            Claim {
                operator: result.name.clone(),
                first: self.family,
                last: self.family,
                route: if result.table == Table::Native { Route::Native } else { self.route },
                dtype: None,
                shape: None,
                verdict,
                figure: (verdict == Verdict::Computes).then_some(result.worst_error),
                note,
                source: self.name.clone(),
                measured: true,
            }
        };
        self.report.operators.iter().filter(|result| result.table != Table::Graph).map(claim)
    }
}
