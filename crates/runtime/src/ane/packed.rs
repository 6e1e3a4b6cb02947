//! Several tensors in one input: side by side along the last axis.
//!
//! A program whose weights change often takes them as inputs, so that nothing is compiled again; packed beside the activations in one
//! input they also work where several inputs of unequal sizes do not (maderix/ANE, its trainer with weights packed along the spatial
//! axis, M1 to M5). The program takes them apart with slices along that axis.

use crate::{Buffer, DeviceError};

/// Places of tensors `[1, channels, 1, width]` within one of the same channels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packing {
    channels: usize,
    element: usize,
    offsets: Vec<usize>,
    widths: Vec<usize>,
    total: usize,
}

/// Packed widths are multiples of this many elements (rustane keeps to it; rows of fp16 then start on 32 bytes).
const GRANULE: usize = 16;

impl Packing {
    /// Places for tensors of these widths, one behind the other, each from a multiple of 16 elements on; `element` is the size of an
    /// element in bytes.
    ///
    /// # Errors
    /// [`DeviceError::Memory`] where the packed tensor has more bytes than memory can have.
    pub fn new(channels: usize, element: usize, widths: &[usize]) -> Result<Self, DeviceError> {
        let too_large = || DeviceError::Memory { bytes: usize::MAX };
        let (mut offsets, mut total) = (Vec::with_capacity(widths.len()), 0usize);
        for &width in widths {
            offsets.push(total);
            total = width.checked_next_multiple_of(GRANULE).and_then(|width| total.checked_add(width)).ok_or_else(too_large)?;
        }
        total.checked_mul(channels).and_then(|count| count.checked_mul(element)).ok_or_else(too_large)?;
        Ok(Self { channels, element, offsets, widths: widths.to_vec(), total })
    }

    /// Shape of the packed tensor.
    pub fn shape(&self) -> [usize; 4] {
        [1, self.channels, 1, self.total]
    }

    /// Where a tensor begins along the last axis, in elements, and how wide it is; `None` where there is none of that number.
    pub fn place(&self, index: usize) -> Option<(usize, usize)> {
        Some((*self.offsets.get(index)?, *self.widths.get(index)?))
    }

    /// Writes a tensor into its place of a buffer, row by row; what stands beside it stays.
    ///
    /// # Errors
    /// [`DeviceError::PortIndex`] where there is none of that number, [`DeviceError::BufferRange`] where `values` is not the tensor's
    /// bytes or the buffer is too short.
    pub fn write(&self, buffer: &Buffer, index: usize, values: &[u8]) -> Result<(), DeviceError> {
        let count = self.widths.len();
        let (offset, width) = self.place(index).ok_or(DeviceError::PortIndex { kind: "packed tensors", index, count })?;
        let row = width * self.element;
        if values.len() != row * self.channels {
            return Err(DeviceError::BufferRange { offset: 0, bytes: row * self.channels, length: values.len() });
        }
        let place = |channel: usize| (channel * self.total + offset) * self.element;
        if self.channels > 0 && place(self.channels - 1) + row > buffer.len() {
            return Err(DeviceError::BufferRange { offset: place(self.channels - 1), bytes: row, length: buffer.len() });
        }
        buffer.with_mut(|memory| {
            for channel in 0..self.channels {
                memory[place(channel)..place(channel) + row].copy_from_slice(&values[channel * row..(channel + 1) * row]);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn tensors_stand_side_by_side_and_are_written_one_at_a_time() {
        let packing = Packing::new(2, 1, &[3, 16, 1]).unwrap();
        assert_eq!(packing.shape(), [1, 2, 1, 48]);
        assert_eq!([0, 1, 2, 3].map(|index| packing.place(index)), [Some((0, 3)), Some((16, 16)), Some((32, 1)), None]);
        let buffer = Buffer::host(96).unwrap();
        packing.write(&buffer, 0, &[1, 2, 3, 4, 5, 6]).unwrap();
        packing.write(&buffer, 2, &[7, 8]).unwrap();
        let mut bytes = [0; 96];
        buffer.read(0, &mut bytes).unwrap();
        assert_eq!((&bytes[..4], &bytes[48..52], bytes[32], bytes[80]), (&[1, 2, 3, 0][..], &[4, 5, 6, 0][..], 7, 8));
        assert_eq!(bytes.iter().filter(|&&byte| byte != 0).count(), 8);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let packing = Packing::new(2, 2, &[4]).unwrap();
        assert!(packing.write(&Buffer::host(64).unwrap(), 0, &[0; 15]).is_err());
        assert!(packing.write(&Buffer::host(39).unwrap(), 0, &[0; 16]).is_err());
        assert!(packing.write(&Buffer::host(64).unwrap(), 1, &[0; 16]).is_err());
        assert!(Packing::new(2, 2, &[usize::MAX]).is_err());
        assert!(Packing::new(usize::MAX, 2, &[8]).is_err());
    }
}
