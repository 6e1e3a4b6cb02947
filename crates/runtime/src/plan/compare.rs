//! Comparisons of integers, such as labels with all classes.

use super::builder::{Builder, Described, Layout};
use super::graph::Graph;
use super::memory::{Memory, Slot, Spot};
use super::node::{Kind, Node};
use super::parallel;
use super::step::Step;
use super::walk::{Walk, broadcast_strides};
use crate::DeviceError;
use crate::kernel::types::Context;
use aneforge_mil::{DType, ValueId};

/// Values per block.
const BLOCK: usize = 1024;

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl Comparison {
    /// The comparison that an operator makes.
    pub(crate) fn of(op: &str) -> Option<Self> {
        Some(match op {
            "equal" => Self::Equal,
            "not_equal" => Self::NotEqual,
            "less" => Self::Less,
            "less_equal" => Self::LessEqual,
            "greater" => Self::Greater,
            "greater_equal" => Self::GreaterEqual,
            _ => return None,
        })
    }

    /// Compares pair by pair.
    pub(crate) fn apply<T: PartialOrd + Copy, R: Copy>(self, left: &[T], right: &[T], out: &mut [R], yes: R, no: R) {
        fn each<T: Copy, R: Copy>(left: &[T], right: &[T], out: &mut [R], (yes, no): (R, R), holds: impl Fn(T, T) -> bool) {
            out.iter_mut().zip(left.iter().zip(right)).for_each(|(slot, (&x, &y))| *slot = if holds(x, y) { yes } else { no });
        }
        match self {
            Self::Equal => each(left, right, out, (yes, no), |x, y| x == y),
            Self::NotEqual => each(left, right, out, (yes, no), |x, y| x != y),
            Self::Less => each(left, right, out, (yes, no), |x, y| x < y),
            Self::LessEqual => each(left, right, out, (yes, no), |x, y| x <= y),
            Self::Greater => each(left, right, out, (yes, no), |x, y| x > y),
            Self::GreaterEqual => each(left, right, out, (yes, no), |x, y| x >= y),
        }
    }
}

/// A comparison of two int32 values that broadcast.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compare {
    comparison: Comparison,
    operands: [ValueId; 2],
}

/// Recognises operation `index`.
pub(crate) fn recognise(graph: &Graph, index: usize) -> Option<Node> {
    let operation = &graph.body.operations[index];
    let comparison = Comparison::of(operation.op.name)?;
    let operands = [graph.at(operation, "x")?, graph.at(operation, "y")?];
    let output = *operation.outputs.first()?;
    let fits = operands.iter().all(|&id| graph.dtype(id) == DType::Int32)
        && graph.dtype(output) == DType::Bool
        && graph.body.ty(output).count() > 0;
    let kind = Kind::Compare(Compare { comparison, operands });
    fits.then(|| Node { kind, covers: vec![index], reads: operands.to_vec(), outputs: vec![output] })
}

/// Makes the step.
pub(crate) fn lower(builder: &mut Builder<'_>, node: &Node, compare: &Compare) -> Result<(), DeviceError> {
    let shape = builder.graph.shape(node.outputs[0]).to_vec();
    let [x, y] = compare.operands;
    let spots = [builder.read(x)?, builder.read(y)?];
    let strides = [x, y].map(|id| {
        let given = builder.graph.shape(id);
        let mut aligned = vec![1; shape.len() - given.len()];
        aligned.extend_from_slice(given);
        broadcast_strides(&aligned)
    });
    let to = builder.make(node.outputs[0], Layout::Dense)?;
    let described = Described::of(builder, node, "comparison of integers");
    let step = CompareStep { comparison: compare.comparison, spots, walk: Walk::new(&shape, &strides), to };
    builder.push(node, described, Box::new(step), &spots, &[to]);
    Ok(())
}

struct CompareStep {
    comparison: Comparison,
    spots: [Spot; 2],
    walk: Walk,
    to: Slot,
}

impl Step for CompareStep {
    fn run(&self, context: Context<'static>, memory: &mut Memory<'_>) -> Result<(), DeviceError> {
        let ([x, y], [to]) = memory.split(self.spots, [self.to])?;
        let (x, y): (&[i32], &[i32]) = (bytemuck::cast_slice(x), bytemuck::cast_slice(y));
        parallel::pieces(context, to, parallel::SMALL, &|at, piece| {
            let (mut left, mut right) = ([0; BLOCK], [0; BLOCK]);
            for (index, out) in piece.chunks_mut(BLOCK).enumerate() {
                let (left, right) = (&mut left[..out.len()], &mut right[..out.len()]);
                self.walk.gather(0, at + index * BLOCK, x, left);
                self.walk.gather(1, at + index * BLOCK, y, right);
                self.comparison.apply(left, right, out, 1, 0);
            }
        });
        Ok(())
    }
}
