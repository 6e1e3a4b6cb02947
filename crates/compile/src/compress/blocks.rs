//! Which elements of a weight share a scale or a table: a grid of equal blocks.

use rayon::prelude::*;

/// A tensor cut into equal blocks along its axes.
#[derive(Clone, Debug)]
pub struct Blocks {
    shape: Vec<usize>,
    /// Blocks along each axis; divides the extent.
    pub grid: Vec<usize>,
}

impl Blocks {
    /// `grid` has one entry per axis of `shape` and divides it; `None` otherwise.
    pub fn new(shape: &[usize], grid: Vec<usize>) -> Option<Self> {
        let fits =
            shape.len() == grid.len() && shape.iter().zip(&grid).all(|(&extent, &blocks)| blocks > 0 && extent % blocks == 0);
        fits.then(|| Self { shape: shape.to_vec(), grid })
    }

    /// Number of blocks.
    pub fn count(&self) -> usize {
        self.grid.iter().product()
    }

    /// The contiguous runs of a block as (first element, length), in row-major order.
    fn runs(&self, block: usize) -> Vec<(usize, usize)> {
        let rank = self.shape.len();
        let mut starts = vec![0];
        let mut rest = block;
        let mut places = vec![0; rank];
        for axis in (0..rank).rev() {
            places[axis] = rest % self.grid[axis];
            rest /= self.grid[axis];
        }
        let mut length = 1;
        for (axis, place) in places.into_iter().enumerate() {
            let extent = self.shape[axis] / self.grid[axis];
            let first = place * extent;
            let step: usize = self.shape[axis + 1..].iter().product();
            // From here on the block holds whole axes: one run covers them.
            if self.grid[axis + 1..].iter().all(|&blocks| blocks == 1) {
                starts.iter_mut().for_each(|start| *start += first * step);
                length = extent * step;
                break;
            }
            starts = starts.iter().flat_map(|start| (first..first + extent).map(move |at| start + at * step)).collect();
        }
        starts.into_iter().map(|start| (start, length)).collect()
    }

    /// Calls `encode` with the elements of every block, on all threads, and puts the codes it returns in the elements' places.
    pub fn encode<T: Copy + Send + Sync, R: Send>(
        &self,
        elements: &[T],
        encode: impl Fn(usize, &[T], &mut [u8]) -> R + Sync,
    ) -> (Vec<u8>, Vec<R>) {
        let done: Vec<(Vec<u8>, R)> = (0..self.count())
            .into_par_iter()
            .map(|block| {
                let gathered: Vec<T> =
                    self.runs(block).into_iter().flat_map(|(start, length)| &elements[start..start + length]).copied().collect();
                let mut codes = vec![0; gathered.len()];
                let result = encode(block, &gathered, &mut codes);
                (codes, result)
            })
            .collect();
        let mut codes = vec![0; elements.len()];
        let mut results = Vec::with_capacity(done.len());
        for (block, (own, result)) in done.into_iter().enumerate() {
            let mut next = 0;
            for (start, length) in self.runs(block) {
                codes[start..start + length].copy_from_slice(&own[next..next + length]);
                next += length;
            }
            results.push(result);
        }
        (codes, results)
    }

    /// Calls `visit` with every element's place and its block's number, block by block.
    pub fn for_each(&self, mut visit: impl FnMut(usize, usize)) {
        for block in 0..self.count() {
            for (start, length) in self.runs(block) {
                (start..start + length).for_each(|place| visit(place, block));
            }
        }
    }
}

/// Codes of `bits` bits packed least significant bits first, as weight files have them.
pub fn pack(bits: usize, codes: &[u8]) -> Vec<u8> {
    if bits == 8 {
        return codes.to_vec();
    }
    let mask = (1u16 << bits) - 1;
    let mut packed = Vec::with_capacity((codes.len() * bits).div_ceil(8));
    let (mut pending, mut held) = (0u16, 0);
    for &code in codes {
        pending |= (u16::from(code) & mask) << held;
        held += bits;
        if held >= 8 {
            packed.push(pending as u8);
            pending >>= 8;
            held -= 8;
        }
    }
    if held > 0 {
        packed.push(pending as u8);
    }
    packed
}
