//! What an executable on the engine did, counted.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of one executable and all its bindings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AneStats {
    /// Programs that were compiled.
    pub compilations: u64,
    /// Programs that were loaded onto the engine, again after they had left included.
    pub loads: u64,
    /// Loads that succeeded at the second try.
    pub retried_loads: u64,
    /// Times that a program was lost, by a daemon that restarted for example, and loaded again.
    pub reloads: u64,
    /// Commands that the engine executed.
    pub commands: u64,
    /// Bytes that the host copied into inputs.
    pub copied_in: u64,
    /// Bytes that the host copied out of outputs.
    pub copied_out: u64,
    /// Bytes that the host copied between segments and between layouts.
    pub copied_between: u64,
    /// Bytes of states that the host copied from call to call; states stay where they are, so this is 0.
    pub copied_state: u64,
}

/// Where a program runs on an engine and what it did there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineReport {
    /// Chip, as the system names it.
    pub chip: String,
    /// Build of the operating system.
    pub os_build: String,
    /// Route of each segment: `e5rt`, `in-memory` or `client`.
    pub routes: Vec<&'static str>,
    /// Whether the program was compiled for this chip and route when it was loaded, because its bundle was not.
    pub translated: bool,
    /// Whether the cache held the program from an earlier load.
    pub cached: bool,
    /// Counts.
    pub stats: AneStats,
}

/// The counts while they change.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) compilations: AtomicU64,
    pub(crate) loads: AtomicU64,
    pub(crate) retried_loads: AtomicU64,
    pub(crate) reloads: AtomicU64,
    pub(crate) commands: AtomicU64,
    pub(crate) copied_in: AtomicU64,
    pub(crate) copied_out: AtomicU64,
    pub(crate) copied_between: AtomicU64,
}

impl Counts {
    pub(crate) fn add(counter: &AtomicU64, more: usize) {
        counter.fetch_add(more as u64, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> AneStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        AneStats {
            compilations: read(&self.compilations),
            loads: read(&self.loads),
            retried_loads: read(&self.retried_loads),
            reloads: read(&self.reloads),
            commands: read(&self.commands),
            copied_in: read(&self.copied_in),
            copied_out: read(&self.copied_out),
            copied_between: read(&self.copied_between),
            copied_state: 0,
        }
    }
}
