//! The report of `aneforge doctor`: one file with everything that a machine can tell about its engine.

use super::Finding;
use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;
use aneforge::conform::engine::Examination;
use aneforge::conform::numerics::{AskError, Scope, dump, report};
use aneforge::conform::report::Pending;
use aneforge::runtime::Device;
use std::path::{Path, PathBuf};

/// Asks the device and writes the file; nothing is left where that fails.
pub(super) fn write(
    path: &Path,
    device: &dyn Device,
    findings: &[Finding],
    engine: &Result<Examination, String>,
    experiments: &[PathBuf],
) -> Result<(), Failure> {
    let read = |path: &PathBuf| -> Result<serde_json::Value, Failure> {
        let fault = |problem: String| Failure::Input(format!("{}: {problem}", path.display()));
        let bytes = std::fs::read(path).map_err(|error| fault(error.to_string()))?;
        serde_json::from_slice(&bytes).map_err(|error| fault(error.to_string()))
    };
    let experiments = experiments.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let unwritten = |error: std::io::Error| Failure::Input(format!("cannot write {}: {error}", path.display()));
    // Before the device is asked, which may take long.
    let file = Pending::at(path).map_err(unwritten)?;
    let mut bar: Option<(Progress, usize)> = None;
    let answers = dump(device, device.os_build().unwrap_or_default(), &Scope::default(), &mut |now| {
        let (bar, shown) = bar.get_or_insert_with(|| (Progress::new(now.total, "questions"), 0));
        bar.advance(now.done - *shown);
        *shown = now.done;
    });
    drop(bar);
    let answers = match answers {
        Ok(answers) => answers,
        Err(error @ AskError::Folder(_)) => return Err(Failure::NotHere(error.to_string())),
        Err(error) => return Err(Failure::input(&error)),
    };
    for refusal in &answers.refused {
        output::note(&format!("{} refuses {}: {}", device.name(), refusal.what, refusal.problem));
    }
    let mut rest = serde_json::Map::new();
    let told = serde_json::to_value(findings).map_err(|error| Failure::input(&error))?;
    rest.insert("findings".to_string(), told);
    if let Ok(engine) = engine {
        rest.insert("engine".to_string(), serde_json::to_value(engine).map_err(|error| Failure::input(&error))?);
    }
    rest.insert("experiments".to_string(), experiments.into());
    let value = report(Ok(&answers), rest).map_err(|error| Failure::input(&error))?;
    let text = serde_json::to_string(&value).map_err(|error| Failure::input(&error))?;
    file.finish(&text).map_err(unwritten)?;
    let (tables, probes) = (answers.tables.len(), answers.probes.len());
    output::note(&format!("{}: {tables} tables and {probes} probes, {}", path.display(), output::bytes(text.len() as u64)));
    Ok(())
}
