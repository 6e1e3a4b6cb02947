//! A wrong use of e5rt is found, recorded and harmless.
#![allow(clippy::unwrap_used)]

mod through_e5rt;

use serde_json::json;
use std::ptr::null_mut;
use through_e5rt::{Buffer, DOUBLE, Handle, How, Operation, Ready, Source, Stream, assert_clean, compile, control, violations};

/// Checks that exactly one violation was recorded that says `text`, and forgets it.
fn recorded(text: &str) {
    let found = violations();
    assert!(matches!(found.as_slice(), [one] if one.contains(text)), "wanted {text:?}, found {found:?}");
    control(&json!({"reset": true}));
}

#[test]
fn a_handle_is_released_once_and_by_its_own_kind() {
    let stream = create!(e5rt_execution_stream_create()).unwrap();
    let mut copy = stream;
    let place: *mut Handle = &mut copy;
    assert_ne!(call!(e5rt_buffer_object_release(place => *mut Handle)), 0);
    recorded("e5rt_buffer_object is wanted, this one is of kind e5rt_execution_stream");
    // The handle in place of its address.
    assert_ne!(call!(e5rt_execution_stream_release(stream => Handle)), 0);
    recorded("address of the handle");
    release!(e5rt_execution_stream_release, stream);
    let mut again = stream;
    let place: *mut Handle = &mut again;
    assert_ne!(call!(e5rt_execution_stream_release(place => *mut Handle)), 0);
    recorded("was released before");
    let nothing: *mut Handle = null_mut();
    assert_ne!(call!(e5rt_execution_stream_release(nothing => *mut Handle)), 0);
    recorded("NULL");
    assert_ne!(call!(e5rt_execution_stream_execute_sync(stream => Handle)), 0);
    recorded("was released before");
    assert_clean();
}

#[test]
fn exchanged_arguments_are_seen_and_nothing_is_written() {
    let config = create!(e5rt_e5_compiler_config_options_create()).unwrap();
    let mut out: Handle = null_mut();
    let place: *mut Handle = &mut out;
    assert_ne!(call!(e5rt_e5_compiler_create_with_config(config => Handle, place => *mut Handle)), 0);
    recorded("exchanged");
    assert!(out.is_null());
    release!(e5rt_e5_compiler_config_options_release, config);

    let ready = Ready::double();
    assert_ne!(
        call!(e5rt_precompiled_compute_op_create_options_create_with_program_function(place => *mut Handle, null_mut() => Handle)),
        0
    );
    recorded("Cannot provide program function as nullptr");
    let port = ready.operation.port(false, "x");
    assert_ne!(call!(e5rt_io_port_bind_buffer_object(ready.inputs[0].handle => Handle, port => Handle)), 0);
    recorded("e5rt_io_port is wanted, this one is of kind e5rt_buffer_object");
    release!(e5rt_io_port_release, port);
    assert!(ready.computes());
    ready.release();
    assert_clean();
}

#[test]
fn calls_out_of_order_are_refused() {
    let source = Source::main(DOUBLE);
    let library = compile(&source.path(), &source.folder.join("cache"), &How::default()).unwrap();
    let operation = Operation::new(library, "main").unwrap();
    let [x, y] = [(); 2].map(|()| Buffer::new(64));
    let stream = create!(e5rt_execution_stream_create()).unwrap();

    assert_ne!(call!(e5rt_execution_stream_reset(stream => Handle)), 0);
    recorded("never used cannot be reset");
    assert_ne!(call!(e5rt_execution_stream_execute_sync(stream => Handle)), 0);
    recorded("no operations");
    assert_ne!(call!(e5rt_execution_stream_operation_prepare_op_for_encode(operation.operation => Handle)), 0);
    recorded("Op has not been encoded and hence cannot be reset to 'ReadyForEncode'");
    operation.bind(false, "x", &x);
    assert_ne!(call!(e5rt_execution_stream_encode_operation(stream => Handle, operation.operation => Handle)), 0);
    recorded("port \"y\" has no buffer");
    operation.bind(true, "y", &y);
    assert_eq!(call!(e5rt_execution_stream_encode_operation(stream => Handle, operation.operation => Handle)), 0);

    // Encoded: nothing is bound any more.
    let port = operation.port(true, "y");
    assert_ne!(call!(e5rt_io_port_bind_buffer_object(port => Handle, x.handle => Handle)), 0);
    recorded("encoded");
    let event = create!(e5rt_async_event_create(c"done".as_ptr() => *const i8, 0 => u32)).unwrap();
    assert_ne!(call!(e5rt_execution_stream_operation_bind_completion_event(operation.operation => Handle, event => Handle)), 0);
    recorded("before the operation is encoded");
    assert_ne!(call!(e5rt_execution_stream_encode_operation(stream => Handle, operation.operation => Handle)), 0);
    recorded("encoded already");

    // Reset and prepared: it can be bound anew and runs.
    x.write(&[1.0, 2.0, 3.0, 4.0]);
    assert_eq!(call!(e5rt_execution_stream_execute_sync(stream => Handle)), 0);
    assert_eq!(call!(e5rt_execution_stream_reset(stream => Handle)), 0);
    assert_eq!(call!(e5rt_execution_stream_operation_prepare_op_for_encode(operation.operation => Handle)), 0);
    assert_eq!(call!(e5rt_io_port_bind_buffer_object(port => Handle, x.handle => Handle)), 0);
    assert_eq!(call!(e5rt_execution_stream_operation_bind_completion_event(operation.operation => Handle, event => Handle)), 0);
    assert_eq!(call!(e5rt_execution_stream_encode_operation(stream => Handle, operation.operation => Handle)), 0);
    assert_eq!(call!(e5rt_execution_stream_execute_sync(stream => Handle)), 0);
    assert_eq!(x.read(4), [2.0, 4.0, 6.0, 8.0]);
    let mut signalled = 0u64;
    let place: *mut u64 = &mut signalled;
    assert_eq!(call!(e5rt_async_event_get_last_signaled_value(event => Handle, place => *mut u64)), 0);
    assert_eq!(signalled, 0, "execute_sync signals no event");

    release!(e5rt_async_event_release, event);
    release!(e5rt_io_port_release, port);
    release!(e5rt_execution_stream_release, stream);
    [x, y].into_iter().for_each(Buffer::release);
    operation.release();
    release!(e5rt_program_library_release, library);
    assert_clean();
}

#[test]
fn values_that_are_none_are_refused_in_the_reported_words() {
    assert!(create!(e5rt_buffer_object_alloc(64 => u64, 3 => u32)).is_err());
    recorded("Invalid BufferType @ AllocMemory");
    assert!(create!(e5rt_async_event_create(std::ptr::null() => *const i8, 0 => u32)).is_err());
    recorded("eventName is NULL");
    let event = create!(e5rt_async_event_create(c"never".as_ptr() => *const i8, 0 => u32)).unwrap();
    assert_ne!(call!(e5rt_async_event_sync_wait(event => Handle)), 0);
    recorded("would not end");
    release!(e5rt_async_event_release, event);
    let ready = Ready::double();
    assert_ne!(call!(e5rt_execution_stream_async_submit(ready.stream.0 => Handle)), 0);
    recorded("Use submit_async");
    assert_ne!(call!(e5rt_execution_stream_submit_async(ready.stream.0 => Handle, null_mut() => Handle)), 0);
    recorded("the block is NULL");
    assert!(ready.computes());
    ready.release();
    assert_clean();
}

#[test]
fn a_buffer_too_small_for_its_port_fails_the_execution_alone() {
    let source = Source::main("tensor<fp16, [1, 64]> x) { tensor<fp16, [1, 64]> y = relu(x = x)[name = string(\"y\")]; } -> (y");
    let library = compile(&source.path(), &source.folder.join("cache"), &How::default()).unwrap();
    let operation = Operation::new(library, "main").unwrap();
    let (x, y) = (Buffer::new(128), Buffer::new(64));
    operation.bind(false, "x", &x);
    operation.bind(true, "y", &y);
    let stream = Stream::of(&[&operation]);
    assert_eq!(stream.execute(), 9102);
    assert!(through_e5rt::diagnostics().contains("needs 128 bytes, its memory has 64"));
    stream.release();
    [x, y].into_iter().for_each(Buffer::release);
    operation.release();
    release!(e5rt_program_library_release, library);
    assert_clean();
}

#[test]
fn writing_behind_a_buffer_is_noticed_when_it_goes() {
    let buffer = Buffer::new(64);
    buffer.scribble(64);
    buffer.release();
    recorded("wrote behind a buffer of 64 bytes");
}
