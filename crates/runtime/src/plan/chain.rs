//! Element-wise operations that follow each other, done in one pass: blocks of fp16 that stay in the first-level cache.

use super::Options;
use super::builder::{Builder, Described, Layout};
use super::epilogue::{activation, is_dumped};
use super::function::{Function, Table};
use super::graph::Graph;
use super::memory::{Memory, Slot, Spot};
use super::node::{Kind, Node};
use super::parallel;
use super::policy::Policy;
use super::step::Step;
use crate::DeviceError;
use crate::kernel::pointwise::{self, Binary, Other};
use crate::kernel::types::Context;
use aneforge_mil::{DType, Operation, ValueId};
use half::f16;
use half::slice::HalfFloatSliceExt;

/// Values per block.
const BLOCK: usize = 1024;
/// Rows shorter than this are laid side by side in a block.
const SHORT: usize = 64;
/// Most operations of one chain; each has a block on the stack.
const MOST_CODES: usize = 16;
/// Most values that a chain reads.
const MOST_INPUTS: usize = 8;

/// Element-wise operations in single assignment; the last one makes the result.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    inputs: Vec<ValueId>,
    codes: Vec<Code>,
}

#[derive(Clone, Debug)]
struct Code {
    /// Operation of the body.
    operation: usize,
    work: Work,
    sources: [Source; 3],
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Work {
    Binary(Binary),
    Unary,
    Compare(Comparison),
    Select,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Source {
    Nothing,
    Input(usize),
    Code(usize),
}

/// Element-wise operators that chains know, by their ports.
fn work(name: &str) -> Option<(Work, &'static [&'static str])> {
    const XY: &[&str] = &["x", "y"];
    Some(match name {
        "add" => (Work::Binary(Binary::Add), XY),
        "sub" => (Work::Binary(Binary::Sub), XY),
        "mul" => (Work::Binary(Binary::Mul), XY),
        "real_div" => (Work::Binary(Binary::Div), XY),
        "maximum" => (Work::Binary(Binary::Max), XY),
        "minimum" => (Work::Binary(Binary::Min), XY),
        "equal" => (Work::Compare(Comparison::Equal), XY),
        "not_equal" => (Work::Compare(Comparison::NotEqual), XY),
        "less" => (Work::Compare(Comparison::Less), XY),
        "less_equal" => (Work::Compare(Comparison::LessEqual), XY),
        "greater" => (Work::Compare(Comparison::Greater), XY),
        "greater_equal" => (Work::Compare(Comparison::GreaterEqual), XY),
        "select" => (Work::Select, &["cond", "a", "b"]),
        "relu" | "relu6" | "clip" | "gelu" | "silu" | "sigmoid" | "tanh" | "square" | "exp" | "erf" | "abs" | "sign" | "floor"
        | "ceil" | "round" | "sqrt" | "rsqrt" | "inverse" | "log" | "exp2" | "sin" | "cos" | "atan" | "tan" | "asin" | "acos"
        | "sinh" | "cosh" | "atanh" | "threshold" | "softplus" | "softsign" | "elu" | "leaky_relu" | "scaled_tanh"
        | "sigmoid_hard" | "clamped_relu" | "thresholded_relu" | "linear_activation" => (Work::Unary, &["x"]),
        _ => return None,
    })
}

/// Whether a chain can do an operation: floats in, or a condition that it made itself.
fn fits(graph: &Graph, operation: &Operation) -> bool {
    let Some((work, ports)) = work(operation.op.name) else { return false };
    let Some(&output) = operation.outputs.first() else { return false };
    let made = match work {
        Work::Compare(_) => DType::Bool,
        _ => DType::Fp16,
    };
    graph.dtype(output) == made
        && graph.body.ty(output).count() > 0
        && ports.iter().all(|port| match graph.at(operation, port) {
            Some(id) => graph.is_fp16(id) || *port == "cond",
            None => false,
        })
}

/// Recognises a chain that ends with operation `index`.
pub(crate) fn recognise(graph: &Graph, index: usize, options: &Options, taken: &[bool]) -> Option<Node> {
    let last = &graph.body.operations[index];
    let output = *last.outputs.first()?;
    if !fits(graph, last) || !graph.is_fp16(output) {
        return None;
    }
    let mut members = grow(graph, index, options, taken, true);
    // A condition that comes from outside is no fp16: only a select that stands alone takes it, as a step of its own.
    let outside = |member: &usize| {
        let condition = graph.at(&graph.body.operations[*member], "cond");
        condition.is_some_and(|id| !graph.is_fp16(id) && graph.producer(id).is_none_or(|producer| !members.contains(&producer)))
    };
    if members.iter().any(outside) {
        members = grow(graph, index, options, taken, false);
    }
    members.sort_unstable();
    let inputs = inputs_of(graph, &members, None);
    let mut codes = Vec::with_capacity(members.len());
    for &member in &members {
        let operation = &graph.body.operations[member];
        let (work, ports) = work(operation.op.name)?;
        let mut sources = [Source::Nothing; 3];
        for (source, port) in sources.iter_mut().zip(ports) {
            let id = operand(graph, operation, port)?;
            let made = graph.producer(id).and_then(|producer| members.iter().position(|&m| m == producer));
            *source = match made {
                Some(code) => Source::Code(code),
                None if graph.is_fp16(id) => Source::Input(inputs.iter().position(|&input| input == id)?),
                None => return None,
            };
        }
        codes.push(Code { operation: member, work, sources });
    }
    let reads = inputs.clone();
    // A comparison that others read too is made anew in each chain; where all do so, nothing is left of it.
    let covers = members.iter().copied().filter(|&member| is_own(graph, &members, member)).collect();
    (inputs.len() <= MOST_INPUTS).then(|| Node { kind: Kind::Chain(Chain { inputs, codes }), covers, reads, outputs: vec![output] })
}

/// The operations that join operation `index` in a chain, itself first; `selects` says whether those may be among them.
fn grow(graph: &Graph, index: usize, options: &Options, taken: &[bool], selects: bool) -> Vec<usize> {
    let shape = graph.body.operations[index].outputs.first().map_or(&[][..], |&output| graph.shape(output));
    let mut members = vec![index];
    let mut at = 0;
    while let Some(&member) = members.get(at).filter(|_| options.fuse) {
        at += 1;
        // What only a comparison reads that others make anew must stay where they can read it.
        if !is_own(graph, &members, member) {
            continue;
        }
        let operation = &graph.body.operations[member];
        for port in work(operation.op.name).map_or(&[][..], |(_, ports)| ports) {
            let Some(id) = operand(graph, operation, port) else { continue };
            let Some(producer) = graph.producer(id) else { continue };
            let joins = !members.contains(&producer)
                && !taken[producer]
                && !graph.is_output(id)
                && graph.shape(id) == shape
                && (is_comparison(graph, producer) || graph.users(id).iter().all(|user| is_own(graph, &members, *user)))
                && members.len() < MOST_CODES
                && (selects || graph.body.operations[producer].op.name != "select")
                && fits(graph, &graph.body.operations[producer]);
            if joins && inputs_of(graph, &members, Some(producer)).len() <= MOST_INPUTS {
                members.push(producer);
            }
        }
    }
    members
}

/// The value at a port; one that is only repeated along axes of one element stands for its repetition.
fn operand(graph: &Graph, operation: &Operation, port: &str) -> Option<ValueId> {
    let id = graph.at(operation, port)?;
    let repeated = || {
        let (_, tile) = graph.made_by(id, "tile")?;
        let x = graph.at(tile, "x").filter(|&x| graph.is_fp16(x) && graph.shape(x).len() == graph.shape(id).len())?;
        graph.shape(x).iter().zip(graph.shape(id)).all(|(&from, &to)| from == to || from == 1).then_some(x)
    };
    Some(repeated().unwrap_or(id))
}

/// Whether a member makes its result for this chain alone; the first member makes that of the chain.
fn is_own(graph: &Graph, members: &[usize], member: usize) -> bool {
    let read_here = |id| graph.users(id).iter().all(|user| members.contains(user));
    members.contains(&member)
        && (!is_comparison(graph, member) || graph.body.operations[member].outputs.iter().all(|&id| read_here(id)))
}

fn is_comparison(graph: &Graph, index: usize) -> bool {
    work(graph.body.operations[index].op.name).is_some_and(|(work, _)| matches!(work, Work::Compare(_)))
}

/// Values that operations read and do not make.
fn inputs_of(graph: &Graph, members: &[usize], more: Option<usize>) -> Vec<ValueId> {
    let all = || members.iter().copied().chain(more);
    let mut inputs = Vec::new();
    for member in all() {
        let operation = &graph.body.operations[member];
        for port in work(operation.op.name).map_or(&[][..], |(_, ports)| ports) {
            let Some(id) = operand(graph, operation, port) else { continue };
            let is_made = graph.producer(id).is_some_and(|producer| all().any(|m| m == producer));
            if !is_made && !inputs.contains(&id) {
                inputs.push(id);
            }
        }
    }
    inputs
}

/// Makes the step.
pub(crate) fn lower(builder: &mut Builder<'_>, node: &Node, chain: &Chain) -> Result<(), DeviceError> {
    let graph = builder.graph;
    let output = node.outputs[0];
    let shape = graph.shape(output).to_vec();
    let whole: Vec<ValueId> = chain.inputs.iter().copied().filter(|&id| graph.shape(id) == shape).collect();
    let layout = match whole.is_empty() || !whole.iter().all(|&id| builder.is_channels_last(id)) {
        true => Layout::Dense,
        false => Layout::ChannelsLast,
    };
    let order: Vec<usize> = match layout {
        Layout::Dense => (0..shape.len()).collect(),
        Layout::ChannelsLast => vec![0, 2, 3, 1],
    };
    let mut spots = Vec::with_capacity(chain.inputs.len());
    let mut strides = Vec::with_capacity(chain.inputs.len());
    for &id in &chain.inputs {
        let is_whole = graph.shape(id) == shape;
        spots.push(if layout == Layout::ChannelsLast && is_whole { builder.read_channels_last(id)? } else { builder.read(id)? });
        // The input's own axes, aligned at the end, in the order in which its elements stand.
        let given = graph.shape(id);
        let mut aligned = vec![1; shape.len() - given.len()];
        aligned.extend_from_slice(given);
        let ordered: Vec<usize> = order.iter().map(|&axis| aligned[axis]).collect();
        strides.push(if is_whole { broadcast_strides(&ordered) } else { permuted_strides(&aligned, &order) });
    }
    let extents: Vec<usize> = order.iter().map(|&axis| shape[axis]).collect();
    let walk = Walk::new(&extents, &strides);
    let mut functions = Vec::with_capacity(chain.codes.len());
    for code in &chain.codes {
        functions.push(match code.work {
            Work::Unary => Some(function(builder, &graph.body.operations[code.operation])?),
            _ => None,
        });
    }
    let slot = builder.make(output, layout)?;
    let kernel =
        if chain.codes.len() == 1 { "element-wise".to_string() } else { format!("element-wise chain of {}", chain.codes.len()) };
    let described = Described::of(builder, node, kernel);
    let codes =
        chain.codes.iter().zip(functions).map(|(code, function)| Ready { work: code.work, function, sources: code.sources });
    let is_exact = matches!(builder.policy, Policy::Engine(_));
    let step = Pass { inputs: spots.clone(), walk, codes: codes.collect(), is_exact, output: slot };
    builder.push(node, described, Box::new(step), &spots, &[slot]);
    Ok(())
}

/// How a unary operation is computed: a vector form, else a table of all fp16 inputs.
fn function(builder: &Builder<'_>, operation: &Operation) -> Result<Function, DeviceError> {
    let vector = activation(builder.graph, operation);
    match (builder.policy, vector) {
        (Policy::Fast, Some(vector)) => Ok(Function::Vector(vector)),
        (Policy::Engine(engine), Some(vector)) if Function::is_exact(vector) && !is_dumped(builder.graph, operation, engine) => {
            Ok(Function::Vector(vector))
        }
        _ => Ok(Function::Table(Table::of(builder.graph, operation, builder.policy)?)),
    }
}

fn broadcast_strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = aneforge_mil::strides(shape);
    strides.iter_mut().zip(shape).for_each(|(stride, &extent)| *stride = if extent == 1 { 0 } else { *stride });
    strides
}

/// Strides of a row-major tensor of `shape`, listed in `order`.
fn permuted_strides(shape: &[usize], order: &[usize]) -> Vec<usize> {
    let strides = broadcast_strides(shape);
    order.iter().map(|&axis| strides[axis]).collect()
}

/// The way through a result: rows of elements that stand side by side, and where each input is at a row's begin.
#[derive(Clone, Debug)]
struct Walk {
    /// Extents of the axes outside a row.
    outer: Vec<usize>,
    /// Elements of a row.
    row: usize,
    /// Per input: strides of the outer axes.
    outer_strides: Vec<Vec<usize>>,
    /// Per input: distance between the elements of a row.
    row_strides: Vec<usize>,
}

impl Walk {
    fn new(extents: &[usize], strides: &[Vec<usize>]) -> Self {
        // Axes that all inputs step through evenly become one.
        let mut merged: Vec<(usize, Vec<usize>)> = Vec::new();
        for (axis, &extent) in extents.iter().enumerate() {
            if extent == 1 {
                continue;
            }
            let steps: Vec<usize> = strides.iter().map(|stride| stride[axis]).collect();
            match merged.last_mut() {
                Some((held, outer)) if outer.iter().zip(&steps).all(|(&outer, &inner)| outer == inner * extent) => {
                    *held *= extent;
                    *outer = steps;
                }
                _ => merged.push((extent, steps)),
            }
        }
        let (row, row_strides) = merged.pop().unwrap_or_else(|| (1, vec![0; strides.len()]));
        let outer = merged.iter().map(|(extent, _)| *extent).collect();
        let outer_strides = (0..strides.len()).map(|input| merged.iter().map(|(_, steps)| steps[input]).collect()).collect();
        Self { outer, row, outer_strides, row_strides }
    }

    /// Where `input` is at the begin of row `row`.
    fn base(&self, input: usize, mut row: usize) -> usize {
        let mut base = 0;
        for (extent, stride) in self.outer.iter().zip(&self.outer_strides[input]).rev() {
            base += row % extent * stride;
            row /= extent;
        }
        base
    }

    /// Whether rows are laid side by side in a block: short ones, and those in which an input's neighbours are not neighbours in memory.
    fn gathers(&self) -> bool {
        !self.outer.is_empty() && (self.row < SHORT || self.row_strides.iter().any(|&stride| stride > 1))
    }

    /// Copies what elements `start..` of the result meet in an input.
    fn gather(&self, input: usize, start: usize, from: &[f16], out: &mut [f16]) {
        let (step, strides) = (self.row_strides[input], &self.outer_strides[input]);
        let (mut row, mut column) = (start / self.row, start % self.row);
        let mut base = self.base(input, row);
        let Some((&last, &stride)) = self.outer.last().zip(strides.last()) else { return };
        let mut rest = out;
        while !rest.is_empty() {
            let (part, behind) = rest.split_at_mut((self.row - column).min(rest.len()));
            let begin = base + column * step;
            match step {
                0 => part.fill(from[begin]),
                1 => part.copy_from_slice(&from[begin..begin + part.len()]),
                _ => part.iter_mut().enumerate().for_each(|(at, slot)| *slot = from[begin + at * step]),
            }
            (rest, column, row) = (behind, 0, row + 1);
            // Most rows follow their neighbour along the last axis.
            base = if row % last == 0 { self.base(input, row % self.outer.iter().product::<usize>()) } else { base + stride };
        }
    }
}

struct Ready {
    work: Work,
    function: Option<Function>,
    sources: [Source; 3],
}

struct Pass {
    inputs: Vec<Spot>,
    walk: Walk,
    codes: Vec<Ready>,
    is_exact: bool,
    output: Slot,
}

/// One operand of a block.
#[derive(Clone, Copy)]
enum Values<'a> {
    Many(&'a [f16]),
    One(f16),
}

impl Step for Pass {
    fn run(&self, context: Context<'static>, memory: &mut Memory<'_>) -> Result<(), DeviceError> {
        let Some(&first) = self.inputs.first() else { return Err(DeviceError::internal("chain", "a chain reads nothing")) };
        let mut spots = [first; MOST_INPUTS];
        spots[..self.inputs.len()].copy_from_slice(&self.inputs);
        let (inputs, [output]) = memory.split(spots, [self.output])?;
        let inputs: [&[f16]; MOST_INPUTS] = inputs.map(bytemuck::cast_slice);
        let output: &mut [f16] = bytemuck::cast_slice_mut(output);
        parallel::pieces(context, output, parallel::SMALL, &|at, piece| self.fill(context, &inputs, at, piece));
        Ok(())
    }
}

impl Pass {
    fn fill(&self, context: Context<'static>, inputs: &[&[f16]; MOST_INPUTS], start: usize, piece: &mut [f16]) {
        let mut blocks = [[f16::ZERO; BLOCK]; MOST_CODES];
        let mut spare = [f16::ZERO; BLOCK];
        let mut gathered = Vec::new();
        let mut done = 0;
        while done < piece.len() {
            let (row, column) = ((start + done) / self.walk.row, (start + done) % self.walk.row);
            let gathers = self.walk.gathers();
            let length = if gathers { BLOCK } else { (self.walk.row - column).min(BLOCK) }.min(piece.len() - done);
            let mut operands = [Values::One(f16::ZERO); MOST_INPUTS];
            if gathers {
                gathered.resize(self.inputs.len() * BLOCK, f16::ZERO);
                for (input, block) in gathered.chunks_mut(BLOCK).enumerate() {
                    self.walk.gather(input, start + done, inputs[input], &mut block[..length]);
                }
                for (operand, block) in operands.iter_mut().zip(gathered.chunks(BLOCK)) {
                    *operand = Values::Many(&block[..length]);
                }
            }
            for (input, operand) in operands.iter_mut().enumerate().take(if gathers { 0 } else { self.inputs.len() }) {
                let base = self.walk.base(input, row);
                *operand = match self.walk.row_strides[input] {
                    0 => Values::One(inputs[input][base]),
                    _ => Values::Many(&inputs[input][base + column..base + column + length]),
                };
            }
            for (index, code) in self.codes.iter().enumerate() {
                let (earlier, now) = blocks.split_at_mut(index);
                let fetch = |source: Source| match source {
                    Source::Input(input) => operands[input],
                    Source::Code(code) => Values::Many(&earlier[code][..length]),
                    Source::Nothing => Values::One(f16::ZERO),
                };
                let out = match index + 1 == self.codes.len() {
                    true => &mut piece[done..done + length],
                    false => &mut now[0][..length],
                };
                code.run(context, self.is_exact, code.sources.map(fetch), &mut spare[..length], out);
            }
            done += length;
        }
    }
}

impl Ready {
    fn run(&self, context: Context<'static>, is_exact: bool, sources: [Values<'_>; 3], spare: &mut [f16], out: &mut [f16]) {
        let [a, b, c] = sources;
        match (self.work, &self.function) {
            (Work::Binary(binary), _) => {
                let commutes = !matches!(binary, Binary::Sub | Binary::Div);
                let (a, b) = if commutes && matches!(a, Values::One(_)) { (b, a) } else { (a, b) };
                let left: &[f16] = match a {
                    Values::Many(values) => values,
                    Values::One(value) => {
                        spare.fill(value);
                        spare
                    }
                };
                let right = match b {
                    Values::Many(values) => Other::Same(values),
                    Values::One(value) => Other::Scalar(value),
                };
                match is_exact {
                    true => pointwise::exact::binary(context, binary, left, right, out),
                    false => pointwise::binary(context, binary, left, right, out),
                }
            }
            (Work::Unary, Some(function)) => match a {
                Values::Many(values) => function.apply(context, is_exact, values, out),
                Values::One(value) => {
                    spare.fill(value);
                    function.apply(context, is_exact, spare, out);
                }
            },
            (Work::Compare(comparison), _) => {
                let (mut left, mut right) = ([0f32; BLOCK], [0f32; BLOCK]);
                let (left, right) = (a.widened(&mut left[..out.len()]), b.widened(&mut right[..out.len()]));
                match comparison {
                    Comparison::Equal => compare(left, right, out, |x, y| x == y),
                    Comparison::NotEqual => compare(left, right, out, |x, y| x != y),
                    Comparison::Less => compare(left, right, out, |x, y| x < y),
                    Comparison::LessEqual => compare(left, right, out, |x, y| x <= y),
                    Comparison::Greater => compare(left, right, out, |x, y| x > y),
                    Comparison::GreaterEqual => compare(left, right, out, |x, y| x >= y),
                }
            }
            (Work::Select, _) => match (a, b, c) {
                // Without a look at what kind of operand it is for each value, most selections are done in vectors.
                (Values::Many(conditions), Values::One(b), Values::One(c)) => select(conditions, |_| b, |_| c, out),
                (Values::Many(conditions), Values::Many(b), Values::One(c)) => select(conditions, |at| b[at], |_| c, out),
                _ => {
                    spare.iter_mut().enumerate().for_each(|(at, slot)| *slot = a.at(at));
                    select(spare, |at| b.at(at), |at| c.at(at), out);
                }
            },
            (Work::Unary, None) => out.fill(f16::NAN),
        }
    }
}

fn compare(left: &[f32], right: &[f32], out: &mut [f16], holds: impl Fn(f32, f32) -> bool) {
    for (slot, (&x, &y)) in out.iter_mut().zip(left.iter().zip(right)) {
        *slot = if holds(x, y) { f16::ONE } else { f16::ZERO };
    }
}

/// `b` where the condition is not zero, else `c`.
fn select(conditions: &[f16], b: impl Fn(usize) -> f16, c: impl Fn(usize) -> f16, out: &mut [f16]) {
    for (at, (slot, condition)) in out.iter_mut().zip(conditions).enumerate() {
        *slot = if condition.to_bits() & 0x7fff == 0 { c(at) } else { b(at) };
    }
}

impl Values<'_> {
    /// The values in fp32, in which comparisons are fast.
    fn widened<'a>(&self, block: &'a mut [f32]) -> &'a [f32] {
        match self {
            Self::Many(values) => values.convert_to_f32_slice(block),
            Self::One(value) => block.fill(value.to_f32()),
        }
        block
    }

    fn at(&self, index: usize) -> f16 {
        match self {
            Self::Many(values) => values[index],
            Self::One(value) => *value,
        }
    }
}
