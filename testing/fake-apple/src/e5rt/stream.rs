//! Streams: encoded operations that run in order, at once or submitted.

use super::object::{get, put, release};
use super::operation::Operation;
use super::{NULL, ORDER, Outcome, Refusal, VALUE, answer, misuse};
use crate::counters::violation;
use crate::engine::OwnTime;
use crate::objc::{BlockRef, KeptBlock, call_number};
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A stream.
#[derive(Default)]
pub(super) struct Stream {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Whether anything was ever encoded.
    used: bool,
    encoded: Vec<Arc<Operation>>,
    /// Submissions that are under way.
    submitted: usize,
}

/// Submissions under way in all streams.
static SUBMITTED: AtomicUsize = AtomicUsize::new(0);

impl Stream {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if self.submitted > 0 {
            violation("a stream was released while a submission of it was under way".to_string());
        }
    }
}

/// # Safety
/// As [`put`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_execution_stream_create(out: *mut *mut c_void) -> i64 {
    // SAFETY: the caller's promise.
    answer("e5rt_execution_stream_create", unsafe { put(out, || Ok(Stream::default())) })
}

/// # Safety
/// As [`release`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_execution_stream_release(object: *mut *mut c_void) -> i64 {
    // SAFETY: the caller's promise.
    answer("e5rt_execution_stream_release", unsafe { release::<Stream>(object) })
}

/// Takes all operations out of a stream that had some.
#[unsafe(no_mangle)]
pub extern "C" fn e5rt_execution_stream_reset(stream: *mut c_void) -> i64 {
    let reset = || -> Outcome {
        let stream = get::<Stream>(stream)?;
        let mut state = stream.state();
        if !state.used {
            return Err(misuse(ORDER, "a stream that was never used cannot be reset"));
        }
        if state.submitted > 0 {
            return Err(misuse(ORDER, "a submission of the stream is under way"));
        }
        state.encoded.clear();
        Ok(())
    };
    answer("e5rt_execution_stream_reset", reset())
}

/// Puts an operation behind those of the stream.
#[unsafe(no_mangle)]
pub extern "C" fn e5rt_execution_stream_encode_operation(stream: *mut c_void, operation: *mut c_void) -> i64 {
    let encode = || -> Outcome {
        let (stream, operation) = (get::<Stream>(stream)?, get::<Operation>(operation)?);
        operation.encode()?;
        let mut state = stream.state();
        state.used = true;
        state.encoded.push(operation);
        Ok(())
    };
    answer("e5rt_execution_stream_encode_operation", encode())
}

/// The operations that an execution runs.
fn encoded(stream: &Stream) -> Result<Vec<Arc<Operation>>, Refusal> {
    let state = stream.state();
    if state.encoded.is_empty() {
        return Err(misuse(ORDER, "the stream has no operations"));
    }
    Ok(state.encoded.clone())
}

/// Runs all operations in order. Events are not signalled.
#[unsafe(no_mangle)]
pub extern "C" fn e5rt_execution_stream_execute_sync(stream: *mut c_void) -> i64 {
    let _time = OwnTime::begin();
    let execute = || -> Outcome {
        let stream = get::<Stream>(stream)?;
        encoded(&stream)?.iter().try_for_each(|operation| operation.execute()).map_err(Refusal::Fault)
    };
    answer("e5rt_execution_stream_execute_sync", execute())
}

/// Submits all operations and returns. The block is retained and runs inside of this call, not when the operations are done; only
/// events tell of that. A second stream that is submitted meanwhile runs, and its events are never signalled (PyPI package aneforge
/// 0.4.0; ANE guide, arXiv 2606.22283, chapter 6).
///
/// # Safety
/// `block` is null or a block without arguments that returns a 64-bit number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_execution_stream_submit_async(stream: *mut c_void, block: *mut c_void) -> i64 {
    let submit = || -> Outcome {
        let stream = get::<Stream>(stream)?;
        let operations = encoded(&stream)?;
        let Some(block) = KeptBlock::copy(BlockRef(block.cast())) else {
            return Err(misuse(NULL, "the block is NULL, which crashes: it is retained unconditionally"));
        };
        stream.state().submitted += 1;
        let alone = SUBMITTED.fetch_add(1, SeqCst) == 0;
        let events: Vec<_> = operations.iter().filter_map(|operation| operation.state().completion.clone()).collect();
        events.iter().for_each(|event| event.expect());
        let worker = move || run(operations, stream, alone);
        let spawned = std::thread::Builder::new().name("e5rt submission".to_string()).spawn(worker);
        call_number(&block);
        spawned.map(drop).map_err(|error| misuse(VALUE, format!("no thread for the submission: {error}")))
    };
    answer("e5rt_execution_stream_submit_async", submit())
}

/// Carries out a submission. Its end is seen by the last event, so everything else is over and let go before that.
fn run(operations: Vec<Arc<Operation>>, stream: Arc<Stream>, alone: bool) {
    let mut events: Vec<_> = operations.iter().map(|operation| operation.state().completion.clone()).collect();
    let last = events.pop().flatten();
    let mut done = true;
    for (index, operation) in operations.iter().enumerate() {
        done = done && operation.execute().is_ok();
        if let Some(Some(event)) = events.get(index) {
            event.complete(done && alone);
        }
    }
    drop(operations);
    SUBMITTED.fetch_sub(1, SeqCst);
    stream.state().submitted -= 1;
    drop(stream);
    if let Some(event) = last {
        event.complete(done && alone);
    }
}

/// The old name.
#[unsafe(no_mangle)]
pub extern "C" fn e5rt_execution_stream_async_submit(stream: *mut c_void) -> i64 {
    let refuse = || -> Outcome {
        get::<Stream>(stream)?;
        Err(misuse(VALUE, "Use submit_async"))
    };
    answer("e5rt_execution_stream_async_submit", refuse())
}

/// Takes the value and does nothing with it.
#[unsafe(no_mangle)]
pub extern "C" fn e5rt_execution_stream_set_quality_of_service(stream: *mut c_void, _class: u64) -> i64 {
    answer("e5rt_execution_stream_set_quality_of_service", get::<Stream>(stream).map(drop))
}

/// Priorities 2 to 7 are for applications, 0 and 1 for the system (ANE guide, arXiv 2606.22283, appendix C).
#[unsafe(no_mangle)]
pub extern "C" fn e5rt_execution_stream_set_ane_execution_priority(stream: *mut c_void, priority: u64) -> i64 {
    let set = || -> Outcome {
        get::<Stream>(stream)?;
        if priority > 7 {
            return Err(misuse(VALUE, format!("priority {priority}; 0 to 7 are possible")));
        }
        Ok(())
    };
    answer("e5rt_execution_stream_set_ane_execution_priority", set())
}
