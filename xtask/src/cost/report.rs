//! What the fit prints, and whether the committed coefficients agree with it.

use super::evaluate::{self, Errors, Evaluation, LAYOUT, mean_over_chips, together};
use super::rows::{self, MACHINES, Table, median};
use super::{COEFFICIENTS, Error};
use aneforge_cost::coefficients::{self, Coefficients, Energy, Law, Machine, SCHEMA, Value, rounded};
use aneforge_cost::energy::{POWER, SLOPE, TERMS, own};
use aneforge_cost::fit;
use aneforge_cost::parameters::{PARTS, SHARED};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Largest relative difference between a committed number and its fit: the last digit kept, and the bits in which libraries of
/// functions differ.
const TOLERANCE: f64 = 1e-3;

/// Fits, prints, compares or writes.
pub fn fit(data: &Path, write: bool, quick: bool) -> Result<(String, bool), Error> {
    let table = rows::read(data)?;
    let (latency, energies) = evaluate::fit_all(&table.rows);
    let committed = std::fs::read_to_string(COEFFICIENTS).ok().and_then(|text| Coefficients::parse(&text).ok());
    let mut report = head(&table);
    let measurements = || table.rows.iter().map(|row| &row.measurement);
    section(&mut report, "on the rows fitted", &evaluate::latency_errors(&latency, measurements()), None);
    let evaluation = (!quick).then(|| evaluate::evaluate(&table.rows, &latency));
    if let Some(evaluation) = &evaluation {
        sections(&mut report, evaluation);
    }
    let errors = match (&evaluation, &committed) {
        (Some(evaluation), _) => errors(evaluation),
        (None, Some(committed)) => committed.errors,
        (None, None) => errors_of_nothing(),
    };
    let fitted = file(&table, &latency, &energies, errors);
    if write {
        let text = format!("{}\n", serde_json::to_string_pretty(&fitted)?);
        let unfinished = format!("{COEFFICIENTS}.unfinished");
        let write = std::fs::write(&unfinished, text).and_then(|()| std::fs::rename(&unfinished, COEFFICIENTS));
        write.map_err(|source| Error::File { path: COEFFICIENTS.into(), source })?;
        report.push_str("\ncoefficients written\n");
        return Ok((report, true));
    }
    let differences = match committed {
        Some(committed) => differences(&committed, &fitted)?,
        None => vec!["there are no committed coefficients".to_string()],
    };
    if differences.is_empty() {
        report.push_str("\nthe committed coefficients agree with this file\n");
    } else {
        let _ = writeln!(report, "\nthe committed coefficients disagree with this file:");
        differences.iter().take(20).for_each(|line| report.push_str(&format!("  {line}\n")));
    }
    Ok((report, differences.is_empty()))
}

fn head(table: &Table) -> String {
    let Table { sha256, rows, all, failed, bridged, repeated } = table;
    format!(
        "data {sha256}\n{all} rows, {failed} without a latency, {bridged} of native layers run in a process of their own, {repeated} \
         repeated within a source (the median counts): {} distinct rows\n",
        rows.len()
    )
}

fn percent(value: f64) -> String {
    format!("{:.1} %", value * 100.0)
}

fn section(report: &mut String, title: &str, errors: &Errors, mean: Option<f64>) {
    let mean = mean.unwrap_or_else(|| errors.mean_of_medians());
    let _ = writeln!(report, "\n{title}: median error {}, mean of machine medians {}", percent(errors.pooled()), percent(mean));
    for (machine, rows, size, signed) in errors.by_machine() {
        let _ =
            writeln!(report, "  {:<24}{rows:>5} rows{:>10}{:>10} signed", MACHINES[machine].name, percent(size), percent(signed));
    }
}

fn sections(report: &mut String, evaluation: &Evaluation) {
    section(report, "latency, 5-fold by workload and shape", &evaluation.held_out, None);
    let blind = together(&evaluation.blind);
    section(report, "latency, chips left out, blind", &blind, Some(mean_over_chips(&evaluation.blind)));
    for (chip, errors) in &evaluation.blind {
        section(report, &format!("  without {chip}"), errors, None);
    }
    let mut draws = evaluation.calibrated.clone();
    let _ = writeln!(
        report,
        "\nlatency, chips left out, ten rows of the machine known: mean of machine medians {}, the median of {} draws ({} to {})",
        percent(median(&mut draws)),
        draws.len(),
        percent(draws.first().copied().unwrap_or(f64::NAN)),
        percent(draws.last().copied().unwrap_or(f64::NAN)),
    );
    for &(machine, error) in &evaluation.calibrated_machines {
        let _ = writeln!(report, "  {:<24}{:>10}", MACHINES[machine].name, percent(error));
    }
    for ((rail, errors), known) in ["package", "engine"].into_iter().zip(&evaluation.energy).zip(&evaluation.energy_held_out) {
        section(report, &format!("energy of the {rail}, 5-fold by workload and shape"), known, None);
        let all = together(errors);
        section(report, &format!("energy of the {rail}, chips left out, blind"), &all, Some(mean_over_chips(errors)));
    }
}

fn quantiles(errors: &Errors) -> [f64; 2] {
    [rounded(errors.quantile(0.5)), rounded(errors.quantile(0.9))]
}

fn errors(evaluation: &Evaluation) -> coefficients::Errors {
    coefficients::Errors {
        latency_known: quantiles(&evaluation.held_out),
        latency_unknown: quantiles(&together(&evaluation.blind)),
        energy_known: evaluation.energy_held_out.each_ref().map(quantiles),
        energy_unknown: evaluation.energy.each_ref().map(|chips| quantiles(&together(chips))),
    }
}

fn errors_of_nothing() -> coefficients::Errors {
    let none = [0.0; 2];
    coefficients::Errors { latency_known: none, latency_unknown: none, energy_known: [none; 2], energy_unknown: [none; 2] }
}

/// The data file of fitted parameters.
pub fn file(table: &Table, latency: &[f64], energies: &[Vec<f64>; 2], errors: coefficients::Errors) -> Coefficients {
    let value = |value: f64, unit: &str| Value { value: rounded(value.exp()), unit: unit.to_string() };
    let law = |slope: f64, power: f64| Law { per_generation: rounded(slope), memory_power: rounded(power) };
    let energy = |theta: &[f64]| Energy {
        terms: TERMS.iter().zip(theta).map(|((name, unit, ..), theta)| (name.to_string(), value(*theta, unit))).collect(),
        law: law(theta[SLOPE], theta[POWER]),
    };
    let machine = |(at, machine): (usize, &rows::Machine)| Machine {
        name: machine.name.to_string(),
        chip: machine.chip.to_string(),
        host: machine.host,
        rows: table.rows.iter().filter(|row| row.measurement.machine == at).count(),
        factors: PARTS
            .iter()
            .zip(fit::own(latency, LAYOUT, at))
            .map(|((_, name, ..), factor)| (name.to_string(), rounded(factor.exp())))
            .collect(),
        energy_factors: [0, 1].map(|rail: usize| rounded(energies[rail][own(at)].exp())),
    };
    Coefficients {
        schema: SCHEMA,
        source: "benchmark results of PyPI aneforge 0.4.0 and its users (MIT, Copyright (c) 2026 Spencer H. Bryngelson)"
            .to_string(),
        data_sha256: table.sha256.clone(),
        rows: table.rows.len(),
        shared: SHARED
            .iter()
            .map(|shared| (shared.name.to_string(), value(latency[LAYOUT.shared(shared.which)], shared.unit)))
            .collect::<BTreeMap<_, _>>(),
        laws: PARTS
            .iter()
            .map(|&(part, name, ..)| (name.to_string(), law(latency[LAYOUT.slope(part)], latency[LAYOUT.power(part)])))
            .collect(),
        machines: MACHINES.iter().enumerate().map(machine).collect(),
        package: energy(&energies[0]),
        engine: energy(&energies[1]),
        errors,
    }
}

/// What differs between two files, by path.
pub fn differences(committed: &Coefficients, fitted: &Coefficients) -> Result<Vec<String>, Error> {
    let mut lines = Vec::new();
    compare("", &serde_json::to_value(committed)?, &serde_json::to_value(fitted)?, &mut lines);
    Ok(lines)
}

fn compare(path: &str, a: &serde_json::Value, b: &serde_json::Value, lines: &mut Vec<String>) {
    use serde_json::Value::{Array, Number, Object};
    match (a, b) {
        (Object(a), Object(b)) if a.keys().eq(b.keys()) => {
            a.iter().for_each(|(key, value)| compare(&format!("{path}/{key}"), value, &b[key], lines));
        }
        (Array(a), Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().for_each(|(at, (a, b))| compare(&format!("{path}/{at}"), a, b, lines));
        }
        (Number(x), Number(y)) => {
            let (x, y) = (x.as_f64().unwrap_or(f64::NAN), y.as_f64().unwrap_or(f64::NAN));
            let is_close = (x - y).abs() <= TOLERANCE * x.abs().max(y.abs()).max(1e-3);
            if !is_close {
                lines.push(format!("{path} is {x}, the fit gives {y}"));
            }
        }
        _ if a == b => {}
        _ => lines.push(format!("{path} is {a}, the fit gives {b}")),
    }
}

/// The rows with what the model predicts, as JSON lines.
pub fn rows(data: &Path) -> Result<String, Error> {
    let table = rows::read(data)?;
    let latency = Coefficients::committed()?.latency()?;
    let mut held_out = vec![f64::NAN; table.rows.len()];
    for fold in evaluate::held_out_fits(&table.rows, &latency) {
        for at in fold.out {
            held_out[at] = fit::predict(&fold.theta, LAYOUT, &table.rows[at].measurement).total_ms();
        }
    }
    let mut text = String::new();
    for (row, held_out) in table.rows.iter().zip(held_out) {
        let predicted = fit::predict(&latency, LAYOUT, &row.measurement);
        let line = serde_json::json!({
            "machine": MACHINES[row.measurement.machine].name,
            "chip": MACHINES[row.measurement.machine].chip,
            "workload": row.workload,
            "shape": row.shape,
            "dtype": row.dtype,
            "source": row.source,
            "measured_ms": row.measurement.latency_ms,
            "predicted_ms": predicted.total_ms(),
            "held_out_ms": held_out,
        });
        text.push_str(&format!("{line}\n"));
    }
    Ok(text)
}
