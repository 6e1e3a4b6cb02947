//! A loaded function with its ports and what is bound to them.

use std::sync::Arc;

use parking_lot::Mutex;

use super::{Buffer, Event, Function, Object, check, text};
use crate::{SysError, memory};

/// How a function becomes an operation.
pub struct OperationOptions {
    /// Before the function, so released before it.
    object: Object,
    _function: Function,
}

impl OperationOptions {
    /// Options for an operation that runs `function`.
    ///
    /// # Errors
    /// [`SysError::Code`] with the runtime's code.
    pub fn new(function: Function) -> Result<Self, SysError> {
        let runtime = &function.object.runtime;
        let create = runtime.functions.operation_options_create;
        // SAFETY: the function lives; one object is written through the first pointer.
        let object = Object::create(runtime, create.name, runtime.functions.operation_options_release.call, |out| unsafe {
            (create.call)(out, function.object.raw())
        })?;
        Ok(Self { object, _function: function })
    }

    /// The operation's name.
    ///
    /// # Errors
    /// [`SysError::Code`]; [`SysError::Text`] for a name with a zero byte.
    pub fn set_name(&mut self, name: &str) -> Result<(), SysError> {
        let name = text("the operation's name", name)?;
        let set = self.object.functions().operation_options_set_name;
        // SAFETY: the object lives, the name ends in zero and is copied by the callee; `&mut self` keeps other setters out.
        check(set.name, unsafe { (set.call)(self.object.raw(), name.as_ptr()) })
    }

    /// Whether the runtime makes the buffers between the parts of the program itself.
    ///
    /// # Errors
    /// [`SysError::Code`] with the runtime's code.
    pub fn set_allocate_intermediate_buffers(&mut self, allocate: bool) -> Result<(), SysError> {
        let set = self.object.functions().operation_options_set_allocate;
        // SAFETY: as in `set_name`.
        check(set.name, unsafe { (set.call)(self.object.raw(), i32::from(allocate)) })
    }
}

/// A program on the engine.
pub struct Operation {
    pub(super) shared: Arc<Shared>,
}

/// What ports and streams share of an operation. Fields are dropped from top to bottom: buffers, ports, events, then the
/// operation, its options, its function, its library.
pub(super) struct Shared {
    state: Mutex<State>,
    pub(super) object: Object,
    _options: OperationOptions,
}

#[derive(Default)]
struct State {
    ports: Vec<Bound>,
    completion: Option<Event>,
    dependencies: Vec<Event>,
    encoded: bool,
}

/// A port and the buffer bound to it; the buffer is released first.
struct Bound {
    buffer: Option<Buffer>,
    port: Object,
    name: String,
    input: bool,
}

/// An input or output of an operation.
pub struct Port {
    operation: Arc<Shared>,
    index: usize,
}

impl Operation {
    /// Loads the function onto the engine.
    ///
    /// # Errors
    /// [`SysError::Code`] where the engine refuses, as for a program of another architecture or beyond the number of programs.
    pub fn new(options: OperationOptions) -> Result<Self, SysError> {
        let runtime = &options.object.runtime;
        let create = runtime.functions.operation_create;
        // SAFETY: the options live; one object is written through the first pointer.
        let object = Object::create(runtime, create.name, runtime.functions.operation_release.call, |out| unsafe {
            (create.call)(out, options.object.raw())
        })?;
        Ok(Self { shared: Arc::new(Shared { state: Mutex::default(), object, _options: options }) })
    }

    /// The input port of this name.
    ///
    /// # Errors
    /// [`SysError::Code`] where there is none.
    pub fn input_port(&self, name: &str) -> Result<Port, SysError> {
        self.port(name, true)
    }

    /// The output port of this name.
    ///
    /// # Errors
    /// [`SysError::Code`] where there is none.
    pub fn output_port(&self, name: &str) -> Result<Port, SysError> {
        self.port(name, false)
    }

    fn port(&self, name: &str, input: bool) -> Result<Port, SysError> {
        let mut state = self.shared.state.lock();
        let known = state.ports.iter().position(|port| port.name == name && port.input == input);
        let index = match known {
            Some(index) => index,
            None => {
                let c_name = text("the port's name", name)?;
                let object = &self.shared.object;
                let functions = object.functions();
                let retain = if input { functions.operation_input_port } else { functions.operation_output_port };
                // SAFETY: the operation lives, the name ends in zero, one object is written through the last pointer; the
                // state's lock keeps other calls on the operation out.
                let port = Object::create(&object.runtime, retain.name, functions.port_release.call, |out| unsafe {
                    (retain.call)(object.raw(), c_name.as_ptr(), out)
                })?;
                state.ports.push(Bound { buffer: None, port, name: name.to_string(), input });
                state.ports.len() - 1
            }
        };
        Ok(Port { operation: self.shared.clone(), index })
    }

    /// The event that the operation signals when it has run. Must come before the operation is encoded.
    ///
    /// # Errors
    /// [`SysError::Order`] for an encoded operation or an event of another one; [`SysError::Code`]; [`SysError::Lacking`] where
    /// this system lacks the function.
    pub fn bind_completion_event(&mut self, event: &Event) -> Result<(), SysError> {
        let object = &self.shared.object;
        let bind = object
            .runtime
            .need(object.functions().operation_bind_completion, "e5rt_execution_stream_operation_bind_completion_event")?;
        let mut state = self.shared.state.lock();
        state.open(bind.name)?;
        event.claim(bind.name)?;
        // SAFETY: both objects live; the state keeps the event alive as long as the operation.
        check(bind.name, unsafe { (bind.call)(object.raw(), event.object.raw()) })?;
        state.completion = Some(event.clone());
        Ok(())
    }

    /// The events that the operation waits for. Must come before the operation is encoded.
    ///
    /// # Errors
    /// As [`Operation::bind_completion_event`].
    pub fn bind_dependent_events(&mut self, events: &[Event]) -> Result<(), SysError> {
        let object = &self.shared.object;
        let bind = object
            .runtime
            .need(object.functions().operation_bind_dependent, "e5rt_execution_stream_operation_bind_dependent_events")?;
        let mut state = self.shared.state.lock();
        state.open(bind.name)?;
        let mut raw: Vec<_> = events.iter().map(|event| event.object.raw()).collect();
        // SAFETY: the array has this many events, which live as long as the operation does.
        check(bind.name, unsafe { (bind.call)(object.raw(), raw.as_mut_ptr(), raw.len() as u64) })?;
        state.dependencies.extend_from_slice(events);
        Ok(())
    }

    /// Makes an operation that was encoded once ready to be encoded again, after [`Stream::reset`](super::Stream::reset).
    ///
    /// # Errors
    /// [`SysError::Order`] while a stream holds the operation; [`SysError::Code`] for one that was never encoded.
    pub fn prepare(&mut self) -> Result<(), SysError> {
        let object = &self.shared.object;
        let prepare = object.functions().operation_prepare;
        let state = self.shared.state.lock();
        state.open(prepare.name)?;
        // SAFETY: the operation lives; `&mut self` and the lock keep other calls on it out.
        check(prepare.name, object.runtime.pooled(|| unsafe { (prepare.call)(object.raw()) }))
    }
}

impl Port {
    /// Binds a buffer: what the input reads or the output writes from the next encoding on. Binding one buffer to an output and
    /// an input keeps state on the engine. An operation that was encoded before is [prepared](Operation::prepare) first.
    ///
    /// # Errors
    /// [`SysError::Order`] while a stream holds the operation; [`SysError::Code`] where the buffer does not fit.
    pub fn bind(&self, buffer: &Buffer) -> Result<(), SysError> {
        let bind = self.operation.object.functions().port_bind;
        let mut state = self.operation.state.lock();
        state.open(bind.name)?;
        let bound = &mut state.ports[self.index];
        // SAFETY: port and buffer live; the lock keeps other calls on the operation out, and the binding keeps the buffer alive.
        check(bind.name, unsafe { (bind.call)(bound.port.raw(), buffer.object.raw()) })?;
        bound.buffer = Some(buffer.clone());
        Ok(())
    }

    /// The buffer that is bound.
    pub fn buffer(&self) -> Option<Buffer> {
        self.operation.state.lock().ports[self.index].buffer.clone()
    }
}

impl State {
    /// Refuses a change of an operation that a stream holds.
    fn open(&self, call: &'static str) -> Result<(), SysError> {
        if self.encoded {
            return Err(SysError::Order { call, rule: "the operation is encoded; reset its stream first" });
        }
        Ok(())
    }
}

impl Shared {
    /// Marks the operation as held by a stream and runs `encode`; nothing changes where that fails. Gives the memory of all
    /// bound buffers and the event of its end.
    pub(super) fn encode(
        &self,
        call: &'static str,
        encode: impl FnOnce() -> Result<(), SysError>,
    ) -> Result<(Vec<memory::Buffer>, Option<Event>), SysError> {
        let mut state = self.state.lock();
        state.open(call)?;
        encode()?;
        state.encoded = true;
        let buffers = state.ports.iter().filter_map(|port| port.buffer.as_ref()).map(|buffer| buffer.memory().clone()).collect();
        Ok((buffers, state.completion.clone()))
    }

    /// No stream holds the operation any more.
    pub(super) fn open_again(&self) {
        self.state.lock().encoded = false;
    }
}
