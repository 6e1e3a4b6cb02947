//! The part of CoreFoundation that IOSurface and IOReport need. Its objects are those of Foundation, as on a Mac.
//!
//! Types are those of Apple's public headers `CFString.h`, `CFDictionary.h`, `CFArray.h`, `CFNumber.h`.

mod collections;
mod constants;

pub use collections::*;
pub use constants::*;

use crate::counters::violation;
use crate::foundation::{string, text_of};
use crate::objc::{self, Id};
use std::ffi::{CStr, c_char, c_void};
use std::ptr::null;

/// Keeps an object.
#[unsafe(no_mangle)]
pub extern "C" fn CFRetain(object: Id) -> Id {
    if object.is_nil() {
        violation("CFRetain of null: it crashes".to_string());
    }
    objc::objc_retain(object)
}

/// Gives an object back.
#[unsafe(no_mangle)]
pub extern "C" fn CFRelease(object: Id) {
    if object.is_nil() {
        violation("CFRelease of null: it crashes".to_string());
    }
    objc::objc_release(object);
}

/// The count of an object.
#[unsafe(no_mangle)]
pub extern "C" fn CFGetRetainCount(object: Id) -> isize {
    isize::try_from(object.count()).unwrap_or(isize::MAX)
}

macro_rules! type_ids {
    ($($function:ident $class:literal $also:literal $id:literal;)*) => {
        $(
            /// The number of this type.
            #[unsafe(no_mangle)]
            pub extern "C" fn $function() -> usize {
                $id
            }
        )*

        /// The number of an object's type; 1 for types without a function here.
        #[unsafe(no_mangle)]
        pub extern "C" fn CFGetTypeID(object: Id) -> usize {
            match object.class().map_or("", |class| class.name) {
                $($class | $also => $id,)*
                _ => 1,
            }
        }
    };
}

type_ids! {
    CFStringGetTypeID "NSString" "NSMutableString" 7;
    CFDictionaryGetTypeID "NSDictionary" "NSMutableDictionary" 18;
    CFArrayGetTypeID "NSArray" "NSMutableArray" 19;
    CFDataGetTypeID "NSData" "NSMutableData" 20;
    CFNumberGetTypeID "NSNumber" "__NSCFNumber" 22;
    IOSurfaceGetTypeID "IOSurface" "IOSurfaceRef" 200;
}

/// `kCFStringEncodingUTF8` and `kCFStringEncodingASCII`.
fn readable(encoding: u32) -> bool {
    encoding == 0x0800_0100 || encoding == 0x0600
}

/// A string from a C string; the caller releases it.
///
/// # Safety
/// `text` is null or a string that ends in zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn CFStringCreateWithCString(_allocator: Id, text: *const c_char, encoding: u32) -> Id {
    if text.is_null() || !readable(encoding) {
        return Id::NIL;
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_str().map_or(Id::NIL, |text| string(text).into_id())
}

/// A string from bytes; the caller releases it.
///
/// # Safety
/// `bytes` is good for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn CFStringCreateWithBytes(
    _allocator: Id,
    bytes: *const u8,
    length: isize,
    encoding: u32,
    _marked: u8,
) -> Id {
    let Ok(length) = usize::try_from(length) else { return Id::NIL };
    if (bytes.is_null() && length > 0) || !readable(encoding) {
        return Id::NIL;
    }
    // SAFETY: the caller's promise.
    let bytes = if length == 0 { &[] } else { unsafe { std::slice::from_raw_parts(bytes, length) } };
    std::str::from_utf8(bytes).map_or(Id::NIL, |text| string(text).into_id())
}

/// UTF-16 units of a string.
#[unsafe(no_mangle)]
pub extern "C" fn CFStringGetLength(string: Id) -> isize {
    let length = text_of(string).map_or(0, |text| text.encode_utf16().count());
    isize::try_from(length).unwrap_or(isize::MAX)
}

/// Bytes that a string of this length needs at most, without the zero.
#[unsafe(no_mangle)]
pub extern "C" fn CFStringGetMaximumSizeForEncoding(length: isize, encoding: u32) -> isize {
    if encoding == 0x0600 { length } else { length.saturating_mul(3) }
}

/// The bytes of a string, if they lie ready: here they never do, as a caller has to expect.
#[unsafe(no_mangle)]
pub extern "C" fn CFStringGetCStringPtr(_string: Id, _encoding: u32) -> *const c_char {
    null()
}

/// Writes a string and a zero; 1 if there was room.
///
/// # Safety
/// `buffer` is good for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn CFStringGetCString(string: Id, buffer: *mut c_char, size: isize, encoding: u32) -> u8 {
    let (Some(text), Ok(size)) = (text_of(string), usize::try_from(size)) else { return 0 };
    if !readable(encoding) || text.len() >= size || buffer.is_null() {
        return 0;
    }
    // SAFETY: there is room for the text and a zero.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast::<c_char>(), buffer, text.len());
        buffer.add(text.len()).write(0);
    }
    1
}

/// Whether two objects are equal.
#[unsafe(no_mangle)]
pub extern "C" fn CFEqual(one: Id, other: Id) -> u8 {
    crate::foundation::equal(one, other).into()
}

/// Bytes as data; the caller releases it.
///
/// # Safety
/// `bytes` is good for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn CFDataCreate(_allocator: Id, bytes: *const c_void, length: isize) -> Id {
    let Ok(length) = usize::try_from(length) else { return Id::NIL };
    if length == 0 || bytes.is_null() {
        return crate::foundation::data(&[]).into_id();
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), length) };
    crate::foundation::data(bytes).into_id()
}
