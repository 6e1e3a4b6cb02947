//! Memory that ports are bound to: it keeps its place, and programs can share it.

use crate::DeviceError;
use aneforge_sys::surface::Surface;
use aneforge_sys::{SysError, e5rt, memory};
use std::fmt;

/// A shared handle on memory with an address that stays. Clones are the same memory; it lives as long as any of them.
///
/// It holds little-endian elements in row-major order from its first byte on and may be longer than the port's bytes.
#[derive(Clone)]
pub struct Buffer {
    memory: memory::Buffer,
    backing: Backing,
}

/// What the memory belongs to.
#[derive(Clone)]
pub(crate) enum Backing {
    /// The host alone.
    Host,
    /// A buffer of the e5rt runtime.
    E5rt(e5rt::Buffer),
    /// A surface.
    Surface(Surface),
}

impl Buffer {
    /// Zeros in the host's memory, on a boundary of 64 bytes.
    ///
    /// # Errors
    /// [`DeviceError::Memory`] where the system refuses.
    pub fn host(length: usize) -> Result<Self, DeviceError> {
        let memory = memory::Buffer::host(length).map_err(|_| DeviceError::Memory { bytes: length })?;
        Ok(Self { memory, backing: Backing::Host })
    }

    pub(crate) fn e5rt(buffer: e5rt::Buffer) -> Self {
        Self { memory: buffer.memory().clone(), backing: Backing::E5rt(buffer) }
    }

    pub(crate) fn surface(surface: Surface) -> Self {
        Self { memory: surface.memory().clone(), backing: Backing::Surface(surface) }
    }

    /// Lends all bytes for writing.
    pub(crate) fn with_mut<T>(&self, work: impl FnOnce(&mut [u8]) -> T) -> Result<T, DeviceError> {
        self.memory.with_mut(work).map_err(fault)
    }

    /// Lends all bytes for reading.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&[u8]) -> T) -> Result<T, DeviceError> {
        self.memory.with(work).map_err(fault)
    }

    pub(crate) fn backing(&self) -> &Backing {
        &self.backing
    }

    /// Its first byte. The address is valid as long as a handle lives; who reads or writes through it while a program executes on the
    /// buffer sees torn values, so callers wait for `execute` to return.
    pub fn as_ptr(&self) -> *mut u8 {
        self.memory.as_ptr()
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies bytes out of it, from `offset` on; waits while a program executes on it.
    ///
    /// # Errors
    /// [`DeviceError::BufferRange`] where the range does not lie inside.
    pub fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), DeviceError> {
        self.memory.read(offset, into).map_err(fault)
    }

    /// Copies bytes into it, from `offset` on; waits while a program executes on it.
    ///
    /// # Errors
    /// As [`Self::read`]; nothing is changed then.
    pub fn write(&self, offset: usize, from: &[u8]) -> Result<(), DeviceError> {
        self.memory.write(offset, from).map_err(fault)
    }

    /// Sets all its bytes to zero.
    ///
    /// # Errors
    /// [`DeviceError::Internal`] where the system refuses to hand out the memory.
    pub fn clear(&self) -> Result<(), DeviceError> {
        self.memory.clear().map_err(fault)
    }

    /// Whether both are the same memory.
    pub fn is_same(&self, other: &Self) -> bool {
        self.memory.same(&other.memory)
    }
}

fn fault(error: SysError) -> DeviceError {
    match error {
        SysError::Range { offset, length, size } => DeviceError::BufferRange { offset, bytes: length, length: size },
        other => DeviceError::internal("buffers", other.to_string()),
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({:p}, {} bytes)", self.as_ptr(), self.len())
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
