//! One buffer for all activations and scratch: places with lifetimes, packed once, borrowed disjointly while executing.

use crate::DeviceError;
use bytemuck::{Pod, Zeroable};
use std::ops::Range;

/// Alignment of every place, in bytes: a cache line, and a full vector of the widest instruction set.
const ALIGNMENT: usize = 64;
/// Most places that one step borrows at once.
const MOST_PLACES: usize = 16;

#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Line([u8; ALIGNMENT]);

/// Bytes that start on a cache line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffer {
    lines: Vec<Line>,
    length: usize,
}

impl Buffer {
    /// Zeros, which the system gives page by page when they are first touched; an error where it refuses.
    pub(crate) fn zeroed(length: usize) -> Result<Self, DeviceError> {
        let lines = bytemuck::allocation::try_zeroed_slice_box::<Line>(length.div_ceil(ALIGNMENT));
        Ok(Self { lines: lines.map_err(|()| DeviceError::Memory { bytes: length })?.into_vec(), length })
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, DeviceError> {
        let mut buffer = Self::zeroed(bytes.len())?;
        buffer.bytes_mut().copy_from_slice(bytes);
        Ok(buffer)
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.lines)[..self.length]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.length]
    }
}

/// A place in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Slot(pub(crate) u32);

/// Where a value is while the plan runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Spot {
    /// In the arena.
    Slot(Slot),
    /// Among the constants.
    Constant(u32),
}

impl From<Slot> for Spot {
    fn from(slot: Slot) -> Self {
        Self::Slot(slot)
    }
}

/// Size and lifetime of a place, in step numbers, both ends included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lifetime {
    pub(crate) bytes: usize,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

/// Gives every place an offset so that places that live at the same time do not overlap: largest first, each as low as it goes.
/// Returns the byte ranges and the size of the arena.
pub(crate) fn pack(places: &[Lifetime]) -> (Vec<Range<usize>>, usize) {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by_key(|&index| (std::cmp::Reverse(places[index].bytes), places[index].first));
    let mut ranges = vec![0..0; places.len()];
    let mut placed: Vec<usize> = Vec::with_capacity(places.len());
    let mut size = 0;
    for index in order {
        let place = places[index];
        let mut taken: Vec<Range<usize>> = placed
            .iter()
            .filter(|&&other| places[other].first <= place.last && place.first <= places[other].last)
            .map(|&other| ranges[other].clone())
            .collect();
        taken.sort_by_key(|range| range.start);
        let mut start = 0;
        for range in taken {
            if start + place.bytes <= range.start {
                break;
            }
            start = start.max(range.end.next_multiple_of(ALIGNMENT));
        }
        ranges[index] = start..start + place.bytes;
        size = size.max(start + place.bytes);
        if place.bytes > 0 {
            placed.push(index);
        }
    }
    (ranges, size)
}

/// What one step reads and writes.
pub(crate) type Borrowed<'a, const R: usize, const W: usize> = ([&'a [u8]; R], [&'a mut [u8]; W]);

/// The arena and the constants while a plan runs.
pub(crate) struct Memory<'a> {
    pub(crate) arena: &'a mut [u8],
    pub(crate) ranges: &'a [Range<usize>],
    pub(crate) constants: &'a [Buffer],
}

impl Memory<'_> {
    /// The bytes of one value.
    pub(crate) fn read(&self, spot: Spot) -> &[u8] {
        match spot {
            Spot::Slot(slot) => &self.arena[self.ranges[slot.0 as usize].clone()],
            Spot::Constant(index) => self.constants[index as usize].bytes(),
        }
    }

    /// The bytes of one place, to be written.
    pub(crate) fn write(&mut self, slot: Slot) -> &mut [u8] {
        &mut self.arena[self.ranges[slot.0 as usize].clone()]
    }

    /// Several values to read and several places to write, all at once. A value may be read twice; a place that is written may
    /// not be read.
    pub(crate) fn split<const R: usize, const W: usize>(
        &mut self,
        reads: [Spot; R],
        writes: [Slot; W],
    ) -> Result<Borrowed<'_, R, W>, DeviceError> {
        if R + W > MOST_PLACES {
            return Err(DeviceError::internal("memory", "a step borrows too many places"));
        }
        let mut wanted: [Range<usize>; MOST_PLACES] = std::array::from_fn(|_| 0..0);
        for (place, slot) in wanted.iter_mut().zip(writes) {
            *place = self.ranges[slot.0 as usize].clone();
        }
        // A place that is read twice is borrowed once and shared.
        let mut same: [usize; R] = std::array::from_fn(|index| index);
        for index in 0..R {
            let Spot::Slot(slot) = reads[index] else { continue };
            same[index] = (0..index).find(|&earlier| reads[earlier] == reads[index]).unwrap_or(index);
            if same[index] == index {
                wanted[W + index] = self.ranges[slot.0 as usize].clone();
            }
        }
        let parts = self
            .arena
            .get_disjoint_mut(wanted)
            .map_err(|error| DeviceError::internal("memory", format!("places of one step overlap: {error}")))?;
        let mut written: [&mut [u8]; W] = std::array::from_fn(|_| Default::default());
        let mut shared: [&[u8]; R] = [&[]; R];
        for (index, part) in parts.into_iter().enumerate() {
            if index < W {
                written[index] = part;
            } else if index < W + R {
                shared[index - W] = part;
            }
        }
        for index in 0..R {
            match reads[index] {
                Spot::Slot(_) => shared[index] = shared[same[index]],
                Spot::Constant(constant) => shared[index] = self.constants[constant as usize].bytes(),
            }
        }
        Ok((shared, written))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_live_together_do_not_overlap_and_others_share() {
        let mut state = 7u64;
        let mut next = |bound: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % bound
        };
        let places: Vec<Lifetime> = (0..200)
            .map(|_| {
                let first = next(60) as usize;
                Lifetime { bytes: next(5000) as usize, first, last: first + next(8) as usize }
            })
            .collect();
        let (ranges, size) = pack(&places);
        for a in 0..places.len() {
            assert_eq!(ranges[a].start % ALIGNMENT, 0);
            assert!(ranges[a].end <= size);
            for b in 0..a {
                let together = places[a].first <= places[b].last && places[b].first <= places[a].last;
                let overlap = ranges[a].start < ranges[b].end && ranges[b].start < ranges[a].end;
                assert!(!(together && overlap), "{a} {b}");
            }
        }
        let total: usize = places.iter().map(|place| place.bytes).sum();
        let busiest = (0..70)
            .map(|step| places.iter().filter(|p| p.first <= step && step <= p.last).map(|p| p.bytes).sum::<usize>())
            .max()
            .unwrap();
        assert!(size < total / 3 && size < 2 * busiest, "{size} of {total}, busiest step {busiest}");
    }

    #[test]
    fn a_value_can_be_read_twice_but_not_while_it_is_written() {
        let mut arena = Buffer::zeroed(256).unwrap();
        let ranges = [0..64, 64..128, 128..192];
        let constants = [Buffer::from_bytes(&[9; 4]).unwrap()];
        let mut memory = Memory { arena: arena.bytes_mut(), ranges: &ranges, constants: &constants };
        let (a, b) = (Slot(0), Slot(1));
        {
            let ([x, again, c], [y]) = memory.split([a.into(), a.into(), Spot::Constant(0)], [b]).unwrap();
            assert_eq!((x.len(), again.len(), c), (64, 64, &[9u8; 4][..]));
            y[0] = 1;
        }
        assert!(memory.split([b.into()], [b]).is_err());
    }
}
