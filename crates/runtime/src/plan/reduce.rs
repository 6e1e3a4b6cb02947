//! Reductions of fp16 tensors.

use super::Options;
use super::builder::{Builder, Described, Layout};
use super::graph::Graph;
use super::memory::{Memory, Slot, Spot};
use super::node::{Kind, Node};
use super::parallel;
use super::policy::Policy;
use super::scattered::{Runs, Scattered};
use super::step::Step;
use crate::DeviceError;
use crate::emulator::Engine;
use crate::kernel::types::Context;
use crate::kernel::{convert, spatial};
use aneforge_mil::ValueId;
use half::f16;
use std::ops::Range;
use std::sync::Arc;

/// Columns that are summed at a time.
const BLOCK: usize = 512;
/// Values that are widened at a time.
const WIDE: usize = 2048;
/// So many results keep threads busy without cutting their columns.
const MANY: usize = 4096;
/// Most parts of a column.
const MOST_PARTS: usize = 64;

/// What a reduction computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduction {
    Sum,
    Mean,
    Max,
    Min,
    SumOfSquares,
    SumOfMagnitudes,
    /// Root of the sum of squares.
    Length,
}

/// `x [outer, length, inner] -> [outer, inner]`.
#[derive(Clone, Debug)]
pub(crate) struct Reduce {
    x: ValueId,
    reduction: Reduction,
    axes: Vec<usize>,
    outer: usize,
    length: usize,
    inner: usize,
    /// How the results are found where the axes do not lie side by side.
    runs: Option<Runs>,
}

/// Recognises operation `index`.
pub(crate) fn recognise(graph: &Graph, index: usize, options: &Options) -> Option<Node> {
    let operation = &graph.body.operations[index];
    let reduction = match operation.op.name {
        "reduce_sum" => Reduction::Sum,
        "reduce_mean" => Reduction::Mean,
        "reduce_max" => Reduction::Max,
        "reduce_min" => Reduction::Min,
        "reduce_sum_square" => Reduction::SumOfSquares,
        "reduce_l1_norm" => Reduction::SumOfMagnitudes,
        "reduce_l2_norm" => Reduction::Length,
        _ => return None,
    };
    let x = graph.at(operation, "x")?;
    let output = *operation.outputs.first()?;
    let shape = graph.shape(x);
    let rank = shape.len();
    let mut axes: Vec<usize> = match graph.attributes(operation, |a| a.ints("axes")) {
        None => (0..rank).collect(),
        Some(axes) => axes
            .iter()
            .map(|&axis| usize::try_from(if axis < 0 { axis + rank as i64 } else { axis }).ok().filter(|&axis| axis < rank))
            .collect::<Option<_>>()?,
    };
    axes.sort_unstable();
    // Axes of one element may lie between.
    let (first, last) = (*axes.first()?, *axes.last()?);
    let even = (first..=last).all(|axis| axes.contains(&axis) || shape[axis] == 1);
    if !graph.is_fp16(x) || !graph.is_fp16(output) || graph.body.ty(x).count() == 0 {
        return None;
    }
    let innermost = shape[last + 1..].iter().all(|&extent| extent == 1);
    let runs = match options.policy {
        Policy::Fast if even && !innermost => None,
        Policy::Engine(_) if even => None,
        // What an engine does beyond sums over several axes is left to the operator's meaning.
        Policy::Engine(_) if !matches!(reduction, Reduction::Sum | Reduction::Mean) => return None,
        _ => Some(Runs::new(shape, &axes)?),
    };
    let reduce = Reduce {
        x,
        reduction,
        outer: shape[..first].iter().product(),
        length: shape[first..=last].iter().product(),
        inner: shape[last + 1..].iter().product(),
        axes,
        runs,
    };
    Some(Node { kind: Kind::Reduce(reduce), covers: vec![index], reads: vec![x], outputs: vec![output] })
}

/// Makes the step.
pub(crate) fn lower(builder: &mut Builder<'_>, node: &Node, reduce: &Reduce) -> Result<(), DeviceError> {
    let output = node.outputs[0];
    let is_spatial = reduce.axes == [2, 3] && builder.graph.shape(reduce.x).len() == 4;
    if is_spatial
        && reduce.reduction == Reduction::Mean
        && builder.is_channels_last(reduce.x)
        && matches!(builder.policy, Policy::Fast)
    {
        let x = builder.read_channels_last(reduce.x)?;
        let &[batch, channels, height, width] = builder.graph.shape(reduce.x) else {
            return Err(DeviceError::internal("reduce", "an image has four axes"));
        };
        let to = builder.make(output, Layout::Dense)?;
        let described = Described::of(builder, node, "mean of pixels");
        let step = MeanOfPixels { x, to, batch, pixels: height * width, channels };
        builder.push(node, described, Box::new(step), &[x], &[to]);
        return Ok(());
    }
    // Channels that stand innermost are columns.
    if reduce.axes == [0, 2, 3]
        && builder.is_channels_last(reduce.x)
        && matches!(builder.policy, Policy::Fast)
        && let &[batch, channels, height, width] = builder.graph.shape(reduce.x)
    {
        let (x, length) = (builder.read_channels_last(reduce.x)?, batch * height * width);
        let to = builder.make(output, Layout::Dense)?;
        let described = Described::of(builder, node, format!("reduction of {length}"));
        let step = Fast { x, to, reduction: reduce.reduction, length, inner: channels };
        builder.push(node, described, Box::new(step), &[x], &[to]);
        return Ok(());
    }
    let x = builder.read(reduce.x)?;
    let to = builder.make(output, Layout::Dense)?;
    let count = reduce.runs.as_ref().map_or(reduce.length, Runs::count);
    let described = Described::of(builder, node, format!("reduction of {count}"));
    if let Some(runs) = reduce.runs.clone() {
        let step = Scattered { x, to, reduction: reduce.reduction, runs, policy: builder.policy.clone() };
        builder.push(node, described, Box::new(step), &[x], &[to]);
        return Ok(());
    }
    let &Reduce { reduction, outer, length, inner, .. } = reduce;
    let step: Box<dyn Step> = match builder.policy {
        Policy::Fast => Box::new(Fast { x, to, reduction, length, inner }),
        Policy::Engine(engine) => {
            let lane = builder.scratch(length * size_of::<f16>());
            let step = Exact { engine: engine.clone(), x, to, lane, reduction, outer, length, inner };
            builder.push(node, described, Box::new(step), &[x], &[to, lane]);
            return Ok(());
        }
    };
    builder.push(node, described, step, &[x], &[to]);
    Ok(())
}

struct MeanOfPixels {
    x: Spot,
    to: Slot,
    batch: usize,
    pixels: usize,
    channels: usize,
}

impl Step for MeanOfPixels {
    fn run(&self, context: Context<'static>, memory: &mut Memory<'_>) -> Result<(), DeviceError> {
        let ([x], [to]) = memory.split([self.x], [self.to])?;
        let (x, to) = (bytemuck::cast_slice(x), bytemuck::cast_slice_mut(to));
        spatial::global_average(context, self.batch, self.pixels, self.channels, x, to);
        Ok(())
    }
}

struct Fast {
    x: Spot,
    to: Slot,
    reduction: Reduction,
    length: usize,
    inner: usize,
}

impl Step for Fast {
    fn run(&self, context: Context<'static>, memory: &mut Memory<'_>) -> Result<(), DeviceError> {
        let ([x], [to]) = memory.split([self.x], [self.to])?;
        let (x, to): (&[f16], &mut [f16]) = (bytemuck::cast_slice(x), bytemuck::cast_slice_mut(to));
        let &Self { reduction, length, inner, .. } = self;
        // Few columns are cut into parts that threads sum, into as many of them whatever the threads: a result never depends on these.
        let parts = if to.len() < MANY { (length * to.len() / parallel::SMALL).clamp(1, MOST_PARTS).min(length.max(1)) } else { 1 };
        let mut sums = vec![reduction.start(); to.len() * parts];
        let rows = length.div_ceil(parts);
        let piece = (parallel::SMALL / rows.max(1)).max(inner.min(BLOCK));
        parallel::pieces(context, &mut sums, piece, &|at, piece| {
            let mut done = 0;
            while done < piece.len() {
                let (number, column) = ((at + done) / inner, (at + done) % inner);
                let (outer, part) = (number / parts, number % parts);
                let count = (inner - column).min(piece.len() - done).min(BLOCK);
                let (first, end) = (part * length / parts, (part + 1) * length / parts);
                self.add(context, &x[outer * length * inner + column..], first..end, &mut piece[done..done + count]);
                done += count;
            }
        });
        for (outer, to) in to.chunks_mut(inner).enumerate() {
            for (column, slot) in to.iter_mut().enumerate() {
                let part = |part: usize| sums[(outer * parts + part) * inner + column];
                let sum = (1..parts).fold(part(0), |sum, other| reduction.merge(sum, part(other)));
                *slot = f16::from_f32(reduction.finish(sum, length));
            }
        }
        Ok(())
    }
}

impl Fast {
    /// Joins rows of `x` to the sums of its first columns.
    fn add(&self, context: Context<'static>, x: &[f16], rows: Range<usize>, sums: &mut [f32]) {
        let (count, mut wide) = (sums.len(), [0f32; WIDE]);
        // Whole rows stand side by side: several are widened at once.
        let together = if count == self.inner { (WIDE / count).max(1) } else { 1 };
        for first in rows.clone().step_by(together) {
            let some = together.min(rows.end - first) * count;
            let wide = &mut wide[..some];
            convert::widen(context, &x[first * self.inner..][..some], wide);
            for row in wide.chunks_exact(count) {
                sums.iter_mut().zip(row).for_each(|(sum, &value)| *sum = self.reduction.join(*sum, value));
            }
        }
    }
}

impl Reduction {
    pub(crate) fn start(self) -> f32 {
        match self {
            Self::Max => f32::NEG_INFINITY,
            Self::Min => f32::INFINITY,
            _ => 0.0,
        }
    }

    pub(crate) fn join(self, sum: f32, value: f32) -> f32 {
        match self {
            Self::Sum | Self::Mean => sum + value,
            Self::Max => sum.max(value),
            Self::Min => sum.min(value),
            Self::SumOfSquares | Self::Length => sum + value * value,
            Self::SumOfMagnitudes => sum + value.abs(),
        }
    }

    /// Joins two sums of parts.
    pub(crate) fn merge(self, a: f32, b: f32) -> f32 {
        match self {
            Self::Max => a.max(b),
            Self::Min => a.min(b),
            _ => a + b,
        }
    }

    pub(crate) fn finish(self, sum: f32, length: usize) -> f32 {
        match self {
            Self::Mean => sum / length as f32,
            Self::Length => sum.sqrt(),
            _ => sum,
        }
    }
}

struct Exact {
    engine: Arc<Engine>,
    x: Spot,
    to: Slot,
    lane: Slot,
    reduction: Reduction,
    outer: usize,
    length: usize,
    inner: usize,
}

impl Step for Exact {
    fn run(&self, _: Context<'static>, memory: &mut Memory<'_>) -> Result<(), DeviceError> {
        let ([x], [to, lane]) = memory.split([self.x], [self.to, self.lane])?;
        let (x, to): (&[f16], &mut [f16]) = (bytemuck::cast_slice(x), bytemuck::cast_slice_mut(to));
        let lane: &mut [f16] = bytemuck::cast_slice_mut(lane);
        for outer in 0..self.outer {
            for column in 0..self.inner {
                let base = outer * self.length * self.inner + column;
                lane.iter_mut().enumerate().for_each(|(step, slot)| *slot = x[base + step * self.inner]);
                to[outer * self.inner + column] = self.engine.reduce(self.reduction, lane);
            }
        }
        Ok(())
    }
}
