//! The fake of Apple's frameworks that cargo builds with the tests.

use serde_json::Value;
use std::path::{Path, PathBuf};

/// The fake's library, for a device that opens one: next to the running test.
///
/// # Panics
/// Where it was not built.
pub fn library() -> PathBuf {
    aneforge_fake_client::library().unwrap_or_else(|error| panic!("{error}"))
}

/// Sends a request to the fake in this process and gives its answer.
///
/// # Panics
/// Where the request is refused.
pub fn control(request: &Value) -> Value {
    control_of(&library(), request)
}

/// As [`control`], for a copy of the library.
///
/// # Panics
/// Where the request is refused.
pub fn control_of(library: &Path, request: &Value) -> Value {
    aneforge_fake_client::control(library, request).unwrap_or_else(|error| panic!("{request}: {error}"))
}

/// Changes settings of the fake in this process: chip, profile, faults, ...
///
/// # Panics
/// Where a setting is refused.
pub fn set(settings: Value) {
    control(&aneforge_fake_client::set(settings));
}

/// Counters of the fake in this process.
pub fn counters() -> Value {
    control(&serde_json::json!({ "get": "counters" }))
}

/// Holds that nothing was used wrongly and that nothing lives or is loaded any more.
///
/// # Panics
/// Where something does, with what it is.
pub fn assert_clean() {
    let counters = counters();
    assert_eq!(counters["violations"], serde_json::json!([]), "used wrongly");
    assert_eq!(counters["live"], serde_json::json!({}), "still alive");
    assert_eq!(counters["loaded_programs"], 0, "still loaded");
    assert_eq!(counters["surface_locks"], counters["surface_unlocks"], "locks of surfaces");
}

/// A copy of the library in `folder` that lacks the symbols `names`.
///
/// # Panics
/// Where the library has no such symbol.
pub fn without_symbols(folder: &Path, names: &[&str]) -> PathBuf {
    aneforge_fake_client::without_symbols(&library(), folder, names).unwrap_or_else(|error| panic!("{error}"))
}
