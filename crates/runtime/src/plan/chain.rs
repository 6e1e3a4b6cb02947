//! Element-wise operations that follow each other, done in one pass: blocks of fp16 that stay in the first-level cache.

use super::Options;
use super::builder::{Builder, Described, Layout};
use super::compare::Comparison;
use super::epilogue::{activation, is_dumped};
use super::function::{Function, Table};
use super::graph::Graph;
use super::memory::{Memory, Slot, Spot};
use super::node::{Kind, Node};
use super::parallel;
use super::policy::Policy;
use super::step::Step;
use super::walk::{Walk, broadcast_strides};
use crate::DeviceError;
use crate::kernel::pointwise::{self, Binary, Other};
use crate::kernel::types::Context;
use aneforge_mil::{DType, Operation, ValueId};
use half::f16;
use half::slice::HalfFloatSliceExt;

/// Values per block.
const BLOCK: usize = 1024;
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
    /// 1 where a condition holds, else 0.
    Count,
    Select,
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
    if let Some(comparison) = Comparison::of(name) {
        return Some((Work::Compare(comparison), XY));
    }
    Some(match name {
        "add" => (Work::Binary(Binary::Add), XY),
        "sub" => (Work::Binary(Binary::Sub), XY),
        "mul" => (Work::Binary(Binary::Mul), XY),
        "real_div" => (Work::Binary(Binary::Div), XY),
        "maximum" => (Work::Binary(Binary::Max), XY),
        "minimum" => (Work::Binary(Binary::Min), XY),
        "select" => (Work::Select, &["cond", "a", "b"]),
        "cast" => (Work::Count, &["x"]),
        "relu" | "relu6" | "clip" | "gelu" | "silu" | "sigmoid" | "tanh" | "square" | "exp" | "erf" | "abs" | "sign" | "floor"
        | "ceil" | "round" | "sqrt" | "rsqrt" | "inverse" | "log" | "exp2" | "sin" | "cos" | "atan" | "tan" | "asin" | "acos"
        | "sinh" | "cosh" | "atanh" | "threshold" | "softplus" | "softsign" | "elu" | "leaky_relu" | "scaled_tanh"
        | "sigmoid_hard" | "clamped_relu" | "thresholded_relu" | "linear_activation" => (Work::Unary, &["x"]),
        _ => return None,
    })
}

/// Whether a chain can do an operation: floats in, or conditions where these are asked for.
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
            Some(id) if *port == "cond" || work == Work::Count => graph.dtype(id) == DType::Bool,
            Some(id) => graph.is_fp16(id),
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
    let mut members = grow(graph, index, options, taken);
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
                None => Source::Input(inputs.iter().position(|&input| input == id)?),
            };
        }
        codes.push(Code { operation: member, work, sources });
    }
    let reads = inputs.clone();
    // A comparison that others read too is made anew in each chain; where all do so, nothing is left of it.
    let covers = members.iter().copied().filter(|&member| is_own(graph, &members, member)).collect();
    (inputs.len() <= MOST_INPUTS).then(|| Node { kind: Kind::Chain(Chain { inputs, codes }), covers, reads, outputs: vec![output] })
}

/// The operations that join operation `index` in a chain, itself first.
fn grow(graph: &Graph, index: usize, options: &Options, taken: &[bool]) -> Vec<usize> {
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
    let inputs = spots.iter().zip(&chain.inputs).map(|(&spot, &id)| (spot, graph.is_fp16(id))).collect();
    let step = Pass { inputs, walk, codes: codes.collect(), is_exact, output: slot };
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

/// Strides of a row-major tensor of `shape`, listed in `order`.
fn permuted_strides(shape: &[usize], order: &[usize]) -> Vec<usize> {
    let strides = broadcast_strides(shape);
    order.iter().map(|&axis| strides[axis]).collect()
}

struct Ready {
    work: Work,
    function: Option<Function>,
    sources: [Source; 3],
}

struct Pass {
    /// Places, and whether fp16 stands there; else conditions do.
    inputs: Vec<(Spot, bool)>,
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
        let Some(&(first, _)) = self.inputs.first() else { return Err(DeviceError::internal("chain", "a chain reads nothing")) };
        let mut spots = [first; MOST_INPUTS];
        spots.iter_mut().zip(&self.inputs).for_each(|(spot, (given, _))| *spot = *given);
        let (inputs, [output]) = memory.split(spots, [self.output])?;
        let output: &mut [f16] = bytemuck::cast_slice_mut(output);
        parallel::pieces(context, output, parallel::SMALL, &|at, piece| self.fill(context, &inputs, at, piece));
        Ok(())
    }
}

impl Pass {
    fn fill(&self, context: Context<'static>, inputs: &[&[u8]; MOST_INPUTS], start: usize, piece: &mut [f16]) {
        let mut blocks = [[f16::ZERO; BLOCK]; MOST_CODES];
        let mut spare = [f16::ZERO; BLOCK];
        let gathers = self.walk.gathers();
        let has_conditions = self.inputs.iter().any(|(_, is_fp16)| !is_fp16);
        let mut gathered = vec![f16::ZERO; if gathers || has_conditions { self.inputs.len() * BLOCK } else { 0 }];
        let mut done = 0;
        while done < piece.len() {
            let at = start + done;
            let (row, column) = (at / self.walk.row, at % self.walk.row);
            let length = if gathers { BLOCK } else { (self.walk.row - column).min(BLOCK) }.min(piece.len() - done);
            let mut operands = [Values::One(f16::ZERO); MOST_INPUTS];
            let mut spares = gathered.chunks_mut(BLOCK);
            for (input, &(_, is_fp16)) in self.inputs.iter().enumerate() {
                let block = &mut spares.next().unwrap_or_default()[..if gathers || !is_fp16 { length } else { 0 }];
                let (base, step) = (self.walk.base(input, row), self.walk.row_strides[input]);
                operands[input] = match (gathers, is_fp16) {
                    (true, true) => {
                        self.walk.gather(input, at, bytemuck::cast_slice(inputs[input]), block);
                        Values::Many(block)
                    }
                    (false, true) => {
                        let values: &[f16] = bytemuck::cast_slice(inputs[input]);
                        if step == 0 { Values::One(values[base]) } else { Values::Many(&values[base + column..][..length]) }
                    }
                    (false, false) if step == 0 => Values::One(counted(inputs[input][base])),
                    (_, false) => {
                        let mut conditions = [0; BLOCK];
                        self.walk.gather(input, at, inputs[input], &mut conditions[..length]);
                        block.iter_mut().zip(conditions).for_each(|(slot, condition)| *slot = counted(condition));
                        Values::Many(block)
                    }
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
                comparison.apply(left, right, out, f16::ONE, f16::ZERO);
            }
            (Work::Count, _) => a.copy_to(out),
            (Work::Select, _) => match (a, b, c) {
                (Values::One(condition), b, c) => if condition == f16::ZERO { c } else { b }.copy_to(out),
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

/// A condition as a number.
fn counted(condition: u8) -> f16 {
    if condition == 0 { f16::ZERO } else { f16::ONE }
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

    fn copy_to(&self, out: &mut [f16]) {
        match self {
            Self::Many(values) => out.copy_from_slice(values),
            Self::One(value) => out.fill(*value),
        }
    }

    fn at(&self, index: usize) -> f16 {
        match self {
            Self::Many(values) => values[index],
            Self::One(value) => *value,
        }
    }
}
