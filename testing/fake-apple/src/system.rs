//! Questions to the kernel.

use crate::settings;
use std::ffi::{CStr, c_char, c_int, c_void};

/// Answers what the engine path asks the kernel by name; anything else is unknown (-1).
///
/// # Safety
/// `name` is a string that ends in zero; `old` is null or good for `*old_length` bytes, `old_length` null or good for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sysctlbyname(
    name: *const c_char,
    old: *mut c_void,
    old_length: *mut usize,
    _new: *mut c_void,
    _new_length: usize,
) -> c_int {
    if name.is_null() || old_length.is_null() {
        return -1;
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) };
    let Some(mut value) = answer(&name.to_string_lossy()) else { return -1 };
    value.push(0);
    // SAFETY: the caller's promise.
    let room = unsafe { *old_length };
    // SAFETY: as above.
    unsafe { *old_length = value.len() };
    if old.is_null() {
        return 0;
    }
    if room < value.len() {
        return -1;
    }
    // SAFETY: there is room.
    unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), old.cast::<u8>(), value.len()) };
    0
}

fn answer(name: &str) -> Option<Vec<u8>> {
    let settings = settings::current();
    let text = match name {
        "kern.osversion" => match crate::faults::take_entry("os-build") {
            Some(entry) => entry.text.unwrap_or_else(|| "99Z999".to_string()),
            None => settings.os_build.clone(),
        },
        "kern.osproductversion" => "26.3".to_string(),
        "kern.ostype" => "Darwin".to_string(),
        "hw.machine" => "arm64".to_string(),
        // Reported models are of machines that have the chip; one per generation is enough for a fake.
        "hw.model" => "Mac99,1".to_string(),
        "machdep.cpu.brand_string" if settings::problem().is_some() => format!("FAKE_APPLE, {}", settings::problem()?),
        "machdep.cpu.brand_string" => settings.chip().map_or("Apple", |chip| chip.0).to_string(),
        _ => return None,
    };
    Some(text.into_bytes())
}
