//! IOSurfaces: memory that processes and the engine share.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::library::{Search, functions};
use crate::memory::Region;
use crate::objc::types::{Id, SurfaceRef};
use crate::objc::{Dictionary, Item, ObjectiveC};
use crate::{SysError, memory};

functions! {
    /// Types: the headers IOSurfaceRef.h and CFBase.h.
    struct SurfaceFunctions {
        create: "IOSurfaceCreate" (properties: Id) -> SurfaceRef;
        lock: "IOSurfaceLock" (surface: SurfaceRef, options: u32, seed: *mut u32) -> i32;
        unlock: "IOSurfaceUnlock" (surface: SurfaceRef, options: u32, seed: *mut u32) -> i32;
        base: "IOSurfaceGetBaseAddress" (surface: SurfaceRef) -> *mut c_void;
        size: "IOSurfaceGetAllocSize" (surface: SurfaceRef) -> usize;
        identifier: "IOSurfaceGetID" (surface: SurfaceRef) -> u32;
        release: "CFRelease" (object: SurfaceRef);
    }
}

/// `kIOSurfaceLockReadOnly`.
const READ_ONLY: u32 = 1;

/// The functions of IOSurface.
pub struct Surfaces {
    functions: SurfaceFunctions,
    runtime: Arc<ObjectiveC>,
}

impl std::fmt::Debug for Surfaces {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("IOSurface")
    }
}

impl Surfaces {
    pub(crate) fn load(runtime: &Arc<ObjectiveC>, search: &mut Search<'_>) -> Option<Self> {
        Some(Self { functions: SurfaceFunctions::load(search)?, runtime: runtime.clone() })
    }
}

/// A surface. Clones are the same one; it goes when the last handle, wrapper or view of its memory goes.
#[derive(Clone)]
pub struct Surface {
    owned: Arc<Owned>,
    memory: memory::Buffer,
}

struct Owned {
    raw: SurfaceRef,
    surfaces: Arc<Surfaces>,
}

// SAFETY: surfaces are counted atomically and belong to no thread.
unsafe impl Send for Owned {}
// SAFETY: as above; locking is what a surface offers to any thread.
unsafe impl Sync for Owned {}

impl Owned {
    fn lock(&self, options: u32) -> Result<(), SysError> {
        let lock = self.surfaces.functions.lock;
        // SAFETY: the surface lives; no seed is asked for.
        let code = unsafe { (lock.call)(self.raw, options, std::ptr::null_mut()) };
        if code == 0 { Ok(()) } else { Err(SysError::Code { function: lock.name, code: i64::from(code) }) }
    }

    fn unlock(&self, options: u32) {
        // SAFETY: the surface lives and is locked with these options. A refusal leaves nothing to do.
        unsafe { (self.surfaces.functions.unlock.call)(self.raw, options, std::ptr::null_mut()) };
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the reference that `IOSurfaceCreate` gave is given back once.
        unsafe { (self.surfaces.functions.release.call)(self.raw) }
    }
}

impl Region for Arc<Owned> {
    fn begin(&self, read_only: bool) -> Result<(), SysError> {
        self.lock(if read_only { READ_ONLY } else { 0 })
    }

    fn end(&self, read_only: bool) {
        self.unlock(if read_only { READ_ONLY } else { 0 });
    }
}

impl Surface {
    /// A surface of `bytes` bytes: one row, one byte per element, as all public users of the engine make them. Its bytes are
    /// zero.
    ///
    /// # Errors
    /// [`SysError::Nothing`] where the system makes none of this size.
    pub fn new(surfaces: &Arc<Surfaces>, bytes: usize) -> Result<Self, SysError> {
        let functions = &surfaces.functions;
        let number = i64::try_from(bytes).map_err(|_| SysError::Memory { size: bytes })?;
        let properties = Dictionary::new(
            &surfaces.runtime,
            &[
                ("IOSurfaceWidth", Item::Integer(number)),
                ("IOSurfaceHeight", Item::Integer(1)),
                ("IOSurfaceBytesPerElement", Item::Integer(1)),
                ("IOSurfaceBytesPerRow", Item::Integer(number)),
                ("IOSurfaceAllocSize", Item::Integer(number)),
                ("IOSurfacePixelFormat", Item::Integer(0)),
            ],
        )?;
        // SAFETY: the properties are a dictionary that lives during the call; dictionaries of both frameworks are one kind.
        let raw = surfaces.runtime.with_pool(|| unsafe { (functions.create.call)(properties.0.id()) });
        if raw.0.is_null() {
            return Err(SysError::Nothing { call: functions.create.name });
        }
        let owned = Arc::new(Owned { raw, surfaces: surfaces.clone() });
        // SAFETY: the surface lives.
        let (address, size) = unsafe { ((functions.base.call)(raw), (functions.size.call)(raw)) };
        let address = NonNull::new(address.cast::<u8>()).ok_or(SysError::Nothing { call: functions.base.name })?;
        if size < bytes {
            let found = format!("{size} bytes");
            return Err(SysError::Value { what: "the size of a surface", expected: "what was asked for", found });
        }
        // SAFETY: a surface's memory is mapped at one address as long as the surface lives, which the region delays, has at least
        // `bytes` bytes, and is zero or old pixels, initialised in any case.
        let memory = unsafe { memory::Buffer::of_region(address, bytes, Box::new(owned.clone())) };
        memory.clear()?;
        Ok(Self { owned, memory })
    }

    /// The surface's memory. Reads and writes lock the surface for as long as they last.
    pub fn memory(&self) -> &memory::Buffer {
        &self.memory
    }

    /// Size as asked for, in bytes.
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.memory.is_empty()
    }

    /// The surface's number, the same in every process.
    pub fn identifier(&self) -> u32 {
        // SAFETY: the surface lives.
        unsafe { (self.owned.surfaces.functions.identifier.call)(self.owned.raw) }
    }

    pub(crate) fn raw(&self) -> SurfaceRef {
        self.owned.raw
    }
}
