//! Asks a device about its arithmetic and keeps the raw answers.
//!
//! The dump settles what published figures leave open: all 65,536 results of every function of one number, the raw sums of seeded and
//! of pointed vectors, and the cases of products in which sources disagree. It is made by small programs, on any device; `aneforge
//! doctor --report F` writes it, and the device `emulator:F` reads it.
//!
//! ```
//! use aneforge_conform::numerics::{Scope, dump};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = aneforge_runtime::open("emulator:m1")?;
//! let answers = dump(&*device, "", &Scope { filter: Some("tanh".to_string()) }, &mut |_| ())?;
//! assert_eq!(answers.tables[0].results.0.len(), 65536);
//! # Ok(())
//! # }
//! ```

mod compare;
mod products;
mod question;
mod reductions;
mod tables;

pub use compare::{Difference, differences};

use crate::files::write;
use aneforge_mil::Body;
use aneforge_mil::op::Arguments;
use aneforge_runtime::numerics::{Dump, DumpedTable, Halves, KIND, Probe, ProbeInput, Refusal, SCHEMA, settings};
use aneforge_runtime::{Device, Program};
use half::f16;
use question::Question;
use std::path::Path;
use std::sync::Arc;

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Only tables and probes with this in their operator or name.
    pub filter: Option<String>,
}

/// Where the questions stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Questions asked.
    pub done: usize,
    /// All of them.
    pub total: usize,
    /// The one that is asked now.
    pub question: &'a str,
}

/// Why a device was not asked at all.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The device stands for no chip.
    #[error("{device} has the arithmetic of no chip; ask ane, fake or emulator:<chip>")]
    NoChip {
        /// The device.
        device: String,
    },
    /// Nothing matches the filter.
    #[error("no table or probe has {filter:?} in its name")]
    Nothing {
        /// The filter.
        filter: String,
    },
    /// No folder for the programs.
    #[error("no folder for programs: {0}")]
    Folder(#[from] std::io::Error),
}

/// Asks a device every question; one that it refuses is noted with its words. `os_build` is that of the device's system, empty where
/// it has none.
///
/// # Errors
/// [`AskError`].
pub fn dump(device: &dyn Device, os_build: &str, scope: &Scope, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Dump, AskError> {
    let chip = device.chip().ok_or_else(|| AskError::NoChip { device: device.name().to_string() })?;
    let folder = tempfile::tempdir()?;
    let chosen = |name: &str| scope.filter.as_ref().is_none_or(|part| name.contains(part.as_str()));
    let functions: Vec<_> = tables::functions().into_iter().filter(|(op, _)| chosen(op)).collect();
    let mut questions = reductions::questions();
    questions.extend(products::questions());
    questions.retain(|question| question.as_ref().map_or(true, |question| chosen(&question.name)));
    let total = functions.len() + questions.len();
    if let (0, Some(filter)) = (total, &scope.filter) {
        return Err(AskError::Nothing { filter: filter.clone() });
    }
    let mut dump = Dump {
        chip: chip.name.to_string(),
        os_build: os_build.to_string(),
        device: device.name().to_string(),
        version: env!("CARGO_PKG_VERSION").to_string(),
        tables: Vec::new(),
        probes: Vec::new(),
        refused: Vec::new(),
    };
    let bench = Bench { device, folder: folder.path() };
    for (done, (op, arguments)) in functions.into_iter().enumerate() {
        progress(Progress { done, total, question: op });
        match bench.table(op, arguments) {
            Ok(table) => dump.tables.push(table),
            Err(problem) => dump.refused.push(Refusal { what: op.to_string(), problem }),
        }
    }
    for question in questions {
        let name = question.as_ref().map_or("question", |question| question.name.as_str()).to_string();
        progress(Progress { done: dump.tables.len() + dump.probes.len() + dump.refused.len(), total, question: &name });
        match question.and_then(|question| bench.probe(question)) {
            Ok(probe) => dump.probes.push(probe),
            Err(problem) => dump.refused.push(Refusal { what: name, problem }),
        }
    }
    progress(Progress { done: total, total, question: "" });
    Ok(dump)
}

/// The report that holds a dump, or says why there is none; `rest` are its other members.
///
/// # Errors
/// What writing JSON reports.
pub fn report(
    dump: Result<&Dump, &str>,
    rest: serde_json::Map<String, serde_json::Value>,
) -> Result<serde_json::Value, serde_json::Error> {
    let mut all = serde_json::Map::new();
    all.insert("kind".to_string(), KIND.into());
    all.insert("schema".to_string(), SCHEMA.into());
    all.insert("version".to_string(), env!("CARGO_PKG_VERSION").into());
    all.extend(rest);
    match dump {
        Ok(dump) => all.insert("numerics".to_string(), serde_json::to_value(dump)?),
        Err(reason) => all.insert("numerics_missing".to_string(), reason.into()),
    };
    Ok(serde_json::Value::Object(all))
}

struct Bench<'a> {
    device: &'a dyn Device,
    folder: &'a Path,
}

impl Bench<'_> {
    fn table(&self, op: &str, arguments: Vec<(&'static str, question::Part)>) -> Result<DumpedTable, String> {
        let mut parts = vec![("x", question::Part::Input(tables::SHAPE.to_vec()))];
        parts.extend(arguments);
        let body = question::body(op, &parts)?;
        let all = Halves((0..=u16::MAX).collect());
        let results = self.ask(&body, &[all])?.pop().ok_or("the program has no result")?;
        let operation = body.operations.first().ok_or("the program is empty")?;
        let ports = body.argument_ports(&operation.arguments);
        let arguments = settings(&Arguments { op: operation.op, ports: &ports });
        Ok(DumpedTable { op: op.to_string(), arguments, results })
    }

    fn probe(&self, question: Question) -> Result<Probe, String> {
        let shapes = question.body.inputs.iter().map(|&id| question.body.ty(id).shape.clone());
        let inputs = question.inputs.iter().zip(shapes).map(|(input, shape)| numbers(input, &shape)).collect::<Vec<_>>();
        let results = self.ask(&question.body, &inputs)?;
        let mil = question::text(&question.body)?;
        Ok(Probe { name: question.name, op: question.op.to_string(), mil, inputs: question.inputs, results })
    }

    /// Compiles a program from the files that a compiler would read and runs it once.
    fn ask(&self, body: &Body, inputs: &[Halves]) -> Result<Vec<Halves>, String> {
        let path = self.folder.join("question");
        let outcome = write(body, &path).and_then(|()| {
            let program = Arc::new(Program::open(&path).map_err(|error| error.to_string())?);
            let executable = self.device.load(&program).map_err(|error| error.to_string())?;
            let given: Vec<Vec<u8>> = inputs.iter().map(Halves::to_bytes).collect();
            let given: Vec<&[u8]> = given.iter().map(Vec::as_slice).collect();
            let mut results: Vec<Vec<u8>> = executable.outputs().iter().map(|port| vec![0; port.byte_length()]).collect();
            let mut taken: Vec<&mut [u8]> = results.iter_mut().map(Vec::as_mut_slice).collect();
            executable.execute(&given, &mut taken).map_err(|error| error.to_string())?;
            Ok(results.iter().map(|bytes| Halves::from_bytes(bytes)).collect())
        });
        // A folder that cannot be emptied shows in the next write.
        let _ = std::fs::remove_dir_all(&path);
        outcome
    }
}

/// The numbers of an input.
pub fn numbers(input: &ProbeInput, shape: &[usize]) -> Halves {
    match input {
        ProbeInput::Halves(halves) => halves.clone(),
        ProbeInput::Normals { seed } => reductions::normals(shape.iter().product(), *seed),
        ProbeInput::Lanes { magnitude } => {
            let length = shape.last().copied().unwrap_or(0);
            let mut all = vec![f16::ZERO; shape.iter().product()];
            for (row, lanes) in all.chunks_mut(length.max(1)).enumerate() {
                let (first, last) = (usize::from(row == 0), length.saturating_sub(1 + usize::from(row + 1 == length)));
                for (lane, value) in [(first, *magnitude), (last, -magnitude), (row, 1.0)] {
                    if let Some(slot) = lanes.get_mut(lane) {
                        *slot = f16::from_f64(value);
                    }
                }
            }
            all.into_iter().collect()
        }
    }
}
