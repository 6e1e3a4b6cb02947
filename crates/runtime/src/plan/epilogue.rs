//! What follows a product or a convolution and is done before its result is stored.

use super::Options;
use super::builder::Builder;
use super::graph::Graph;
use super::memory::Spot;
use super::policy::Policy;
use crate::DeviceError;
use crate::emulator::Engine;
use crate::kernel::types::{Activation, Epilogue, Residual};
use aneforge_mil::{Operation, ValueId};
use half::f16;

/// The operations that a product absorbs, in order: scale, bias, then residual and activation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tail {
    pub(crate) scale: Option<f32>,
    pub(crate) bias: Option<Vec<f32>>,
    pub(crate) residual: Option<(ValueId, bool)>,
    pub(crate) activation: Activation,
}

/// Which axis of the result holds the columns of the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Columns {
    /// The last one.
    Last,
    /// Axis 1 of NCHW.
    Channels,
}

impl Tail {
    /// Follows the only uses of `result` as far as they can be absorbed; adds the operations to `covers` and returns what the last
    /// one makes.
    pub(crate) fn absorb(
        &mut self,
        graph: &Graph,
        options: &Options,
        taken: &[bool],
        mut result: ValueId,
        columns: Columns,
        covers: &mut Vec<usize>,
    ) -> ValueId {
        while let Some(user) = graph.only_user(result).filter(|&user| options.fuse && !taken[user]) {
            let operation = &graph.body.operations[user];
            let Some(&output) = operation.outputs.first() else { break };
            let unchanged = graph.shape(output) == graph.shape(result) && graph.is_fp16(output);
            if !unchanged || !self.take(graph, options, operation, result, columns) {
                break;
            }
            covers.push(user);
            result = output;
        }
        result
    }

    fn take(&mut self, graph: &Graph, options: &Options, operation: &Operation, result: ValueId, columns: Columns) -> bool {
        let other = || {
            let (x, y) = (graph.at(operation, "x")?, graph.at(operation, "y")?);
            match (x == result, y == result) {
                (true, false) => Some(y),
                (false, true) => Some(x),
                _ => None,
            }
        };
        let is_plain = self.activation == Activation::None && self.residual.is_none();
        match operation.op.name {
            "mul" if is_plain && self.bias.is_none() && self.scale.is_none() => {
                self.scale = other().and_then(|id| graph.scalar(id)).map(|value| value as f32);
                self.scale.is_some()
            }
            "add" => {
                let Some(other) = other() else { return false };
                if is_plain
                    && self.bias.is_none()
                    && let Some(bias) = per_column(graph, other, result, columns)
                {
                    self.bias = Some(bias);
                    return true;
                }
                let fits = graph.shape(other) == graph.shape(result) && graph.is_fp16(other);
                if self.residual.is_some() || !fits || graph.is_constant(other) {
                    return false;
                }
                self.residual = Some((other, self.activation == Activation::None));
                true
            }
            _ => {
                let is_free = self.activation == Activation::None && self.residual.is_none_or(|(_, before)| before);
                match activation(graph, operation) {
                    Some(function) if is_free && allowed(graph, operation, &options.policy, function) => {
                        self.activation = function;
                        true
                    }
                    _ => false,
                }
            }
        }
    }

    /// Words for a report.
    pub(crate) fn describe(&self) -> String {
        let mut text = String::new();
        if self.scale.is_some() {
            text.push_str(" + scale");
        }
        if self.bias.is_some() {
            text.push_str(" + bias");
        }
        if let Some((_, true)) = self.residual {
            text.push_str(" + residual");
        }
        if self.activation != Activation::None {
            text.push_str(&format!(" + {:?}", self.activation).to_lowercase());
        }
        if let Some((_, false)) = self.residual {
            text.push_str(" + residual");
        }
        text
    }
}

/// The tail with its residual's place.
pub(crate) struct PlacedTail {
    scale: Option<f32>,
    bias: Option<Vec<f32>>,
    residual: Option<(Spot, bool)>,
    activation: Activation,
}

impl PlacedTail {
    pub(crate) fn new(builder: &mut Builder<'_>, tail: &Tail, columns: Columns) -> Result<Self, DeviceError> {
        let residual = match tail.residual {
            None => None,
            Some((id, before)) if columns == Columns::Channels => Some((builder.read_channels_last(id)?, before)),
            Some((id, before)) => Some((builder.read(id)?, before)),
        };
        Ok(Self { scale: tail.scale, bias: tail.bias.clone(), residual, activation: tail.activation })
    }

    /// The residual's place, or `otherwise` where there is none; steps always borrow one.
    pub(crate) fn residual_or(&self, otherwise: Spot) -> Spot {
        self.residual.map_or(otherwise, |(spot, _)| spot)
    }

    /// The places it reads.
    pub(crate) fn reads(&self) -> Option<Spot> {
        self.residual.map(|(spot, _)| spot)
    }

    /// The kernel's form; `residual` is what [`Self::residual_or`] named.
    pub(crate) fn epilogue<'a>(&'a self, residual: &'a [u8], columns: usize) -> Epilogue<'a> {
        Epilogue {
            scale: self.scale,
            bias: self.bias.as_deref(),
            residual: self.residual.map(|(_, before_activation)| Residual {
                data: bytemuck::cast_slice::<u8, f16>(residual),
                offset: 0,
                stride: columns,
                before_activation,
            }),
            activation: self.activation,
        }
    }
}

/// A constant with one value per column of `result` (or one for all), widened.
fn per_column(graph: &Graph, id: ValueId, result: ValueId, columns: Columns) -> Option<Vec<f32>> {
    let shape = graph.shape(result);
    let axis = match columns {
        Columns::Last => shape.len().checked_sub(1)?,
        Columns::Channels => 1,
    };
    let count = *shape.get(axis)?;
    let given = graph.shape(id);
    let position = (axis + given.len()).checked_sub(shape.len());
    let is_vector = given.iter().enumerate().all(|(at, &extent)| extent == 1 || (Some(at) == position && extent == count));
    if !is_vector || !graph.is_constant(id) || given.len() > shape.len() {
        return None;
    }
    let values: Vec<f32> = graph.halves(id)?.iter().map(|value| value.to_f32()).collect();
    match values.len() {
        1 => Some(vec![values[0]; count]),
        length if length == count => Some(values),
        _ => None,
    }
}

/// The vector form of a unary operation, if there is one.
pub(crate) fn activation(graph: &Graph, operation: &Operation) -> Option<Activation> {
    Some(match operation.op.name {
        "relu" => Activation::Relu,
        "relu6" => Activation::RELU6,
        "clip" => graph.attributes(operation, |a| Some(Activation::Clip(a.number("alpha")? as f32, a.number("beta")? as f32)))?,
        "gelu" => match graph.attributes(operation, |a| a.text("mode").map(str::to_string))?.as_str() {
            "EXACT" => Activation::Gelu,
            "TANH_APPROXIMATION" => Activation::GeluTanh,
            _ => return None,
        },
        "silu" => Activation::Silu,
        "sigmoid" => Activation::Sigmoid,
        "tanh" => Activation::Tanh,
        "square" => Activation::Square,
        "exp" => Activation::Exp,
        "erf" => Activation::Erf,
        _ => return None,
    })
}

/// Whether a policy lets a product do a function: on the engine only those without a table.
pub(crate) fn allowed(graph: &Graph, operation: &Operation, policy: &Policy, function: Activation) -> bool {
    match policy {
        Policy::Fast => true,
        Policy::Engine(engine) => function == Activation::Relu && !is_dumped(graph, operation, engine),
    }
}

/// Whether an engine looks a function up in a dump, whatever its rule says.
pub(crate) fn is_dumped(graph: &Graph, operation: &Operation, engine: &Engine) -> bool {
    engine.is_dump() && graph.attributes(operation, |a| engine.is_dumped(a))
}
