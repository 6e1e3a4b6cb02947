//! Streams: operations in order, executed together.

use std::mem::ManuallyDrop;
use std::sync::Arc;

use super::operation::Shared;
use super::{Event, Object, Operation, Runtime, check};
use crate::block::{Block, Submitted};
use crate::memory::Held;
use crate::{SysError, memory};

/// A list of encoded operations. It runs them in order; two streams in flight at once are reported unsound (the second never
/// ends), so whoever uses several runs one at a time.
pub struct Stream {
    inner: ManuallyDrop<Inner>,
    in_flight: Option<InFlight>,
}

/// Fields are dropped from top to bottom: the stream before its operations.
struct Inner {
    object: Object,
    operations: Vec<Arc<Shared>>,
    buffers: Vec<memory::Buffer>,
    held: Held,
    last_event: Option<Event>,
}

/// A submission whose end is not yet known.
struct InFlight {
    event: Event,
    /// The event's value before.
    before: u64,
    _block: Block,
}

impl Stream {
    /// An empty stream.
    ///
    /// # Errors
    /// [`SysError::Code`] with the runtime's code.
    pub fn new(runtime: &Arc<Runtime>) -> Result<Self, SysError> {
        let create = runtime.functions.stream_create;
        // SAFETY: one object is written through the pointer.
        let object =
            Object::create(runtime, create.name, runtime.functions.stream_release.call, |out| unsafe { (create.call)(out) })?;
        let inner = Inner { object, operations: Vec::new(), buffers: Vec::new(), held: Held::default(), last_event: None };
        Ok(Self { inner: ManuallyDrop::new(inner), in_flight: None })
    }

    /// Appends an operation. Until [`Stream::reset`] its bindings can't change.
    ///
    /// # Errors
    /// [`SysError::Order`] for an operation that a stream already holds; [`SysError::Code`] with the runtime's code.
    pub fn encode(&mut self, operation: &mut Operation) -> Result<(), SysError> {
        let inner = &mut *self.inner;
        let encode = inner.object.functions().stream_encode;
        idle(&self.in_flight, encode.name)?;
        let shared = &operation.shared;
        let (buffers, event) = shared.encode(encode.name, || {
            // SAFETY: stream and operation live, and the stream keeps the operation alive until it is reset or dropped.
            let code = inner.object.runtime.pooled(|| unsafe { (encode.call)(inner.object.raw(), shared.object.raw()) });
            check(encode.name, code)
        })?;
        inner.operations.push(shared.clone());
        inner.buffers.extend(buffers);
        inner.held = Held::new(inner.buffers.iter().cloned());
        inner.last_event = event;
        Ok(())
    }

    /// Runs the encoded operations and waits for their end. Allocates nothing; copies of the bound buffers wait meanwhile.
    ///
    /// # Errors
    /// [`SysError::Code`] where the engine refuses or fails.
    pub fn execute(&mut self) -> Result<(), SysError> {
        let inner = &mut *self.inner;
        let execute = inner.object.functions().stream_execute;
        idle(&self.in_flight, execute.name)?;
        let Inner { object, held, .. } = inner;
        held.during(|| {
            // SAFETY: the stream, its operations and their buffers live; their locks keep our copies out of the buffers, and
            // `&mut self` keeps other calls on the stream out.
            check(execute.name, object.runtime.pooled(|| unsafe { (execute.call)(object.raw()) }))
        })
    }

    /// Empties the stream, so that its operations can be bound, prepared and encoded again.
    ///
    /// # Errors
    /// [`SysError::Code`] for a stream that was never used.
    pub fn reset(&mut self) -> Result<(), SysError> {
        let inner = &mut *self.inner;
        let reset = inner.object.functions().stream_reset;
        idle(&self.in_flight, reset.name)?;
        // SAFETY: the stream lives and nothing of it is in flight.
        check(reset.name, inner.object.runtime.pooled(|| unsafe { (reset.call)(inner.object.raw()) }))?;
        inner.held = Held::default();
        inner.buffers.clear();
        inner.last_event = None;
        inner.operations.drain(..).for_each(|operation| operation.open_again());
        Ok(())
    }

    /// The quality of service of the stream's work.
    ///
    /// # Errors
    /// [`SysError::Code`]; [`SysError::Lacking`] where this system lacks the setting.
    pub fn set_quality_of_service(&mut self, quality: u64) -> Result<(), SysError> {
        let object = &self.inner.object;
        let set = object.runtime.need(object.functions().stream_set_quality, "e5rt_execution_stream_set_quality_of_service")?;
        // SAFETY: the stream lives; `&mut self` keeps other calls on it out.
        check(set.name, unsafe { (set.call)(object.raw(), quality) })
    }

    /// The priority of the stream's work on the engine: 2 to 7 for ordinary programs, 0 and 1 are the system's.
    ///
    /// # Errors
    /// [`SysError::Code`]; [`SysError::Lacking`] where this system lacks the setting.
    pub fn set_priority(&mut self, priority: u64) -> Result<(), SysError> {
        let object = &self.inner.object;
        let set =
            object.runtime.need(object.functions().stream_set_priority, "e5rt_execution_stream_set_ane_execution_priority")?;
        // SAFETY: as above.
        check(set.name, unsafe { (set.call)(object.raw(), priority) })
    }

    /// Starts the encoded operations and returns. The last of them must have a completion event. The bound buffers stay locked
    /// until [`Stream::wait`] or [`Stream::poll`] has seen the end.
    ///
    /// Experimental: public sources report ends that never come when more than one stream is in flight.
    ///
    /// # Errors
    /// [`SysError::Order`] without a completion event or with a submission in flight; [`SysError::Code`];
    /// [`SysError::Lacking`] where this system lacks the function.
    pub fn submit(&mut self) -> Result<(), SysError> {
        const CALL: &str = "e5rt_execution_stream_submit_async";
        idle(&self.in_flight, CALL)?;
        let inner = &mut *self.inner;
        let submit = inner.object.runtime.need(inner.object.functions().stream_submit, CALL)?;
        let blocks = inner.object.runtime.need(inner.object.runtime.blocks, "_Block_copy")?;
        let event = inner
            .last_event
            .clone()
            .ok_or(SysError::Order { call: CALL, rule: "bind a completion event to the last operation first" })?;
        let block = blocks.make(Submitted(Box::new(|| 0)))?;
        let before = event.last_signaled()?;
        inner.held.lock();
        // SAFETY: the stream lives; the block is the kind that the function takes and is kept until the end is known; the
        // buffers' locks stay taken until then.
        let code = inner.object.runtime.pooled(|| unsafe { (submit.call)(inner.object.raw(), block.as_ptr()) });
        if let Err(error) = check(submit.name, code) {
            inner.held.unlock();
            return Err(error);
        }
        self.in_flight = Some(InFlight { event, before, _block: block });
        Ok(())
    }

    /// Whether the submission has ended, or none was made. Once it says so, the buffers can be read.
    ///
    /// # Errors
    /// [`SysError::Code`] where the event can't be asked.
    pub fn poll(&mut self) -> Result<bool, SysError> {
        if let Some(flight) = &self.in_flight {
            if flight.event.last_signaled()? == flight.before {
                return Ok(false);
            }
            self.landed();
        }
        Ok(true)
    }

    /// Waits for the end of the submission, without a limit; [`Stream::poll`] is the way with one.
    ///
    /// # Errors
    /// [`SysError::Code`] where waiting fails; the submission counts as in flight then.
    pub fn wait(&mut self) -> Result<(), SysError> {
        if let Some(flight) = &self.in_flight {
            flight.event.wait()?;
            // A wait that ends for another reason says nothing about the buffers.
            if flight.event.last_signaled()? == flight.before {
                return Err(SysError::Order {
                    call: "e5rt_async_event_sync_wait",
                    rule: "the wait ended before the operation did",
                });
            }
            self.landed();
        }
        Ok(())
    }

    fn landed(&mut self) {
        self.in_flight = None;
        self.inner.held.unlock();
    }
}

/// Refuses a call on a stream with a submission in flight.
fn idle(in_flight: &Option<InFlight>, call: &'static str) -> Result<(), SysError> {
    match in_flight {
        Some(_) => Err(SysError::Order { call, rule: "a submission is in flight; wait for it first" }),
        None => Ok(()),
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // A submission whose end nobody saw may still write to its buffers: then everything it needs stays, for ever.
        if let Some(flight) = self.in_flight.take() {
            std::mem::forget(flight);
            return;
        }
        let operations = std::mem::take(&mut self.inner.operations);
        // SAFETY: dropped once, here, and not touched afterwards.
        unsafe { ManuallyDrop::drop(&mut self.inner) };
        operations.iter().for_each(|operation| operation.open_again());
    }
}
