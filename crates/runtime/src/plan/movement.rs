//! Operators that move elements: transposes, slices, splits, concatenation, gather.

use super::builder::{Builder, Described, Layout};
use super::graph::Graph;
use super::memory::{Memory, Slot, Spot};
use super::node::{Kind, Node};
use super::parallel;
use super::policy::Policy;
use super::step::Step;
use crate::DeviceError;
use crate::kernel::spatial;
use crate::kernel::types::Context;
use aneforge_mil::{DType, Operation, ValueId, strides};
use bytemuck::Pod;
use half::f16;

/// An element-moving operation.
#[derive(Clone, Debug)]
pub(crate) enum Move {
    /// Each result reads `x` from `offset` on with its own stride per axis.
    Strided { x: ValueId, parts: Vec<Part>, crosses_width: bool },
    /// Values side by side along an axis.
    Concat { values: Vec<ValueId>, axis: usize },
    /// `x` from `offset` of a result on whose other elements are one value.
    Pad { x: ValueId, offset: usize, value: f64 },
    /// Slices of `x` along an axis, picked by integers.
    Gather { x: ValueId, indices: ValueId, axis: usize },
}

/// How one result reads its input.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    offset: usize,
    strides: Vec<usize>,
    /// Extents that the strides step through, where they are finer than the result's own.
    extents: Option<Vec<usize>>,
}

impl Part {
    fn new(offset: usize, strides: Vec<usize>) -> Self {
        Self { offset, strides, extents: None }
    }
}

/// Recognises operation `index`.
pub(crate) fn recognise(graph: &Graph, index: usize) -> Option<Node> {
    let operation = &graph.body.operations[index];
    let is_movable = |id: ValueId| matches!(graph.dtype(id).bits(), 8 | 16 | 32);
    let (kind, reads) = match operation.op.name {
        "transpose" => strided(graph, operation, |graph, operation, shape| {
            let perm = graph.attributes(operation, |a| a.ints("perm"))?;
            let held = strides(shape);
            let axes = perm.iter().map(|&axis| wrap(axis, shape.len())).collect::<Option<Vec<_>>>()?;
            Some((vec![Part::new(0, axes.iter().map(|&axis| held[axis]).collect())], false))
        })?,
        "slice_by_index" => strided(graph, operation, slice_by_index)?,
        "slice_by_size" => strided(graph, operation, slice_by_size)?,
        "split" => strided(graph, operation, split)?,
        "tile" => strided(graph, operation, tile)?,
        "space_to_depth" | "depth_to_space" | "pixel_shuffle" | "pixel_unshuffle" => strided(graph, operation, blocks)?,
        "concat" => {
            let values = graph.all_at(operation, "values").to_vec();
            let rank = graph.shape(*values.first()?).len();
            let (axis, interleave) = graph.attributes(operation, |a| (a.int("axis"), a.flag("interleave")));
            if interleave {
                return None;
            }
            (Move::Concat { values: values.clone(), axis: wrap(axis?, rank)? }, values)
        }
        "pad" => pad(graph, operation)?,
        "gather" => {
            let (x, indices) = (graph.at(operation, "x")?, graph.at(operation, "indices")?);
            let (axis, batch) = graph.attributes(operation, |a| (a.int("axis"), a.int("batch_dims")));
            if batch.unwrap_or(0) != 0
                || !matches!(graph.dtype(indices), DType::Int32 | DType::UInt16 | DType::Int16 | DType::UInt8)
            {
                return None;
            }
            (Move::Gather { x, indices, axis: wrap(axis?, graph.shape(x).len())? }, vec![x, indices])
        }
        _ => return None,
    };
    let moved = reads.iter().chain(&operation.outputs).all(|&id| is_movable(id) && graph.body.ty(id).count() > 0);
    moved.then(|| Node { kind: Kind::Move(kind), covers: vec![index], reads, outputs: operation.outputs.clone() })
}

type Parts = Option<(Vec<Part>, bool)>;

fn strided(
    graph: &Graph,
    operation: &Operation,
    parts: impl Fn(&Graph, &Operation, &[usize]) -> Parts,
) -> Option<(Move, Vec<ValueId>)> {
    let x = graph.at(operation, "x")?;
    let (parts, crosses_width) = parts(graph, operation, graph.shape(x))?;
    Some((Move::Strided { x, parts, crosses_width }, vec![x]))
}

fn slice_by_index(graph: &Graph, operation: &Operation, shape: &[usize]) -> Parts {
    let rank = shape.len();
    let read = |port: &'static str| graph.attributes(operation, |a| a.ints(port));
    let flags = |port: &'static str| read(port).map_or(vec![false; rank], |flags| flags.iter().map(|&flag| flag != 0).collect());
    let (begin, step) = (read("begin")?, read("stride").unwrap_or_else(|| vec![1; rank]));
    let (begin_mask, squeeze_mask) = (flags("begin_mask"), flags("squeeze_mask"));
    let held = strides(shape);
    let (mut offset, mut kept, mut last_begin) = (0, Vec::new(), 0);
    for axis in 0..rank {
        let step = usize::try_from(*step.get(axis)?).ok().filter(|&step| step > 0)?;
        let given = *begin.get(axis)?;
        let start = match *begin_mask.get(axis)? {
            true => 0,
            false => usize::try_from(if given < 0 { given + shape[axis] as i64 } else { given }).ok()?,
        };
        if start >= shape[axis] {
            return None;
        }
        offset += start * held[axis];
        last_begin = start;
        if !*squeeze_mask.get(axis)? {
            kept.push(held[axis] * step);
        }
    }
    Some((vec![Part::new(offset, kept)], last_begin > 0))
}

fn slice_by_size(graph: &Graph, operation: &Operation, shape: &[usize]) -> Parts {
    let begin = graph.attributes(operation, |a| a.ints("begin"))?;
    let held = strides(shape);
    let mut offset = 0;
    let mut last_begin = 0;
    for (axis, &start) in begin.iter().enumerate() {
        last_begin = usize::try_from(start).ok().filter(|&start| start < shape[axis])?;
        offset += last_begin * held[axis];
    }
    Some((vec![Part::new(offset, held)], last_begin > 0))
}

fn split(graph: &Graph, operation: &Operation, shape: &[usize]) -> Parts {
    let axis = wrap(graph.attributes(operation, |a| a.int("axis"))?, shape.len())?;
    let held = strides(shape);
    let mut offset = 0;
    let mut parts = Vec::with_capacity(operation.outputs.len());
    for &output in &operation.outputs {
        parts.push(Part::new(offset, held.clone()));
        offset += graph.shape(output).get(axis)? * held[axis];
    }
    Some((parts, axis + 1 == shape.len()))
}

/// Constant borders of fp16.
fn pad(graph: &Graph, operation: &Operation) -> Option<(Move, Vec<ValueId>)> {
    let (x, output) = (graph.at(operation, "x")?, *operation.outputs.first()?);
    let (given, is_constant, value) = graph.attributes(operation, |a| {
        (a.ints("pad"), matches!(a.text("mode"), None | Some("constant")), a.number("constant_val").unwrap_or(0.0))
    });
    let given = given?;
    let held = strides(graph.shape(output));
    let first = held.len().checked_sub(given.len() / 2)?;
    let mut offset = 0;
    for (pair, stride) in given.chunks(2).zip(&held[first..]) {
        offset += usize::try_from(*pair.first()?).ok()? * stride;
        usize::try_from(*pair.get(1)?).ok()?;
    }
    (is_constant && graph.is_fp16(x)).then(|| (Move::Pad { x, offset, value }, vec![x]))
}

/// Repeats stand still: a step of zero over each axis of repetitions.
fn tile(graph: &Graph, operation: &Operation, shape: &[usize]) -> Parts {
    let reps = graph.attributes(operation, |a| a.ints("reps")).filter(|reps| reps.len() == shape.len())?;
    let held = strides(shape);
    let (mut extents, mut steps) = (Vec::new(), Vec::new());
    for (axis, &extent) in shape.iter().enumerate() {
        let repeats = usize::try_from(reps[axis]).ok()?;
        let both = [(repeats, 0), (extent, held[axis])];
        both.into_iter().filter(|(extent, _)| *extent != 1).for_each(|(extent, step)| {
            extents.push(extent);
            steps.push(step);
        });
    }
    Some((vec![Part { offset: 0, strides: steps, extents: Some(extents) }], false))
}

/// Moves between channels and blocks of pixels. The first two put the places of a block outside the channels, the other two inside.
fn blocks(graph: &Graph, operation: &Operation, shape: &[usize]) -> Parts {
    let name = operation.op.name;
    let attribute = match name {
        "pixel_shuffle" => "upscale_factor",
        "pixel_unshuffle" => "downscale_factor",
        _ => "block_size",
    };
    let size = usize::try_from(graph.attributes(operation, |a| a.number(attribute))? as i64).ok().filter(|&size| size > 0)?;
    let &[batch, channels, height, width] = shape else { return None };
    let pixels = height * width;
    let (extents, strides) = match name {
        "space_to_depth" => (
            vec![batch, size, size, channels, height / size, width / size],
            vec![channels * pixels, width, 1, pixels, size * width, size],
        ),
        "pixel_unshuffle" => (
            vec![batch, channels, size, size, height / size, width / size],
            vec![channels * pixels, pixels, width, 1, size * width, size],
        ),
        _ => {
            let kept = channels / (size * size);
            let (channel, row, column) = match name {
                "depth_to_space" => (pixels, size * kept * pixels, kept * pixels),
                _ => (size * size * pixels, size * pixels, pixels),
            };
            (vec![batch, kept, height, size, width, size], vec![channels * pixels, channel, width, row, 1, column])
        }
    };
    let output = *operation.outputs.first()?;
    let whole = extents.iter().product::<usize>() == graph.body.ty(output).count();
    whole.then(|| (vec![Part { offset: 0, strides, extents: Some(extents) }], false))
}

fn wrap(axis: i64, rank: usize) -> Option<usize> {
    usize::try_from(if axis < 0 { axis + rank as i64 } else { axis }).ok().filter(|&axis| axis < rank)
}

/// Makes the steps.
pub(crate) fn lower(builder: &mut Builder<'_>, node: &Node, moved: &Move) -> Result<(), DeviceError> {
    let graph = builder.graph;
    match moved {
        Move::Strided { x, parts, crosses_width } => {
            let from = builder.read(*x)?;
            for (&output, part) in node.outputs.iter().zip(parts) {
                let to = builder.make(output, Layout::Dense)?;
                let shape = part.extents.clone().unwrap_or_else(|| graph.shape(output).to_vec());
                let starts_inside = *crosses_width && part.offset > 0 && graph.is_fp16(*x);
                let crop_rule = match builder.policy {
                    Policy::Engine(engine) if starts_inside && engine.chip.width_slice_hazard => Some(engine.crop_rule()),
                    _ => None,
                };
                let hazard = crop_rule.is_some();
                let width = graph.dtype(*x).bits() / 8;
                let step: Box<dyn Step> = match matrices(&shape, part) {
                    Some([batch, rows, columns]) if width == 2 => Box::new(Transpose { from, to, batch, rows, columns }),
                    _ => Box::new(Strided { from, to, shape, part: part.clone(), width, hazard }),
                };
                let mut described = Described::of(builder, node, "copy");
                described.rule = crop_rule.or(described.rule);
                builder.push(node, described, step, &[from], &[to]);
            }
        }
        Move::Concat { values, axis } => {
            let output = node.outputs[0];
            let width = graph.dtype(output).bits() / 8;
            let inner: usize = graph.shape(output)[axis + 1..].iter().product::<usize>() * width;
            let outer: usize = graph.shape(output)[..*axis].iter().product();
            let pitch = graph.shape(output)[*axis] * inner;
            let mut parts = Vec::with_capacity(values.len());
            let mut at = 0;
            for &value in values {
                let length = graph.shape(value)[*axis] * inner;
                parts.push((builder.read(value)?, at, length));
                at += length;
            }
            let reads: Vec<Spot> = parts.iter().map(|part| part.0).collect();
            let to = builder.make(output, Layout::Dense)?;
            let described = Described::of(builder, node, "copy");
            builder.push(node, described, Box::new(Concat { parts, outer, pitch, to }), &reads, &[to]);
        }
        &Move::Pad { x, offset, value } => {
            let mut stored = [value];
            builder.policy.store(&mut stored);
            let from = builder.read(x)?;
            let to = builder.make(node.outputs[0], Layout::Dense)?;
            let held = strides(graph.shape(node.outputs[0]));
            let step = Pad { from, to, shape: graph.shape(x).to_vec(), strides: held, offset, value: f16::from_f64(stored[0]) };
            let described = Described::of(builder, node, "copy");
            builder.push(node, described, Box::new(step), &[from], &[to]);
        }
        Move::Gather { x, indices, axis } => {
            let (from, picks) = (builder.read(*x)?, builder.read(*indices)?);
            let to = builder.make(node.outputs[0], Layout::Dense)?;
            let shape = graph.shape(*x);
            let step = Gather {
                from,
                picks,
                to,
                dtype: graph.dtype(*indices),
                extent: shape[*axis],
                outer: shape[..*axis].iter().product(),
                inner: shape[axis + 1..].iter().product::<usize>() * graph.dtype(*x).bits() / 8,
            };
            let described = Described::of(builder, node, "gather");
            builder.push(node, described, Box::new(step), &[from, picks], &[to]);
        }
    }
    Ok(())
}

/// A copy that swaps two groups of neighbouring axes, as (batch, rows, columns) of its input.
fn matrices(shape: &[usize], part: &Part) -> Option<[usize; 3]> {
    if part.offset != 0 {
        return None;
    }
    // Drop axes of one element and merge those that the input has side by side.
    let mut axes: Vec<(usize, usize)> = Vec::new();
    for (&extent, &stride) in shape.iter().zip(&part.strides).filter(|(extent, _)| **extent != 1) {
        match axes.last_mut() {
            Some((held, step)) if *step == stride * extent => (*held, *step) = (*held * extent, stride),
            _ => axes.push((extent, stride)),
        }
    }
    let (batch, columns, rows) = match axes[..] {
        [(columns, 1), (rows, step)] if step == columns => (1, columns, rows),
        [(batch, outer), (columns, 1), (rows, step)] if step == columns && outer == rows * columns => (batch, columns, rows),
        _ => return None,
    };
    Some([batch, rows, columns])
}

struct Transpose {
    from: Spot,
    to: Slot,
    batch: usize,
    rows: usize,
    columns: usize,
}

impl Step for Transpose {
    fn run(&self, context: Context<'static>, memory: &mut Memory<'_>) -> Result<(), DeviceError> {
        let ([from], [to]) = memory.split([self.from], [self.to])?;
        let (from, to): (&[f16], &mut [f16]) = (bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
        spatial::transpose(context, self.batch, self.rows, self.columns, from, to);
        Ok(())
    }
}

struct Strided {
    from: Spot,
    to: Slot,
    shape: Vec<usize>,
    part: Part,
    width: usize,
    hazard: bool,
}

impl Step for Strided {
    fn run(&self, context: Context<'static>, memory: &mut Memory<'_>) -> Result<(), DeviceError> {
        let ([from], [to]) = memory.split([self.from], [self.to])?;
        match self.width {
            1 => self.copy::<u8>(context, from, to),
            2 => self.copy::<u16>(context, bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to)),
            _ => self.copy::<u32>(context, bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to)),
        }
        if self.hazard {
            // The crop unit of these chips holds sixteen times the value: arXiv 2606.22283, chapters 12 and 35.
            let values: &mut [f16] = bytemuck::cast_slice_mut(to);
            let limit = f16::from_f32(4094.0);
            for value in values.iter_mut().filter(|value| value.to_bits() & 0x7fff > limit.to_bits()) {
                *value = if value.is_sign_negative() { f16::NEG_INFINITY } else { f16::INFINITY };
            }
        }
        Ok(())
    }
}

impl Strided {
    fn copy<T: Pod + Send + Sync>(&self, context: Context<'static>, from: &[T], to: &mut [T]) {
        let rank = self.shape.len();
        let row = self.shape.last().copied().unwrap_or(1);
        let step = self.part.strides.last().copied().unwrap_or(1);
        let rows_per_piece = (parallel::SMALL / row).max(1);
        parallel::pieces(context, to, rows_per_piece * row, &|at, piece| {
            for (index, out) in piece.chunks_mut(row).enumerate() {
                let mut number = at / row + index;
                let mut base = self.part.offset;
                for axis in (0..rank.saturating_sub(1)).rev() {
                    base += number % self.shape[axis] * self.part.strides[axis];
                    number /= self.shape[axis];
                }
                match step {
                    1 => out.copy_from_slice(&from[base..base + row]),
                    _ => out.iter_mut().enumerate().for_each(|(column, slot)| *slot = from[base + column * step]),
                }
            }
        });
    }
}

struct Pad {
    from: Spot,
    to: Slot,
    /// Of what is copied.
    shape: Vec<usize>,
    /// Of the result.
    strides: Vec<usize>,
    offset: usize,
    value: f16,
}

impl Step for Pad {
    fn run(&self, context: Context<'static>, memory: &mut Memory<'_>) -> Result<(), DeviceError> {
        let ([from], [to]) = memory.split([self.from], [self.to])?;
        let (from, to): (&[f16], &mut [f16]) = (bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
        let (Some((&row, outer)), Some((_, steps))) = (self.shape.split_last(), self.strides.split_last()) else {
            to.copy_from_slice(from);
            return Ok(());
        };
        parallel::pieces(context, to, parallel::SMALL, &|_, piece| piece.fill(self.value));
        for (number, values) in from.chunks(row).enumerate() {
            let (mut number, mut begin) = (number, self.offset);
            for (extent, stride) in outer.iter().zip(steps).rev() {
                begin += number % extent * stride;
                number /= extent;
            }
            to[begin..begin + row].copy_from_slice(values);
        }
        Ok(())
    }
}

struct Concat {
    /// Place, begin within a row of the result, length; all in bytes.
    parts: Vec<(Spot, usize, usize)>,
    outer: usize,
    pitch: usize,
    to: Slot,
}

impl Step for Concat {
    fn run(&self, _: Context<'static>, memory: &mut Memory<'_>) -> Result<(), DeviceError> {
        for &(spot, begin, length) in &self.parts {
            let ([from], [to]) = memory.split([spot], [self.to])?;
            for row in 0..self.outer {
                let at = row * self.pitch + begin;
                to[at..at + length].copy_from_slice(&from[row * length..(row + 1) * length]);
            }
        }
        Ok(())
    }
}

struct Gather {
    from: Spot,
    picks: Spot,
    to: Slot,
    dtype: DType,
    extent: usize,
    outer: usize,
    /// Bytes of one slice.
    inner: usize,
}

impl Step for Gather {
    fn run(&self, _: Context<'static>, memory: &mut Memory<'_>) -> Result<(), DeviceError> {
        let ([from, picks], [to]) = memory.split([self.from, self.picks], [self.to])?;
        let count = picks.len() / (self.dtype.bits() / 8);
        for outer in 0..self.outer {
            for at in 0..count {
                let pick = match self.dtype {
                    DType::Int32 => i64::from(bytemuck::cast_slice::<u8, i32>(picks)[at]),
                    DType::Int16 => i64::from(bytemuck::cast_slice::<u8, i16>(picks)[at]),
                    DType::UInt16 => i64::from(bytemuck::cast_slice::<u8, u16>(picks)[at]),
                    _ => i64::from(picks[at]),
                };
                let wrapped = if pick < 0 { pick + self.extent as i64 } else { pick };
                // As the operator's meaning has it, an index out of range picks the nearest slice.
                let row = wrapped.clamp(0, self.extent as i64 - 1) as usize + outer * self.extent;
                let begin = (outer * count + at) * self.inner;
                to[begin..begin + self.inner].copy_from_slice(&from[row * self.inner..(row + 1) * self.inner]);
            }
        }
        Ok(())
    }
}
