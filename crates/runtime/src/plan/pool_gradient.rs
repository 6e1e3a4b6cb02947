//! The gradient of a maximum over windows that lie side by side, written as comparisons of all values with the largest ones: one step.

use super::Options;
use super::builder::{Builder, Described, Layout};
use super::graph::Graph;
use super::memory::{Memory, Slot, Spot};
use super::node::{Kind, Node};
use super::policy::Policy;
use super::pool::ToLayout;
use super::step::Step;
use crate::DeviceError;
use crate::kernel::pool_gradient::{Tiles, max_pool_gradient};
use crate::kernel::types::Context;
use aneforge_mil::{Operation, ValueId};
use half::f16;

/// `select(x == y, grad / number of equals, 0)`, each window apart.
#[derive(Clone, Debug)]
pub(crate) struct PoolGradient {
    x: ValueId,
    y: ValueId,
    grad: ValueId,
    tiles: Tiles,
}

/// Recognises it by the reshape at operation `index` that makes an image of its windows.
pub(crate) fn recognise(graph: &Graph, index: usize, options: &Options, taken: &[bool]) -> Option<Node> {
    let last = &graph.body.operations[index];
    if last.op.name != "reshape" || !options.fuse || !matches!(options.policy, Policy::Fast) {
        return None;
    }
    let own = |id: ValueId, op: &str| graph.made_by(id, op).filter(|(at, _)| !taken[*at]);
    let (chosen_at, chosen) = own(graph.at(last, "x")?, "select")?;
    graph.only_user(graph.at(last, "x")?)?;
    let &[images, down, rows, across, columns] = graph.shape(graph.at(last, "x")?) else { return None };
    let (hits, repeated) = (graph.at(chosen, "cond")?, graph.at(chosen, "a")?);
    // A selection may have its operand repeated to its own shape first.
    let share = graph.made_by(repeated, "tile").and_then(|(_, tile)| graph.at(tile, "x")).unwrap_or(repeated);
    graph.only_user(repeated)?;
    let (equal_at, equal) = own(hits, "equal")?;
    let (share_at, division) = own(share, "real_div")?;
    graph.only_user(share)?;
    let (sum_at, sum) = own(graph.at(division, "y")?, "reduce_sum")?;
    graph.only_user(graph.at(division, "y")?)?;
    let (count_at, count) = own(graph.at(sum, "x")?, "select")?;
    graph.only_user(graph.at(sum, "x")?)?;
    // A constant may have one element, or as many as there are places.
    let is = |operation: &Operation, port: &str, value: f32| {
        let all = graph.at(operation, port).and_then(|id| graph.halves(id));
        all.is_some_and(|all| all.iter().all(|&other| other == f16::from_f32(value)))
    };
    let counts = graph.at(count, "cond") == Some(hits) && is(count, "a", 1.0) && is(count, "b", 0.0) && is(chosen, "b", 0.0);
    let axes = graph.attributes(sum, |a| a.ints("axes"))?;
    let used = graph.users(hits).iter().all(|&user| user == chosen_at || user == count_at) && !graph.is_output(hits);
    if !counts || axes != [2, 4] || !used {
        return None;
    }
    let viewed = |id: ValueId| graph.made_by(id, "reshape").and_then(|(_, view)| graph.at(view, "x"));
    let (x, y) = (viewed(graph.at(equal, "x")?)?, viewed(graph.at(equal, "y")?)?);
    let grad = viewed(graph.at(division, "x")?)?;
    let output = *last.outputs.first()?;
    let &[batch, channels, height, width] = graph.shape(x) else { return None };
    let tiles = Tiles { batch, channels, output: [down, across], window: [rows, columns] };
    let small = [batch, channels, down, across];
    let fits = batch * channels == images
        && [height, width] == [down * rows, across * columns]
        && graph.shape(output) == graph.shape(x)
        && graph.shape(y) == small
        && graph.body.ty(grad).count() == graph.body.ty(y).count()
        && [x, y, grad, output].iter().all(|&id| graph.is_fp16(id));
    let covers = vec![equal_at, count_at, sum_at, share_at, chosen_at, index];
    let kind = Kind::PoolGradient(PoolGradient { x, y, grad, tiles });
    fits.then(|| Node { kind, covers, reads: vec![x, y, grad], outputs: vec![output] })
}

/// Makes the step.
pub(crate) fn lower(builder: &mut Builder<'_>, node: &Node, gradient: &PoolGradient) -> Result<(), DeviceError> {
    let PoolGradient { x, y, grad, tiles } = *gradient;
    let Tiles { batch, channels, output: [down, across], .. } = tiles;
    let grad = if builder.graph.shape(grad) == builder.graph.shape(y) {
        builder.read_channels_last(grad)?
    } else {
        // It comes under another shape, with its elements in row-major order all the same.
        let from = builder.read(grad)?;
        let to = builder.scratch(batch * channels * down * across * size_of::<f16>());
        let described = Described::of(builder, node, "layout: row major to channels last");
        let step = ToLayout { from, to, batch, rows: channels, columns: down * across };
        builder.push(node, described, Box::new(step), &[from], &[to]);
        to.into()
    };
    let reads = [builder.read_channels_last(x)?, builder.read_channels_last(y)?, grad];
    let to = builder.make(node.outputs[0], Layout::ChannelsLast)?;
    let described = Described::of(builder, node, "gradient of a max pool");
    builder.push(node, described, Box::new(GradientStep { reads, to, tiles }), &reads, &[to]);
    Ok(())
}

struct GradientStep {
    reads: [Spot; 3],
    to: Slot,
    tiles: Tiles,
}

impl Step for GradientStep {
    fn run(&self, context: Context<'static>, memory: &mut Memory<'_>) -> Result<(), DeviceError> {
        let (reads, [to]) = memory.split(self.reads, [self.to])?;
        let [x, y, grad] = reads.map(bytemuck::cast_slice);
        max_pool_gradient(context, self.tiles, x, y, grad, bytemuck::cast_slice_mut(to));
        Ok(())
    }
}
