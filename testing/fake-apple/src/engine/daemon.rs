//! What the daemon keeps of a process: its loaded programs, whether they are still valid, and the engine's queue.

use super::failure;
use crate::counters::{COUNTERS, count};
use crate::interface::{Fault, Route};
use crate::{faults, settings};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What a load answers that the daemon has no room for (ANE guide, arXiv 2606.22283, chapter 14).
pub const FULL: &str = "GetANEFModel: must re-compile";
/// What a call answers whose program went with the daemon. Invented: nobody quotes the text.
const RESTARTED: &str = "the daemon was restarted; the program is not loaded";
/// What a call answers that the daemon's connection breaks under. Foundation's code 4097 for an interrupted connection.
const INTERRUPTED: &str = "Couldn\u{2019}t communicate with a helper application.";
/// Foundation's NSXPCConnectionInterrupted.
const INTERRUPTED_CODE: i64 = 4097;

struct State {
    /// Programs loaded before the last restart have a smaller one.
    generation: u64,
    loaded: usize,
}

static STATE: Mutex<State> = Mutex::new(State { generation: 0, loaded: 0 });
static ENGINE: Mutex<()> = Mutex::new(());
static WAITING: AtomicU64 = AtomicU64::new(0);

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Programs that this process has loaded.
pub fn loaded_programs() -> usize {
    state().loaded
}

/// A program's place among the loaded ones; dropping it gives the place back.
#[derive(Debug)]
pub struct Place {
    generation: u64,
}

impl Place {
    /// Takes a place.
    ///
    /// # Errors
    /// What the daemon answers where there is none, or where a test injects a failure.
    pub fn take(route: Route) -> Result<Self, Fault> {
        if let Some(entry) = faults::take_entry("slow-load") {
            std::thread::sleep(Duration::from_millis(entry.ms.unwrap_or(0)));
        }
        if let Some(entry) = faults::take_entry("load") {
            return Err(failure::injected(failure::load(route, 6, "Program load failure (0x20004)"), &entry));
        }
        let full = faults::take("out-of-programs");
        let mut state = state();
        if full || state.loaded >= settings::current().limits.programs {
            return Err(failure::load(route, 6, FULL));
        }
        state.loaded += 1;
        count(&COUNTERS.loads);
        Ok(Self { generation: state.generation })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = state();
        if self.generation == state.generation {
            state.loaded -= 1;
        }
        count(&COUNTERS.unloads);
    }
}

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Counts the time until it is dropped as the fake's own; inside another one it counts nothing.
pub struct OwnTime(Option<Instant>);

impl OwnTime {
    /// Begins to count.
    pub fn begin() -> Self {
        Self((!INSIDE.replace(true)).then(Instant::now))
    }
}

impl Drop for OwnTime {
    fn drop(&mut self) {
        if let Some(started) = self.0 {
            INSIDE.set(false);
            COUNTERS.own_time_ns.fetch_add(u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX), Relaxed);
        }
    }
}

/// A command while it has the engine.
pub struct Command {
    _time: OwnTime,
    _engine: MutexGuard<'static, ()>,
}

impl Command {
    /// Waits for the engine. A second command that is sent meanwhile waits too, and shows in `most_in_flight`.
    ///
    /// # Errors
    /// What a call answers whose program is no longer loaded, or where a test injects a failure.
    pub fn begin(route: Route, place: &Place) -> Result<Self, Fault> {
        let waiting = WAITING.fetch_add(1, Relaxed) + 1;
        COUNTERS.most_in_flight.fetch_max(waiting, Relaxed);
        count(&COUNTERS.executions);
        let command = Self { _time: OwnTime::begin(), _engine: ENGINE.lock().unwrap_or_else(PoisonError::into_inner) };
        let interrupted = faults::take("connection");
        let restarted = faults::take("daemon-restart");
        if interrupted || restarted {
            let mut state = state();
            state.generation += 1;
            state.loaded = 0;
        }
        if interrupted {
            return Err(failure::command(route, INTERRUPTED_CODE, INTERRUPTED));
        }
        if place.generation != state().generation {
            return Err(failure::command(route, 5, RESTARTED));
        }
        if let Some(entry) = faults::take_entry("evaluate") {
            return Err(failure::injected(failure::inference(route, 0x1d, "injected"), &entry));
        }
        Ok(command)
    }
}

impl Drop for Command {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Relaxed);
    }
}
