//! IOSurface: memory with a stable address that is locked while the host touches it.
//!
//! Functions and property keys are those of Apple's public header `IOSurface/IOSurfaceRef.h`.

use crate::counters::{COUNTERS, count, violation};
use crate::foundation::{entries, number_of, text_of};
use crate::objc::{ClassSpec, Id, Strong, SurfaceRef};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::{c_int, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Surfaces start at a page.
const PAGE: usize = 16_384;

/// Largest allocation that is tried, in bytes.
const LARGEST: usize = 1 << 36;

/// Body of a surface.
pub struct Surface {
    start: *mut u8,
    layout: Layout,
    /// `IOSurfaceAllocSize`, or height times row.
    bytes: usize,
    width: usize,
    height: usize,
    element: usize,
    row: usize,
    format: u32,
    id: u32,
    locks: Mutex<Locks>,
}

#[derive(Default)]
struct Locks {
    readers: usize,
    writers: usize,
}

// SAFETY: the address is of memory that the surface owns; whoever touches it holds a lock of the surface.
unsafe impl Send for Surface {}
// SAFETY: as above.
unsafe impl Sync for Surface {}

impl Surface {
    /// First byte.
    pub fn start(&self) -> *mut u8 {
        self.start
    }

    /// Bytes that were asked for.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Surface {
    fn drop(&mut self) {
        let locks = self.locks.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        if locks.readers + locks.writers > 0 {
            violation(format!("a surface of {} bytes was freed while it was locked", self.bytes));
        }
        // SAFETY: allocated with this layout in `IOSurfaceCreate`.
        unsafe { dealloc(self.start, self.layout) };
    }
}

/// The body of a surface.
pub fn surface_of(id: Id) -> Option<&'static Surface> {
    id.body::<Surface>()
}

/// The only class of this part.
pub fn specs() -> impl Iterator<Item = &'static ClassSpec> {
    static SPECS: [ClassSpec; 1] = [ClassSpec { name: "IOSurface", superclass: "NSObject", class_methods: &[], methods: &[] }];
    SPECS.iter()
}

fn property(found: &[(Strong, Strong)], name: &str) -> Option<usize> {
    let entry = found.iter().find(|entry| text_of(entry.0.id()) == Some(name))?;
    let number = number_of(entry.1.id());
    if number.is_none() {
        violation(format!("IOSurfaceCreate: {name} is no number"));
    }
    usize::try_from(number?.signed()).ok()
}

/// A surface with the properties of a dictionary: width, height, bytes per element and row, allocation size, pixel format.
/// Null where one is wrong or they contradict each other.
#[unsafe(no_mangle)]
pub extern "C" fn IOSurfaceCreate(properties: Id) -> SurfaceRef {
    create(properties).map_or(SurfaceRef(std::ptr::null()), |made| SurfaceRef(made.into_id().address()))
}

fn create(properties: Id) -> Option<Strong> {
    let Some(found) = entries(properties) else {
        violation("IOSurfaceCreate without a dictionary".to_string());
        return None;
    };
    for (key, _) in &found {
        let known =
            ["Width", "Height", "BytesPerElement", "BytesPerRow", "AllocSize", "PixelFormat", "IsGlobal", "Name", "CacheMode"];
        let name = text_of(key.id()).unwrap_or("a key that is no string");
        if !name.strip_prefix("IOSurface").is_some_and(|name| known.contains(&name)) {
            violation(format!("IOSurfaceCreate: unknown property {name:?}"));
        }
    }
    let width = property(&found, "IOSurfaceWidth")?;
    let height = property(&found, "IOSurfaceHeight")?;
    let element = property(&found, "IOSurfaceBytesPerElement").unwrap_or(1);
    let row = property(&found, "IOSurfaceBytesPerRow").unwrap_or(width.checked_mul(element)?);
    let least = row.checked_mul(height)?;
    let bytes = property(&found, "IOSurfaceAllocSize").unwrap_or(least);
    let format = u32::try_from(property(&found, "IOSurfacePixelFormat").unwrap_or(0)).ok()?;
    if width == 0 || height == 0 || element == 0 || row < width.checked_mul(element)? || bytes < least || bytes > LARGEST {
        return None;
    }
    let layout = Layout::from_size_align(bytes.next_multiple_of(PAGE), PAGE).ok()?;
    // SAFETY: the size is not zero.
    let start = unsafe { alloc_zeroed(layout) };
    if start.is_null() {
        return None;
    }
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let id = NEXT.fetch_add(1, Relaxed);
    let locks = Mutex::default();
    Some(Id::make("IOSurface", Surface { start, layout, bytes, width, height, element, row, format, id, locks }))
}

fn of(surface: SurfaceRef, what: &str) -> Option<&'static Surface> {
    let found = surface_of(Id::from_address(surface.0));
    if found.is_none() {
        violation(format!("{what} of something that is no living surface"));
    }
    found
}

/// Option bit of a lock that does not write: `kIOSurfaceLockReadOnly`.
const READ_ONLY: u32 = 1;

/// `kIOReturnBadArgument`.
const BAD_ARGUMENT: c_int = 0xe000_02c2_u32.cast_signed();

/// Locks a surface for the host; 0 if it went well.
///
/// # Safety
/// `seed` is null or good for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn IOSurfaceLock(surface: SurfaceRef, options: u32, seed: *mut u32) -> c_int {
    let Some(surface) = of(surface, "IOSurfaceLock") else { return BAD_ARGUMENT };
    count(&COUNTERS.surface_locks);
    let mut locks = surface.locks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if options & READ_ONLY == 0 {
        locks.writers += 1
    } else {
        locks.readers += 1
    }
    if !seed.is_null() {
        // SAFETY: the caller's promise.
        unsafe { *seed = 0 };
    }
    0
}

/// Takes a lock back; its options are those of the lock.
///
/// # Safety
/// As [`IOSurfaceLock`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn IOSurfaceUnlock(surface: SurfaceRef, options: u32, seed: *mut u32) -> c_int {
    let Some(surface) = of(surface, "IOSurfaceUnlock") else { return BAD_ARGUMENT };
    count(&COUNTERS.surface_unlocks);
    let mut locks = surface.locks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let held = if options & READ_ONLY == 0 { &mut locks.writers } else { &mut locks.readers };
    if *held == 0 {
        violation(format!("IOSurfaceUnlock with options {options} of a surface that is not locked so"));
        return BAD_ARGUMENT;
    }
    *held -= 1;
    if !seed.is_null() {
        // SAFETY: the caller's promise.
        unsafe { *seed = 0 };
    }
    0
}

/// First byte. It stays where it is, but its content is the host's only between a lock and its unlock.
#[unsafe(no_mangle)]
pub extern "C" fn IOSurfaceGetBaseAddress(surface: SurfaceRef) -> *mut c_void {
    of(surface, "IOSurfaceGetBaseAddress").map_or(std::ptr::null_mut(), |surface| surface.start.cast())
}

macro_rules! sizes {
    ($($name:ident $field:ident;)*) => {
        $(
            /// A property of a surface.
            #[unsafe(no_mangle)]
            pub extern "C" fn $name(surface: SurfaceRef) -> usize {
                of(surface, stringify!($name)).map_or(0, |surface| surface.$field)
            }
        )*
    };
}

sizes! {
    IOSurfaceGetAllocSize bytes;
    IOSurfaceGetWidth width;
    IOSurfaceGetHeight height;
    IOSurfaceGetBytesPerElement element;
    IOSurfaceGetBytesPerRow row;
}

/// The pixel format.
#[unsafe(no_mangle)]
pub extern "C" fn IOSurfaceGetPixelFormat(surface: SurfaceRef) -> u32 {
    of(surface, "IOSurfaceGetPixelFormat").map_or(0, |surface| surface.format)
}

/// The number by which the system knows it.
#[unsafe(no_mangle)]
pub extern "C" fn IOSurfaceGetID(surface: SurfaceRef) -> u32 {
    of(surface, "IOSurfaceGetID").map_or(0, |surface| surface.id)
}

/// Whether anybody uses it besides the caller: never here.
#[unsafe(no_mangle)]
pub extern "C" fn IOSurfaceIsInUse(surface: SurfaceRef) -> bool {
    let _ = of(surface, "IOSurfaceIsInUse");
    false
}

/// Holds that no host lock is open while the engine works on a surface.
pub fn engine_touches(surface: &Surface, writes: bool) {
    let locks = surface.locks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if locks.writers > 0 || (writes && locks.readers > 0) {
        violation("a request was evaluated while the host held a lock of one of its surfaces".to_string());
    }
}
