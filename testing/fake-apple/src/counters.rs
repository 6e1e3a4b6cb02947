//! What was asked of the fake, and what was asked wrongly.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[$meta:meta])* $name:ident),* $(,)?) => {
        /// Counts since the library was loaded or the counters were reset.
        #[derive(Debug, Default)]
        pub struct Counters {
            $($(#[$meta])* pub $name: AtomicU64,)*
        }

        impl Counters {
            const fn new() -> Self {
                Self { $($name: AtomicU64::new(0),)* }
            }

            fn list(&self) -> Vec<(&'static str, &AtomicU64)> {
                vec![$((stringify!($name), &self.$name),)*]
            }
        }
    };
}

counters! {
    /// Retains asked for from outside.
    retains,
    /// Releases asked for from outside.
    releases,
    /// Objects put into an autorelease pool.
    autoreleases,
    /// Autorelease pools pushed.
    pools_pushed,
    /// Autorelease pools popped.
    pools_popped,
    /// Locks of surfaces.
    surface_locks,
    /// Unlocks of surfaces.
    surface_unlocks,
    /// Surfaces mapped for requests.
    maps,
    /// Requests unmapped.
    unmaps,
    /// Compiles, also failed ones.
    compiles,
    /// Programs that were found compiled.
    cache_hits,
    /// Compiles that `_ANEInMemoryModel` asked for: these count against the budget of a process.
    in_memory_compiles,
    /// Programs loaded.
    loads,
    /// Programs unloaded.
    unloads,
    /// Executions that were begun.
    executions,
    /// The largest number of executions that were under way at once.
    most_in_flight,
    /// Time spent inside executions, in nanoseconds.
    own_time_ns,
    /// Messages looked up.
    messages,
}

/// The counters of this process.
pub static COUNTERS: Counters = Counters::new();

static LIVE: Mutex<BTreeMap<&'static str, i64>> = Mutex::new(BTreeMap::new());
static VIOLATIONS: Mutex<Vec<String>> = Mutex::new(Vec::new());
static VIOLATION_COUNT: AtomicI64 = AtomicI64::new(0);

/// More than this are counted but not kept.
const KEPT_VIOLATIONS: usize = 100;

/// One more of a counter.
pub fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

/// Objects of a kind that live: Objective-C classes by their names, e5rt objects by theirs, surfaces.
pub fn live(kind: &'static str, change: i64) {
    *LIVE.lock().unwrap_or_else(std::sync::PoisonError::into_inner).entry(kind).or_default() += change;
}

/// Records a use that the real frameworks would crash on, or that is reported to go wrong without a word.
pub fn violation(text: String) {
    VIOLATION_COUNT.fetch_add(1, Relaxed);
    let mut kept = VIOLATIONS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if kept.len() < KEPT_VIOLATIONS {
        kept.push(text);
    }
}

/// All counters: `live` maps kinds to numbers of living objects, `violations` lists texts.
pub fn json() -> serde_json::Value {
    let mut map = serde_json::Map::new();
    for (name, counter) in COUNTERS.list() {
        map.insert(name.to_string(), counter.load(Relaxed).into());
    }
    let live = LIVE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let living: serde_json::Map<String, serde_json::Value> =
        live.iter().filter(|(_, number)| **number != 0).map(|(kind, number)| ((*kind).to_string(), (*number).into())).collect();
    let violations = VIOLATIONS.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    map.insert("live_objects".to_string(), live.values().sum::<i64>().into());
    map.insert("live".to_string(), living.into());
    map.insert("violations".to_string(), violations.into());
    map.insert("violation_count".to_string(), VIOLATION_COUNT.load(Relaxed).into());
    map.insert("loaded_programs".to_string(), crate::engine::loaded_programs().into());
    serde_json::Value::Object(map)
}

/// Executions before the last reset.
static EARLIER: AtomicU64 = AtomicU64::new(0);

/// Executions since the library was loaded, whatever was reset.
pub fn executions_ever() -> u64 {
    EARLIER.load(Relaxed) + COUNTERS.executions.load(Relaxed)
}

/// Sets what is counted to zero. Living objects and loaded programs stay counted: they are what is, not what was.
pub fn reset() {
    EARLIER.fetch_add(COUNTERS.executions.load(Relaxed), Relaxed);
    for (_, counter) in COUNTERS.list() {
        counter.store(0, Relaxed);
    }
    VIOLATION_COUNT.store(0, Relaxed);
    VIOLATIONS.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clear();
}
