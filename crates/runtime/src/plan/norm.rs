//! Softmax, layer norm and rms norm over the last axis: native operators and the element-wise forms they are written in.

use super::Options;
use super::builder::{Builder, Described, Layout};
use super::graph::Graph;
use super::memory::{Memory, Slot, Spot};
use super::node::{Kind, Node};
use super::parallel;
use super::policy::Policy;
use super::step::Step;
use crate::DeviceError;
use crate::emulator::Engine;
use crate::kernel::norm;
use crate::kernel::types::Context;
use aneforge_mil::{Operation, ValueId};
use half::f16;
use std::sync::Arc;

/// A function of rows.
#[derive(Clone, Debug)]
pub(crate) struct Norm {
    x: ValueId,
    form: Form,
    gamma: Option<ValueId>,
    beta: Option<ValueId>,
    epsilon: f32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Softmax,
    Layer,
    RootMeanSquare,
}

/// Recognises a native operator.
pub(crate) fn recognise(graph: &Graph, index: usize) -> Option<Node> {
    let operation = &graph.body.operations[index];
    let x = graph.at(operation, "x")?;
    let output = *operation.outputs.first()?;
    let rank = graph.shape(x).len() as i64;
    let is_last = |axis: i64| axis == -1 || axis == rank - 1;
    let usable = graph.is_fp16(x) && graph.is_fp16(output) && rank > 0 && graph.body.ty(x).count() > 0;
    let plain = Norm { x, form: Form::Softmax, gamma: None, beta: None, epsilon: 0.0 };
    let norm = match operation.op.name {
        "softmax" if graph.attributes(operation, |a| a.int("axis")).is_some_and(is_last) => plain,
        "layer_norm" => {
            let (axes, epsilon) = graph.attributes(operation, |a| (a.ints("axes"), a.number("epsilon")));
            let (gamma, beta) = (graph.at(operation, "gamma"), graph.at(operation, "beta"));
            let known = [gamma, beta].iter().flatten().all(|&id| graph.is_constant(id) && graph.is_fp16(id));
            match axes.as_deref() {
                Some([axis]) if is_last(*axis) && known => {
                    Norm { form: Form::Layer, gamma, beta, epsilon: epsilon? as f32, ..plain }
                }
                _ => return None,
            }
        }
        _ => return None,
    };
    let reads = [Some(x), norm.gamma, norm.beta].into_iter().flatten().collect();
    usable.then(|| Node { kind: Kind::Norm(norm), covers: vec![index], reads, outputs: vec![output] })
}

/// Recognises the element-wise form of a norm by its reciprocal root at operation `index`: the mean of squares of the input (rms) or
/// of its distance from the mean (layer), times the input, times gamma, plus beta.
pub(crate) fn recognise_written_out(graph: &Graph, index: usize, options: &Options, taken: &[bool]) -> Option<Node> {
    let root = &graph.body.operations[index];
    if root.op.name != "rsqrt" || !options.fuse || !matches!(options.policy, Policy::Fast) {
        return None;
    }
    let mut covers = vec![index];
    let mut epsilon = graph.attributes(root, |a| a.number("epsilon"))?;
    let mut variance = graph.at(root, "x")?;
    if let Some((at, operation)) = graph.made_by(variance, "add") {
        let (a, b) = (graph.at(operation, "x")?, graph.at(operation, "y")?);
        let (value, constant) = if graph.is_constant(b) { (a, b) } else { (b, a) };
        epsilon += graph.scalar(constant)?;
        sole(graph, variance, index)?;
        covers.push(at);
        variance = value;
    }
    let (at, mean) = graph.made_by(variance, "reduce_mean").filter(|(_, operation)| over_last(graph, operation))?;
    covers.push(at);
    let squares = graph.at(mean, "x")?;
    let at = graph.producer(squares)?;
    let operation = &graph.body.operations[at];
    let centred = match operation.op.name {
        "square" => graph.at(operation, "x")?,
        "mul" if graph.at(operation, "x") == graph.at(operation, "y") => graph.at(operation, "x")?,
        _ => return None,
    };
    covers.push(at);
    let (mut form, mut x) = (Form::RootMeanSquare, centred);
    if let Some((at, difference)) = graph.made_by(centred, "sub")
        && let Some((mean_at, mean)) = graph.made_by(graph.at(difference, "y")?, "reduce_mean")
        && graph.at(mean, "x") == graph.at(difference, "x")
        && over_last(graph, mean)
    {
        (form, x) = (Form::Layer, graph.at(mean, "x")?);
        covers.extend([at, mean_at]);
    }
    let root_value = *root.outputs.first()?;
    let mut result = root_value;
    let scaled_at = graph.only_user(result).filter(|&user| !taken[user])?;
    let scaled = &graph.body.operations[scaled_at];
    if scaled.op.name != "mul" || other(graph, scaled, result)? != centred {
        return None;
    }
    covers.push(scaled_at);
    result = *scaled.outputs.first()?;
    let width = *graph.shape(x).last()?;
    let (mut gamma, mut beta) = (None, None);
    for (op, slot) in [("mul", &mut gamma), ("add", &mut beta)] {
        let Some(at) = graph.only_user(result).filter(|&user| !taken[user]) else { break };
        let operation = &graph.body.operations[at];
        let Some(vector) = other(graph, operation, result).filter(|&id| operation.op.name == op && is_vector(graph, id, width))
        else {
            continue;
        };
        *slot = Some(vector);
        covers.push(at);
        result = *operation.outputs.first()?;
    }
    // Nothing outside may need a value that the fused form never stores.
    let inside = |id: ValueId| id == result || (!graph.is_output(id) && graph.users(id).iter().all(|user| covers.contains(user)));
    let closed = covers.iter().flat_map(|&at| &graph.body.operations[at].outputs).all(|&id| inside(id));
    if !closed || covers.iter().any(|&at| taken[at]) || !graph.is_fp16(x) {
        return None;
    }
    covers.sort_unstable();
    let reads = [Some(x), gamma, beta].into_iter().flatten().collect();
    let norm = Norm { x, form, gamma, beta, epsilon: epsilon as f32 };
    Some(Node { kind: Kind::Norm(norm), covers, reads, outputs: vec![result] })
}

fn sole(graph: &Graph, id: ValueId, user: usize) -> Option<()> {
    (graph.only_user(id) == Some(user)).then_some(())
}

fn over_last(graph: &Graph, operation: &Operation) -> bool {
    let Some(x) = graph.at(operation, "x") else { return false };
    let rank = graph.shape(x).len() as i64;
    let (axes, keep) = graph.attributes(operation, |a| (a.ints("axes"), a.flag("keep_dims")));
    keep && axes.is_some_and(|axes| axes == [-1] || axes == [rank - 1])
}

fn other(graph: &Graph, operation: &Operation, one: ValueId) -> Option<ValueId> {
    let (x, y) = (graph.at(operation, "x")?, graph.at(operation, "y")?);
    match (x == one, y == one) {
        (true, false) => Some(y),
        (false, true) => Some(x),
        _ => None,
    }
}

fn is_vector(graph: &Graph, id: ValueId, width: usize) -> bool {
    let shape = graph.shape(id);
    graph.is_constant(id) && graph.is_fp16(id) && shape.last() == Some(&width) && graph.body.ty(id).count() == width
}

/// Makes the step.
pub(crate) fn lower(builder: &mut Builder<'_>, node: &Node, norm: &Norm) -> Result<(), DeviceError> {
    let width = builder.graph.shape(norm.x).last().copied().unwrap_or(1);
    let halves = |id: Option<ValueId>| id.map(|id| builder.graph.halves(id).ok_or_else(|| DeviceError::internal("norm", "gamma")));
    let gamma = halves(norm.gamma).transpose()?;
    let beta = halves(norm.beta).transpose()?;
    let x = builder.read(norm.x)?;
    let output = builder.make(node.outputs[0], Layout::Dense)?;
    let written_out = if node.covers.len() > 1 { format!(", {} operations", node.covers.len()) } else { String::new() };
    let kernel = match norm.form {
        Form::Softmax => "softmax of rows".to_string(),
        Form::Layer => format!("layer norm{written_out}"),
        Form::RootMeanSquare => format!("rms norm{written_out}"),
    };
    let described = Described::of(builder, node, kernel);
    let step: Box<dyn Step> = match builder.policy {
        Policy::Fast => {
            let wide = |values: Option<Vec<f16>>| values.map(|values| values.iter().map(|value| value.to_f32()).collect());
            Box::new(Fast { x, output, width, form: norm.form, gamma: wide(gamma), beta: wide(beta), epsilon: norm.epsilon })
        }
        Policy::Engine(engine) => {
            let epsilon = f64::from(norm.epsilon);
            Box::new(Exact { engine: engine.clone(), x, output, width, form: norm.form, gamma, beta, epsilon })
        }
    };
    builder.push(node, described, step, &[x], &[output]);
    Ok(())
}

struct Fast {
    x: Spot,
    output: Slot,
    width: usize,
    form: Form,
    gamma: Option<Vec<f32>>,
    beta: Option<Vec<f32>>,
    epsilon: f32,
}

impl Step for Fast {
    fn run(&self, context: Context<'static>, memory: &mut Memory<'_>) -> Result<(), DeviceError> {
        let ([x], [output]) = memory.split([self.x], [self.output])?;
        let (x, output): (&[f16], &mut [f16]) = (bytemuck::cast_slice(x), bytemuck::cast_slice_mut(output));
        let (gamma, beta) = (self.gamma.as_deref(), self.beta.as_deref());
        match self.form {
            Form::Softmax => norm::softmax(context, self.width, x, output),
            Form::Layer => norm::layer_norm(context, self.width, x, None, gamma, beta, self.epsilon, output),
            Form::RootMeanSquare => {
                norm::rms_norm(context, self.width, x, gamma, self.epsilon, output);
                if let Some(beta) = beta {
                    for row in output.chunks_exact_mut(self.width) {
                        row.iter_mut().zip(beta).for_each(|(value, beta)| *value = f16::from_f32(value.to_f32() + beta));
                    }
                }
            }
        }
        Ok(())
    }
}

struct Exact {
    engine: Arc<Engine>,
    x: Spot,
    output: Slot,
    width: usize,
    form: Form,
    gamma: Option<Vec<f16>>,
    beta: Option<Vec<f16>>,
    epsilon: f64,
}

impl Step for Exact {
    fn run(&self, context: Context<'static>, memory: &mut Memory<'_>) -> Result<(), DeviceError> {
        let ([x], [output]) = memory.split([self.x], [self.output])?;
        let (x, output): (&[f16], &mut [f16]) = (bytemuck::cast_slice(x), bytemuck::cast_slice_mut(output));
        let rows_per_piece = (parallel::SMALL / 4 / self.width).max(1);
        parallel::pieces(context, output, rows_per_piece * self.width, &|at, piece| {
            for (row, out) in x[at..at + piece.len()].chunks_exact(self.width).zip(piece.chunks_exact_mut(self.width)) {
                match self.form {
                    Form::Softmax => self.engine.softmax(row, out),
                    _ => self.engine.layer_norm(row, self.gamma.as_deref(), self.beta.as_deref(), self.epsilon, out),
                }
            }
        });
        Ok(())
    }
}
