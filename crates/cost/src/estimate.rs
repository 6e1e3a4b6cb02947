//! Estimates for chips: measured ones from their own factors, others by the laws, each with how far it may be off.

use crate::coefficients::{CoefficientError, Coefficients};
use crate::energy::{self, Rail};
use crate::fit;
use crate::latency::{HostClass, Latency, Rates, Traits};
use crate::parameters::PARTS;
use crate::work::{Operation, Work};
use aneforge_core::Chip;

/// The fitted model, ready for chips.
pub struct Model {
    coefficients: Coefficients,
    latency: Vec<f64>,
    energies: [Vec<f64>; 2],
}

/// What an estimate stands on.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case", tag = "basis")]
pub enum Basis {
    /// Machines with this chip were measured.
    Fitted {
        /// Their names.
        machines: Vec<String>,
    },
    /// None was: generation and memory's bandwidth stand for the chip.
    Extrapolated {
        /// The rule in words.
        rule: String,
    },
}

/// The model of one chip.
pub struct ChipModel {
    /// The chip.
    pub chip: &'static Chip,
    /// What it stands on.
    pub basis: Basis,
    /// Its rates.
    pub rates: Rates,
    traits: Traits,
    middle: Rates,
    energies: [Vec<f64>; 2],
    own_energy: [f64; 2],
    spread: [f64; 3],
}

/// A value and the range that nine in ten held-out measurements fell into.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Ranged {
    /// The estimate.
    pub value: f64,
    /// Nine in ten are above this or near.
    pub low: f64,
    /// And below this or near.
    pub high: f64,
}

/// The cost of a call on a chip.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Estimate {
    /// Chip.
    pub chip: &'static str,
    /// What the estimate stands on.
    #[serde(flatten)]
    pub basis: Basis,
    /// Milliseconds by cause.
    pub latency: Latency,
    /// Milliseconds from start to end.
    pub total_ms: Ranged,
    /// Milliseconds per call of a full queue.
    pub queued_ms: f64,
    /// Millijoules of CPU, GPU and engine above rest.
    pub package_mj: Ranged,
    /// Millijoules of the engine.
    pub engine_mj: Ranged,
}

/// How much farther off an estimate may be per generation beyond the measured ones.
const PER_GENERATION: f64 = 0.25;

impl Model {
    /// The model with the committed coefficients.
    ///
    /// # Errors
    /// Where the data file was edited into something else.
    pub fn committed() -> Result<Self, CoefficientError> {
        Self::new(Coefficients::committed()?)
    }

    /// The model with these coefficients.
    ///
    /// # Errors
    /// [`CoefficientError::Missing`].
    pub fn new(coefficients: Coefficients) -> Result<Self, CoefficientError> {
        let latency = coefficients.latency()?;
        let energies = [coefficients.energy(Rail::Package)?, coefficients.energy(Rail::Engine)?];
        Ok(Self { coefficients, latency, energies })
    }

    /// The coefficients.
    pub fn coefficients(&self) -> &Coefficients {
        &self.coefficients
    }

    /// The model of a chip behind a class of host.
    pub fn chip(&self, chip: &'static Chip, host: HostClass) -> ChipModel {
        let traits = Traits::of(chip, host);
        let layout = self.coefficients.layout();
        let places = || {
            let machines = self.coefficients.machines.iter().enumerate();
            machines.filter(|(_, machine)| machine.chip == chip.name).map(|(at, _)| at)
        };
        let count = places().count().max(1) as f64;
        let mut own = [0.0; PARTS.len()];
        let mut own_energy = [0.0; 2];
        for at in places() {
            let factors = fit::own(&self.latency, layout, at);
            own.iter_mut().zip(factors).for_each(|(own, factor)| *own += factor / count);
            let factors = self.coefficients.machines[at].energy_factors;
            own_energy.iter_mut().zip(factors).for_each(|(own, factor)| *own += factor.ln() / count);
        }
        let machines: Vec<String> = places().map(|at| self.coefficients.machines[at].name.clone()).collect();
        let errors = &self.coefficients.errors;
        let generations = self.coefficients.machines.iter().filter_map(|machine| Chip::find(&machine.chip));
        let newest = generations.map(|chip| Traits::of(chip, host).generation).fold(0.0, f64::max);
        let beyond = 1.0 + PER_GENERATION * (traits.generation - newest).max(0.0);
        let (basis, spread) = if machines.is_empty() {
            let rule = format!(
                "no row of this chip: generation {}, {} GB/s of memory, one engine",
                traits.generation, chip.memory_bandwidth
            );
            let [package, engine] = errors.energy_unknown;
            (Basis::Extrapolated { rule }, [errors.latency_unknown[1], package[1], engine[1]].map(|error| error * beyond))
        } else {
            let [package, engine] = errors.energy_known;
            (Basis::Fitted { machines }, [errors.latency_known[1], package[1], engine[1]])
        };
        ChipModel {
            chip,
            basis,
            rates: Rates::new(&self.latency, layout, traits, &own),
            traits,
            middle: energy::middle(&self.latency, layout),
            energies: self.energies.clone(),
            own_energy,
            spread,
        }
    }
}

impl ChipModel {
    /// The cost of a call.
    pub fn estimate(&self, work: &Work) -> Estimate {
        let latency = self.rates.latency(work);
        let pieces = energy::pieces(work, &self.rates, &self.middle);
        let energy = |rail: usize| energy::energy_mj(&self.energies[rail], self.traits, self.own_energy[rail], &pieces);
        let ranged = |value: f64, which: usize| Ranged {
            value,
            low: value * (-self.spread[which]).exp(),
            high: value * self.spread[which].exp(),
        };
        Estimate {
            chip: self.chip.name,
            basis: self.basis.clone(),
            total_ms: ranged(latency.total_ms(), 0),
            queued_ms: latency.queued(),
            package_mj: ranged(energy(0), 1),
            // Both are fitted by themselves; the engine's is part of the package's.
            engine_mj: ranged(energy(1).min(energy(0)), 2),
            latency,
        }
    }

    /// Milliseconds and engine millijoules of one operation inside a larger program.
    pub fn operation(&self, operation: &Operation) -> (f64, f64) {
        let time = self.rates.operation_ms(operation, false) * operation.count;
        let alone = Work { dispatches: 0.0, operations: vec![operation.clone()], ..Work::default() };
        let pieces = energy::pieces(&alone, &self.rates, &self.middle);
        (time, energy::energy_mj(&self.energies[1], self.traits, self.own_energy[1], &pieces))
    }
}
