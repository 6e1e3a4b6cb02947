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
use crate::kernel::exact::{ExactConv2d, Form, MacRules};
use crate::kernel::simd::Level;
use crate::kernel::types::{Context, Output};
use aneforge_mil::{Operation, ValueId};
use half::f16;

/// A convolution, and what follows it.
#[derive(Clone, Debug)]
pub(crate) struct Convolution {
    x: ValueId,
    weight: ValueId,
    shape: ConvShape,
    /// Whether it is a transposed one, written as the convolution by the turned weight that gives the same.
    transposed: bool,
    tail: Tail,
}

/// Recognises operation `index` and what its result flows into.
pub(crate) fn recognise(graph: &Graph, index: usize, options: &Options, taken: &[bool]) -> Option<Node> {
    let operation = &graph.body.operations[index];
    let transposed = match operation.op.name {
        "conv" => false,
        "conv_transpose" => true,
        _ => return None,
    };
    let (x, weight) = (graph.at(operation, "x")?, graph.at(operation, "weight")?);
    let output = *operation.outputs.first()?;
    let (&[batch, channels_in, height, width], &[first, second, kernel_height, kernel_width]) =
        (graph.shape(x), graph.shape(weight))
    else {
        return None;
    };
    let is_fp16 = [x, weight, output].iter().all(|&id| graph.is_fp16(id));
    if !is_fp16 || graph.is_constant(x) {
        return None;
    }
    if let Policy::Engine(engine) = &options.policy
        && engine.is_scaling([kernel_height, kernel_width], channels_in)
    {
        return None;
    }
    let (input, kernel) = ([height, width], [kernel_height, kernel_width]);
    let mut window = window::of(graph, operation, input, kernel)?;
    let groups = usize::try_from(graph.attributes(operation, |a| a.int("groups"))?).ok()?;
    if transposed {
        window = turned(graph, operation, window, kernel).filter(|_| groups == 1)?;
    }
    let window::Window { stride, dilation, pads } = window;
    let channels_out = if transposed { second } else { first };
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
    let node = Convolution { x, weight, shape, transposed, tail };
    Some(Node { kind: Kind::Convolution(node), covers, reads, outputs: vec![result] })
}

/// The window of the convolution by the turned weight that equals a transposed convolution without strides: what that one cuts off
/// the border is what this one is padded less.
fn turned(graph: &Graph, operation: &Operation, window: window::Window, kernel: [usize; 2]) -> Option<window::Window> {
    let is_plain = graph.attributes(operation, |a| matches!(a.text("pad_type"), None | Some("custom" | "valid")));
    if window.stride != [1, 1] || !is_plain || graph.at(operation, "output_shape").is_some() {
        return None;
    }
    let mut pads = [0; 4];
    for (index, pad) in pads.iter_mut().enumerate() {
        let reach = kernel[index / 2].checked_sub(1)? * window.dilation[index / 2];
        *pad = reach.checked_sub(window.pads[index])?;
    }
    Some(window::Window { pads, ..window })
}

/// Makes the step.
pub(crate) fn lower(builder: &mut Builder<'_>, node: &Node, convolution: &Convolution) -> Result<(), DeviceError> {
    let Convolution { shape, transposed, .. } = *convolution;
    let (rules, name) = match builder.policy {
        Policy::Fast => (None, "convolution"),
        Policy::Engine(engine) => {
            // How an engine runs a transposed one is not reported: the plain sums.
            let form = if transposed { Form::Direct } else { engine.convolution_form(&shape) };
            let name = if matches!(form, Form::Winograd) { "exact Winograd convolution" } else { "exact convolution" };
            (Some((engine.mac_rules(), form)), name)
        }
    };
    let maker = Maker { level: Level::active(), shape, transposed, rules };
    let known = builder.graph.halves(convolution.weight);
    let count = shape.channels_out * shape.channels_in / shape.groups * shape.kernel[0] * shape.kernel[1];
    // Scratch depends on the geometry alone.
    let kernel = maker.make(known.as_deref().unwrap_or(&vec![f16::ZERO; count]))?;
    let needs_channels_last = matches!(&kernel, Planned::Exact(exact) if exact.form() == Form::Winograd);
    let scratch_len = kernel.scratch_len();
    let weight = match known {
        Some(_) => {
            builder.packed_bytes += kernel.bytes();
            Weight::Known(kernel)
        }
        None => Weight::Read(builder.read(convolution.weight)?, maker),
    };
    let (x, order) = match needs_channels_last || builder.is_channels_last(convolution.x) {
        true => (builder.read_channels_last(convolution.x)?, Order::Nhwc),
        false => (builder.read(convolution.x)?, Order::Nchw),
    };
    let tail = PlacedTail::new(builder, &convolution.tail, Columns::Channels)?;
    let scratch = builder.scratch(scratch_len * size_of::<f32>());
    let output = builder.make(node.outputs[0], Layout::ChannelsLast)?;
    let [height, width] = shape.kernel;
    let kind = if transposed { "transposed " } else { "" };
    let text =
        format!("{kind}{name} {height}x{width} {}->{}{}", shape.channels_in, shape.channels_out, convolution.tail.describe());
    let described = Described::of(builder, node, text);
    let given = if let Weight::Read(spot, _) = &weight { Some(*spot) } else { None };
    let reads: Vec<Spot> = [x].into_iter().chain(given).chain(tail.reads()).collect();
    let step = ConvolutionStep { x, order, columns: shape.channels_out, weight, tail, scratch, output };
    builder.push(node, described, Box::new(step), &reads, &[scratch, output]);
    Ok(())
}

/// Where the weight comes from.
enum Weight {
    /// It is a constant, packed.
    Known(Planned),
    /// It is computed: packed anew at each call, which costs little beside the products.
    Read(Spot, Maker),
}

/// Packs weights.
struct Maker {
    level: Level,
    shape: ConvShape,
    transposed: bool,
    /// The engine's rules, where its arithmetic is wanted.
    rules: Option<(MacRules, Form)>,
}

impl Maker {
    fn make(&self, weight: &[f16]) -> Result<Planned, DeviceError> {
        let fault = |error: ShapeError| DeviceError::internal("conv", error.to_string());
        let turned: Vec<f16>;
        let weight = if self.transposed {
            turned = self.turned(weight);
            &turned
        } else {
            weight
        };
        match self.rules {
            None => Conv2d::new(self.level, self.shape, weight).map(Planned::Fast).map_err(fault),
            Some((rules, form)) => ExactConv2d::new(self.level, self.shape, weight, rules, form).map(Planned::Exact).map_err(fault),
        }
    }

    /// `[out, in, height, width]` with both axes of the window backwards, from `[in, out, height, width]`.
    fn turned(&self, weight: &[f16]) -> Vec<f16> {
        let taps = self.shape.kernel[0] * self.shape.kernel[1];
        let (inputs, outputs) = (self.shape.channels_in, self.shape.channels_out);
        let mut turned = Vec::with_capacity(weight.len());
        for output in 0..outputs {
            for input in 0..inputs {
                let from = (input * outputs + output) * taps;
                turned.extend(weight[from..from + taps].iter().rev());
            }
        }
        turned
    }
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
    weight: Weight,
    tail: PlacedTail,
    scratch: Slot,
    output: Slot,
}

impl Step for ConvolutionStep {
    fn run(&self, context: Context<'static>, memory: &mut Memory<'_>) -> Result<(), DeviceError> {
        let place = if let Weight::Read(spot, _) = &self.weight { *spot } else { self.x };
        let ([x, residual, weight], [scratch, output]) =
            memory.split([self.x, self.tail.residual_or(self.x), place], [self.scratch, self.output])?;
        let made: Planned;
        let kernel = match &self.weight {
            Weight::Known(kernel) => kernel,
            Weight::Read(_, maker) => {
                made = maker.make(bytemuck::cast_slice(weight))?;
                &made
            }
        };
        let x = bytemuck::cast_slice(x);
        let epilogue = self.tail.epilogue(residual, self.columns);
        let scratch = bytemuck::cast_slice_mut(scratch);
        let output = Output::dense(bytemuck::cast_slice_mut(output), self.columns);
        match kernel {
            Planned::Fast(kernel) => kernel.run(context, x, self.order, &epilogue, scratch, output),
            Planned::Exact(kernel) => kernel.run(context, x, self.order, &epilogue, scratch, output),
        }
        Ok(())
    }
}
