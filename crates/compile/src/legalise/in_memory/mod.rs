//! Replacements for what the route of models in memory refuses: MIL text that is handed to the engine's own compiler takes fewer
//! operators than e5rt does.
//!
//! What is refused is reported by maderix/ANE (README, training kernels, pull requests 6 and 22, issue 47), Orion (arXiv 2603.06728,
//! constraints and code) and the forks of both. Where they disagree the refusal counts. What these passes write instead is what
//! those projects run: 1x1 convolutions, products, sums, powers, and reductions by sum and maximum.

mod activation;
mod attention;
mod convolution;
mod limits;
mod mean;
mod pieces;
mod product;
mod quotient;
mod weights;

pub use activation::{GELU, SILU};
pub use attention::ATTENTION;
pub use convolution::{CONVOLUTION_BIAS, LINEAR};
pub use limits::check;
pub use mean::{LAYER_NORM, MEAN, SOFTMAX};
pub use pieces::{CONCAT, SLICE};
pub use product::INNER_EXTENT;
pub use quotient::{INVERSE, QUOTIENT, RECIPROCAL_ROOT};
pub use weights::DENSE_WEIGHTS;

use crate::rewrite::{Rewriter, one, rewrite};
use crate::{CompileError, Notes};
use aneforge_core::{Route, Target};
use aneforge_mil::op::Arguments;
use aneforge_mil::{Body, BuildError, DType, Given, Operation, ValueId};

/// Whether programs for a target are models in memory.
fn in_memory(target: &Target) -> bool {
    target.route() == Some(Route::InMemory)
}

type Step = Result<ValueId, CompileError>;

/// Writes the operations that stand for one use of an operator.
struct Steps<'r, 'a> {
    rewriter: &'r mut Rewriter<'a>,
    operation: &'r Operation,
    /// SSA name of the use's result; the steps are named after it.
    name: &'a str,
    result: ValueId,
}

impl Steps<'_, '_> {
    /// The value at a port, where one stands there.
    fn port(&mut self, port: &str) -> Result<Option<ValueId>, CompileError> {
        one(self.operation, port).map(|id| self.rewriter.value(id)).transpose()
    }

    /// The value at a port that always has one.
    fn required(&mut self, port: &'static str) -> Step {
        let missing = || CompileError::internal(format!("{} {:?} has no {port}", self.operation.op.name, self.name));
        let id = one(self.operation, port).ok_or_else(missing)?;
        self.rewriter.value(id)
    }

    /// Extents of a new value.
    fn shape(&mut self, id: ValueId) -> Vec<usize> {
        self.rewriter.builder().ty(id).shape.clone()
    }

    /// A number of the element type of `like`.
    fn number(&mut self, like: ValueId, number: f64) -> ValueId {
        let builder = self.rewriter.builder();
        let dtype = builder.ty(like).dtype;
        builder.scalar(dtype, number)
    }

    /// An operation on the way.
    fn op(&mut self, op: &str, given: &[(&str, Given)]) -> Step {
        let name = format!("{}_{op}", self.name);
        Ok(self.rewriter.builder().op_named(op, given, &name)?)
    }

    fn two(&mut self, op: &str, x: ValueId, y: ValueId) -> Step {
        self.op(op, &[("x", x.into()), ("y", y.into())])
    }

    fn with_number(&mut self, op: &str, x: ValueId, number: f64) -> Step {
        let number = self.number(x, number);
        self.two(op, x, number)
    }

    /// The sum or largest value over axes, which stay with extent one where `keep` says so.
    fn reduced(&mut self, op: &str, x: ValueId, axes: &[usize], keep: bool) -> Step {
        let axes: Vec<i64> = axes.iter().map(|&axis| axis as i64).collect();
        self.op(op, &[("x", x.into()), ("axes", axes.into()), ("keep_dims", keep.into())])
    }

    /// Gives the last step the name of the use, and has it stand for the use from now on.
    fn finish(&mut self, op: &str, given: &[(&str, Given)]) -> Result<bool, CompileError> {
        let new = self.rewriter.builder().op_named(op, given, self.name)?;
        self.rewriter.replace(self.result, new);
        Ok(true)
    }

    fn finish_two(&mut self, op: &str, x: ValueId, y: ValueId) -> Result<bool, CompileError> {
        self.finish(op, &[("x", x.into()), ("y", y.into())])
    }

    fn finish_with_number(&mut self, op: &str, x: ValueId, number: f64) -> Result<bool, CompileError> {
        let number = self.number(x, number);
        self.finish_two(op, x, number)
    }
}

/// Replaces uses of one operator by the steps that `write` adds; it answers false where a use may stay.
fn replaced(
    body: &Body,
    op: &str,
    text: &str,
    notes: &mut Notes,
    mut write: impl FnMut(&mut Steps<'_, '_>, &Arguments<'_>) -> Result<bool, CompileError>,
) -> Result<Body, CompileError> {
    rewrite(body, |rewriter, operation| {
        let (true, &[result]) = (operation.op.name == op, &operation.outputs[..]) else { return Ok(false) };
        let ports = rewriter.source().argument_ports(&operation.arguments);
        let arguments = Arguments::checked(operation.op, &ports).map_err(BuildError::from)?;
        let name = rewriter.name(result);
        let changed = write(&mut Steps { rewriter, operation, name, result }, &arguments)?;
        if changed {
            notes.applied(name, text);
        }
        Ok(changed)
    })
}

/// The largest finite number of an element type of tensors that are computed with.
fn largest(dtype: DType) -> f64 {
    if dtype == DType::Fp16 { 65504.0 } else { f64::from(f32::MAX) }
}
