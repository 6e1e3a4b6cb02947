//! Where elements lie in the memory of a network's port: planes and rows may be longer than what they hold.

use aneforge_sys::objc::Value;

/// Extents and strides in bytes: batch, channel, depth, height, width. The logical order of a port's elements is batch, channel, depth,
/// height, width (PyPI package aneforge 0.4.0).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Strided {
    extents: [usize; 5],
    strides: [usize; 4],
    width: usize,
    bytes: usize,
}

impl Strided {
    /// The layout of an entry of a live list whose elements have `width` bytes; `None` where it does not hold `count` of them.
    pub(crate) fn read(entry: &Value, width: usize, count: usize) -> Option<Self> {
        let number = |key: &str| entry.get(key).and_then(Value::integer).and_then(|value| usize::try_from(value).ok());
        let extent = |key: &str| number(key).map_or(1, |extent| extent.max(1));
        let extents = [extent("Batches"), extent("Channels"), extent("Depth"), extent("Height"), extent("Width")];
        let elements = extents.iter().try_fold(1usize, |all, &extent| all.checked_mul(extent))?;
        // What is not stated follows from what lies inside of it.
        let row = number("RowStride").unwrap_or(extents[4] * width);
        let plane = number("PlaneStride").unwrap_or(row.checked_mul(extents[3])?);
        let depth = number("DepthStride").unwrap_or(plane);
        let batch = number("BatchStride").unwrap_or(plane.checked_mul(extents[1])?);
        let strides = [batch, plane, depth, row];
        let last = (0..4).try_fold(extents[4].checked_mul(width)?, |end, axis| {
            end.checked_add((extents[axis] - 1).checked_mul(strides[axis])?)
        })?;
        let bytes = batch.checked_mul(extents[0])?.max(last);
        (elements == count && row >= extents[4] * width).then_some(Self { extents, strides, width, bytes })
    }

    /// Whether elements follow each other without gaps.
    pub(crate) fn is_dense(&self) -> bool {
        let [batches, channels, depths, heights, widths] = self.extents;
        let row = widths * self.width;
        let counted = [row * heights * depths * channels, row * heights * depths, row * heights, row];
        let extents = [batches, channels, depths, heights];
        (0..4).all(|axis| extents[axis] == 1 || self.strides[axis] == counted[axis])
    }

    /// Bytes that the memory needs.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Calls `row` with the place of each row in dense order and in memory.
    fn rows(&self, mut row: impl FnMut(usize, usize, usize)) {
        let [batches, channels, depths, heights, widths] = self.extents;
        let length = widths * self.width;
        let mut dense = 0;
        for batch in 0..batches {
            for channel in 0..channels {
                for depth in 0..depths {
                    for height in 0..heights {
                        let place = [batch, channel, depth, height].iter().zip(self.strides).map(|(at, stride)| at * stride).sum();
                        row(dense, place, length);
                        dense += length;
                    }
                }
            }
        }
    }

    /// Puts dense elements where they belong.
    pub(crate) fn scatter(&self, dense: &[u8], memory: &mut [u8]) {
        self.rows(|from, to, length| memory[to..to + length].copy_from_slice(&dense[from..from + length]));
    }

    /// Takes elements from where they lie.
    pub(crate) fn gather(&self, memory: &[u8], dense: &mut [u8]) {
        self.rows(|to, from, length| dense[to..to + length].copy_from_slice(&memory[from..from + length]));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn entry(values: &[(&str, i64)]) -> Value {
        Value::Dictionary(values.iter().map(|(key, value)| (key.to_string(), Value::Integer(*value))).collect())
    }

    #[test]
    fn rows_go_to_their_strides_and_come_back() {
        let stated = [
            ("Batches", 1),
            ("Channels", 2),
            ("Height", 2),
            ("Width", 3),
            ("RowStride", 64),
            ("PlaneStride", 128),
            ("BatchStride", 256),
        ];
        let layout = Strided::read(&entry(&stated), 2, 12).unwrap();
        assert!(!layout.is_dense());
        assert_eq!(layout.bytes(), 256);
        let dense: Vec<u8> = (0..24).collect();
        let mut memory = vec![0xff; 256];
        layout.scatter(&dense, &mut memory);
        // Channel 1, row 1, element 2 stands at 128 + 64 + 4.
        assert_eq!(memory[196..198], [22, 23]);
        assert_eq!(memory[6], 0xff);
        let mut back = vec![0; 24];
        layout.gather(&memory, &mut back);
        assert_eq!(back, dense);
    }

    #[test]
    fn what_is_stated_without_gaps_is_dense_and_counts_must_agree() {
        let dense = Strided::read(&entry(&[("Channels", 4), ("Height", 1), ("Width", 32), ("RowStride", 64)]), 2, 128).unwrap();
        assert!(dense.is_dense());
        assert_eq!(dense.bytes(), 256);
        assert_eq!(Strided::read(&entry(&[("Channels", 4)]), 2, 5), None);
        assert_eq!(Strided::read(&entry(&[("Width", 8), ("RowStride", 4)]), 2, 8), None);
        assert_eq!(Strided::read(&entry(&[("Width", i64::MAX), ("Channels", i64::MAX)]), 2, 8), None);
    }
}
