//! What C hands over, turned into slices and strings. The only place that follows pointers of the caller.

use crate::fault::Fault;
use crate::loaded::checked_length;
use std::ffi::{CStr, c_char};
use std::path::PathBuf;

/// A string.
///
/// # Safety
/// `text` is null or ends in a zero byte and lives for `'a`.
pub unsafe fn string<'a>(text: *const c_char, what: &str) -> Result<&'a str, Fault> {
    if text.is_null() {
        return Err(Fault::argument(format!("{what} is NULL")));
    }
    // SAFETY: not null, and the caller vouches for the zero byte and the lifetime.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Fault::argument(format!("{what} is not UTF-8")))
}

/// A path.
///
/// # Safety
/// As [`string`].
pub unsafe fn path(text: *const c_char, what: &str) -> Result<PathBuf, Fault> {
    // SAFETY: the caller vouches for it.
    unsafe { string(text, what) }.map(PathBuf::from)
}

/// `count` elements to read.
///
/// # Safety
/// `data` is null, or `count` initialised elements that nobody writes for `'a`.
pub unsafe fn slice<'a, T>(data: *const T, count: usize, what: &str) -> Result<&'a [T], Fault> {
    if count == 0 {
        return Ok(&[]);
    }
    check(data, count, what)?;
    // SAFETY: not null, aligned, of a legal size, and the caller vouches for the elements.
    Ok(unsafe { std::slice::from_raw_parts(data, count) })
}

/// `count` elements to write.
///
/// # Safety
/// `data` is null, or `count` initialised elements that nobody else reads or writes for `'a`.
pub unsafe fn slice_mut<'a, T>(data: *mut T, count: usize, what: &str) -> Result<&'a mut [T], Fault> {
    if count == 0 {
        return Ok(&mut []);
    }
    check(data, count, what)?;
    // SAFETY: not null, aligned, of a legal size, and the caller vouches for the elements.
    Ok(unsafe { std::slice::from_raw_parts_mut(data, count) })
}

fn check<T>(data: *const T, count: usize, what: &str) -> Result<(), Fault> {
    if data.is_null() {
        return Err(Fault::argument(format!("{what} is NULL")));
    }
    if !data.is_aligned() {
        return Err(Fault::argument(format!("{what} is not aligned to its elements")));
    }
    let bytes = checked_length(count.saturating_mul(size_of::<T>().max(1)))?;
    if data.addr().checked_add(bytes).is_none() {
        return Err(Fault::argument(format!("{what} goes on beyond the end of memory")));
    }
    Ok(())
}

/// Writes a result where the caller wants it.
///
/// # Safety
/// `place` is null or valid for a write.
pub unsafe fn give<T>(place: *mut T, value: T, what: &str) -> Result<(), Fault> {
    check(place, 1, what)?;
    // SAFETY: not null, aligned, and the caller vouches for the rest.
    unsafe { place.write(value) };
    Ok(())
}

/// Whether two ranges of bytes share one.
pub fn overlap(a: (usize, usize), b: (usize, usize)) -> bool {
    a.1 != 0 && b.1 != 0 && a.0 < b.0.saturating_add(b.1) && b.0 < a.0.saturating_add(a.1)
}
