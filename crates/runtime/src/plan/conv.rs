//! 2-D convolutions with channels innermost.

use super::Options;
use super::builder::{Builder, Described, Layout};
use super::epilogue::{Columns, PlacedTail, Tail};
use super::graph::Graph;
use super::memory::{Memory, Slot, Spot};
use super::node::{Kind, Node};
use super::policy::Policy;
use super::step::Step;
use super::window;
use crate::DeviceError;
use crate::kernel::conv::{Conv2d, ConvShape, Layout as Order, ShapeError};
use crate::kernel::exact::{ExactConv2d, Form};
use crate::kernel::simd::Level;
use crate::kernel::types::{Context, Output};
use aneforge_mil::ValueId;

/// A convolution by a constant weight, and what follows it.
#[derive(Clone, Debug)]
pub(crate) struct Convolution {
    x: ValueId,
    weight: ValueId,
    shape: ConvShape,
    tail: Tail,
}

/// Recognises operation `index` and what its result flows into.
pub(crate) fn recognise(graph: &Graph, index: usize, options: &Options, taken: &[bool]) -> Option<Node> {
    let operation = &graph.body.operations[index];
    if operation.op.name != "conv" {
        return None;
    }
    let (x, weight) = (graph.at(operation, "x")?, graph.at(operation, "weight")?);
    let output = *operation.outputs.first()?;
    let (&[batch, channels_in, height, width], &[channels_out, _, kernel_height, kernel_width]) =
        (graph.shape(x), graph.shape(weight))
    else {
        return None;
    };
    let is_fp16 = [x, weight, output].iter().all(|&id| graph.is_fp16(id));
    if !is_fp16 || !graph.is_constant(weight) || graph.is_constant(x) {
        return None;
    }
    if let Policy::Engine(engine) = &options.policy
        && engine.is_scaling([kernel_height, kernel_width], channels_in)
    {
        return None;
    }
    let (input, kernel) = ([height, width], [kernel_height, kernel_width]);
    let window = window::of(graph, operation, input, kernel)?;
    let groups = usize::try_from(graph.attributes(operation, |a| a.int("groups"))?).ok()?;
    let window::Window { stride, dilation, pads } = window;
    let shape = ConvShape { batch, input, channels_in, channels_out, kernel, stride, dilation, pads, groups };
    let &[_, _, out_height, out_width] = graph.shape(output) else { return None };
    if shape.output().ok()? != [out_height, out_width] {
        return None;
    }
    let mut tail = Tail::default();
    if let Some(bias) = graph.at(operation, "bias") {
        tail.bias = Some(graph.halves(bias)?.iter().map(|value| value.to_f32()).collect());
    }
    let mut covers = vec![index];
    let result = tail.absorb(graph, options, taken, output, Columns::Channels, &mut covers);
    let reads = [Some(x), Some(weight), tail.residual.map(|(id, _)| id)].into_iter().flatten().collect();
    Some(Node { kind: Kind::Convolution(Convolution { x, weight, shape, tail }), covers, reads, outputs: vec![result] })
}

/// Makes the step.
pub(crate) fn lower(builder: &mut Builder<'_>, node: &Node, convolution: &Convolution) -> Result<(), DeviceError> {
    let Convolution { shape, .. } = *convolution;
    let weight =
        builder.graph.halves(convolution.weight).ok_or_else(|| DeviceError::internal("conv", "a weight cannot be read"))?;
    let level = Level::active();
    let fault = |error: ShapeError| DeviceError::internal("conv", error.to_string());
    let (kernel, name) = match builder.policy {
        Policy::Fast => (Planned::Fast(Conv2d::new(level, shape, &weight).map_err(fault)?), "convolution"),
        Policy::Engine(engine) => {
            let form = engine.convolution_form(&shape);
            let planned = ExactConv2d::new(level, shape, &weight, engine.mac_rules(), form).map_err(fault)?;
            let name = if matches!(form, Form::Winograd) { "exact Winograd convolution" } else { "exact convolution" };
            (Planned::Exact(planned), name)
        }
    };
    builder.packed_bytes += kernel.bytes();
    let needs_channels_last = matches!(&kernel, Planned::Exact(exact) if exact.form() == Form::Winograd);
    let (x, order) = match needs_channels_last || builder.is_channels_last(convolution.x) {
        true => (builder.read_channels_last(convolution.x)?, Order::Nhwc),
        false => (builder.read(convolution.x)?, Order::Nchw),
    };
    let tail = PlacedTail::new(builder, &convolution.tail, Columns::Channels)?;
    let scratch = builder.scratch(kernel.scratch_len() * size_of::<f32>());
    let output = builder.make(node.outputs[0], Layout::ChannelsLast)?;
    let [height, width] = shape.kernel;
    let text = format!("{name} {height}x{width} {}->{}{}", shape.channels_in, shape.channels_out, convolution.tail.describe());
    let described = Described::of(builder, node, text);
    let reads: Vec<Spot> = [x].into_iter().chain(tail.reads()).collect();
    let step = ConvolutionStep { x, order, columns: shape.channels_out, kernel, tail, scratch, output };
    builder.push(node, described, Box::new(step), &reads, &[scratch, output]);
    Ok(())
}

enum Planned {
    Fast(Conv2d),
    Exact(ExactConv2d),
}

impl Planned {
    fn bytes(&self) -> usize {
        match self {
            Self::Fast(kernel) => kernel.bytes(),
            Self::Exact(kernel) => kernel.bytes(),
        }
    }

    fn scratch_len(&self) -> usize {
        match self {
            Self::Fast(kernel) => kernel.scratch_len(),
            Self::Exact(kernel) => kernel.scratch_len(),
        }
    }
}

struct ConvolutionStep {
    x: Spot,
    order: Order,
    columns: usize,
    kernel: Planned,
    tail: PlacedTail,
    scratch: Slot,
    output: Slot,
}

impl Step for ConvolutionStep {
    fn run(&self, context: Context<'static>, memory: &mut Memory<'_>) -> Result<(), DeviceError> {
        let ([x, residual], [scratch, output]) =
            memory.split([self.x, self.tail.residual_or(self.x)], [self.scratch, self.output])?;
        let x = bytemuck::cast_slice(x);
        let epilogue = self.tail.epilogue(residual, self.columns);
        let scratch = bytemuck::cast_slice_mut(scratch);
        let output = Output::dense(bytemuck::cast_slice_mut(output), self.columns);
        match &self.kernel {
            Planned::Fast(kernel) => kernel.run(context, x, self.order, &epilogue, scratch, output),
            Planned::Exact(kernel) => kernel.run(context, x, self.order, &epilogue, scratch, output),
        }
        Ok(())
    }
}
