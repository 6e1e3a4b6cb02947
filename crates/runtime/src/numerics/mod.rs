//! What one device answered to every question about its arithmetic: a file that somebody with a Mac can send, and that the emulator
//! reads (`emulator:<file>`).
//!
//! A table holds the results of a function of one fp16 number for all 65,536 bit patterns: with it the function is data and no longer
//! a model. A probe is a small program with inputs and raw results; it decides between readings that published figures leave open,
//! and counts how far a rule reaches. `aneforge_conform::numerics` makes both on any device.

mod error;
mod halves;
mod probe;

pub use error::DumpError;
pub use halves::Halves;
pub use probe::{Probe, ProbeInput};

pub(crate) use probe::{Answer, answers};

use aneforge_core::Chip;
use aneforge_mil::op::{Arguments, Default, PortKind, builtin};
use half::f16;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Number of fp16 bit patterns: results of a table.
pub const PATTERNS: usize = 1 << 16;
/// Version of the layout of a report.
pub const SCHEMA: u32 = 1;
/// Member `kind` of a report.
pub const KIND: &str = "aneforge report";
/// Largest file that is read; a full dump takes about 8 MB.
const MOST_BYTES: u64 = 256 << 20;

/// Answers of one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dump {
    /// Name of the chip, for example `m1`.
    pub chip: String,
    /// Build of the operating system, for example `25D125`; empty where the device is no engine.
    pub os_build: String,
    /// Name of the device that answered.
    pub device: String,
    /// Version of these crates that asked.
    pub version: String,
    /// Functions of one number.
    pub tables: Vec<DumpedTable>,
    /// Small programs.
    pub probes: Vec<Probe>,
    /// Questions that the device refused, with its words.
    pub refused: Vec<Refusal>,
}

/// A function of one fp16 number on every input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DumpedTable {
    /// MIL keyword.
    pub op: String,
    /// The other arguments by MIL's keywords, defaults written out.
    pub arguments: BTreeMap<String, Setting>,
    /// Results by the bit pattern of the input.
    pub results: Halves,
}

/// An argument that a function was asked with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Setting {
    /// A number.
    Number(f64),
    /// A word, such as the mode of gelu.
    Text(String),
}

/// A question without an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Table or probe.
    pub what: String,
    /// What the device said.
    pub problem: String,
}

/// The members of a report that the emulator needs.
#[derive(Deserialize)]
struct File {
    numerics: Option<Dump>,
    #[serde(default)]
    numerics_missing: Option<String>,
}

/// The members that say what a file is.
#[derive(Deserialize)]
struct Head {
    kind: Option<serde_json::Value>,
    schema: Option<u32>,
}

impl Dump {
    /// Reads the dump of a report and checks every table and probe.
    ///
    /// # Errors
    /// [`DumpError`] with the place in the file.
    pub fn read(path: &Path) -> Result<Self, DumpError> {
        let read = |error: std::io::Error| DumpError::Read { problem: error.to_string() };
        let bytes = std::fs::metadata(path).map_err(read)?.len();
        if bytes > MOST_BYTES {
            return Err(DumpError::TooLarge { bytes, most: MOST_BYTES });
        }
        Self::from_json(&std::fs::read(path).map_err(read)?)
    }

    /// [`Self::read`] on the bytes of a file.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn from_json(bytes: &[u8]) -> Result<Self, DumpError> {
        let head: Head = serde_json::from_slice(bytes).map_err(json)?;
        match &head.kind {
            Some(kind) if kind == KIND => (),
            found => {
                let found = found.as_ref().map_or("missing".to_string(), ToString::to_string);
                return Err(DumpError::Foreign { found: found.chars().take(60).collect() });
            }
        }
        match head.schema {
            Some(SCHEMA) => (),
            found => return Err(DumpError::Schema { found: found.unwrap_or(0), known: SCHEMA }),
        }
        let file: File = serde_json::from_slice(bytes).map_err(json)?;
        let missing = || DumpError::Empty { reason: file.numerics_missing.unwrap_or("it was made without one".to_string()) };
        let dump = file.numerics.ok_or_else(missing)?;
        dump.check()?;
        Ok(dump)
    }

    /// The chip that it is about.
    ///
    /// # Errors
    /// [`DumpError::Chip`].
    pub fn chip(&self) -> Result<&'static Chip, DumpError> {
        Chip::find(&self.chip).ok_or_else(|| DumpError::Chip { name: self.chip.clone() })
    }

    /// Who answered, for labels: `dump of m1, 25D125, ane`.
    pub fn source(&self) -> String {
        let build = if self.os_build.is_empty() { "no OS build" } else { &self.os_build };
        format!("dump of {}, {build}, {}", self.chip, self.device)
    }

    fn check(&self) -> Result<(), DumpError> {
        self.chip()?;
        let mut seen = HashMap::new();
        for (index, table) in self.tables.iter().enumerate() {
            let fault = |problem: String| DumpError::Table { index, op: table.op.clone(), problem };
            let op = builtin().get(&table.op).ok_or_else(|| fault("no such operator of MIL".to_string()))?;
            let known = |port: &str| port != "x" && op.port(port).is_some();
            if op.port("x").is_none() {
                return Err(fault("it is no function of one input x".to_string()));
            }
            let others = || op.ports.iter().filter(|spec| spec.name != "x");
            if let Some(spec) = others().find(|spec| !matches!(spec.kind, PortKind::Constant)) {
                return Err(fault(format!("it is no function of one number: it takes {:?} beside x", spec.name)));
            }
            if let Some(spec) = others().find(|spec| spec.default == Default::Required && !table.arguments.contains_key(spec.name))
            {
                return Err(fault(format!("the argument {:?} is missing", spec.name)));
            }
            if let Some(port) = table.arguments.keys().find(|port| !known(port)) {
                return Err(fault(format!("the operator has no argument {port:?} beside x")));
            }
            if table.results.0.len() != PATTERNS {
                return Err(fault(format!("{} results instead of {PATTERNS}, one for each fp16 number", table.results.0.len())));
            }
            if let Some(first) = seen.insert(table.key(), index) {
                return Err(fault(format!("the same function as numerics.tables[{first}]")));
            }
        }
        for (index, probe) in self.probes.iter().enumerate() {
            probe.check().map_err(|problem| DumpError::Probe { index, name: probe.name.clone(), problem })?;
        }
        Ok(())
    }
}

fn json(error: serde_json::Error) -> DumpError {
    let (line, column, text) = (error.line(), error.column(), error.to_string());
    // serde_json ends its text with the place, which is said in front here.
    let place = format!(" at line {line} column {column}");
    DumpError::Json { line, column, problem: text.strip_suffix(&place).unwrap_or(&text).to_string() }
}

/// What tells functions apart: operator and arguments, numbers as the engine holds them, in fp16 (ANE guide, arXiv 2606.22283,
/// chapter 3), where MIL's default epsilons of log and rsqrt are zero.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FunctionKey {
    op: String,
    arguments: Vec<(String, KeyPart)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum KeyPart {
    Half(u16),
    Text(String),
}

impl DumpedTable {
    pub(crate) fn key(&self) -> FunctionKey {
        let part = |setting: &Setting| match setting {
            Setting::Number(value) => KeyPart::Half(f16::from_f64(*value).to_bits()),
            Setting::Text(text) => KeyPart::Text(text.clone()),
        };
        // A map is in the order of its keys.
        let arguments = self.arguments.iter().map(|(name, setting)| (name.clone(), part(setting))).collect();
        FunctionKey { op: self.op.clone(), arguments }
    }
}

impl FunctionKey {
    /// A function without arguments, or whose only one is an epsilon of zero.
    pub(crate) fn plain(op: &str) -> Self {
        let has_epsilon = builtin().get(op).is_some_and(|record| record.port("epsilon").is_some());
        let epsilon = has_epsilon.then(|| ("epsilon".to_string(), KeyPart::Half(0)));
        Self { op: op.to_string(), arguments: epsilon.into_iter().collect() }
    }

    /// The key of one use of an operator.
    pub(crate) fn of(arguments: &Arguments<'_>) -> Self {
        let mut parts: Vec<(String, KeyPart)> = Vec::new();
        for spec in arguments.op.ports.iter().filter(|spec| spec.name != "x") {
            let text = arguments.text(spec.name).map(|text| KeyPart::Text(text.to_string()));
            let part = text.or_else(|| arguments.number(spec.name).map(|value| KeyPart::Half(f16::from_f64(value).to_bits())));
            parts.extend(part.map(|part| (spec.name.to_string(), part)));
        }
        parts.sort_by(|a, b| a.0.cmp(&b.0));
        Self { op: arguments.op.name.to_string(), arguments: parts }
    }
}

/// The arguments of a use as a dump writes them, defaults included; `x` is left out.
pub fn settings(arguments: &Arguments<'_>) -> BTreeMap<String, Setting> {
    let mut all = BTreeMap::new();
    for spec in arguments.op.ports.iter().filter(|spec| spec.name != "x") {
        let text = arguments.text(spec.name).map(|text| Setting::Text(text.to_string()));
        let setting = text.or_else(|| arguments.number(spec.name).map(Setting::Number));
        all.extend(setting.map(|setting| (spec.name.to_string(), setting)));
    }
    all
}
