//! Events: counters that operations signal when they are done.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Object, Runtime, check, text};
use crate::SysError;

/// A counter that an operation raises when it has run. Clones are the same event.
#[derive(Clone)]
pub struct Event {
    pub(super) object: Arc<Object>,
    /// Whether the event tells of an operation's end, which then nobody else may signal.
    claimed: Arc<AtomicBool>,
}

impl Event {
    /// An event with a name, which must not be empty, and its first value.
    ///
    /// # Errors
    /// [`SysError::Code`]; [`SysError::Lacking`] where this system has no events.
    pub fn new(runtime: &Arc<Runtime>, name: &str, initial: u32) -> Result<Self, SysError> {
        let name = text("the event's name", name)?;
        let create = runtime.need(runtime.functions.event_create, "e5rt_async_event_create")?;
        let release = runtime.need(runtime.functions.event_release, "e5rt_async_event_release")?;
        // SAFETY: the name ends in zero; one object is written through the first pointer.
        let object =
            Object::create(runtime, create.name, release.call, |out| unsafe { (create.call)(out, name.as_ptr(), initial) })?;
        Ok(Self { object: Arc::new(object), claimed: Arc::default() })
    }

    /// Makes the event one operation's: what it tells about buffers in use must be true.
    pub(super) fn claim(&self, call: &'static str) -> Result<(), SysError> {
        if self.claimed.swap(true, Ordering::Relaxed) {
            return Err(SysError::Order { call, rule: "the event tells of another operation's end; make one of its own" });
        }
        Ok(())
    }

    /// Raises the event from here.
    ///
    /// # Errors
    /// [`SysError::Order`] for an event that tells of an operation's end; [`SysError::Code`]; [`SysError::Lacking`] where this system lacks the function.
    pub fn signal(&self) -> Result<(), SysError> {
        let signal = self.object.runtime.need(self.object.functions().event_signal, "e5rt_async_event_signal")?;
        if self.claimed.load(Ordering::Relaxed) {
            return Err(SysError::Order { call: signal.name, rule: "the event tells of an operation's end; only that signals it" });
        }
        // SAFETY: the event lives; signalling is what events are made to do from any thread.
        check(signal.name, unsafe { (signal.call)(self.object.raw()) })
    }

    /// Waits until the event is signalled; without a limit, so only where a signal is certain.
    ///
    /// # Errors
    /// [`SysError::Code`]; [`SysError::Lacking`] where this system lacks the function.
    pub fn wait(&self) -> Result<(), SysError> {
        let wait = self.object.runtime.need(self.object.functions().event_wait, "e5rt_async_event_sync_wait")?;
        // SAFETY: the event lives; waiting is what events are made for on any thread.
        check(wait.name, self.object.runtime.pooled(|| unsafe { (wait.call)(self.object.raw()) }))
    }

    /// The value last signalled. Reported to advance under asynchronous submission alone.
    ///
    /// # Errors
    /// [`SysError::Code`]; [`SysError::Lacking`] where this system lacks the question.
    pub fn last_signaled(&self) -> Result<u64, SysError> {
        let last = self.object.runtime.need(self.object.functions().event_last, "e5rt_async_event_get_last_signaled_value")?;
        let mut value = 0;
        // SAFETY: the event lives; one number is written.
        check(last.name, unsafe { (last.call)(self.object.raw(), &raw mut value) })?;
        Ok(value)
    }

    /// Sets the value that the next signal will have.
    ///
    /// # Errors
    /// [`SysError::Code`]; [`SysError::Lacking`] where this system lacks the function.
    pub fn set_active_future_value(&mut self, value: u64) -> Result<(), SysError> {
        let set = self.object.runtime.need(self.object.functions().event_set_future, "e5rt_async_event_set_active_future_value")?;
        // SAFETY: the event lives.
        check(set.name, unsafe { (set.call)(self.object.raw(), value) })
    }
}
