//! Operations, their ports, and what is bound to them.

use super::buffer::Buffer;
use super::event::Event;
use super::object::{get, put, release};
use super::options::OperationOptions;
use super::{NAME, NULL, ORDER, Outcome, Refusal, VALUE, answer, misuse, text};
use crate::engine::{Loaded, failure, load_function};
use crate::interface::{Fault, Function, Route, View, ViewMut};
use std::ffi::{c_char, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where an operation stands between being bound and being executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Never encoded.
    Fresh,
    /// In a stream.
    Encoded,
    /// Encoded before, to be encoded again.
    Ready,
}

/// A loaded function.
pub(super) struct Operation {
    loaded: Loaded,
    function: usize,
    state: Mutex<State>,
}

/// What changes of an operation.
pub(super) struct State {
    pub(super) phase: Phase,
    pub(super) completion: Option<Arc<Event>>,
    inputs: Vec<Option<Arc<Buffer>>>,
    outputs: Vec<Option<Arc<Buffer>>>,
}

/// A port of an operation.
pub(super) struct Port {
    operation: Arc<Operation>,
    output: bool,
    index: usize,
}

impl Operation {
    fn new(options: &OperationOptions) -> Result<Self, Refusal> {
        let function = &options.function;
        if !function.library.own {
            let fault = failure::load(Route::E5rt, 6, "Must re-compile the E5 bundle");
            return Err(Refusal::Fault(fault));
        }
        let loaded = load_function(&function.library.compiled, function.index).map_err(Refusal::Fault)?;
        let ports = &function.library.compiled.functions[function.index];
        let state = State {
            phase: Phase::Fresh,
            completion: None,
            inputs: vec![None; ports.inputs.len()],
            outputs: vec![None; ports.outputs.len()],
        };
        Ok(Self { loaded, function: function.index, state: Mutex::new(state) })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ports(&self) -> &Function {
        &self.loaded.compiled().functions[self.function]
    }

    /// Puts it in a stream.
    pub(super) fn encode(&self) -> Outcome {
        let mut state = self.state();
        if state.phase == Phase::Encoded {
            return Err(misuse(ORDER, "the operation is encoded already; prepare it first"));
        }
        let ports = self.ports();
        let named = ports.inputs.iter().zip(&state.inputs).chain(ports.outputs.iter().zip(&state.outputs));
        if let Some((port, _)) = named.into_iter().find(|(_, bound)| bound.is_none()) {
            return Err(misuse(ORDER, format!("port {:?} has no buffer", port.name)));
        }
        state.phase = Phase::Encoded;
        Ok(())
    }

    /// Executes it on what is bound.
    pub(super) fn execute(&self) -> Result<(), Fault> {
        let state = self.state();
        let (inputs, outputs) = (state.inputs.clone(), state.outputs.clone());
        drop(state);
        let inputs: Vec<View> =
            inputs.iter().flatten().map(|buffer| View { start: buffer.start(), bytes: buffer.size() }).collect();
        let outputs: Vec<ViewMut> =
            outputs.iter().flatten().map(|buffer| ViewMut { start: buffer.start(), bytes: buffer.size() }).collect();
        // SAFETY: the views are buffers that the bindings keep alive; nobody else is to touch them while the stream executes, which
        // is the caller's part of e5rt's contract.
        unsafe { self.loaded.execute(self.function, &inputs, &outputs) }
    }
}

/// # Safety
/// As [`put`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_execution_stream_operation_create_precompiled_compute_operation_with_options(
    out: *mut *mut c_void,
    options: *mut c_void,
) -> i64 {
    let make = || Operation::new(&*get::<OperationOptions>(options)?);
    // SAFETY: the caller's promise.
    let made = unsafe { put(out, make) };
    answer("e5rt_execution_stream_operation_create_precompiled_compute_operation_with_options", made)
}

/// # Safety
/// As [`release`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_execution_stream_operation_release(object: *mut *mut c_void) -> i64 {
    // SAFETY: the caller's promise.
    answer("e5rt_execution_stream_operation_release", unsafe { release::<Operation>(object) })
}

/// # Safety
/// `name` is null or a string that ends in zero; `out` as for every function that makes something.
unsafe fn port(operation: *mut c_void, name: *const c_char, out: *mut *mut c_void, output: bool) -> Outcome {
    let find = || -> Result<Port, Refusal> {
        let operation = get::<Operation>(operation)?;
        // SAFETY: the caller's promise.
        let name = unsafe { text(name, "the port's name") }?;
        let (side, ports) = if output { ("output", &operation.ports().outputs) } else { ("input", &operation.ports().inputs) };
        let Some(index) = ports.iter().position(|port| port.name == name) else {
            let known: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
            return Err(misuse(NAME, format!("no {side} is called {name:?}; there are {}", known.join(", "))));
        };
        Ok(Port { operation, output, index })
    };
    // SAFETY: the caller's promise.
    unsafe { put(out, find) }
}

/// # Safety
/// `name` is null or a string that ends in zero; `out` as for every function that makes something.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_execution_stream_operation_retain_input_port(
    operation: *mut c_void,
    name: *const c_char,
    out: *mut *mut c_void,
) -> i64 {
    // SAFETY: the caller's promise.
    answer("e5rt_execution_stream_operation_retain_input_port", unsafe { port(operation, name, out, false) })
}

/// # Safety
/// `name` is null or a string that ends in zero; `out` as for every function that makes something.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_execution_stream_operation_retain_output_port(
    operation: *mut c_void,
    name: *const c_char,
    out: *mut *mut c_void,
) -> i64 {
    // SAFETY: the caller's promise.
    answer("e5rt_execution_stream_operation_retain_output_port", unsafe { port(operation, name, out, true) })
}

/// # Safety
/// As [`release`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_io_port_release(object: *mut *mut c_void) -> i64 {
    // SAFETY: the caller's promise.
    answer("e5rt_io_port_release", unsafe { release::<Port>(object) })
}

/// Binds a port to a buffer, which may be that of another port.
#[unsafe(no_mangle)]
pub extern "C" fn e5rt_io_port_bind_buffer_object(port: *mut c_void, buffer: *mut c_void) -> i64 {
    let bind = || -> Outcome {
        let (port, buffer) = (get::<Port>(port)?, get::<Buffer>(buffer)?);
        let mut state = port.operation.state();
        if state.phase == Phase::Encoded {
            return Err(misuse(ORDER, "the operation is encoded; prepare it before binding anew"));
        }
        let slots = if port.output { &mut state.outputs } else { &mut state.inputs };
        slots[port.index] = Some(buffer);
        Ok(())
    };
    answer("e5rt_io_port_bind_buffer_object", bind())
}

/// Makes an operation that was encoded ready to be encoded again.
#[unsafe(no_mangle)]
pub extern "C" fn e5rt_execution_stream_operation_prepare_op_for_encode(operation: *mut c_void) -> i64 {
    let prepare = || -> Outcome {
        let operation = get::<Operation>(operation)?;
        let mut state = operation.state();
        if state.phase == Phase::Fresh {
            return Err(misuse(ORDER, "Op has not been encoded and hence cannot be reset to 'ReadyForEncode'"));
        }
        state.phase = Phase::Ready;
        Ok(())
    };
    answer("e5rt_execution_stream_operation_prepare_op_for_encode", prepare())
}

/// Signals the event when the operation has run; before it is encoded only.
#[unsafe(no_mangle)]
pub extern "C" fn e5rt_execution_stream_operation_bind_completion_event(operation: *mut c_void, event: *mut c_void) -> i64 {
    let bind = || -> Outcome {
        let (operation, event) = (get::<Operation>(operation)?, get::<Event>(event)?);
        let mut state = operation.state();
        if state.phase == Phase::Encoded {
            return Err(misuse(ORDER, "a completion event is bound before the operation is encoded"));
        }
        state.completion = Some(event);
        Ok(())
    };
    answer("e5rt_execution_stream_operation_bind_completion_event", bind())
}

/// Events to wait for. Operations of a stream run in order, so there is nothing left to wait for.
///
/// # Safety
/// `events` is null or holds `count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_execution_stream_operation_bind_dependent_events(
    operation: *mut c_void,
    events: *mut *mut c_void,
    count: u64,
) -> i64 {
    let bind = || -> Outcome {
        let operation = get::<Operation>(operation)?;
        let count = usize::try_from(count).map_err(|_| misuse(VALUE, "too many events"))?;
        if events.is_null() && count > 0 {
            return Err(misuse(NULL, "the events are NULL"));
        }
        for index in 0..count {
            // SAFETY: the caller's promise: `index` is below `count`.
            get::<Event>(unsafe { *events.add(index) })?;
        }
        match operation.state().phase {
            Phase::Encoded => Err(misuse(ORDER, "dependent events are bound before the operation is encoded")),
            Phase::Fresh | Phase::Ready => Ok(()),
        }
    };
    answer("e5rt_execution_stream_operation_bind_dependent_events", bind())
}
