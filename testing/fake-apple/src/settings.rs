//! What the fake is asked to be: a chip, a system, limits, faults.

use crate::faults::Entry;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, OnceLock, RwLock};

/// How many refusals of the sources are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// The union of all refusals that any source reports.
    #[default]
    Strict,
    /// Only those that no source disputes.
    Agreed,
}

/// Order of the symbols of a program in its tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SymbolOrder {
    /// By name; Orion (arXiv 2603.06728) and Espresso report this.
    #[default]
    Sorted,
    /// As the program states them.
    Declared,
    /// By name, backwards: an order that nobody reports, for tests that bind by name.
    Reversed,
}

/// Numbers that a process runs into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Programs loaded at once in a process.
    pub programs: usize,
    /// Compiles through `_ANEInMemoryModel` in a process.
    pub compiles: usize,
    /// Smallest surface that the strict profile evaluates, in bytes.
    pub surface: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { programs: 128, compiles: 119, surface: 49_152 }
    }
}

/// All settings. What a request leaves out stays as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Short name of the chip: `m1`, `m5pro`, ...
    pub chip: String,
    /// What `kern.osversion` answers.
    pub os_build: String,
    /// Which refusals are held.
    pub profile: Profile,
    /// Limits of a process.
    pub limits: Limits,
    /// Injected failures.
    pub faults: Vec<Entry>,
    /// Time that each execution takes in addition, in milliseconds.
    pub delay_ms: u64,
    /// How long compiles fail after one that failed, in milliseconds. The PyPI package aneforge 0.4.0 reports 15 seconds in which
    /// they are unreliable.
    pub unreliable_ms: u64,
    /// Execute nothing: outputs stay as they are.
    pub noop: bool,
    /// Keep freed objects for a while, so that their use is seen.
    pub zombies: bool,
    /// Order of symbols.
    pub symbol_order: SymbolOrder,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            chip: "m1".to_string(),
            os_build: "25D125".to_string(),
            profile: Profile::Strict,
            limits: Limits::default(),
            faults: Vec::new(),
            delay_ms: 0,
            unreliable_ms: 0,
            noop: false,
            zombies: true,
            symbol_order: SymbolOrder::Sorted,
        }
    }
}

impl Settings {
    /// Product name and engine name of the chip: "Apple M1", "h13".
    ///
    /// Source: the names that the ANE guide (arXiv 2606.22283, appendix A) gives.
    pub fn chip(&self) -> Option<(&'static str, &'static str)> {
        CHIPS.iter().find(|chip| chip.0 == self.chip).map(|chip| (chip.1, chip.2))
    }
}

static CHIPS: [(&str, &str, &str); 16] = [
    ("m1", "Apple M1", "h13"),
    ("m1pro", "Apple M1 Pro", "h13g"),
    ("m1max", "Apple M1 Max", "h13g"),
    ("m1ultra", "Apple M1 Ultra", "h13g"),
    ("m2", "Apple M2", "h14"),
    ("m2pro", "Apple M2 Pro", "h14g"),
    ("m2max", "Apple M2 Max", "h14g"),
    ("m3", "Apple M3", "h15"),
    ("m3pro", "Apple M3 Pro", "h15g"),
    ("m3max", "Apple M3 Max", "h15g"),
    ("m4", "Apple M4", "h16"),
    ("m4pro", "Apple M4 Pro", "h16g"),
    ("m4max", "Apple M4 Max", "h16g"),
    ("m5", "Apple M5", "h17"),
    ("m5pro", "Apple M5 Pro", "h17s"),
    ("m6", "Apple M6", "h18"),
];

/// What is wrong with the environment's settings.
static PROBLEM: OnceLock<String> = OnceLock::new();

/// What is wrong with the settings of the environment, where something is: nobody should test another chip than the one asked for.
pub fn problem() -> Option<&'static str> {
    PROBLEM.get().map(String::as_str)
}

fn store() -> &'static RwLock<Arc<Settings>> {
    static STORE: OnceLock<RwLock<Arc<Settings>>> = OnceLock::new();
    STORE.get_or_init(|| {
        let text = std::env::var("FAKE_APPLE").unwrap_or_default();
        let settings = if text.is_empty() { Ok(Settings::default()) } else { merged(&Settings::default(), &text) };
        let settings = settings.unwrap_or_else(|error| {
            crate::counters::violation(format!("FAKE_APPLE: {error}"));
            let _ = PROBLEM.set(error);
            Settings::default()
        });
        crate::faults::arm(&settings.faults);
        RwLock::new(Arc::new(settings))
    })
}

/// The settings as they are now.
pub fn current() -> Arc<Settings> {
    store().read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
}

/// Changes the settings that `json` names. Naming `faults` arms them all anew.
///
/// # Errors
/// Text, where a setting is unknown or has a wrong value; nothing is changed then.
pub fn change(json: &str) -> Result<(), String> {
    let mut guard = store().write().unwrap_or_else(std::sync::PoisonError::into_inner);
    let settings = merged(&guard, json)?;
    if names_faults(json) {
        crate::faults::arm(&settings.faults);
    }
    *guard = Arc::new(settings);
    Ok(())
}

/// Settings of the environment again.
pub fn reset() {
    let text = std::env::var("FAKE_APPLE").unwrap_or_default();
    let settings = if text.is_empty() { Ok(Settings::default()) } else { merged(&Settings::default(), &text) };
    let settings = settings.unwrap_or_default();
    crate::faults::arm(&settings.faults);
    *store().write().unwrap_or_else(std::sync::PoisonError::into_inner) = Arc::new(settings);
}

fn names_faults(json: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(json).is_ok_and(|value| value.get("faults").is_some())
}

fn merged(settings: &Settings, json: &str) -> Result<Settings, String> {
    let wanted: serde_json::Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let mut whole = serde_json::to_value(settings).map_err(|error| error.to_string())?;
    overlay(&mut whole, wanted);
    let settings: Settings = serde_json::from_value(whole).map_err(|error| error.to_string())?;
    if settings.chip().is_none() {
        let known: Vec<&str> = CHIPS.iter().map(|chip| chip.0).collect();
        return Err(format!("unknown chip {:?}; known: {}", settings.chip, known.join(", ")));
    }
    Ok(settings)
}

fn overlay(whole: &mut serde_json::Value, wanted: serde_json::Value) {
    match (whole, wanted) {
        (serde_json::Value::Object(whole), serde_json::Value::Object(wanted)) => {
            for (key, value) in wanted {
                overlay(whole.entry(key).or_insert(serde_json::Value::Null), value);
            }
        }
        (whole, wanted) => *whole = wanted,
    }
}
