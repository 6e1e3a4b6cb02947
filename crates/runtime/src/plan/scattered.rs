//! Reductions over axes that need not lie side by side, such as a batch and the pixels of its images: every result adds up runs of
//! neighbouring values.

use super::memory::{Memory, Slot, Spot};
use super::parallel;
use super::policy::Policy;
use super::reduce::Reduction;
use super::step::Step;
use crate::DeviceError;
use crate::kernel::convert;
use crate::kernel::types::Context;
use aneforge_mil::strides;
use half::f16;

/// Sums that grow side by side.
const LANES: usize = 16;
/// Values that are widened at a time.
const BLOCK: usize = 512;
/// Most runs whose places are remembered.
const MOST_RUNS: usize = 1 << 16;

/// Where the values of each result stand.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Runs {
    /// Extent and stride of the axes that stay, outermost first.
    kept: Vec<(usize, usize)>,
    /// Where the runs of the first result begin, in row-major order.
    begins: Vec<usize>,
    /// Values of a run.
    length: usize,
}

impl Runs {
    /// The runs of a tensor of `shape` reduced over `axes`; `None` where there are too many.
    pub(crate) fn new(shape: &[usize], axes: &[usize]) -> Option<Self> {
        let held = strides(shape);
        let mut kept: Vec<(usize, usize)> = Vec::new();
        let mut gone: Vec<(usize, usize)> = Vec::new();
        for (axis, (&extent, &stride)) in shape.iter().zip(&held).enumerate().filter(|(_, (extent, _))| **extent != 1) {
            let list = if axes.contains(&axis) { &mut gone } else { &mut kept };
            match list.last_mut() {
                Some((outer, step)) if *step == extent * stride => (*outer, *step) = (*outer * extent, stride),
                _ => list.push((extent, stride)),
            }
        }
        let length = match gone.last() {
            Some(&(extent, 1)) => {
                gone.pop();
                extent
            }
            _ => 1,
        };
        if gone.iter().map(|(extent, _)| extent).product::<usize>() > MOST_RUNS {
            return None;
        }
        let mut begins = vec![0];
        for (extent, stride) in gone {
            begins = begins.iter().flat_map(|begin| (0..extent).map(move |at| begin + at * stride)).collect();
        }
        Some(Self { kept, begins, length })
    }

    /// Values of each result.
    pub(crate) fn count(&self) -> usize {
        self.begins.len() * self.length
    }

    fn base(&self, mut result: usize) -> usize {
        let mut base = 0;
        for &(extent, stride) in self.kept.iter().rev() {
            base += result % extent * stride;
            result /= extent;
        }
        base
    }

    fn of<'a>(&'a self, x: &'a [f16], base: usize) -> impl Iterator<Item = &'a [f16]> {
        self.begins.iter().map(move |begin| &x[base + begin..base + begin + self.length])
    }
}

/// The step.
pub(crate) struct Scattered {
    pub(crate) x: Spot,
    pub(crate) to: Slot,
    pub(crate) reduction: Reduction,
    pub(crate) runs: Runs,
    pub(crate) policy: Policy,
}

impl Step for Scattered {
    fn run(&self, context: Context<'static>, memory: &mut Memory<'_>) -> Result<(), DeviceError> {
        let ([x], [to]) = memory.split([self.x], [self.to])?;
        let (x, to): (&[f16], &mut [f16]) = (bytemuck::cast_slice(x), bytemuck::cast_slice_mut(to));
        let results_per_piece = (parallel::SMALL / self.runs.count().max(1)).max(1);
        parallel::pieces(context, to, results_per_piece, &|at, piece| {
            for (index, slot) in piece.iter_mut().enumerate() {
                let base = self.runs.base(at + index);
                *slot = match self.policy {
                    Policy::Fast => f16::from_f32(self.reduction.finish(self.fast(context, x, base), self.runs.count())),
                    Policy::Engine(_) => self.exact(x, base),
                };
            }
        });
        Ok(())
    }
}

impl Scattered {
    fn fast(&self, context: Context<'static>, x: &[f16], base: usize) -> f32 {
        let (start, length) = (self.reduction.start(), self.runs.length);
        if length < LANES {
            return self.runs.of(x, base).flatten().fold(start, |sum, value| self.reduction.join(sum, value.to_f32()));
        }
        let (mut sums, mut wide) = ([start; LANES], [0f32; BLOCK]);
        for block in self.runs.of(x, base).flat_map(|run| run.chunks(BLOCK)) {
            let wide = &mut wide[..block.len()];
            convert::widen(context, block, wide);
            for values in wide.chunks(LANES) {
                sums.iter_mut().zip(values).for_each(|(sum, &value)| *sum = self.reduction.join(*sum, value));
            }
        }
        sums.into_iter().reduce(|a, b| self.reduction.merge(a, b)).unwrap_or(start)
    }

    /// The sum in f64, value after value, rounded once as the engine stores: as the operator's meaning goes.
    fn exact(&self, x: &[f16], base: usize) -> f16 {
        let sum: f64 = self.runs.of(x, base).flatten().fold(0.0, |sum, value| sum + value.to_f64());
        let mut result = [if self.reduction == Reduction::Mean { sum / self.runs.count() as f64 } else { sum }];
        self.policy.store(&mut result);
        f16::from_f64(result[0])
    }
}

#[cfg(test)]
mod tests {
    use super::Runs;

    #[test]
    fn axes_side_by_side_are_one_and_the_innermost_ones_a_run() {
        let runs = Runs::new(&[2, 3, 4, 5], &[0, 2, 3]).unwrap();
        assert_eq!(runs, Runs { kept: vec![(3, 20)], begins: vec![0, 60], length: 20 });
        let runs = Runs::new(&[2, 3, 1, 5], &[1]).unwrap();
        assert_eq!(runs, Runs { kept: vec![(2, 15), (5, 1)], begins: vec![0, 5, 10], length: 1 });
        assert_eq!((runs.base(7), runs.count()), (17, 3));
    }
}
