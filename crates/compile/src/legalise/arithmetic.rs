//! `square`, and products with zero.

use super::through_espresso;
use crate::pass::{Context, Effect, Example, Pass, Stage};
use crate::rewrite::{one, rewrite, uniform};
use crate::{CompileError, Notes};
use aneforge_mil::{Body, Operation, ValueId};

/// Writes `square` as a product: the opcode followed by a nonlinearity fails where the width modulo 128 exceeds 64.
pub const SQUARE: Pass = Pass {
    name: "square-as-product",
    summary: "writes square(x) as x * x, because the opcode before a nonlinearity fails to compile at some widths",
    stage: Stage::Legalise,
    effect: Effect::Lossless,
    after: &[],
    applies: through_espresso,
    run: run_square,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [2]> x) {
            tensor<fp16, [2]> y = square(x = x)[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [2]> x) {
            tensor<fp16, [2]> y = mul(x = x, y = x)[name = string(\"y\")];
        } -> (y);",
    },
};

/// Writes a product with zero as a difference: `mul(reduce(..), 0)` fails to compile.
pub const ZERO_PRODUCT: Pass = Pass {
    name: "zero-product",
    summary: "writes x * 0 as x - x, because a reduction times zero fails to compile",
    stage: Stage::Legalise,
    effect: Effect::Numeric("equal for finite x up to the sign of zero; the engine gives +0 for inf - inf and inf * 0 alike"),
    after: &[],
    applies: through_espresso,
    run: run_zero,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [2]> x) {
            tensor<fp16, [2]> y = mul(x = x, y = fp16(0x0p+0))[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [2]> x) {
            tensor<fp16, [2]> y = sub(x = x, y = x)[name = string(\"y\")];
        } -> (y);",
    },
};

fn run_square(body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    rewrite(&body, |rewriter, operation| {
        let ("square", Some(x), [result]) = (operation.op.name, one(operation, "x"), &operation.outputs[..]) else {
            return Ok(false);
        };
        let name = rewriter.name(*result);
        let x = rewriter.value(x)?;
        let new = rewriter.builder().op_named("mul", &[("x", x.into()), ("y", x.into())], name)?;
        notes.applied(name, "square written as a product");
        rewriter.replace(*result, new);
        Ok(true)
    })
}

fn run_zero(body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    rewrite(&body, |rewriter, operation| {
        let Some(x) = zero_times(rewriter.source(), operation) else { return Ok(false) };
        let [result] = operation.outputs[..] else { return Ok(false) };
        // A broadcast product has another shape than x - x.
        if rewriter.ty(x) != rewriter.ty(result) {
            return Ok(false);
        }
        let name = rewriter.name(result);
        let x = rewriter.value(x)?;
        let new = rewriter.builder().op_named("sub", &[("x", x.into()), ("y", x.into())], name)?;
        notes.applied(name, "product with zero written as a difference");
        rewriter.replace(result, new);
        Ok(true)
    })
}

fn zero_times(body: &Body, operation: &Operation) -> Option<ValueId> {
    let (x, y) = (one(operation, "x")?, one(operation, "y")?);
    let zero = |id| body.ty(id).count() == 1 && uniform(body, id) == Some(0.0);
    match operation.op.name {
        "mul" if zero(y) => Some(x),
        "mul" if zero(x) => Some(y),
        _ => None,
    }
}
