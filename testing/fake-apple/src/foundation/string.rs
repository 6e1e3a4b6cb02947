//! Strings.

use super::root::wrong;
use crate::objc::{ClassSpec, Id, Method, Sel, Strong, method};
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::null;

/// Body of a string.
struct Text {
    text: String,
    c: CString,
}

impl Text {
    fn new(text: &str) -> Self {
        // A C string ends at its first zero.
        let c = CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default();
        Self { text: text.to_string(), c }
    }
}

/// A string.
pub fn string(text: &str) -> Strong {
    Id::make("NSString", Text::new(text))
}

/// The text of a string; anything else has none.
pub fn text_of(id: Id) -> Option<&'static str> {
    id.body::<Text>().map(|text| text.text.as_str())
}

/// # Safety
/// `text` is null or a string that ends in zero.
unsafe fn read(text: *const c_char) -> Option<String> {
    // SAFETY: the caller's promise.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }).and_then(|text| text.to_str().ok()).map(str::to_string)
}

/// # Safety
/// `bytes` is good for `length` bytes.
unsafe fn read_bytes(bytes: *const c_void, length: usize) -> Option<String> {
    if bytes.is_null() {
        return (length == 0).then(String::new);
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), length) };
    String::from_utf8(bytes.to_vec()).ok()
}

/// `NSUTF8StringEncoding` and `NSASCIIStringEncoding`: the only ones that this library reads.
fn readable(encoding: usize) -> bool {
    encoding == 4 || encoding == 1
}

extern "C" fn with_utf8(_: Id, _: Sel, text: *const c_char) -> Id {
    // SAFETY: the method takes a C string.
    unsafe { read(text) }.map_or(Id::NIL, |text| string(&text).autoreleased())
}

extern "C" fn init(this: Id, _: Sel) -> Id {
    this.fill(Text::new(""));
    this
}

fn filled(this: Id, text: Option<String>) -> Id {
    match text {
        Some(text) => {
            this.fill(Text::new(&text));
            this
        }
        None => {
            this.release();
            Id::NIL
        }
    }
}

extern "C" fn init_utf8(this: Id, _: Sel, text: *const c_char) -> Id {
    // SAFETY: the method takes a C string.
    filled(this, unsafe { read(text) })
}

extern "C" fn init_bytes(this: Id, _: Sel, bytes: *const c_void, length: usize, encoding: usize) -> Id {
    // SAFETY: the method takes this many bytes.
    filled(this, unsafe { read_bytes(bytes, length) }.filter(|_| readable(encoding)))
}

extern "C" fn utf8(this: Id, _: Sel) -> *const c_char {
    this.body::<Text>().map_or(null(), |text| text.c.as_ptr())
}

extern "C" fn length(this: Id, _: Sel) -> usize {
    text_of(this).map_or(0, |text| text.encode_utf16().count())
}

extern "C" fn length_of_bytes(this: Id, _: Sel, encoding: usize) -> usize {
    text_of(this).filter(|_| readable(encoding)).map_or(0, str::len)
}

extern "C" fn equal_string(this: Id, _: Sel, other: Id) -> bool {
    super::equal(this, other)
}

extern "C" fn last_component(this: Id, _: Sel) -> Id {
    let text = text_of(this).unwrap_or_default().trim_end_matches('/');
    string(text.rsplit('/').next().unwrap_or_default()).autoreleased()
}

extern "C" fn appending_component(this: Id, _: Sel, more: Id) -> Id {
    let Some(more_text) = text_of(more) else {
        wrong("stringByAppendingPathComponent:", more, "NSString");
        return Id::NIL;
    };
    let text = text_of(this).unwrap_or_default().trim_end_matches('/');
    string(&format!("{text}/{}", more_text.trim_start_matches('/'))).autoreleased()
}

extern "C" fn to_data(this: Id, _: Sel, encoding: usize) -> Id {
    let text = text_of(this).filter(|_| readable(encoding));
    text.map_or(Id::NIL, |text| super::data(text.as_bytes()).autoreleased())
}

static CLASS_METHODS: &[Method] = &[method!("stringWithUTF8String:", with_utf8, 1)];

static METHODS: &[Method] = &[
    method!("init", init, 0),
    method!("initWithUTF8String:", init_utf8, 1),
    method!("initWithBytes:length:encoding:", init_bytes, 3),
    method!("UTF8String", utf8, 0),
    method!("length", length, 0),
    method!("lengthOfBytesUsingEncoding:", length_of_bytes, 1),
    method!("isEqualToString:", equal_string, 1),
    method!("lastPathComponent", last_component, 0),
    method!("stringByAppendingPathComponent:", appending_component, 1),
    method!("dataUsingEncoding:", to_data, 1),
];

pub(super) static SPECS: &[ClassSpec] =
    &[ClassSpec { name: "NSString", superclass: "NSObject", class_methods: CLASS_METHODS, methods: METHODS }];
