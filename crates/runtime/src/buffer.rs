//! Memory that ports are bound to: it keeps its place, and programs can share it.

use crate::DeviceError;
use crate::plan::Buffer as Lines;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A shared handle on memory with an address that stays. Clones are the same memory; it lives as long as any of them.
///
/// It holds little-endian elements in row-major order from its first byte on and may be longer than the port's bytes.
#[derive(Clone)]
pub struct Buffer(Arc<dyn Memory>);

/// What a [`Buffer`] stands on: host memory, or the memory of a device's port.
pub(crate) trait Memory: Send + Sync {
    fn as_ptr(&self) -> *mut u8;
    fn len(&self) -> usize;
    /// Copies bytes out; the range was checked.
    fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), DeviceError>;
    /// Copies bytes in; the range was checked.
    fn write(&self, offset: usize, from: &[u8]) -> Result<(), DeviceError>;
}

impl Buffer {
    /// Zeros in the host's memory, on a boundary of 64 bytes.
    ///
    /// # Errors
    /// [`DeviceError::Memory`] where the system refuses.
    pub fn host(length: usize) -> Result<Self, DeviceError> {
        let lines = Lines::zeroed(length)?;
        Ok(Self::on(Arc::new(Host { lines: Mutex::new(lines), length })))
    }

    pub(crate) fn on(memory: Arc<dyn Memory>) -> Self {
        Self(memory)
    }

    /// Its first byte. The address is valid as long as a handle lives; who reads or writes through it while a program executes on the
    /// buffer sees torn values, so callers wait for `execute` to return.
    pub fn as_ptr(&self) -> *mut u8 {
        self.0.as_ptr()
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies bytes out of it, from `offset` on.
    ///
    /// # Errors
    /// [`DeviceError::BufferRange`] where the range does not lie inside.
    pub fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), DeviceError> {
        self.check(offset, into.len())?;
        self.0.read(offset, into)
    }

    /// Copies bytes into it, from `offset` on.
    ///
    /// # Errors
    /// As [`Self::read`]; nothing is changed then.
    pub fn write(&self, offset: usize, from: &[u8]) -> Result<(), DeviceError> {
        self.check(offset, from.len())?;
        self.0.write(offset, from)
    }

    /// Whether both are the same memory.
    pub fn is_same(&self, other: &Self) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.0), Arc::as_ptr(&other.0))
    }

    fn check(&self, offset: usize, bytes: usize) -> Result<(), DeviceError> {
        let length = self.len();
        match offset.checked_add(bytes) {
            Some(end) if end <= length => Ok(()),
            _ => Err(DeviceError::BufferRange { offset, bytes, length }),
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({:p}, {} bytes)", self.as_ptr(), self.len())
    }
}

/// Memory of the host.
struct Host {
    lines: Mutex<Lines>,
    length: usize,
}

impl Host {
    fn with<R>(&self, work: impl FnOnce(&mut [u8]) -> R) -> R {
        // Bytes have no state that a panic could leave broken.
        work(self.lines.lock().unwrap_or_else(PoisonError::into_inner).bytes_mut())
    }
}

impl Memory for Host {
    fn as_ptr(&self) -> *mut u8 {
        self.with(<[u8]>::as_mut_ptr)
    }

    fn len(&self) -> usize {
        self.length
    }

    fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), DeviceError> {
        self.with(|bytes| into.copy_from_slice(&bytes[offset..offset + into.len()]));
        Ok(())
    }

    fn write(&self, offset: usize, from: &[u8]) -> Result<(), DeviceError> {
        self.with(|bytes| bytes[offset..offset + from.len()].copy_from_slice(from));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_buffer_keeps_its_place_and_its_clones_are_the_same_memory() {
        let buffer = Buffer::host(100).unwrap();
        let place = buffer.as_ptr();
        assert_eq!(place as usize % 64, 0);
        let clone = buffer.clone();
        clone.write(98, &[1, 2]).unwrap();
        let mut read = [9; 3];
        buffer.read(97, &mut read).unwrap();
        assert_eq!((read, buffer.as_ptr(), buffer.is_same(&clone)), ([0, 1, 2], place, true));
        assert!(!buffer.is_same(&Buffer::host(100).unwrap()));
    }

    #[test]
    fn a_range_outside_is_refused_and_changes_nothing() {
        let buffer = Buffer::host(4).unwrap();
        for offset in [1, 5, usize::MAX] {
            let error = buffer.write(offset, &[7; 4]).unwrap_err();
            assert!(matches!(error, DeviceError::BufferRange { length: 4, .. }), "{error}");
        }
        let mut read = [1; 4];
        buffer.read(0, &mut read).unwrap();
        assert_eq!(read, [0; 4]);
        assert!(Buffer::host(0).unwrap().is_empty());
    }
}
