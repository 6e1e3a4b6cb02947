//! Memory that ports are bound to.

use super::object::{check_place, get, put, release};
use super::{MEMORY, Outcome, Refusal, VALUE, answer, misuse};
use crate::counters::violation;
use std::alloc::{Layout, alloc, dealloc};
use std::ffi::c_void;
use std::ptr::NonNull;

/// A page, which an engine's apertures begin at (ANE guide, arXiv 2606.22283, chapter 21).
const PAGE: usize = 16384;
/// Bytes behind a buffer that nobody may write.
const GUARD: usize = 64;
const GUARD_BYTE: u8 = 0xA5;
/// What fresh memory holds: not a number in fp16, so that a result shows who reads it before writing.
const FRESH: u8 = 0xFF;
/// Buffer types: 0 CPU pointer, 1 mapped for the engine, 2 surface.
const TYPES: u32 = 3;

/// Memory with a guard behind it.
#[derive(Debug)]
pub(super) struct Buffer {
    start: NonNull<u8>,
    size: usize,
    layout: Layout,
}

// SAFETY: the memory belongs to the buffer alone and moves with it; who writes it when is the caller's to order, as with Apple's.
unsafe impl Send for Buffer {}
// SAFETY: as above; the fake touches the memory only through views of an execution.
unsafe impl Sync for Buffer {}

impl Buffer {
    fn new(size: u64, kind: u32) -> Result<Self, Refusal> {
        if kind >= TYPES {
            return Err(misuse(VALUE, "Invalid BufferType @ AllocMemory"));
        }
        let size = usize::try_from(size)
            .ok()
            .filter(|&size| size > 0)
            .ok_or_else(|| misuse(VALUE, format!("a buffer of {size} bytes")))?;
        let layout = size.checked_add(GUARD).and_then(|whole| Layout::from_size_align(whole, PAGE).ok());
        let layout = layout.ok_or_else(|| misuse(MEMORY, format!("a buffer of {size} bytes")))?;
        // SAFETY: the layout has at least the guard's bytes.
        let start = NonNull::new(unsafe { alloc(layout) }).ok_or_else(|| misuse(MEMORY, format!("a buffer of {size} bytes")))?;
        // SAFETY: `size` bytes and the guard were allocated.
        unsafe {
            start.as_ptr().write_bytes(FRESH, size);
            start.as_ptr().add(size).write_bytes(GUARD_BYTE, GUARD);
        }
        Ok(Self { start, size, layout })
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the guard was allocated and written with the buffer.
        let guard = unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(self.size), GUARD) };
        if guard.iter().any(|&byte| byte != GUARD_BYTE) {
            violation(format!("somebody wrote behind a buffer of {} bytes", self.size));
        }
        // SAFETY: allocated with this layout, freed once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// # Safety
/// `out` as for every function that makes something.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_buffer_object_alloc(out: *mut *mut c_void, size: u64, kind: u32) -> i64 {
    // SAFETY: the caller's promise.
    answer("e5rt_buffer_object_alloc", unsafe { put(out, || Buffer::new(size, kind)) })
}

/// # Safety
/// As [`release`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_buffer_object_release(object: *mut *mut c_void) -> i64 {
    // SAFETY: the caller's promise.
    answer("e5rt_buffer_object_release", unsafe { release::<Buffer>(object) })
}

/// # Safety
/// `out` is null or a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_buffer_object_get_data_ptr(buffer: *mut c_void, out: *mut *mut c_void) -> i64 {
    let get = || -> Outcome {
        let buffer = get::<Buffer>(buffer)?;
        check_place(out.cast())?;
        // SAFETY: the caller's promise, checked as far as possible.
        unsafe { *out = buffer.start.as_ptr().cast() };
        Ok(())
    };
    answer("e5rt_buffer_object_get_data_ptr", get())
}

/// # Safety
/// `out` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_buffer_object_get_size(buffer: *mut c_void, out: *mut u64) -> i64 {
    let get = || -> Outcome {
        let buffer = get::<Buffer>(buffer)?;
        check_place(out.cast())?;
        // SAFETY: the caller's promise, checked as far as possible.
        unsafe { *out = buffer.size as u64 };
        Ok(())
    };
    answer("e5rt_buffer_object_get_size", get())
}
