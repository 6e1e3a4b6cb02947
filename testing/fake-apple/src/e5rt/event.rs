//! Events: a value that completed operations move on, and waiting for it.

use super::object::{check_place, get, put, release};
use super::{NULL, ORDER, Outcome, Refusal, answer, misuse, text};
use crate::engine::failure;
use crate::interface::Route;
use std::ffi::{c_char, c_void};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longest wait. Apple's waits for ever; a test must end.
const PATIENCE: Duration = Duration::from_secs(10);

/// An event.
#[derive(Debug)]
pub(super) struct Event {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Last value that was signalled.
    last: u64,
    /// Value that the next completion signals; one more than the last if nobody set it.
    future: Option<u64>,
    /// Value that a wait waits for.
    awaited: u64,
    /// Submissions that will signal.
    pending: u64,
}

impl Event {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A submission will signal it.
    pub(super) fn expect(&self) {
        let mut state = self.state();
        state.pending += 1;
        state.awaited = state.future.unwrap_or(state.last + state.pending);
    }

    /// A submission is over; it signals unless it went wrong.
    pub(super) fn complete(&self, signals: bool) {
        let mut state = self.state();
        state.pending = state.pending.saturating_sub(1);
        if signals {
            state.last = state.future.take().unwrap_or(state.last + 1);
        }
        self.changed.notify_all();
    }

    fn wait(&self) -> Outcome {
        let started = Instant::now();
        let mut state = self.state();
        while state.last < state.awaited {
            if state.pending == 0 && started.elapsed() < PATIENCE {
                // A submission that never notifies: nobody will wake this wait. The caller finds out by patience, as with Apple's.
                state = self.changed.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner).0;
            } else if started.elapsed() >= PATIENCE {
                return Err(Refusal::Fault(failure::command(Route::E5rt, 9103, "the event was not signalled in time")));
            } else {
                state = self.changed.wait_timeout(state, Duration::from_millis(100)).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        Ok(())
    }
}

/// # Safety
/// `name` is null or a string that ends in zero; `out` as for every function that makes something.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_async_event_create(out: *mut *mut c_void, name: *const c_char, initial: u32) -> i64 {
    let make = || -> Result<Event, Refusal> {
        if name.is_null() {
            return Err(misuse(NULL, "eventName is NULL"));
        }
        // SAFETY: the caller's promise.
        unsafe { text(name, "the event's name") }?;
        let last = u64::from(initial);
        Ok(Event { state: Mutex::new(State { last, future: None, awaited: last + 1, pending: 0 }), changed: Condvar::new() })
    };
    // SAFETY: the caller's promise.
    answer("e5rt_async_event_create", unsafe { put(out, make) })
}

/// # Safety
/// As [`release`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_async_event_release(object: *mut *mut c_void) -> i64 {
    // SAFETY: the caller's promise.
    answer("e5rt_async_event_release", unsafe { release::<Event>(object) })
}

/// Signals the next value.
#[unsafe(no_mangle)]
pub extern "C" fn e5rt_async_event_signal(event: *mut c_void) -> i64 {
    let signal = || -> Outcome {
        let event = get::<Event>(event)?;
        let mut state = event.state();
        state.last = state.future.take().unwrap_or(state.last + 1);
        event.changed.notify_all();
        Ok(())
    };
    answer("e5rt_async_event_signal", signal())
}

/// Waits for the value of the last submission. A wait that nothing was submitted for would last for ever: it is refused.
#[unsafe(no_mangle)]
pub extern "C" fn e5rt_async_event_sync_wait(event: *mut c_void) -> i64 {
    let wait = || -> Outcome {
        let event = get::<Event>(event)?;
        let state = event.state();
        let never = state.last < state.awaited && state.pending == 0 && state.future.is_none();
        drop(state);
        if never {
            return Err(misuse(ORDER, "nothing was submitted that signals the event: the wait would not end"));
        }
        event.wait()
    };
    answer("e5rt_async_event_sync_wait", wait())
}

/// # Safety
/// `out` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_async_event_get_last_signaled_value(event: *mut c_void, out: *mut u64) -> i64 {
    let get = || -> Outcome {
        let event = get::<Event>(event)?;
        check_place(out.cast())?;
        // SAFETY: the caller's promise, checked as far as possible.
        unsafe { *out = event.state().last };
        Ok(())
    };
    answer("e5rt_async_event_get_last_signaled_value", get())
}

/// The value that the next completion signals.
#[unsafe(no_mangle)]
pub extern "C" fn e5rt_async_event_set_active_future_value(event: *mut c_void, value: u64) -> i64 {
    let set = || -> Outcome {
        let event = get::<Event>(event)?;
        let mut state = event.state();
        (state.future, state.awaited) = (Some(value), value);
        Ok(())
    };
    answer("e5rt_async_event_set_active_future_value", set())
}
