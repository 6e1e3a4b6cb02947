//! The fitted numbers as a data file.

use crate::energy::{self, TERMS};
use crate::latency::HostClass;
use crate::parameters::{Layout, PARTS, SHARED};
use std::collections::BTreeMap;

/// Version of the data file's form.
pub const SCHEMA: u32 = 1;

/// Everything that a fit sets, by name; see [`crate::parameters`].
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Coefficients {
    /// Version of the form.
    pub schema: u32,
    /// Where the measurements are from.
    pub source: String,
    /// SHA-256 of the table of measurements, hexadecimal.
    pub data_sha256: String,
    /// Distinct rows that were fitted.
    pub rows: usize,
    /// Values that all machines share.
    pub shared: BTreeMap<String, Value>,
    /// How rates change with the generation and with the memory's bandwidth.
    pub laws: BTreeMap<String, Law>,
    /// Measured machines, in the order of the fit.
    pub machines: Vec<Machine>,
    /// Energy of the package: CPU, GPU and engine, less what they take at rest.
    pub package: Energy,
    /// Energy of the engine alone.
    pub engine: Energy,
    /// What the errors were on rows and chips held out.
    pub errors: Errors,
}

/// A number and its unit.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Value {
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: String,
}

/// `exp(per_generation * (generation - 3)) * (bandwidth / 170 GB/s) ^ memory_power`.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Law {
    /// Exponent per generation.
    pub per_generation: f64,
    /// Power of the memory's bandwidth.
    pub memory_power: f64,
}

/// A machine that was measured.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Machine {
    /// Name, as the sources give it.
    pub name: String,
    /// Chip as the command line names it.
    pub chip: String,
    /// Class of its host software.
    pub host: HostClass,
    /// Rows measured on it.
    pub rows: usize,
    /// Its rates beside those of the laws.
    pub factors: BTreeMap<String, f64>,
    /// Its energy beside that of the laws: package, engine.
    pub energy_factors: [f64; 2],
}

/// Energy of a rail.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Energy {
    /// Energy per piece of work.
    pub terms: BTreeMap<String, Value>,
    /// How they change.
    pub law: Law,
}

/// |ln(predicted / measured)| that half, and nine in ten, of the rows held out stay below; machines weigh alike.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Errors {
    /// Latency on chips that were measured, workloads that were not.
    pub latency_known: [f64; 2],
    /// Latency on chips that were not measured.
    pub latency_unknown: [f64; 2],
    /// Energy of package and engine, chips measured.
    pub energy_known: [[f64; 2]; 2],
    /// Energy of package and engine, chips not measured.
    pub energy_unknown: [[f64; 2]; 2],
}

/// Coefficients that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CoefficientError {
    /// The file is no JSON of this form.
    #[error("the coefficients are not in the form of schema {SCHEMA}: {0}; run cargo xtask cost fit --data FILE --write")]
    Form(#[from] serde_json::Error),
    /// A number has no place, or a place no number.
    #[error("the coefficients lack {0}; run cargo xtask cost fit --data FILE --write")]
    Missing(String),
}

/// The committed coefficients as text.
pub const COMMITTED: &str = include_str!("../data/coefficients.json");

/// Six digits, so that the file reads well and does not change with the last bits of a library's logarithm.
pub fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

impl Coefficients {
    /// Reads coefficients.
    ///
    /// # Errors
    /// [`CoefficientError::Form`].
    pub fn parse(text: &str) -> Result<Self, CoefficientError> {
        Ok(serde_json::from_str(text)?)
    }

    /// The committed coefficients.
    ///
    /// # Errors
    /// [`CoefficientError::Form`], where the file was edited into something else.
    pub fn committed() -> Result<Self, CoefficientError> {
        Self::parse(COMMITTED)
    }

    /// The vector that the fit works on.
    ///
    /// # Errors
    /// [`CoefficientError::Missing`] with the name of what is not there.
    pub fn latency(&self) -> Result<Vec<f64>, CoefficientError> {
        let mut theta = Vec::new();
        for shared in SHARED {
            let value = self.shared.get(shared.name).ok_or_else(|| CoefficientError::Missing(shared.name.to_string()))?;
            theta.push(value.value.ln());
        }
        for (_, name, ..) in PARTS {
            let law = self.laws.get(*name).ok_or_else(|| CoefficientError::Missing(format!("the law of {name}")))?;
            theta.extend([law.per_generation, law.memory_power]);
        }
        for machine in &self.machines {
            for (_, name, ..) in PARTS {
                let factor = machine.factors.get(*name);
                let factor = factor.ok_or_else(|| CoefficientError::Missing(format!("{name} of {}", machine.name)))?;
                theta.push(factor.ln());
            }
        }
        Ok(theta)
    }

    /// The vector of a rail's energy, and where its machines stand in [`Machine::energy_factors`].
    ///
    /// # Errors
    /// As [`Self::latency`].
    pub fn energy(&self, rail: energy::Rail) -> Result<Vec<f64>, CoefficientError> {
        let (energy, at) = match rail {
            energy::Rail::Package => (&self.package, 0),
            energy::Rail::Engine => (&self.engine, 1),
        };
        let mut theta = Vec::new();
        for (name, ..) in TERMS {
            let value = energy.terms.get(*name).ok_or_else(|| CoefficientError::Missing(format!("the energy of {name}")))?;
            theta.push(value.value.ln());
        }
        theta.extend([energy.law.per_generation, energy.law.memory_power]);
        theta.extend(self.machines.iter().map(|machine| machine.energy_factors[at].ln()));
        Ok(theta)
    }

    /// Where parameters stand.
    pub fn layout(&self) -> Layout {
        Layout { machines: self.machines.len() }
    }
}
