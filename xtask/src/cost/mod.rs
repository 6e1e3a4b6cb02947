//! The fit of the cost model to a file of measurements, and what its errors are on machines it has not seen.
//!
//! The file is a table of comma-separated values with a header. Columns that are read:
//!
//! | column | meaning |
//! |---|---|
//! | `chip` | product name, `Apple M5 Pro`; `?` where the source does not name it exactly |
//! | `workload`, `shape` | what ran, see `workload.rs` |
//! | `dtype` | `fp16`, or how the weights are stored |
//! | `lat_ms` | least wall time of a call in ms: host copies in, dispatch, engine, host copies out; empty where the run failed |
//! | `pkg_mJ_per_call`, `ane_rail_mJ_per_call` | energy of a call in a loop, package less its rest and engine; empty where not measured |
//! | `note` | remarks |
//! | `source` | file of the benchmark results of PyPI aneforge 0.4.0 (MIT) that the row is from; names the machine |

mod evaluate;
mod report;
mod rows;
mod split;
#[cfg(test)]
mod tests;
mod workload;

use std::path::PathBuf;

/// What can be done with the cost model.
#[derive(clap::Subcommand)]
pub enum Job {
    /// Fit the coefficients to a file of measurements, print the errors, and compare with the committed coefficients.
    Fit {
        /// The measurements.
        #[arg(long)]
        data: PathBuf,
        /// Write the coefficients instead of comparing.
        #[arg(long)]
        write: bool,
        /// Leave out the errors on held-out rows and machines, which take most of the time.
        #[arg(long)]
        quick: bool,
    },
    /// Print the rows as JSON lines with what the model predicts, fitted with and without them: testing/python/upstream_estimate.py sets
    /// the Python package's estimates beside them.
    Rows {
        /// The measurements.
        #[arg(long)]
        data: PathBuf,
    },
}

/// Why a job stops.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The table is faulty.
    #[error("{path}, row {row}: {what}")]
    Row {
        /// The file.
        path: PathBuf,
        /// Row behind the header, from one.
        row: usize,
        /// What is wrong.
        what: String,
    },
    /// The table cannot be parsed.
    #[error(transparent)]
    Table(#[from] csv::Error),
    /// The coefficients cannot be read or written.
    #[error(transparent)]
    Coefficients(#[from] aneforge_cost::CoefficientError),
    /// JSON could not be written.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// Where the coefficients stand in the repository.
pub const COEFFICIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/cost/data/coefficients.json");

/// Runs a job; tells its report and whether all agrees.
pub fn run(job: &Job) -> Result<(String, bool), Error> {
    match job {
        Job::Fit { data, write, quick } => report::fit(data, *write, *quick),
        Job::Rows { data } => report::rows(data).map(|text| (text, true)),
    }
}
