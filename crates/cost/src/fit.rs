//! From measurements to parameters.

use crate::energy::{self, Rail};
use crate::latency::{Latency, Rates, Traits};
use crate::parameters::{Layout, PARTS, Part};
use crate::solve::{Problem, minimise};
use crate::work::Work;

/// One measured call.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// Which machine, by its place in the list of machines.
    pub machine: usize,
    /// What is known of the machine.
    pub traits: Traits,
    /// What the call asks.
    pub work: Work,
    /// Milliseconds measured.
    pub latency_ms: f64,
    /// Millijoules of the package, where measured.
    pub package_mj: Option<f64>,
    /// Millijoules of the engine, where measured.
    pub engine_mj: Option<f64>,
}

impl Measurement {
    /// Energy of a rail.
    pub fn energy(&self, rail: Rail) -> Option<f64> {
        match rail {
            Rail::Package => self.package_mj,
            Rail::Engine => self.engine_mj,
        }
    }
}

/// Error that a residual of one stands for, as a part of the measured value.
const LATENCY_ERROR: f64 = 0.12;
/// See [`LATENCY_ERROR`]; sampled power is coarser.
const ENERGY_ERROR: f64 = 0.2;

/// A machine's own factors under a vector of parameters.
pub fn own(theta: &[f64], layout: Layout, machine: usize) -> [f64; PARTS.len()] {
    PARTS.iter().map(|&(part, ..)| theta[layout.own(machine, part)]).collect::<Vec<_>>().try_into().unwrap_or([0.0; PARTS.len()])
}

/// Rates of a measured machine.
pub fn rates(theta: &[f64], layout: Layout, machine: usize, traits: Traits) -> Rates {
    Rates::new(theta, layout, traits, &own(theta, layout, machine))
}

/// The predicted time of a measured call.
pub fn predict(theta: &[f64], layout: Layout, row: &Measurement) -> Latency {
    rates(theta, layout, row.machine, row.traits).latency(&row.work)
}

/// Fits all parameters to the rows, machines without rows at their priors.
pub fn latency(rows: &[&Measurement], layout: Layout, start: Option<&[f64]>, rounds: usize) -> Vec<f64> {
    let mut free = layout.common();
    let mut seen: Vec<usize> = rows.iter().map(|row| row.machine).collect();
    seen.sort_unstable();
    seen.dedup();
    free.extend(seen.iter().flat_map(|&machine| PARTS.iter().map(move |&(part, ..)| layout.own(machine, part))));
    // Nothing measures a vector factor that all share apart from the costs of the operators, so it has no shared value.
    fit(rows, layout, &free, start, rounds)
}

/// Fits one machine's own factors to a few rows of it; everything else stays.
pub fn calibrate(rows: &[&Measurement], layout: Layout, machine: usize, start: &[f64]) -> Vec<f64> {
    let free: Vec<usize> = PARTS.iter().map(|&(part, ..): &(Part, _, _, _)| layout.own(machine, part)).collect();
    fit(rows, layout, &free, Some(start), 8)
}

fn fit(rows: &[&Measurement], layout: Layout, free: &[usize], start: Option<&[f64]>, rounds: usize) -> Vec<f64> {
    let (prior, width) = layout.prior();
    let residuals = |theta: &[f64]| -> Vec<f64> {
        let machines: Vec<Option<Rates>> = (0..layout.machines)
            .map(|machine| {
                let row = rows.iter().find(|row| row.machine == machine)?;
                Some(rates(theta, layout, machine, row.traits))
            })
            .collect();
        let residual = |row: &&Measurement| {
            let predicted = machines[row.machine].as_ref().map_or(f64::NAN, |rates| rates.latency(&row.work).total_ms());
            (predicted / row.latency_ms).ln() / LATENCY_ERROR
        };
        rows.iter().map(residual).collect()
    };
    let problem = Problem { residuals: &residuals, prior: &prior, width: &width, free };
    minimise(&problem, start.unwrap_or(&prior), rounds)
}

/// Fits the energy of a rail, given the parameters of latency.
pub fn energy(rows: &[&Measurement], layout: Layout, latency: &[f64], rail: Rail) -> Vec<f64> {
    let (prior, width) = energy::prior(rail, layout.machines);
    let middle = energy::middle(latency, layout);
    let known: Vec<(&Measurement, f64, energy::Pieces)> = rows
        .iter()
        .filter_map(|row| {
            let measured = row.energy(rail)?;
            let rates = rates(latency, layout, row.machine, row.traits);
            Some((*row, measured, energy::pieces(&row.work, &rates, &middle)))
        })
        .collect();
    let residuals = |theta: &[f64]| -> Vec<f64> {
        let residual = |(row, measured, pieces): &(&Measurement, f64, energy::Pieces)| {
            let predicted = energy::energy_mj(theta, row.traits, theta[energy::own(row.machine)], pieces);
            (predicted / measured).ln() / ENERGY_ERROR
        };
        known.iter().map(residual).collect()
    };
    let free: Vec<usize> = (0..prior.len()).collect();
    let problem = Problem { residuals: &residuals, prior: &prior, width: &width, free: &free };
    minimise(&problem, &prior, 40)
}
