//! The gradient of a convolution's weight, which is written as a product of the gradient with all shifts of the input for each image,
//! summed over the images: one product over all pixels of all images.

use super::Options;
use super::builder::{Builder, Described, Layout};
use super::graph::Graph;
use super::matmul::{self, Grid};
use super::memory::{Memory, Slot, Spot};
use super::node::{Kind, Node};
use super::parallel;
use super::policy::Policy;
use super::step::Step;
use crate::DeviceError;
use crate::kernel::matmul::MatmulShape;
use crate::kernel::types::Context;
use aneforge_mil::ValueId;
use half::f16;

/// `sum over images of grad [out, pixels] * shifts of x [taps, in, pixels] turned`.
#[derive(Clone, Debug)]
pub(crate) struct WeightGradient {
    x: ValueId,
    grad: ValueId,
    columns: Columns,
}

/// What each pixel of the result meets in x: `[batch, pixels, taps, channels]`, channels innermost in x as well.
#[derive(Clone, Debug)]
struct Columns {
    batch: usize,
    channels: usize,
    /// Height and width of x, and of the result.
    input: [usize; 2],
    output: [usize; 2],
    taps: Vec<Tap>,
}

/// Taps side by side in a row of x.
#[derive(Clone, Debug)]
struct Tap {
    /// Where the first one is for the first pixel; x is 0 outside.
    shift: [isize; 2],
    count: usize,
}

/// Recognises it by its sum at operation `index`.
pub(crate) fn recognise(graph: &Graph, index: usize, options: &Options, taken: &[bool]) -> Option<Node> {
    let sum = &graph.body.operations[index];
    if sum.op.name != "reduce_sum" || !options.fuse || !matches!(options.policy, Policy::Fast) {
        return None;
    }
    let products = graph.at(sum, "x")?;
    let (at, product) = graph.made_by(products, "matmul").filter(|(at, _)| !taken[*at])?;
    graph.only_user(products).filter(|&user| user == index)?;
    let axes = graph.attributes(sum, |a| a.ints("axes"))?;
    let (turned, by_rows) = graph.attributes(product, |a| (a.flag("transpose_x"), a.flag("transpose_y")));
    if axes != [0] || turned || !by_rows {
        return None;
    }
    let (_, view) = graph.made_by(graph.at(product, "x")?, "reshape")?;
    let grad = graph.at(view, "x")?;
    let (_, shifts) = graph.made_by(graph.at(product, "y")?, "concat")?;
    if graph.attributes(shifts, |a| a.int("axis")) != Some(1) {
        return None;
    }
    let &[batch, out, height, width] = graph.shape(grad) else { return None };
    let mut found: Option<ValueId> = None;
    let (mut taps, mut channels): (Vec<Tap>, usize) = (Vec::new(), 0);
    for &id in graph.all_at(shifts, "values") {
        let (x, shift) = cut_from(graph, id, [height, width])?;
        channels = *graph.shape(x).get(1)?;
        let fits = graph.shape(x).first() == Some(&batch) && graph.shape(id) == [batch, channels, height * width];
        if !fits || found.is_some_and(|known| known != x) {
            return None;
        }
        found = Some(x);
        match taps.last_mut() {
            Some(last) if last.shift[0] == shift[0] && last.shift[1] + last.count as isize == shift[1] => last.count += 1,
            _ => taps.push(Tap { shift, count: 1 }),
        }
    }
    let x = found.filter(|&x| graph.is_fp16(x) && !graph.is_constant(x) && graph.is_fp16(grad))?;
    let &[_, _, rows, columns] = graph.shape(x) else { return None };
    let count: usize = taps.iter().map(|tap| tap.count).sum();
    let is_whole = graph.shape(products) == [batch, out, count * channels];
    let columns = Columns { batch, channels, input: [rows, columns], output: [height, width], taps };
    let kind = Kind::WeightGradient(WeightGradient { x, grad, columns });
    is_whole.then(|| Node { kind, covers: vec![at, index], reads: vec![x, grad], outputs: sum.outputs.clone() })
}

/// The image that a part of `size` was cut from, border of zeros included, and where the part begins in it. Cuts may be made under
/// other shapes of the same elements.
fn cut_from(graph: &Graph, part: ValueId, size: [usize; 2]) -> Option<(ValueId, [isize; 2])> {
    let mut id = part;
    let mut cuts = Vec::new();
    loop {
        if let Some((_, cut)) = graph.made_by(id, "slice_by_size") {
            cuts.push((cut, id));
            id = graph.at(cut, "x")?;
        } else if let Some((_, view)) = graph.made_by(id, "reshape") {
            id = graph.at(view, "x")?;
        } else {
            break;
        }
    }
    let &[batch, channels, mut height, mut width] = graph.shape(id) else { return None };
    let mut shift = [0, 0];
    for (cut, result) in cuts.into_iter().rev() {
        let begin = graph.attributes(cut, |a| a.ints("begin"))?;
        let mut shape = graph.shape(graph.at(cut, "x")?).to_vec();
        for (axis, &kept) in graph.shape(result).iter().enumerate().filter(|(_, kept)| **kept > 0) {
            if shape[axis] == kept {
                continue;
            }
            let (outer, inner) = (shape[..axis].iter().product::<usize>(), shape[axis + 1..].iter().product::<usize>());
            let start = isize::try_from(*begin.get(axis)?).ok().filter(|start| *start >= 0)?;
            if [outer, shape[axis], inner] == [batch * channels, height, width] {
                (height, shift[0]) = (kept, shift[0] + start);
            } else if [outer, shape[axis], inner] == [batch * channels * height, width, 1] {
                (width, shift[1]) = (kept, shift[1] + start);
            } else {
                return None;
            }
            shape[axis] = kept;
        }
    }
    if [height, width] != size {
        return None;
    }
    let mut move_by = |rows: i64, columns: i64| shift = [shift[0] + rows as isize, shift[1] + columns as isize];
    if let Some((_, pad)) = graph.made_by(id, "pad") {
        let (given, is_constant, value) = graph.attributes(pad, |a| {
            (a.ints("pad"), matches!(a.text("mode"), None | Some("constant")), a.number("constant_val").unwrap_or(0.0))
        });
        let given = given?;
        let (outside, inside) = given.split_at_checked(given.len().checked_sub(4)?)?;
        if !is_constant || value != 0.0 || outside.iter().any(|&pad| pad != 0) {
            return None;
        }
        move_by(-inside[0], -inside[2]);
        id = graph.at(pad, "x")?;
    }
    Some((id, shift))
}

/// Makes the steps.
pub(crate) fn lower(builder: &mut Builder<'_>, node: &Node, gradient: &WeightGradient) -> Result<(), DeviceError> {
    let WeightGradient { x, grad, columns } = gradient;
    let (from, grad_spot) = (builder.read_channels_last(*x)?, builder.read_channels_last(*grad)?);
    let taps: usize = columns.taps.iter().map(|tap| tap.count).sum();
    let (pixels, wide) = (columns.batch * columns.output[0] * columns.output[1], taps * columns.channels);
    let to = builder.scratch(pixels * wide * size_of::<f16>());
    let described = Described::of(builder, node, format!("columns {pixels}x{taps}x{}", columns.channels));
    builder.push(node, described, Box::new(ColumnsStep { from, to, columns: columns.clone() }), &[from], &[to]);
    let out = builder.graph.shape(*grad).get(1).copied().unwrap_or(0);
    let shape = MatmulShape { batch: [1, 1], m: out, n: wide, k: pixels };
    let left = Grid { root: *grad, batch: [0, 0], row: 1, column: out };
    let right = Grid { root: *x, batch: [0, 0], row: wide, column: 1 };
    let output = builder.make(node.outputs[0], Layout::Dense)?;
    matmul::push(builder, node, "weight gradient", matmul::Matmul::plain(shape, left, right), [grad_spot, to.into()], output);
    Ok(())
}

struct ColumnsStep {
    from: Spot,
    to: Slot,
    columns: Columns,
}

impl Step for ColumnsStep {
    fn run(&self, context: Context<'static>, memory: &mut Memory<'_>) -> Result<(), DeviceError> {
        let ([from], [to]) = memory.split([self.from], [self.to])?;
        let (from, to): (&[f16], &mut [f16]) = (bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
        let Columns { channels, output: [height, width], ref taps, .. } = self.columns;
        let pixel = taps.iter().map(|tap| tap.count).sum::<usize>() * channels;
        parallel::pieces(context, to, width * pixel, &|at, piece| {
            let row = at / (width * pixel);
            for (column, out) in piece.chunks_exact_mut(pixel).enumerate() {
                self.columns.meet(from, row / height, [row % height, column], out);
            }
        });
        Ok(())
    }
}

impl Columns {
    /// Copies what a pixel meets.
    fn meet(&self, from: &[f16], image: usize, pixel: [usize; 2], out: &mut [f16]) {
        let [height, width] = self.input;
        let mut rest = out;
        for tap in &self.taps {
            let (out, behind) = rest.split_at_mut(tap.count * self.channels);
            rest = behind;
            let row = pixel[0] as isize + tap.shift[0];
            let first = pixel[1] as isize + tap.shift[1];
            let clamp = |column: isize| column.clamp(0, width as isize) as usize;
            let (begin, end) = (clamp(first), clamp(first + tap.count as isize));
            if row < 0 || row >= height as isize || begin == end {
                out.fill(f16::ZERO);
                continue;
            }
            let skip = (begin as isize - first) as usize * self.channels;
            let at = ((image * height + row as usize) * width + begin) * self.channels;
            let length = (end - begin) * self.channels;
            out[..skip].fill(f16::ZERO);
            out[skip + length..].fill(f16::ZERO);
            let (to, from) = (&mut out[skip..skip + length], &from[at..at + length]);
            // A call to copy a few values takes longer than a loop.
            match length < 8 {
                true => to.iter_mut().zip(from).for_each(|(slot, value)| *slot = *value),
                false => to.copy_from_slice(from),
            }
        }
    }
}
