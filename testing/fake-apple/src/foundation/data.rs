//! Bytes.

use crate::objc::{BlockRef, ClassSpec, Id, KeptBlock, Method, Sel, Strong, call_deallocator, method};
use std::ffi::c_void;
use std::ptr::null;

/// Body of a data object.
enum Data {
    Own(Vec<u8>),
    /// Memory of the sender, who keeps it as long as the object lives.
    Other {
        start: usize,
        length: usize,
        end: Option<KeptBlock>,
    },
}

impl Drop for Data {
    fn drop(&mut self) {
        if let Self::Other { start, length, end: Some(end) } = self {
            call_deallocator(end, *start, *length);
        }
    }
}

impl Data {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Other { length: 0, .. } => &[],
            // SAFETY: the sender of `dataWithBytesNoCopy:` keeps the memory as long as the object.
            Self::Other { start, length, .. } => unsafe {
                std::slice::from_raw_parts(std::ptr::with_exposed_provenance(*start), *length)
            },
        }
    }
}

/// Bytes as an object.
pub fn data(bytes: &[u8]) -> Strong {
    Id::make("NSData", Data::Own(bytes.to_vec()))
}

/// The bytes of a data object; anything else has none.
pub fn bytes_of(id: Id) -> Option<&'static [u8]> {
    id.body::<Data>().map(Data::bytes)
}

/// # Safety
/// `bytes` is good for `length` bytes.
unsafe fn copied(bytes: *const c_void, length: usize) -> Data {
    if bytes.is_null() || length == 0 {
        return Data::Own(Vec::new());
    }
    // SAFETY: the caller's promise.
    Data::Own(unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), length) }.to_vec())
}

extern "C" fn with_nothing(_: Id, _: Sel) -> Id {
    data(&[]).autoreleased()
}

extern "C" fn with_bytes(_: Id, _: Sel, bytes: *const c_void, length: usize) -> Id {
    // SAFETY: the method takes this many bytes.
    Id::make("NSData", unsafe { copied(bytes, length) }).autoreleased()
}

extern "C" fn init(this: Id, _: Sel) -> Id {
    this.fill(Data::Own(Vec::new()));
    this
}

extern "C" fn init_bytes(this: Id, _: Sel, bytes: *const c_void, length: usize) -> Id {
    // SAFETY: the method takes this many bytes.
    this.fill(unsafe { copied(bytes, length) });
    this
}

fn borrowed(bytes: *mut c_void, length: usize, free: bool) -> Data {
    if free {
        // The sender gives the memory away; it is `malloc`'s, so it is copied and left to it here.
        crate::counters::violation("dataWithBytesNoCopy: with freeWhenDone is not supported".to_string());
    }
    Data::Other { start: bytes.expose_provenance(), length: if bytes.is_null() { 0 } else { length }, end: None }
}

extern "C" fn no_copy(_: Id, _: Sel, bytes: *mut c_void, length: usize, free: bool) -> Id {
    Id::make("NSData", borrowed(bytes, length, free)).autoreleased()
}

extern "C" fn init_no_copy(this: Id, _: Sel, bytes: *mut c_void, length: usize, free: bool) -> Id {
    this.fill(borrowed(bytes, length, free));
    this
}

extern "C" fn init_deallocator(this: Id, _: Sel, bytes: *mut c_void, length: usize, end: BlockRef) -> Id {
    let start = bytes.expose_provenance();
    this.fill(Data::Other { start, length: if bytes.is_null() { 0 } else { length }, end: KeptBlock::copy(end) });
    this
}

extern "C" fn bytes(this: Id, _: Sel) -> *const c_void {
    bytes_of(this).map_or(null(), |bytes| bytes.as_ptr().cast())
}

extern "C" fn length(this: Id, _: Sel) -> usize {
    bytes_of(this).map_or(0, <[u8]>::len)
}

static CLASS_METHODS: &[Method] = &[
    method!("data", with_nothing, 0),
    method!("dataWithBytes:length:", with_bytes, 2),
    method!("dataWithBytesNoCopy:length:freeWhenDone:", no_copy, 3),
];

static METHODS: &[Method] = &[
    method!("init", init, 0),
    method!("initWithBytes:length:", init_bytes, 2),
    method!("initWithBytesNoCopy:length:freeWhenDone:", init_no_copy, 3),
    method!("initWithBytesNoCopy:length:deallocator:", init_deallocator, 3),
    method!("bytes", bytes, 0),
    method!("length", length, 0),
];

pub(super) static SPECS: &[ClassSpec] = &[
    ClassSpec { name: "NSData", superclass: "NSObject", class_methods: CLASS_METHODS, methods: METHODS },
    ClassSpec { name: "NSMutableData", superclass: "NSData", class_methods: &[], methods: &[] },
];
