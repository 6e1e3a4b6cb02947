//! Pooling, and changes between row-major and channels-last order.

use super::builder::{Builder, Described, Layout};
use super::graph::Graph;
use super::memory::{Memory, Slot, Spot};
use super::node::{Kind, Node};
use super::policy::Policy;
use super::step::Step;
use super::window;
use crate::DeviceError;
use crate::kernel::spatial::{self, PoolShape};
use crate::kernel::types::Context;
use aneforge_mil::ValueId;
use half::f16;

/// A 2-D pool.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    x: ValueId,
    shape: PoolShape,
    is_max: bool,
}

/// Recognises operation `index`: maximum pools on every device, mean pools where f32 sums will do.
pub(crate) fn recognise(graph: &Graph, index: usize, options: &super::Options) -> Option<Node> {
    let operation = &graph.body.operations[index];
    let is_max = match operation.op.name {
        "max_pool" => true,
        "avg_pool" if matches!(options.policy, Policy::Fast) => false,
        _ => return None,
    };
    let x = graph.at(operation, "x")?;
    let output = *operation.outputs.first()?;
    let &[batch, channels, height, width] = graph.shape(x) else { return None };
    let kernel = graph.attributes(operation, |a| a.ints("kernel_sizes"))?;
    let kernel = [usize::try_from(*kernel.first()?).ok()?, usize::try_from(*kernel.get(1)?).ok()?];
    let window::Window { stride, pads, .. } = window::of(graph, operation, [height, width], kernel)?;
    let (ceil, exclude) = graph.attributes(operation, |a| (a.flag("ceil_mode"), a.flag("exclude_padding_from_average")));
    if ceil || !graph.is_fp16(x) || graph.is_constant(x) {
        return None;
    }
    let shape = PoolShape { batch, input: [height, width], channels, kernel, stride, pads, exclude_padding: exclude };
    let &[_, _, out_height, out_width] = graph.shape(output) else { return None };
    if shape.output().ok()? != [out_height, out_width] {
        return None;
    }
    Some(Node { kind: Kind::Pool(Pool { x, shape, is_max }), covers: vec![index], reads: vec![x], outputs: vec![output] })
}

/// Makes the step.
pub(crate) fn lower(builder: &mut Builder<'_>, node: &Node, pool: &Pool) -> Result<(), DeviceError> {
    let x = builder.read_channels_last(pool.x)?;
    let to = builder.make(node.outputs[0], Layout::ChannelsLast)?;
    let described = Described::of(builder, node, if pool.is_max { "max pool" } else { "mean pool" });
    builder.push(node, described, Box::new(PoolStep { x, to, pool: pool.clone() }), &[x], &[to]);
    Ok(())
}

struct PoolStep {
    x: Spot,
    to: Slot,
    pool: Pool,
}

impl Step for PoolStep {
    fn run(&self, context: Context<'static>, memory: &mut Memory<'_>) -> Result<(), DeviceError> {
        let ([x], [to]) = memory.split([self.x], [self.to])?;
        let (x, to): (&[f16], &mut [f16]) = (bytemuck::cast_slice(x), bytemuck::cast_slice_mut(to));
        let done = match self.pool.is_max {
            true => spatial::max_pool(context, self.pool.shape, x, to),
            false => spatial::average_pool(context, self.pool.shape, x, to),
        };
        done.map_err(|error| DeviceError::internal("pool", error.to_string()))
    }
}

/// Transposes each item of a batch of fp16 matrices: NCHW to NHWC and back.
pub(crate) struct ToLayout {
    pub(crate) from: Spot,
    pub(crate) to: Slot,
    pub(crate) batch: usize,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

impl Step for ToLayout {
    fn run(&self, context: Context<'static>, memory: &mut Memory<'_>) -> Result<(), DeviceError> {
        let ([from], [to]) = memory.split([self.from], [self.to])?;
        let (from, to): (&[f16], &mut [f16]) = (bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
        spatial::transpose(context, self.batch, self.rows, self.columns, from, to);
        Ok(())
    }
}
