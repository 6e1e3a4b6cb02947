//! `linear`, and `matmul` by a constant matrix: rows of activations times packed weights.

use super::Options;
use super::builder::{Builder, Described, Layout};
use super::epilogue::{Columns, PlacedTail, Tail};
use super::graph::Graph;
use super::memory::{Memory, Slot, Spot};
use super::node::{Kind, Node};
use super::policy::Policy;
use super::step::Step;
use crate::DeviceError;
use crate::kernel::exact::ExactWeights;
use crate::kernel::pack::PackedWeights;
use crate::kernel::simd::Level;
use crate::kernel::types::{Context, Output};
use crate::kernel::{exact, gemm};
use aneforge_mil::ValueId;
use half::f16;

/// `x [.., k] * weight -> [.., n]`.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    x: ValueId,
    weight: ValueId,
    /// Whether the weight is stored `[n, k]`.
    by_rows: bool,
    m: usize,
    n: usize,
    k: usize,
    tail: Tail,
}

/// Recognises operation `index` and what its result flows into.
pub(crate) fn recognise(graph: &Graph, index: usize, options: &Options, taken: &[bool]) -> Option<Node> {
    let operation = &graph.body.operations[index];
    let output = *operation.outputs.first()?;
    let (x, weight, by_rows, bias) = match operation.op.name {
        "linear" => (graph.at(operation, "x")?, graph.at(operation, "weight")?, true, graph.at(operation, "bias")),
        "matmul" => {
            let (transpose_x, by_rows) = graph.attributes(operation, |a| (a.flag("transpose_x"), a.flag("transpose_y")));
            let (x, y) = (graph.at(operation, "x")?, graph.at(operation, "y")?);
            // A stack of matrices, or a left operand that a right one repeats, is not one product.
            let is_matrix = graph.shape(y).len() >= 2 && graph.shape(y).iter().rev().skip(2).all(|&extent| extent == 1);
            if transpose_x || !is_matrix || graph.shape(x).len() < graph.shape(y).len() {
                return None;
            }
            (x, y, by_rows, None)
        }
        _ => return None,
    };
    let k = *graph.shape(x).last()?;
    let n = *graph.shape(output).last()?;
    let m = graph.body.ty(output).count().checked_div(n)?;
    let is_fp16 = graph.is_fp16(x) && graph.is_fp16(weight) && graph.is_fp16(output);
    if !is_fp16 || !graph.is_constant(weight) || graph.is_constant(x) || k == 0 || m == 0 || graph.body.ty(weight).count() != n * k
    {
        return None;
    }
    let mut tail = Tail::default();
    if let Some(bias) = bias {
        tail.bias = Some(graph.halves(bias)?.iter().map(|value| value.to_f32()).collect());
    }
    let mut covers = vec![index];
    let result = tail.absorb(graph, options, taken, output, Columns::Last, &mut covers);
    let reads = [Some(x), Some(weight), tail.residual.map(|(id, _)| id)].into_iter().flatten().collect();
    Some(Node { kind: Kind::Product(Product { x, weight, by_rows, m, n, k, tail }), covers, reads, outputs: vec![result] })
}

/// Makes the step.
pub(crate) fn lower(builder: &mut Builder<'_>, node: &Node, product: &Product) -> Result<(), DeviceError> {
    let Product { m, n, k, .. } = *product;
    let values = builder.graph.halves(product.weight).ok_or_else(|| DeviceError::internal("product", "a weight cannot be read"))?;
    let level = Level::active();
    let weights = match builder.policy {
        Policy::Fast if product.by_rows => Weights::Fast(PackedWeights::from_rows(level, n, k, &values)),
        Policy::Fast => Weights::Fast(PackedWeights::from_columns(level, n, k, &values)),
        Policy::Engine(engine) if product.by_rows => {
            Weights::Exact(ExactWeights::from_rows(level, n, k, &values, engine.mac_rules()))
        }
        Policy::Engine(engine) => Weights::Exact(ExactWeights::from_columns(level, n, k, &values, engine.mac_rules())),
    };
    let scratch = match &weights {
        Weights::Fast(_) => m * k,
        Weights::Exact(_) => exact::scratch_len(m * k),
    };
    builder.packed_bytes += weights.bytes();
    let x = builder.read(product.x)?;
    let tail = PlacedTail::new(builder, &product.tail, Columns::Last)?;
    let scratch = builder.scratch(scratch * size_of::<f32>());
    let output = builder.make(node.outputs[0], Layout::Dense)?;
    let name = if matches!(weights, Weights::Fast(_)) { "product" } else { "exact product" };
    let described = Described::of(builder, node, format!("{name} {m}x{k}x{n}{}", product.tail.describe()));
    let reads: Vec<Spot> = [x].into_iter().chain(tail.reads()).collect();
    let step = Dense { x, m, n, weights, tail, scratch, output };
    builder.push(node, described, Box::new(step), &reads, &[scratch, output]);
    Ok(())
}

enum Weights {
    Fast(PackedWeights),
    Exact(ExactWeights),
}

impl Weights {
    fn bytes(&self) -> usize {
        match self {
            Self::Fast(weights) => weights.bytes(),
            Self::Exact(weights) => weights.bytes(),
        }
    }
}

struct Dense {
    x: Spot,
    m: usize,
    n: usize,
    weights: Weights,
    tail: PlacedTail,
    scratch: Slot,
    output: Slot,
}

impl Step for Dense {
    fn run(&self, context: Context<'static>, memory: &mut Memory<'_>) -> Result<(), DeviceError> {
        let ([x, residual], [scratch, output]) =
            memory.split([self.x, self.tail.residual_or(self.x)], [self.scratch, self.output])?;
        let x: &[f16] = bytemuck::cast_slice(x);
        let epilogue = self.tail.epilogue(residual, self.n);
        let scratch = bytemuck::cast_slice_mut(scratch);
        let output = Output::dense(bytemuck::cast_slice_mut(output), self.n);
        match &self.weights {
            Weights::Fast(weights) => gemm::dense(context, x, self.m, weights, &epilogue, scratch, output),
            Weights::Exact(weights) => exact::dense(context, x, self.m, weights, &epilogue, scratch, output),
        }
        Ok(())
    }
}
