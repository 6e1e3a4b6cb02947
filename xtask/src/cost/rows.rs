//! The table of measurements, row by row: which machine, what ran, what was measured.

use super::{Error, workload};
use aneforge_cost::fit::Measurement;
use aneforge_cost::{HostClass, Traits};
use sha2::{Digest, Sha256};
use std::path::Path;

/// A machine that measurements come from. The source column names it by its model and a hash of its serial number, or not at all.
pub struct Machine {
    /// Name in reports and in the coefficients.
    pub name: &'static str,
    /// Chip as the command line names it.
    pub chip: &'static str,
    /// Class of its host software, told by its rows: relu of 33 million elements takes 137 to 160 ms on two of them and 6 to 26 ms
    /// on the others, while sums over as many, which hand back little, take alike.
    pub host: HostClass,
    column: &'static str,
    source: &'static str,
}

const fn machine(name: &'static str, chip: &'static str, host: HostClass, column: &'static str, source: &'static str) -> Machine {
    Machine { name, chip, host, column, source }
}

/// All machines, more exact descriptions first.
pub const MACHINES: &[Machine] = &[
    machine("M1 MacBookPro17,1", "m1", HostClass::Software, "Apple M1", "MacBookPro17_1"),
    machine("M1 MacBook Air", "m1", HostClass::Native, "Apple M1", "22b6e4fa"),
    machine("M1 (Max?)", "m1max", HostClass::Native, "Apple M1 (Max?)", ""),
    machine("M1 Max MacBookPro18,2", "m1max", HostClass::Native, "Apple M1 Max", "MacBookPro18_2"),
    machine("M2 Pro Mac14,12", "m2pro", HostClass::Software, "Apple M2 Pro", "Mac14_12"),
    machine("M2 Pro?", "m2pro", HostClass::Native, "Apple M2 Pro?", ""),
    machine("M4 Mac16,12", "m4", HostClass::Native, "Apple M4", "Mac16_12"),
    machine("M5 Pro Mac17,8", "m5pro", HostClass::Native, "Apple M5 Pro", "Mac17_8"),
    machine("M5 Pro, not named", "m5pro", HostClass::Native, "Apple M5 Pro", ""),
];

/// A distinct measurement.
pub struct Row {
    /// Workload column.
    pub workload: String,
    /// Shape column.
    pub shape: String,
    /// Type column.
    pub dtype: String,
    /// Source column.
    pub source: String,
    /// What the fit gets.
    pub measurement: Measurement,
}

/// A whole table.
pub struct Table {
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
    /// Distinct rows with a latency.
    pub rows: Vec<Row>,
    /// Rows in the file.
    pub all: usize,
    /// Rows without a latency.
    pub failed: usize,
    /// Rows of native layers that ran in a process of their own.
    pub bridged: usize,
    /// Rows that repeat another of the same source; the median counts.
    pub repeated: usize,
}

#[derive(serde::Deserialize)]
struct Record {
    chip: String,
    workload: String,
    shape: String,
    dtype: String,
    lat_ms: String,
    #[serde(rename = "pkg_mJ_per_call")]
    package: String,
    #[serde(rename = "ane_rail_mJ_per_call")]
    engine: String,
    source: String,
}

/// Reads a table.
pub fn read(path: &Path) -> Result<Table, Error> {
    let bytes = std::fs::read(path).map_err(|source| Error::File { path: path.to_path_buf(), source })?;
    let sha256 = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let mut table = Table { sha256, rows: Vec::new(), all: 0, failed: 0, bridged: 0, repeated: 0 };
    let mut latencies: Vec<Vec<f64>> = Vec::new();
    for record in csv::Reader::from_reader(bytes.as_slice()).into_deserialize() {
        let record: Record = record?;
        table.all += 1;
        let fault = |what: String| Error::Row { path: path.to_path_buf(), row: table.all, what };
        if record.lat_ms.is_empty() {
            table.failed += 1;
            continue;
        }
        if record.workload.contains("bridge") {
            table.bridged += 1;
            continue;
        }
        let latency_ms = number(&record.lat_ms).ok_or_else(|| fault(format!("lat_ms is {:?}", record.lat_ms)))?;
        let is_same = |row: &Row| {
            (&row.source, &row.workload, &row.shape, &row.dtype) == (&record.source, &record.workload, &record.shape, &record.dtype)
        };
        if let Some(at) = table.rows.iter().position(is_same) {
            table.repeated += 1;
            latencies[at].push(latency_ms);
            continue;
        }
        let machine =
            MACHINES
                .iter()
                .position(|machine| machine.column == record.chip && record.source.contains(machine.source))
                .ok_or_else(|| fault(format!("no machine is known for chip {:?}, source {:?}", record.chip, record.source)))?;
        let traits = traits(&MACHINES[machine]).ok_or_else(|| fault(format!("chip {:?} is unknown", MACHINES[machine].chip)))?;
        let work = workload::work(&record.workload, &record.shape, &record.dtype)
            .ok_or_else(|| fault(format!("workload {:?} of shape {:?} is unknown", record.workload, record.shape)))?;
        let (package_mj, engine_mj) = energies(&record, MACHINES[machine].name);
        let measurement = Measurement { machine, traits, work, latency_ms, package_mj, engine_mj };
        let Record { workload, shape, dtype, source, .. } = record;
        table.rows.push(Row { workload, shape, dtype, source, measurement });
        latencies.push(vec![latency_ms]);
    }
    for (row, mut latencies) in table.rows.iter_mut().zip(latencies) {
        row.measurement.latency_ms = median(&mut latencies);
    }
    Ok(table)
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|value: &f64| value.is_finite() && *value > 0.0)
}

/// Energies of a row, less those that their source marks as unusable: one M2 Pro run was taken while the machine at rest took 11 W,
/// and a MacBook Air's GPU was busy beside its convolutions.
fn energies(record: &Record, machine: &str) -> (Option<f64>, Option<f64>) {
    if record.source.contains("370b3d53") {
        return (None, None);
    }
    let is_shared = machine == "M1 MacBook Air" && record.workload.starts_with("conv");
    (number(&record.package).filter(|_| !is_shared), number(&record.engine))
}

/// What is known of a machine before anything was measured on it.
pub fn traits(machine: &Machine) -> Option<Traits> {
    aneforge_cost::Chip::find(machine.chip).map(|chip| Traits::of(chip, machine.host))
}

/// The middle of some numbers; of an even number, the mean of the two in the middle.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => values[count / 2],
        count => (values[count / 2 - 1] + values[count / 2]) / 2.0,
    }
}
