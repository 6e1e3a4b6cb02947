//! Errors of the model: on the rows it was fitted to, on rows held out, on chips it has not seen, and on those after ten rows.

use super::rows::{MACHINES, Row, median};
use super::split::{CALIBRATION, DRAWS, FOLDS, LEFT_OUT, draw, folds, machines};
use aneforge_cost::energy::{self, Rail};
use aneforge_cost::fit::{self, Measurement};
use aneforge_cost::parameters::Layout;

/// Rounds of a fit that starts at the priors, and of one that starts near its end.
const ROUNDS: (usize, usize) = (40, 12);

/// Where all parameters stand in a fit over all machines.
pub const LAYOUT: Layout = Layout { machines: MACHINES.len() };

/// Logarithms of predicted over measured, with the machine of each.
#[derive(Clone, Default)]
pub struct Errors(pub Vec<(usize, f64)>);

impl Errors {
    fn add(&mut self, machine: usize, predicted: f64, measured: f64) {
        self.0.push((machine, (predicted / measured).ln()));
    }

    /// Median of |predicted / measured - 1| over all rows.
    pub fn pooled(&self) -> f64 {
        median(&mut self.0.iter().map(|(_, error)| error.exp_m1().abs()).collect::<Vec<_>>())
    }

    /// The same for each machine: its place, rows, median of the absolute error, median of the signed one.
    pub fn by_machine(&self) -> Vec<(usize, usize, f64, f64)> {
        let of = |machine: usize| {
            let mut signed: Vec<f64> = self.0.iter().filter(|(at, _)| *at == machine).map(|(_, error)| error.exp_m1()).collect();
            let mut size: Vec<f64> = signed.iter().map(|error| error.abs()).collect();
            (!signed.is_empty()).then(|| (machine, signed.len(), median(&mut size), median(&mut signed)))
        };
        (0..MACHINES.len()).filter_map(of).collect()
    }

    /// Mean of the machines' medians.
    pub fn mean_of_medians(&self) -> f64 {
        let each = self.by_machine();
        each.iter().map(|(_, _, size, _)| size).sum::<f64>() / each.len() as f64
    }

    /// The part of all rows, machines weighing alike, whose |logarithm| is at most the value returned.
    pub fn quantile(&self, part: f64) -> f64 {
        let each = self.by_machine();
        let weight = |machine: usize| each.iter().find(|(at, ..)| *at == machine).map_or(0.0, |(_, rows, ..)| 1.0 / *rows as f64);
        let mut sizes: Vec<(f64, f64)> = self.0.iter().map(|(machine, error)| (error.abs(), weight(*machine))).collect();
        sizes.sort_by(|a, b| a.0.total_cmp(&b.0));
        let total: f64 = sizes.iter().map(|(_, weight)| weight).sum();
        let mut passed = 0.0;
        let at = sizes.iter().find(|(_, weight)| {
            passed += weight;
            passed >= part * total
        });
        at.map_or(f64::NAN, |(size, _)| *size)
    }
}

/// Every error that is reported.
pub struct Evaluation {
    /// Held out by workload and shape.
    pub held_out: Errors,
    /// Chips left out, knowing only what stands in their data sheet: one entry a chip.
    pub blind: Vec<(&'static str, Errors)>,
    /// Mean of the machines' medians after ten rows, for each draw; and each machine's median over the draws.
    pub calibrated: Vec<f64>,
    /// See `calibrated`.
    pub calibrated_machines: Vec<(usize, f64)>,
    /// Chips left out: energy of the package, of the engine.
    pub energy: [Vec<(&'static str, Errors)>; 2],
    /// Energy on the rows held out by workload and shape.
    pub energy_held_out: [Errors; 2],
}

/// Fits latency and the energies of both rails to all rows.
pub fn fit_all(rows: &[Row]) -> (Vec<f64>, [Vec<f64>; 2]) {
    let all: Vec<&Measurement> = rows.iter().map(|row| &row.measurement).collect();
    let latency = fit::latency(&all, LAYOUT, None, ROUNDS.0);
    let energies = [Rail::Package, Rail::Engine].map(|rail| fit::energy(&all, LAYOUT, &latency, rail));
    (latency, energies)
}

/// Errors of fitted parameters on some rows.
pub fn latency_errors<'a>(theta: &[f64], rows: impl Iterator<Item = &'a Measurement>) -> Errors {
    let mut errors = Errors::default();
    for row in rows {
        errors.add(row.machine, fit::predict(theta, LAYOUT, row).total_ms(), row.latency_ms);
    }
    errors
}

/// Errors of fitted energies on some rows; rows without a figure are left out.
pub fn energy_errors<'a>(latency: &[f64], theta: &[f64], rail: Rail, rows: impl Iterator<Item = &'a Measurement>) -> Errors {
    let middle = energy::middle(latency, LAYOUT);
    let mut errors = Errors::default();
    for row in rows {
        let Some(measured) = row.energy(rail) else { continue };
        let pieces = energy::pieces(&row.work, &fit::rates(latency, LAYOUT, row.machine, row.traits), &middle);
        let own = theta[energy::own(row.machine)];
        errors.add(row.machine, energy::energy_mj(theta, row.traits, own, &pieces), measured);
    }
    errors
}

/// A fit without the rows of a fold.
pub struct Fold<'a> {
    /// Its parameters.
    pub theta: Vec<f64>,
    /// Places of the rows held out.
    pub out: Vec<usize>,
    /// The rows fitted.
    pub kept: Vec<&'a Measurement>,
}

/// One fit for each fold, from `start` on.
pub fn held_out_fits<'a>(rows: &'a [Row], start: &[f64]) -> Vec<Fold<'a>> {
    let fold_of = folds(rows);
    let without = |fold: usize| {
        let (out, kept): (Vec<usize>, Vec<usize>) = (0..rows.len()).partition(|&at| fold_of[at] == fold);
        let kept: Vec<&Measurement> = kept.into_iter().map(|at| &rows[at].measurement).collect();
        Fold { theta: fit::latency(&kept, LAYOUT, Some(start), ROUNDS.1), out, kept }
    };
    (0..FOLDS).map(without).collect()
}

/// All errors. `start` are the parameters of the fit to all rows: the folds start there, the chips left out do not.
pub fn evaluate(rows: &[Row], start: &[f64]) -> Evaluation {
    let rails = [Rail::Package, Rail::Engine];
    let mut held_out = Errors::default();
    let mut energy_held_out = [Errors::default(), Errors::default()];
    for Fold { theta, out, kept } in held_out_fits(rows, start) {
        held_out.0.extend(latency_errors(&theta, out.iter().map(|&at| &rows[at].measurement)).0);
        for (rail, errors) in rails.into_iter().zip(&mut energy_held_out) {
            let energies = fit::energy(&kept, LAYOUT, &theta, rail);
            errors.0.extend(energy_errors(&theta, &energies, rail, out.iter().map(|&at| &rows[at].measurement)).0);
        }
    }
    let mut blind = Vec::new();
    let mut energy = [Vec::new(), Vec::new()];
    // For each draw the median error of each machine; a machine that leaves with two chips counts twice, as in the blind errors.
    let mut drawn: Vec<Vec<f64>> = vec![Vec::new(); DRAWS as usize];
    let mut calibrated_machines = Vec::new();
    for &(chip, names) in LEFT_OUT {
        let out = machines(names);
        let (test, kept): (Vec<_>, Vec<_>) =
            rows.iter().map(|row| &row.measurement).partition(|row: &&Measurement| out.contains(&row.machine));
        let theta = fit::latency(&kept, LAYOUT, None, ROUNDS.0);
        blind.push((chip, latency_errors(&theta, test.iter().copied())));
        for (rail, errors) in rails.into_iter().zip(&mut energy) {
            let energies = fit::energy(&kept, LAYOUT, &theta, rail);
            errors.push((chip, energy_errors(&theta, &energies, rail, test.iter().copied())));
        }
        for &machine in &out {
            let own: Vec<&Measurement> = test.iter().copied().filter(|row| row.machine == machine).collect();
            let mut medians = Vec::new();
            for number in 0..DRAWS {
                let places = draw(CALIBRATION, own.len(), number, machine);
                let (known, rest): (Vec<_>, Vec<_>) = own.iter().enumerate().partition(|(at, _)| places.contains(at));
                let known: Vec<&Measurement> = known.into_iter().map(|(_, row)| *row).collect();
                let theta = fit::calibrate(&known, LAYOUT, machine, &theta);
                let errors = latency_errors(&theta, rest.into_iter().map(|(_, row)| *row));
                medians.push(errors.pooled());
                drawn[number as usize].push(errors.pooled());
            }
            calibrated_machines.push((machine, median(&mut medians)));
        }
    }
    let calibrated = drawn.iter().map(|each| each.iter().sum::<f64>() / each.len() as f64).collect();
    Evaluation { held_out, blind, calibrated, calibrated_machines, energy, energy_held_out }
}

/// All errors of some chips together.
pub fn together(parts: &[(&'static str, Errors)]) -> Errors {
    Errors(parts.iter().flat_map(|(_, errors)| errors.0.iter().copied()).collect())
}

/// Mean of the machines' medians, a machine that left with two chips counted for each.
pub fn mean_over_chips(parts: &[(&'static str, Errors)]) -> f64 {
    let medians: Vec<f64> = parts.iter().flat_map(|(_, errors)| errors.by_machine()).map(|(_, _, size, _)| size).collect();
    medians.iter().sum::<f64>() / medians.len() as f64
}
