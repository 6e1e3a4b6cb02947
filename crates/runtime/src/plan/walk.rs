//! The way of element-wise steps through broadcast operands.

/// Rows shorter than this are laid side by side in a block.
const SHORT: usize = 64;

/// The way through a result: rows of elements that stand side by side, and where each input is at a row's begin.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    /// Extents of the axes outside a row.
    outer: Vec<usize>,
    /// Elements of a row.
    pub(crate) row: usize,
    /// Per input: strides of the outer axes.
    outer_strides: Vec<Vec<usize>>,
    /// Per input: distance between the elements of a row.
    pub(crate) row_strides: Vec<usize>,
}

impl Walk {
    /// Over a result of `extents`, with the strides of each input.
    pub(crate) fn new(extents: &[usize], strides: &[Vec<usize>]) -> Self {
        // Axes that all inputs step through evenly become one.
        let mut merged: Vec<(usize, Vec<usize>)> = Vec::new();
        for (axis, &extent) in extents.iter().enumerate() {
            if extent == 1 {
                continue;
            }
            let steps: Vec<usize> = strides.iter().map(|stride| stride[axis]).collect();
            match merged.last_mut() {
                Some((held, outer)) if outer.iter().zip(&steps).all(|(&outer, &inner)| outer == inner * extent) => {
                    *held *= extent;
                    *outer = steps;
                }
                _ => merged.push((extent, steps)),
            }
        }
        let (row, row_strides) = merged.pop().unwrap_or_else(|| (1, vec![0; strides.len()]));
        let outer = merged.iter().map(|(extent, _)| *extent).collect();
        let outer_strides = (0..strides.len()).map(|input| merged.iter().map(|(_, steps)| steps[input]).collect()).collect();
        Self { outer, row, outer_strides, row_strides }
    }

    /// Where `input` is at the begin of row `row`.
    pub(crate) fn base(&self, input: usize, mut row: usize) -> usize {
        let mut base = 0;
        for (extent, stride) in self.outer.iter().zip(&self.outer_strides[input]).rev() {
            base += row % extent * stride;
            row /= extent;
        }
        base
    }

    /// Whether rows are laid side by side in a block: short ones, and those in which an input's neighbours are not neighbours in memory.
    pub(crate) fn gathers(&self) -> bool {
        !self.outer.is_empty() && (self.row < SHORT || self.row_strides.iter().any(|&stride| stride > 1))
    }

    /// Copies what elements `start..` of the result meet in an input.
    pub(crate) fn gather<T: Copy>(&self, input: usize, start: usize, from: &[T], out: &mut [T]) {
        let (step, strides) = (self.row_strides[input], &self.outer_strides[input]);
        let (mut row, mut column) = (start / self.row, start % self.row);
        let mut base = self.base(input, row);
        let Some((&last, &stride)) = self.outer.last().zip(strides.last()) else {
            return copy(from, base + column * step, step, out);
        };
        let mut rest = out;
        while !rest.is_empty() {
            // Whole rows up to the end of the last outer axis go together.
            let rows = if column == 0 { (last - row % last).min(rest.len() / self.row) } else { 0 };
            if rows > 0 {
                let (part, behind) = rest.split_at_mut(rows * self.row);
                match (step, stride) {
                    (1, _) if stride == self.row => copy(from, base, 1, part),
                    _ => {
                        part.chunks_exact_mut(self.row).enumerate().for_each(|(at, out)| copy(from, base + at * stride, step, out))
                    }
                }
                (rest, row) = (behind, row + rows);
            } else {
                let (part, behind) = rest.split_at_mut((self.row - column).min(rest.len()));
                copy(from, base + column * step, step, part);
                (rest, column, row) = (behind, 0, row + 1);
            }
            base = if row % last == 0 { self.base(input, row) } else { base + stride * rows.max(1) };
        }
    }
}

/// Every `step`th element from `begin` on.
fn copy<T: Copy>(from: &[T], begin: usize, step: usize, out: &mut [T]) {
    match step {
        0 => out.fill(from[begin]),
        1 => out.copy_from_slice(&from[begin..begin + out.len()]),
        _ => out.iter_mut().zip(from[begin..].iter().step_by(step)).for_each(|(slot, value)| *slot = *value),
    }
}

/// Row-major strides of `shape`, 0 along axes of one element.
pub(crate) fn broadcast_strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = aneforge_mil::strides(shape);
    strides.iter_mut().zip(shape).for_each(|(stride, &extent)| *stride = if extent == 1 { 0 } else { *stride });
    strides
}

#[cfg(test)]
mod tests {
    use super::{Walk, broadcast_strides};

    #[test]
    fn what_is_gathered_is_what_broadcasting_meets() {
        let extents = [3, 4, 2, 5];
        for shape in [[3, 4, 2, 5], [3, 4, 1, 5], [1, 4, 2, 1], [3, 1, 1, 1], [1, 1, 2, 5]] {
            let strides = broadcast_strides(&shape);
            let walk = Walk::new(&extents, &[broadcast_strides(&extents), strides.clone()]);
            let from: Vec<u32> = (0..shape.iter().product::<usize>() as u32).collect();
            let want: Vec<u32> = (0..120)
                .map(|at| {
                    let place = [at / 40, at / 10 % 4, at / 5 % 2, at % 5];
                    place.iter().zip(&strides).map(|(at, stride)| at * stride).sum::<usize>() as u32
                })
                .collect();
            for start in [0, 3, 10, 37] {
                let mut out = vec![0; 120 - start];
                walk.gather(1, start, &from, &mut out);
                assert_eq!(out, want[start..], "{shape:?} from {start}");
            }
        }
    }
}
