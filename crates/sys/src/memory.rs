//! Memory that is shared with an engine: a stable address, and copies that never race.
//!
//! One type serves every device. On a host it owns aligned memory; with an engine it is the memory of a framework's buffer or
//! surface, kept alive by this handle. Each buffer carries a lock. Copies take it, and so does an execution for as long as the
//! engine may touch the bytes, so safe code can't see half-written data. The lock is taken without allocating.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::Arc;

use parking_lot::lock_api::RawRwLock as _;

use crate::SysError;

/// Alignment of every buffer that is made here, in bytes: a cache line, and what the engine's runtime rounds sizes up to.
pub const ALIGNMENT: usize = 64;

/// Keeps a region alive, and tells its owner when the host touches it.
pub(crate) trait Region: Send + Sync {
    /// Called before the host reads or writes.
    fn begin(&self, read_only: bool) -> Result<(), SysError> {
        let _ = read_only;
        Ok(())
    }
    /// Called after the host has read or written.
    fn end(&self, read_only: bool) {
        let _ = read_only;
    }
}

/// A shared handle on memory with a stable address. Clones are the same memory.
#[derive(Clone)]
pub struct Buffer(Arc<Memory>);

struct Memory {
    address: NonNull<u8>,
    length: usize,
    lock: parking_lot::RawRwLock,
    region: Box<dyn Region>,
}

// SAFETY: the address is memory that `region` owns and keeps at this place until it is dropped; every access to the bytes from
// this crate holds `lock`, and `region` itself is Send and Sync by its trait.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Buffer").field("address", &self.0.address).field("length", &self.0.length).finish()
    }
}

impl Buffer {
    /// New host memory of `length` bytes, all zero, aligned to [`ALIGNMENT`]. Its size in memory is rounded up to a whole
    /// number of aligned blocks, at least one, so a pointer to it is never dangling.
    ///
    /// # Errors
    /// [`SysError::Memory`] where the system has none left.
    pub fn host(length: usize) -> Result<Self, SysError> {
        let refuse = || SysError::Memory { size: length };
        let rounded = length.max(1).checked_next_multiple_of(ALIGNMENT).ok_or_else(refuse)?;
        let layout = Layout::from_size_align(rounded, ALIGNMENT).map_err(|_| refuse())?;
        // SAFETY: the layout's size is not zero.
        let address = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) }).ok_or_else(refuse)?;
        // SAFETY: `HostRegion` owns the allocation, which is at least `length` bytes and stays where it is until it is dropped.
        Ok(unsafe { Self::of_region(address, length, Box::new(HostRegion { address, layout })) })
    }

    /// A buffer on memory that `region` owns.
    ///
    /// # Safety
    /// `address` must be good for reads and writes of `length` initialised bytes, at that place, until `region` is dropped; and
    /// nothing but the engine, under [`Held`], may write there while the buffer lives.
    pub(crate) unsafe fn of_region(address: NonNull<u8>, length: usize, region: Box<dyn Region>) -> Self {
        Self(Arc::new(Memory { address, length, lock: parking_lot::RawRwLock::INIT, region }))
    }

    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.0.length
    }

    /// Whether the buffer has no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.length == 0
    }

    /// The first byte's address; it stays the same as long as any handle lives. Reading or writing through it is the caller's
    /// own risk: it must not happen while an execution that uses the buffer runs.
    pub fn as_ptr(&self) -> *mut u8 {
        self.0.address.as_ptr()
    }

    /// Whether two handles are the same memory.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Copies bytes out of the buffer, from `offset` on. Waits while an execution uses the buffer.
    ///
    /// # Errors
    /// [`SysError::Range`] where the buffer ends before `target` is full; the system's refusal to lock a surface.
    pub fn read(&self, offset: usize, target: &mut [u8]) -> Result<(), SysError> {
        let range = self.range(offset, target.len())?;
        self.with(|bytes| target.copy_from_slice(&bytes[range]))
    }

    /// Copies bytes into the buffer, from `offset` on. Waits while an execution uses the buffer.
    ///
    /// # Errors
    /// As [`Buffer::read`].
    pub fn write(&self, offset: usize, source: &[u8]) -> Result<(), SysError> {
        let range = self.range(offset, source.len())?;
        self.with_mut(|bytes| bytes[range].copy_from_slice(source))
    }

    /// Sets every byte to zero.
    ///
    /// # Errors
    /// The system's refusal to lock a surface.
    pub fn clear(&self) -> Result<(), SysError> {
        self.with_mut(|bytes| bytes.fill(0))
    }

    /// Lends the bytes for reading. The closure must not touch the same buffer through another handle for writing, nor execute
    /// a program that uses it: that would wait for itself.
    ///
    /// # Errors
    /// The system's refusal to lock a surface.
    pub fn with<T>(&self, work: impl FnOnce(&[u8]) -> T) -> Result<T, SysError> {
        let memory = &*self.0;
        memory.lock.lock_shared();
        let _unlock = Unlock { memory, read_only: true, begun: false }.begin()?;
        // SAFETY: the region keeps `length` initialised bytes at this address while `memory` lives, and the shared lock keeps
        // every writer out until `_unlock` is dropped, which is after `work` has returned.
        let bytes = unsafe { std::slice::from_raw_parts(memory.address.as_ptr(), memory.length) };
        Ok(work(bytes))
    }

    /// Lends the bytes for writing. The closure must not touch the same buffer through another handle, nor execute a program
    /// that uses it: that would wait for itself.
    ///
    /// # Errors
    /// The system's refusal to lock a surface.
    pub fn with_mut<T>(&self, work: impl FnOnce(&mut [u8]) -> T) -> Result<T, SysError> {
        let memory = &*self.0;
        memory.lock.lock_exclusive();
        let _unlock = Unlock { memory, read_only: false, begun: false }.begin()?;
        // SAFETY: as in `with`, and the exclusive lock keeps every other reader and writer out.
        let bytes = unsafe { std::slice::from_raw_parts_mut(memory.address.as_ptr(), memory.length) };
        Ok(work(bytes))
    }

    fn range(&self, offset: usize, length: usize) -> Result<std::ops::Range<usize>, SysError> {
        let size = self.0.length;
        match offset.checked_add(length) {
            Some(end) if end <= size => Ok(offset..end),
            _ => Err(SysError::Range { offset, length, size }),
        }
    }
}

/// Gives the lock back, and tells the region, however the work ends.
struct Unlock<'a> {
    memory: &'a Memory,
    read_only: bool,
    begun: bool,
}

impl Unlock<'_> {
    fn begin(mut self) -> Result<Self, SysError> {
        self.memory.region.begin(self.read_only)?;
        self.begun = true;
        Ok(self)
    }
}

impl Drop for Unlock<'_> {
    fn drop(&mut self) {
        if self.begun {
            self.memory.region.end(self.read_only);
        }
        // SAFETY: this value is made right after the lock was taken in the way that is given back here.
        unsafe { if self.read_only { self.memory.lock.unlock_shared() } else { self.memory.lock.unlock_exclusive() } }
    }
}

/// The buffers that one program touches, in the order in which they are locked. Making it allocates, locking does not.
#[derive(Default)]
pub(crate) struct Held {
    /// Distinct buffers by address: one order for all programs, so two programs never wait for each other.
    buffers: Vec<Buffer>,
    locked: bool,
}

impl Held {
    pub(crate) fn new(buffers: impl IntoIterator<Item = Buffer>) -> Self {
        let mut buffers: Vec<Buffer> = buffers.into_iter().collect();
        buffers.sort_by_key(|buffer| Arc::as_ptr(&buffer.0).cast::<u8>() as usize);
        buffers.dedup_by(|one, other| one.same(other));
        Self { buffers, locked: false }
    }

    /// Waits until no copy uses the buffers and keeps copies out.
    pub(crate) fn lock(&mut self) {
        if !self.locked {
            self.buffers.iter().for_each(|buffer| buffer.0.lock.lock_exclusive());
            self.locked = true;
        }
    }

    /// Lets copies in again.
    pub(crate) fn unlock(&mut self) {
        if self.locked {
            self.locked = false;
            for buffer in &self.buffers {
                // SAFETY: `locked` says that `lock` has taken this lock exclusively and nobody has given it back since.
                unsafe { buffer.0.lock.unlock_exclusive() }
            }
        }
    }

    /// Runs `work` while no copy can touch the buffers.
    pub(crate) fn during<T>(&mut self, work: impl FnOnce() -> T) -> T {
        struct Release<'a>(&'a mut Held);
        impl Drop for Release<'_> {
            fn drop(&mut self) {
                self.0.unlock();
            }
        }
        self.lock();
        let _release = Release(self);
        work()
    }
}

/// Host memory from Rust's allocator.
struct HostRegion {
    address: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns the allocation and does nothing but free it.
unsafe impl Send for HostRegion {}
// SAFETY: as above.
unsafe impl Sync for HostRegion {}

impl Region for HostRegion {}

impl Drop for HostRegion {
    fn drop(&mut self) {
        // SAFETY: allocated with exactly this layout, freed once.
        unsafe { std::alloc::dealloc(self.address.as_ptr(), self.layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_buffer_is_zero_aligned_and_copies_within_its_bounds() {
        let buffer = Buffer::host(100).unwrap();
        assert_eq!(buffer.as_ptr() as usize % ALIGNMENT, 0);
        assert!(buffer.with(|bytes| bytes.iter().all(|byte| *byte == 0)).unwrap());
        buffer.write(97, &[1, 2, 3]).unwrap();
        let mut read = [9; 4];
        buffer.clone().read(96, &mut read).unwrap();
        assert_eq!(read, [0, 1, 2, 3]);
        assert_eq!(buffer.write(98, &[0; 3]), Err(SysError::Range { offset: 98, length: 3, size: 100 }));
        assert_eq!(buffer.read(usize::MAX, &mut read), Err(SysError::Range { offset: usize::MAX, length: 4, size: 100 }));
        assert_eq!(buffer.read(100, &mut []), Ok(()));
    }

    #[test]
    fn an_empty_buffer_has_an_address_and_an_impossible_one_is_refused() {
        let empty = Buffer::host(0).unwrap();
        assert!(empty.is_empty() && !empty.as_ptr().is_null());
        assert_eq!(Buffer::host(usize::MAX).unwrap_err(), SysError::Memory { size: usize::MAX });
        assert_eq!(Buffer::host(isize::MAX as usize - 10).unwrap_err(), SysError::Memory { size: isize::MAX as usize - 10 });
    }

    #[test]
    fn a_panic_inside_of_a_loan_gives_the_lock_back() {
        let buffer = Buffer::host(8).unwrap();
        let other = buffer.clone();
        assert!(std::thread::spawn(move || other.with_mut(|_| panic!("on purpose"))).join().is_err());
        assert_eq!(buffer.write(0, &[1]), Ok(()));
    }

    #[test]
    fn held_buffers_keep_copies_out_and_name_each_buffer_once() {
        let (one, two) = (Buffer::host(8).unwrap(), Buffer::host(8).unwrap());
        let mut held = Held::new([one.clone(), two.clone(), one.clone()]);
        assert_eq!(held.buffers.len(), 2);
        held.during(|| {
            assert!(!one.0.lock.try_lock_shared());
            assert!(!two.0.lock.try_lock_shared());
        });
        assert_eq!(one.write(0, &[1]), Ok(()));
    }

    #[test]
    fn writers_and_readers_of_one_buffer_never_see_half_of_a_write() {
        let buffer = Buffer::host(4096).unwrap();
        std::thread::scope(|scope| {
            for value in 1..4u8 {
                let buffer = buffer.clone();
                scope.spawn(move || (0..200).for_each(|_| buffer.write(0, &[value; 4096]).unwrap()));
            }
            for _ in 0..200 {
                assert!(buffer.with(|bytes| bytes.iter().all(|byte| *byte == bytes[0])).unwrap());
            }
        });
    }
}
