//! Products of two activations, and attention as one step: heads, transposes and reshapes are strides, not copies.

use super::Options;
use super::builder::{Builder, Described, Layout};
use super::epilogue::{activation, allowed};
use super::graph::Graph;
use super::memory::{Memory, Slot, Spot};
use super::node::{Kind, Node};
use super::policy::Policy;
use super::step::Step;
use super::strided::{Strided, trace};
use crate::DeviceError;
use crate::kernel::exact::{self, MacRules};
use crate::kernel::matmul::{self, AttentionShape, MatmulShape, Place};
use crate::kernel::simd::Level;
use crate::kernel::types::{Activation, Context, Epilogue, Operand};
use aneforge_mil::{Operation, ValueId, strides};
use half::f16;
use std::sync::Mutex;

/// A matrix operand: strides over the elements of `root`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    pub(crate) root: ValueId,
    pub(crate) batch: [usize; 2],
    pub(crate) row: usize,
    pub(crate) column: usize,
}

/// `x [.., m, k] * y [.., k, n]`.
#[derive(Clone, Debug)]
pub(crate) struct Matmul {
    shape: MatmulShape,
    x: Grid,
    y: Grid,
    scale: Option<f32>,
    activation: Activation,
    place: Place,
}

/// `softmax(q * k + mask) * v` with q, k, v, per head.
#[derive(Clone, Debug)]
pub(crate) struct Attention {
    shape: AttentionShape,
    q: Grid,
    k: Grid,
    v: Grid,
    scale: f32,
    mask: Option<Grid>,
    place: Place,
}

impl Matmul {
    /// A product and nothing else.
    pub(crate) fn plain(shape: MatmulShape, x: Grid, y: Grid) -> Self {
        Self { shape, x, y, scale: None, activation: Activation::None, place: Place::dense(&shape) }
    }

    /// One product for all of a batch whose matrices lie below each other and meet the same right one.
    fn folded(mut self) -> Self {
        let MatmulShape { batch: [outer, inner], m, .. } = self.shape;
        let [over, step] = self.x.batch;
        let follow = (inner == 1 || step == m * self.x.row) && (outer == 1 || over == inner * m * self.x.row);
        let Place { offset, batch_strides: [far, near], row_stride } = self.place;
        let matrix = m * self.shape.n;
        let dense = row_stride == self.shape.n && (inner == 1 || near == matrix) && (outer == 1 || far == inner * matrix);
        if follow && dense && offset == 0 && self.y.batch == [0, 0] {
            self.shape = MatmulShape { batch: [1, 1], m: outer * inner * m, ..self.shape };
            self.place = Place::dense(&self.shape);
            self.x.batch = [0, 0];
        }
        self
    }
}

/// Recognises a product of two activations at operation `index`.
pub(crate) fn recognise(graph: &Graph, index: usize, options: &Options, taken: &[bool]) -> Option<Node> {
    let operation = &graph.body.operations[index];
    let (shape, x, y) = product(graph, operation, options.fuse)?;
    let mut covers = vec![index];
    let mut result = *operation.outputs.first()?;
    let (mut scale, mut function) = (None, Activation::None);
    while let Some(user) = graph.only_user(result).filter(|&user| options.fuse && !taken[user]) {
        let next = &graph.body.operations[user];
        if let Some(factor) = scalar_factor(graph, next, result).filter(|_| scale.is_none() && function == Activation::None) {
            scale = Some(factor);
        } else if let Some(found) = activation(graph, next).filter(|&found| {
            function == Activation::None && allowed(graph, next, &options.policy, found) && graph.at(next, "x") == Some(result)
        }) {
            function = found;
        } else {
            break;
        }
        covers.push(user);
        result = *next.outputs.first()?;
    }
    let (result, place) = settle(graph, options, taken, result, &mut covers);
    let reads = vec![x.root, y.root];
    let node = Matmul { shape, x, y, scale, activation: function, place };
    Some(Node { kind: Kind::Matmul(node.folded()), covers, reads, outputs: vec![result] })
}

/// Recognises attention by its softmax at operation `index`.
pub(crate) fn recognise_attention(graph: &Graph, index: usize, options: &Options, taken: &[bool]) -> Option<Node> {
    let softmax = &graph.body.operations[index];
    if softmax.op.name != "softmax" || !options.fuse || !matches!(options.policy, Policy::Fast) {
        return None;
    }
    let mut scores = graph.at(softmax, "x")?;
    let rank = graph.shape(scores).len() as i64;
    if !graph.attributes(softmax, |a| a.int("axis")).is_some_and(|axis| axis == -1 || axis == rank - 1) {
        return None;
    }
    let mut covers = vec![index];
    let mut user = index;
    let mut mask = None;
    if let Some((at, add)) = graph.made_by(scores, "add").filter(|(at, _)| !taken[*at]) {
        graph.only_user(scores).filter(|&only| only == user)?;
        let (a, b) = (graph.at(add, "x")?, graph.at(add, "y")?);
        let is_scores = |id: ValueId| {
            graph.shape(id) == graph.shape(scores) && graph.producer(id).is_some_and(|at| is_product_or_scale(graph, at))
        };
        let (value, given) = if is_scores(a) { (a, b) } else { (b, a) };
        mask = Some(broadcast(graph, given, graph.shape(scores))?);
        covers.push(at);
        (scores, user) = (value, at);
    }
    let mut scale = 1.0;
    if let Some(at) = graph.producer(scores).filter(|&at| !taken[at]) {
        let operation = &graph.body.operations[at];
        let x = [graph.at(operation, "x"), graph.at(operation, "y")].into_iter().flatten().find(|&id| !graph.is_constant(id));
        if let Some((x, factor)) = x.and_then(|x| Some((x, scalar_factor(graph, operation, x)?))) {
            graph.only_user(scores).filter(|&only| only == user)?;
            scale = factor;
            covers.push(at);
            (scores, user) = (x, at);
        }
    }
    let (at, first) = graph.made_by(scores, "matmul").filter(|(at, _)| !taken[*at])?;
    graph.only_user(scores).filter(|&only| only == user)?;
    covers.push(at);
    let (score_shape, mut q, mut k) = product(graph, first, true)?;
    // The scale may stand at the queries or the keys instead of at the scores.
    for (port, grid) in [("x", &mut q), ("y", &mut k)] {
        let Some(id) = graph.at(first, port).filter(|&id| graph.only_user(id) == Some(at)) else { continue };
        let Some(factor_at) = graph.producer(id).filter(|&factor_at| !taken[factor_at]) else { continue };
        let operation = &graph.body.operations[factor_at];
        let inner = [graph.at(operation, "x"), graph.at(operation, "y")].into_iter().flatten().find(|&id| !graph.is_constant(id));
        if let Some((inner, factor)) = inner.and_then(|inner| Some((inner, scalar_factor(graph, operation, inner)?)))
            && let Some(found) = operand_of(graph, first, port, inner)
        {
            scale *= factor;
            covers.push(factor_at);
            *grid = found;
        }
    }
    let weights = *softmax.outputs.first()?;
    let at = graph.only_user(weights).filter(|&user| !taken[user])?;
    let second = &graph.body.operations[at];
    if second.op.name != "matmul" || graph.at(second, "x") != Some(weights) {
        return None;
    }
    if graph.attributes(second, |a| a.flag("transpose_x")) {
        return None;
    }
    covers.push(at);
    let (value_shape, _, v) = product(graph, second, true)?;
    if value_shape.batch != score_shape.batch {
        return None;
    }
    let shape = AttentionShape {
        batch: score_shape.batch[0],
        heads: score_shape.batch[1],
        queries: score_shape.m,
        keys: score_shape.n,
        width: score_shape.k,
        value_width: value_shape.n,
    };
    // The kernel takes k as [keys][width].
    let k = Grid { row: k.column, column: k.row, ..k };
    let (result, place) = settle(graph, options, taken, *second.outputs.first()?, &mut covers);
    covers.sort_unstable();
    let reads = [Some(q.root), Some(k.root), Some(v.root), mask.map(|mask: Grid| mask.root)].into_iter().flatten().collect();
    let attention = Attention { shape, q, k, v, scale, mask, place };
    Some(Node { kind: Kind::Attention(attention), covers, reads, outputs: vec![result] })
}

fn is_product_or_scale(graph: &Graph, at: usize) -> bool {
    matches!(graph.body.operations[at].op.name, "matmul" | "mul" | "real_div")
}

/// The factor by which an operation multiplies `x`, if that is all it does.
fn scalar_factor(graph: &Graph, operation: &Operation, x: ValueId) -> Option<f32> {
    let (a, b) = (graph.at(operation, "x")?, graph.at(operation, "y")?);
    let kept = graph.shape(*operation.outputs.first()?) == graph.shape(x);
    match operation.op.name {
        "mul" if a == x && b != x => graph.scalar(b),
        "mul" if b == x && a != x => graph.scalar(a),
        "real_div" if a == x && b != x => graph.scalar(b).map(|value| 1.0 / value),
        _ => None,
    }
    .filter(|_| kept)
    .map(|value| value as f32)
}

/// Shape and operands of a `matmul`, with at most two batch axes that count.
fn product(graph: &Graph, operation: &Operation, look_through: bool) -> Option<(MatmulShape, Grid, Grid)> {
    if operation.op.name != "matmul" {
        return None;
    }
    let (x, y) = (graph.at(operation, "x")?, graph.at(operation, "y")?);
    let output = *operation.outputs.first()?;
    let out = graph.shape(output);
    let is_fp16 = [x, y, output].iter().all(|&id| graph.is_fp16(id));
    if !is_fp16 || graph.shape(x).len() < 2 || graph.shape(y).len() < 2 || graph.body.ty(output).count() == 0 {
        return None;
    }
    let (transpose_x, transpose_y) = graph.attributes(operation, |a| (a.flag("transpose_x"), a.flag("transpose_y")));
    let view = |id: ValueId| if look_through { trace(graph, id) } else { Strided { root: id, strides: strides(graph.shape(id)) } };
    let grid = |id: ValueId, transposed: bool| grid(&view(id), graph.shape(id), &out[..out.len() - 2], transposed);
    let (left, right) = (grid(x, transpose_x)?, grid(y, transpose_y)?);
    let [m, n] = [out[out.len() - 2], out[out.len() - 1]];
    let axes = graph.shape(x);
    let k = axes[axes.len() - if transpose_x { 2 } else { 1 }];
    if k == 0 {
        return None;
    }
    let batch = batch_of(&out[..out.len() - 2])?;
    Some((MatmulShape { batch, m, n, k }, left, right))
}

/// The operand at a port of a `matmul` with `id`, of the same shape, in its place.
fn operand_of(graph: &Graph, operation: &Operation, port: &str, id: ValueId) -> Option<Grid> {
    let out = graph.shape(*operation.outputs.first()?);
    let transposed = graph.attributes(operation, |a| a.flag(if port == "x" { "transpose_x" } else { "transpose_y" }));
    grid(&trace(graph, id), graph.shape(id), &out[..out.len() - 2], transposed)
}

/// The two batch extents that count; `None` where there are more.
fn batch_of(leading: &[usize]) -> Option<[usize; 2]> {
    let counted: Vec<usize> = leading.iter().copied().filter(|&extent| extent != 1).collect();
    match counted[..] {
        [] => Some([1, 1]),
        [inner] => Some([1, inner]),
        [outer, inner] => Some([outer, inner]),
        _ => None,
    }
}

fn grid(view: &Strided, shape: &[usize], leading: &[usize], transposed: bool) -> Option<Grid> {
    let rank = shape.len();
    let (row, column) = (view.strides[rank - 2], view.strides[rank - 1]);
    let missing = leading.len().checked_sub(rank - 2)?;
    let mut batch = Vec::new();
    for (axis, &extent) in leading.iter().enumerate() {
        if extent == 1 {
            continue;
        }
        let own = axis.checked_sub(missing);
        batch.push(own.map_or(0, |own| if shape[own] == 1 { 0 } else { view.strides[own] }));
    }
    let batch = match batch[..] {
        [] => [0, 0],
        [inner] => [0, inner],
        [outer, inner] => [outer, inner],
        _ => return None,
    };
    let (row, column) = if transposed { (column, row) } else { (row, column) };
    Some(Grid { root: view.root, batch, row, column })
}

/// A value broadcast to `shape`, as a matrix operand.
fn broadcast(graph: &Graph, id: ValueId, shape: &[usize]) -> Option<Grid> {
    if !graph.is_fp16(id) {
        return None;
    }
    let given = graph.shape(id);
    let missing = shape.len().checked_sub(given.len())?;
    let held = strides(given);
    let stride = |axis: usize| match axis.checked_sub(missing) {
        Some(own) if given[own] != 1 => held[own],
        _ => 0,
    };
    let rank = shape.len();
    let counted: Vec<usize> = (0..rank - 2).filter(|&axis| shape[axis] != 1).map(stride).collect();
    let batch = match counted[..] {
        [] => [0, 0],
        [inner] => [0, inner],
        [outer, inner] => [outer, inner],
        _ => return None,
    };
    Some(Grid { root: id, batch, row: stride(rank - 2), column: stride(rank - 1) })
}

/// Where the product `result` goes: through a transpose that follows, if its rows stay whole, else as it is.
fn settle(graph: &Graph, options: &Options, taken: &[bool], result: ValueId, covers: &mut Vec<usize>) -> (ValueId, Place) {
    let shape = graph.shape(result);
    let held = strides(shape);
    let place = |strides: &[usize]| {
        let rank = strides.len();
        let counted: Vec<usize> = (0..rank - 2).filter(|&axis| shape[axis] != 1).map(|axis| strides[axis]).collect();
        let batch_strides = match counted[..] {
            [inner] => [0, inner],
            [outer, inner] => [outer, inner],
            _ => [0, 0],
        };
        Place { offset: 0, batch_strides, row_stride: strides[rank - 2] }
    };
    let through = || {
        let user = graph.only_user(result).filter(|&user| options.fuse && !taken[user])?;
        let operation = &graph.body.operations[user];
        let perm = (operation.op.name == "transpose").then(|| graph.attributes(operation, |a| a.ints("perm")))??;
        let rank = shape.len() as i64;
        let axes: Vec<usize> =
            perm.iter().map(|&axis| usize::try_from(if axis < 0 { axis + rank } else { axis }).ok()).collect::<Option<_>>()?;
        if axes.last() != Some(&(shape.len() - 1)) {
            return None;
        }
        let output = *operation.outputs.first()?;
        let out = strides(graph.shape(output));
        let mut moved = vec![0; shape.len()];
        axes.iter().enumerate().for_each(|(to, &from)| moved[from] = out[to]);
        Some((user, output, moved))
    };
    match through() {
        Some((user, output, moved)) => {
            covers.push(user);
            (output, place(&moved))
        }
        None => (result, place(&held)),
    }
}

/// Makes the step of a product.
pub(crate) fn lower(builder: &mut Builder<'_>, node: &Node, product: &Matmul) -> Result<(), DeviceError> {
    let spots = [builder.read(product.x.root)?, builder.read(product.y.root)?];
    let output = builder.make(node.outputs[0], Layout::Dense)?;
    let kind = if matches!(builder.policy, Policy::Fast) { "matmul" } else { "exact matmul" };
    push(builder, node, kind, product.clone(), spots, output);
    Ok(())
}

/// Adds the step of a product whose operands are at `spots`.
pub(crate) fn push(builder: &mut Builder<'_>, node: &Node, kind: &str, product: Matmul, [x, y]: [Spot; 2], output: Slot) {
    let MatmulShape { batch, m, n, k } = product.shape;
    let rules = match builder.policy {
        Policy::Fast => None,
        Policy::Engine(engine) => Some(engine.mac_rules()),
    };
    let scratch = match rules {
        None => matmul::scratch_len(Level::active(), &product.shape) * size_of::<f32>(),
        Some(_) => 0,
    };
    let scratch = builder.scratch(scratch);
    let described = Described::of(builder, node, format!("{kind} {}x {m}x{k}x{n}", batch[0] * batch[1]));
    let exact = rules.map(|rules| (rules, Mutex::new(exact::MatmulScratch::default())));
    let step = MatmulStep { product, x, y, scratch, output, exact };
    builder.push(node, described, Box::new(step), &[x, y], &[scratch, output]);
}

struct MatmulStep {
    product: Matmul,
    x: Spot,
    y: Spot,
    scratch: Slot,
    output: Slot,
    exact: Option<(MacRules, Mutex<exact::MatmulScratch>)>,
}

impl Grid {
    fn operand<'a>(&self, bytes: &'a [u8]) -> Operand<'a> {
        Operand {
            data: bytemuck::cast_slice::<u8, f16>(bytes),
            offset: 0,
            batch_strides: self.batch,
            row_stride: self.row,
            column_stride: self.column,
        }
    }
}

impl Step for MatmulStep {
    fn run(&self, context: Context<'static>, memory: &mut Memory<'_>) -> Result<(), DeviceError> {
        let ([x, y], [scratch, output]) = memory.split([self.x, self.y], [self.scratch, self.output])?;
        let Matmul { shape, place, .. } = self.product;
        let (x, y) = (self.product.x.operand(x), self.product.y.operand(y));
        let epilogue = Epilogue { scale: self.product.scale, activation: self.product.activation, ..Epilogue::default() };
        let output = bytemuck::cast_slice_mut(output);
        match &self.exact {
            None => matmul::matmul(context, shape, x, y, &epilogue, bytemuck::cast_slice_mut(scratch), output, place),
            Some((rules, scratch)) => {
                let mut scratch = scratch.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                exact::matmul(context, shape, x, y, *rules, &epilogue, &mut scratch, output, place);
            }
        }
        Ok(())
    }
}

/// Makes the step of attention.
pub(crate) fn lower_attention(builder: &mut Builder<'_>, node: &Node, attention: &Attention) -> Result<(), DeviceError> {
    let q = builder.read(attention.q.root)?;
    let k = builder.read(attention.k.root)?;
    let v = builder.read(attention.v.root)?;
    let mask = attention.mask.map(|mask| builder.read(mask.root)).transpose()?;
    let context = Context::global();
    let length = matmul::attention_scratch_len(Level::active(), context.pool.threads(), &attention.shape);
    let scratch = builder.scratch(length * size_of::<f32>());
    let output = builder.make(node.outputs[0], Layout::Dense)?;
    let AttentionShape { batch, heads, queries, keys, width, .. } = attention.shape;
    let kernel = format!("attention {}x {queries}x{keys}x{width}, {} operations", batch * heads, node.covers.len());
    let described = Described::of(builder, node, kernel);
    let reads: Vec<Spot> = [q, k, v].into_iter().chain(mask).collect();
    let step = AttentionStep { attention: attention.clone(), q, k, v, mask, scratch, output };
    builder.push(node, described, Box::new(step), &reads, &[scratch, output]);
    Ok(())
}

struct AttentionStep {
    attention: Attention,
    q: Spot,
    k: Spot,
    v: Spot,
    mask: Option<Spot>,
    scratch: Slot,
    output: Slot,
}

impl Step for AttentionStep {
    fn run(&self, context: Context<'static>, memory: &mut Memory<'_>) -> Result<(), DeviceError> {
        let mask = self.mask.unwrap_or(self.q);
        let ([q, k, v, mask], [scratch, output]) = memory.split([self.q, self.k, self.v, mask], [self.scratch, self.output])?;
        let Attention { shape, scale, place, .. } = self.attention;
        let mask = self.attention.mask.map(|grid| grid.operand(mask));
        let (q, k, v) = (self.attention.q.operand(q), self.attention.k.operand(k), self.attention.v.operand(v));
        let scratch = bytemuck::cast_slice_mut(scratch);
        matmul::attention(context, shape, q, k, v, scale, mask, scratch, bytemuck::cast_slice_mut(output), place);
        Ok(())
    }
}
