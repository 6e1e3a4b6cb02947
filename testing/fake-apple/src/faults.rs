//! Injected failures: each kind is asked for where it would happen.
//!
//! | kind | where | further fields |
//! |---|---|---|
//! | `missing-class` | `objc_getClass` gives nil | `name` |
//! | `missing-channels` | IOReport has no channels of a group | `name` |
//! | `os-build` | `kern.osversion` answers another build | `text` |
//! | `compile` | a compile fails | `text`, `code`, `domain` |
//! | `slow-compile` | a compile takes `ms` longer | `ms` |
//! | `slow-load` | a load takes `ms` longer | `ms` |
//! | `load` | a load fails | `text`, `code`, `domain` |
//! | `budget` | a compile answers as one past the budget of the process | |
//! | `out-of-programs` | a load answers as one past the programs of the process | |
//! | `daemon-restart` | before an execution all loaded programs of the process become invalid | |
//! | `connection` | an execution finds its connection killed, and so does every later call until a program is loaded again | |
//! | `evaluate` | an execution fails | `text`, `code`, `domain` |
//! | `output-order` | symbols of outputs are listed backwards by every load while it is set | |
//!
//! `after` occurrences pass before the first failure, and `times` (1 if left out) failures follow.
//! A missing symbol is a copy of the library without it, see `aneforge-fake-client`.

use serde::{Deserialize, Serialize};
use std::sync::Mutex;

/// One injected failure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Entry {
    /// Kind, one of the table above.
    pub kind: String,
    /// Occurrences that pass first.
    pub after: u64,
    /// Failures that follow; 1 if left out.
    pub times: Option<u64>,
    /// What it concerns: a class, for example.
    pub name: Option<String>,
    /// Text of the failure.
    pub text: Option<String>,
    /// Code of the failure.
    pub code: Option<i64>,
    /// Domain of the failure.
    pub domain: Option<String>,
    /// Milliseconds.
    pub ms: Option<u64>,
}

struct Armed {
    entry: Entry,
    passing: u64,
    failing: u64,
}

static ARMED: Mutex<Vec<Armed>> = Mutex::new(Vec::new());

/// Arms these failures and no others.
pub fn arm(entries: &[Entry]) {
    let armed = entries.iter().map(|entry| Armed { passing: entry.after, failing: entry.times.unwrap_or(1), entry: entry.clone() });
    *ARMED.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = armed.collect();
}

/// Whether a failure of this kind happens now. Counts as one occurrence.
pub fn take(kind: &str) -> bool {
    take_entry(kind).is_some()
}

/// The failure of this kind that happens now, with its fields. Counts as one occurrence.
pub fn take_entry(kind: &str) -> Option<Entry> {
    find(kind, None)
}

/// As [`take`], for failures that concern something with a name; one without a name concerns everything.
pub fn take_named(kind: &str, name: &str) -> bool {
    find(kind, Some(name)).is_some()
}

fn find(kind: &str, name: Option<&str>) -> Option<Entry> {
    // Settings of the environment are read on first use.
    let _ = crate::settings::current();
    let mut armed = ARMED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let concerns = |entry: &Entry| match (&entry.name, name) {
        (Some(wanted), Some(name)) => wanted == name,
        _ => true,
    };
    for one in armed.iter_mut().filter(|one| one.entry.kind == kind && concerns(&one.entry)) {
        if one.passing > 0 {
            one.passing -= 1;
        } else if one.failing > 0 {
            one.failing -= 1;
            return Some(one.entry.clone());
        }
    }
    None
}
