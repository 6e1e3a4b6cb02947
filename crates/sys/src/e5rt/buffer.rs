//! Buffers of the runtime.

use std::ptr::NonNull;
use std::sync::Arc;

use super::{Object, Runtime, check};
use crate::memory::Region;
use crate::{SysError, memory};

/// Where a buffer's memory comes from. Larger numbers are refused by the runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BufferKind {
    /// Memory of this process.
    #[default]
    Host,
    /// Memory mapped for the engine; what it is good for is not published.
    Mapped,
    /// An IOSurface.
    Surface,
}

/// A buffer that ports are bound to. Clones are the same buffer; it goes when the last handle and the last binding go.
#[derive(Clone)]
pub struct Buffer {
    pub(super) object: Arc<Object>,
    memory: memory::Buffer,
}

/// The runtime's buffer as the owner of its memory.
struct Allocated {
    _object: Arc<Object>,
}

impl Region for Allocated {}

impl Buffer {
    /// Allocates `size` bytes and sets them to zero. Public users round the size up to 64 bytes.
    ///
    /// # Errors
    /// [`SysError::Code`] where the runtime has no memory left or refuses the size.
    pub fn allocate(runtime: &Arc<Runtime>, size: usize, kind: BufferKind) -> Result<Self, SysError> {
        let functions = &runtime.functions;
        let (allocate, data) = (functions.buffer_alloc, functions.buffer_data);
        let number = match kind {
            BufferKind::Host => 0,
            BufferKind::Mapped => 1,
            BufferKind::Surface => 2,
        };
        // SAFETY: one object is written through the first pointer.
        let object = Object::create(runtime, allocate.name, functions.buffer_release.call, |out| unsafe {
            (allocate.call)(out, size as u64, number)
        })?;
        let mut address = std::ptr::null_mut();
        // SAFETY: the buffer lives; one pointer is written.
        check(data.name, unsafe { (data.call)(object.raw(), &raw mut address) })?;
        let address = NonNull::new(address.cast::<u8>()).ok_or(SysError::Nothing { call: data.name })?;
        // SAFETY: the runtime has just given `size` bytes at this address, which nobody else knows; writing them makes them
        // initialised whatever the allocator left there.
        unsafe { address.as_ptr().write_bytes(0, size) };
        let object = Arc::new(object);
        // SAFETY: the runtime's buffer has `size` bytes, initialised above, at this address until it is released, which
        // `Allocated` delays; the engine writes there only while a stream that holds the buffer's lock executes.
        let memory = unsafe { memory::Buffer::of_region(address, size, Box::new(Allocated { _object: object.clone() })) };
        Ok(Self { object, memory })
    }

    /// The buffer's memory. It keeps the buffer alive.
    pub fn memory(&self) -> &memory::Buffer {
        &self.memory
    }

    /// The size as the runtime reports it, in bytes.
    ///
    /// # Errors
    /// [`SysError::Code`]; [`SysError::Lacking`] where this system lacks the question.
    pub fn reported_size(&self) -> Result<u64, SysError> {
        let get = self.object.runtime.need(self.object.functions().buffer_size, "e5rt_buffer_object_get_size")?;
        let mut size = 0;
        // SAFETY: the buffer lives; one number is written.
        check(get.name, unsafe { (get.call)(self.object.raw(), &raw mut size) })?;
        Ok(size)
    }
}
