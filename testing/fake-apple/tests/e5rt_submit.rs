//! Submissions: they return at once, events tell of their end, and a second one at the same time never notifies.
#![allow(clippy::unwrap_used)]

mod through_e5rt;

use serde_json::json;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use through_e5rt::{Handle, Ready, assert_clean, fake, set};

#[repr(C)]
struct Descriptor {
    reserved: usize,
    size: usize,
}

/// A block without captures, as the Block ABI lays it out.
#[repr(C)]
struct Block {
    isa: *const c_void,
    flags: c_int,
    reserved: c_int,
    invoke: unsafe extern "C" fn(*const c_void) -> i64,
    descriptor: &'static Descriptor,
}

const IS_GLOBAL: c_int = 1 << 28;
static DESCRIPTOR: Descriptor = Descriptor { reserved: 0, size: size_of::<Block>() };
static CALLS: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn counted(_block: *const c_void) -> i64 {
    CALLS.fetch_add(1, Ordering::SeqCst);
    0
}

fn block() -> Block {
    // SAFETY: the symbol is the class of such blocks.
    let isa = unsafe { fake().get::<*const c_void>(b"_NSConcreteGlobalBlock") }.unwrap();
    // SAFETY: only the address is taken.
    let isa = unsafe { isa.into_raw() }.as_raw_ptr().cast_const();
    Block { isa, flags: IS_GLOBAL, reserved: 0, invoke: counted, descriptor: &DESCRIPTOR }
}

fn submit(stream: Handle) -> i64 {
    let mut block = block();
    let place: *mut Block = &mut block;
    call!(e5rt_execution_stream_submit_async(stream => Handle, place.cast::<c_void>() => Handle))
}

fn last(event: Handle) -> u64 {
    let mut value = 0u64;
    let place: *mut u64 = &mut value;
    assert_eq!(call!(e5rt_async_event_get_last_signaled_value(event => Handle, place => *mut u64)), 0);
    value
}

/// A program whose operation signals an event.
fn with_event() -> (Ready, Handle) {
    let ready = Ready::double();
    let event = create!(e5rt_async_event_create(c"done".as_ptr() => *const i8, 0 => u32)).unwrap();
    assert_eq!(call!(e5rt_execution_stream_reset(ready.stream.0 => Handle)), 0);
    assert_eq!(call!(e5rt_execution_stream_operation_prepare_op_for_encode(ready.operation.operation => Handle)), 0);
    let bound = call!(e5rt_execution_stream_operation_bind_completion_event(ready.operation.operation => Handle, event => Handle));
    assert_eq!(bound, 0);
    let encoded = call!(e5rt_execution_stream_encode_operation(ready.stream.0 => Handle, ready.operation.operation => Handle));
    assert_eq!(encoded, 0);
    (ready, event)
}

#[test]
fn a_submission_returns_at_once_and_its_event_tells_of_the_end() {
    let (ready, event) = with_event();
    set(json!({"delay_ms": 100}));
    for step in 1..=3 {
        ready.outputs[0].write(&[0.0; 4]);
        let started = Instant::now();
        assert_eq!(submit(ready.stream.0), 0);
        assert!(started.elapsed() < Duration::from_millis(90));
        assert_eq!(CALLS.load(Ordering::SeqCst), step, "the block runs inside of the call");
        assert_eq!(last(event), step as u64 - 1);
        assert_eq!(call!(e5rt_async_event_sync_wait(event => Handle)), 0);
        assert_eq!(last(event), step as u64);
        assert_eq!(ready.outputs[0].read(4), [2.0, 4.0, 6.0, 8.0]);
    }
    release!(e5rt_async_event_release, event);
    ready.release();
    assert_clean();
}

#[test]
fn a_second_stream_that_is_submitted_meanwhile_never_notifies() {
    let ((first, one), (second, two)) = (with_event(), with_event());
    set(json!({"delay_ms": 100}));
    assert_eq!((submit(first.stream.0), submit(second.stream.0)), (0, 0));
    assert_eq!(call!(e5rt_async_event_sync_wait(one => Handle)), 0);
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!((last(one), last(two)), (1, 0));
    assert_eq!(second.outputs[0].read(4), [2.0, 4.0, 6.0, 8.0], "it ran all the same");
    // Alone it notifies.
    assert_eq!(submit(second.stream.0), 0);
    let started = Instant::now();
    while last(two) == 0 && started.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(last(two), 1);
    release!(e5rt_async_event_release, one);
    release!(e5rt_async_event_release, two);
    first.release();
    second.release();
    assert_clean();
}
