//! The affine part of wide norms.

use super::through_espresso;
use crate::pass::{Context, Effect, Example, Pass, Stage};
use crate::rewrite::{Rewriter, one, rewrite};
use crate::{CompileError, Notes};
use aneforge_mil::{Body, Constant, Operation, TensorType, ValueId};

/// Applies gain and offset of a norm at rank 2: at rank 3 and above the compiler fails from 1024 features on.
pub const LAYER_NORM_AFFINE: Pass = Pass {
    name: "affine-at-rank-2",
    summary: "applies gain and offset of a norm over 1024 features and more at rank 2, because higher ranks fail to compile",
    stage: Stage::Legalise,
    effect: Effect::Lossless,
    after: &[],
    applies: through_espresso,
    run,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [1, 2, 1024]> x, tensor<fp16, [1, 2, 1]> v) {
            tensor<fp16, [1024]> gamma = const()[name = string(\"gamma\"), val = tensor<fp16, [1024]>(BLOBFILE(path = string(\"@model_path/weights.bin\"), offset = uint64(64)))];
            tensor<fp16, [1, 2, 1]> r = rsqrt(x = v, epsilon = fp16(0x0p+0))[name = string(\"r\")];
            tensor<fp16, [1, 2, 1024]> n = mul(x = x, y = r)[name = string(\"n\")];
            tensor<fp16, [1, 2, 1024]> y = mul(x = n, y = gamma)[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [1, 2, 1024]> x, tensor<fp16, [1, 2, 1]> v) {
            tensor<fp16, [1, 1024]> gamma = const()[name = string(\"gamma\"), val = tensor<fp16, [1, 1024]>(BLOBFILE(path = string(\"@model_path/weights.bin\"), offset = uint64(64)))];
            tensor<fp16, [1, 2, 1]> r = rsqrt(x = v, epsilon = fp16(0x0p+0))[name = string(\"r\")];
            tensor<fp16, [1, 2, 1024]> n = mul(x = x, y = r)[name = string(\"n\")];
            tensor<fp16, [2, 1024]> y_rows = reshape(x = n, shape = tensor<int32, [2]>([2, 1024]))[name = string(\"y_rows\")];
            tensor<fp16, [2, 1024]> y_affine = mul(x = y_rows, y = gamma)[name = string(\"y_affine\")];
            tensor<fp16, [1, 2, 1024]> y = reshape(x = y_affine, shape = tensor<int32, [3]>([1, 2, 1024]))[name = string(\"y\")];
        } -> (y);",
    },
};

/// Fewest features for which the compiler is reported to fail (ANEForge 0.4.0).
const WIDE: usize = 1024;

fn run(body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    rewrite(&body, |rewriter, operation| {
        let [result] = operation.outputs[..] else { return Ok(false) };
        if rewriter.ty(result).rank() < 3 {
            return Ok(false);
        }
        match operation.op.name {
            "layer_norm" => split_native(rewriter, operation, result, notes),
            "mul" | "add" => lower_affine(rewriter, operation, result, notes),
            _ => Ok(false),
        }
    })
}

/// `layer_norm` with gain or offset over a wide last axis: the norm alone, then the affine part.
fn split_native(
    rewriter: &mut Rewriter<'_>,
    operation: &Operation,
    result: ValueId,
    notes: &mut Notes,
) -> Result<bool, CompileError> {
    let ty = rewriter.ty(result).clone();
    let (gamma, beta) = (one(operation, "gamma"), one(operation, "beta"));
    let wide = ty.shape.last().is_some_and(|&extent| extent >= WIDE);
    let over_last = gamma.or(beta).is_some_and(|id| rewriter.ty(id).rank() == 1);
    if !wide || !over_last {
        return Ok(false);
    }
    let name = rewriter.name(result);
    let mut given = Vec::with_capacity(3);
    for port in ["x", "axes", "epsilon"] {
        if let Some(id) = one(operation, port) {
            given.push((port, rewriter.value(id)?.into()));
        }
    }
    let mut value = rewriter.builder().op_named("layer_norm", &given, &format!("{name}_norm"))?;
    for (op, constant) in [("mul", gamma), ("add", beta)] {
        if let Some(constant) = constant {
            value = at_rank_two(rewriter, op, value, constant, &ty, name)?;
        }
    }
    notes.applied(name, "gain and offset applied at rank 2");
    rewriter.replace(result, value);
    Ok(true)
}

/// A product or sum with one constant per feature that follows a norm spelled out in element-wise operations.
fn lower_affine(
    rewriter: &mut Rewriter<'_>,
    operation: &Operation,
    result: ValueId,
    notes: &mut Notes,
) -> Result<bool, CompileError> {
    let body = rewriter.source();
    let ty = rewriter.ty(result).clone();
    let (Some(x), Some(y)) = (one(operation, "x"), one(operation, "y")) else { return Ok(false) };
    let (value, constant) = if body.constant(y).is_some() { (x, y) } else { (y, x) };
    if !per_feature(body, constant, &ty) || rewriter.ty(value) != &ty || !follows_norm(body, value) {
        return Ok(false);
    }
    let name = rewriter.name(result);
    let value = rewriter.value(value)?;
    let new = at_rank_two(rewriter, operation.op.name, value, constant, &ty, name)?;
    notes.applied(name, format!("{} applied at rank 2", operation.op.name));
    rewriter.replace(result, new);
    Ok(true)
}

fn at_rank_two(
    rewriter: &mut Rewriter<'_>,
    op: &str,
    value: ValueId,
    constant: ValueId,
    ty: &TensorType,
    name: &str,
) -> Result<ValueId, CompileError> {
    let features = ty.shape.last().copied().unwrap_or(1);
    let row_shape = vec![1, features];
    let constant = match rewriter.source().constant(constant) {
        Some(Constant::Weight(weight)) => {
            let row = weight.reshaped(row_shape).ok_or_else(|| CompileError::internal("a gain changed its size"))?;
            let name = rewriter.name(constant);
            rewriter.builder().weight(name, row)
        }
        Some(Constant::Values(values)) => {
            let row = TensorType::new(ty.dtype, row_shape);
            rewriter.builder().values(row, values.clone())
        }
        _ => return Err(CompileError::internal("a gain is no constant")),
    };
    let builder = rewriter.builder();
    // A gain before an offset: go on from the rows that are already there.
    let rows = builder.body().producer(value).filter(|producer| producer.op.name == "reshape").and_then(|p| one(p, "x"));
    let rows = match rows.filter(|&rows| builder.ty(rows).shape == [ty.count() / features, features]) {
        Some(rows) => rows,
        None => {
            let shape = vec![(ty.count() / features) as i64, features as i64];
            builder.op_named("reshape", &[("x", value.into()), ("shape", shape.into())], &format!("{name}_rows"))?
        }
    };
    let affine = builder.op_named(op, &[("x", rows.into()), ("y", constant.into())], &format!("{name}_affine"))?;
    let shape: Vec<i64> = ty.shape.iter().map(|&extent| extent as i64).collect();
    Ok(builder.op_named("reshape", &[("x", affine.into()), ("shape", shape.into())], name)?)
}

/// Whether a constant holds one number per feature of the wide last axis.
fn per_feature(body: &Body, constant: ValueId, ty: &TensorType) -> bool {
    let features = ty.shape.last().copied().unwrap_or(1);
    let held = body.ty(constant);
    features >= WIDE && body.constant(constant).is_some() && held.count() == features && held.shape.last() == Some(&features)
}

/// Whether a value is what a norm makes: its operator's result, a quotient, a product with a reciprocal root, or the gain after one.
fn follows_norm(body: &Body, value: ValueId) -> bool {
    let Some(producer) = body.producer(value) else { return false };
    let factors = || ["x", "y"].into_iter().filter_map(|port| one(producer, port));
    match producer.op.name {
        "layer_norm" | "real_div" => true,
        "mul" => factors().any(|id| {
            body.producer(id).is_some_and(|factor| factor.op.name == "rsqrt")
                || (body.constant(id).is_none() && factors().any(|c| body.constant(c).is_some()) && follows_norm(body, id))
        }),
        _ => false,
    }
}
