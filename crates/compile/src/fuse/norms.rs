//! Norms that a program spells out, as operators.

use super::pattern::{finished, per_feature, wide};
use super::spelled::{Ratio, Statistic, ratio};
use crate::pass::{Context, Effect, Example, Pass, Stage};
use crate::rewrite::{Rewriter, one, rewrite};
use crate::{CompileError, Notes};
use aneforge_core::Route;
use aneforge_mil::{Body, Constant, Operation, TensorType, ValueId};
use std::collections::HashMap;

/// Writes a layer or instance norm as the operator that it is: its sums of squares are kept wider than fp16, where spelled out a
/// deviation above 255 overflows.
pub const NATIVE_NORMS: Pass = Pass {
    name: "native-norms",
    summary: "writes layer norms and instance norms that are spelled out as layer_norm and instance_norm, with gain and offset",
    stage: Stage::Fuse,
    effect: Effect::Numeric("mean, deviation and quotient are not rounded on the way; within the operator's own tolerance"),
    after: &[],
    applies: |_| true,
    run,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [2, 8]> x) {
            tensor<fp16, [2, 1]> m = reduce_mean(x = x, axes = tensor<int32, [1]>([-1]), keep_dims = bool(true))[name = string(\"m\")];
            tensor<fp16, [2, 8]> d = sub(x = x, y = m)[name = string(\"d\")];
            tensor<fp16, [2, 8]> q = square(x = d)[name = string(\"q\")];
            tensor<fp16, [2, 1]> v = reduce_mean(x = q, axes = tensor<int32, [1]>([-1]), keep_dims = bool(true))[name = string(\"v\")];
            tensor<fp16, [2, 1]> r = rsqrt(x = v, epsilon = fp16(0x1p-10))[name = string(\"r\")];
            tensor<fp16, [2, 8]> y = mul(x = d, y = r)[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [2, 8]> x) {
            tensor<fp16, [2, 8]> y = layer_norm(x = x, axes = tensor<int32, [1]>([1]), epsilon = fp16(0x1p-10))[name = string(\"y\")];
        } -> (y);",
    },
};

/// Features from which e5rt's `layer_norm` is reported to fail on every chip (ANEForge 0.4.0, issue 149).
const TOO_WIDE: usize = 10240;

/// A norm that is found.
struct Norm {
    op: &'static str,
    x: ValueId,
    axes: Vec<usize>,
    epsilon: f64,
    gamma: Option<ValueId>,
    beta: Option<ValueId>,
}

fn run(body: Body, context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    let counts = body.use_counts();
    let mut found: HashMap<ValueId, Norm> = HashMap::new();
    for operation in &body.operations {
        let Some(&result) = operation.outputs.first() else { continue };
        if let Some((before, norm)) = extended(&body, &counts, &found, operation) {
            found.remove(&before);
            found.insert(result, norm);
            continue;
        }
        let name = &body.value(result).name;
        match ratio(&body, &counts, operation) {
            Ok(Some(spelled)) => match norm(&body, &spelled, context) {
                Ok(Some(norm)) => drop(found.insert(result, norm)),
                Ok(None) => {}
                Err(reason) => notes.missed(name, format!("norm kept: {reason}")),
            },
            Ok(None) => {}
            Err(reason) => notes.missed(name, format!("norm kept: {reason}")),
        }
    }
    if found.is_empty() {
        return Ok(body);
    }
    let new = rewrite(&body, |rewriter, operation| {
        let Some(&result) = operation.outputs.first() else { return Ok(false) };
        let Some(norm) = found.get(&result) else { return Ok(false) };
        write(rewriter, norm, result)?;
        notes.applied(rewriter.name(result), format!("{} over axes {:?}", norm.op, norm.axes));
        Ok(true)
    })?;
    Ok(finished(new, true))
}

/// The norm's operator and what it takes, where it fits one.
fn norm(body: &Body, spelled: &Ratio, context: &Context<'_>) -> Result<Option<Norm>, String> {
    if spelled.statistic != Statistic::Deviation {
        return Ok(None);
    }
    let (ty, axes) = (body.ty(spelled.x), &spelled.axes);
    let rank = ty.rank();
    if spelled.epsilon != 0.0 && half::f16::from_f64(spelled.epsilon) == half::f16::ZERO {
        return Err("its epsilon is below fp16's smallest number".to_string());
    }
    let trailing = axes.iter().copied().eq(rank - axes.len()..rank);
    if !trailing {
        return Err(format!("axes {axes:?} are not the last ones"));
    }
    let by_channel = (3..=5).contains(&rank) && axes.len() == rank - 2;
    let features: usize = axes.iter().map(|&axis| ty.shape[axis]).product();
    if !by_channel && features >= TOO_WIDE && context.target.route() == Some(Route::E5rt) {
        return Err(format!("layer_norm over {features} features fails to compile"));
    }
    let op = if by_channel && axes.len() > 1 { "instance_norm" } else { "layer_norm" };
    Ok(Some(Norm { op, x: spelled.x, axes: axes.clone(), epsilon: spelled.epsilon, gamma: None, beta: None }))
}

/// The norm before an operation with that operation as its gain or offset.
fn extended(body: &Body, counts: &[u32], found: &HashMap<ValueId, Norm>, operation: &Operation) -> Option<(ValueId, Norm)> {
    let (x, y) = (one(operation, "x")?, one(operation, "y")?);
    let (before, constant) = if found.contains_key(&x) { (x, y) } else { (y, x) };
    let norm = found.get(&before)?;
    if counts[before.index()] != 1 || body.constant(constant).is_none() {
        return None;
    }
    let shape = &body.ty(before).shape;
    let axes: &[usize] = if norm.op == "instance_norm" { &[1] } else { &norm.axes };
    per_feature(&body.ty(constant).shape, shape, axes).then_some(())?;
    let (gamma, beta) = match operation.op.name {
        "mul" if norm.gamma.is_none() && norm.beta.is_none() => (Some(constant), None),
        "add" if norm.beta.is_none() => (norm.gamma, Some(constant)),
        _ => return None,
    };
    Some((before, Norm { gamma, beta, axes: norm.axes.clone(), ..*norm }))
}

fn write(rewriter: &mut Rewriter<'_>, norm: &Norm, result: ValueId) -> Result<(), CompileError> {
    let (hint, ty) = (rewriter.name(result), rewriter.ty(result).clone());
    let held = if norm.op == "instance_norm" { &[1][..] } else { &norm.axes };
    let shape: Vec<usize> = held.iter().map(|&axis| ty.shape[axis]).collect();
    let mut given = vec![("x", rewriter.value(norm.x)?.into())];
    if norm.op == "layer_norm" {
        given.push(("axes", wide(&norm.axes).into()));
    }
    given.push(("epsilon", rewriter.builder().scalar(ty.dtype, norm.epsilon).into()));
    for (port, constant) in [("gamma", norm.gamma), ("beta", norm.beta)] {
        if let Some(constant) = constant {
            given.push((port, constant_as(rewriter, constant, &shape)?.into()));
        }
    }
    let new = rewriter.builder().op_named(norm.op, &given, hint)?;
    rewriter.replace(result, new);
    Ok(())
}

/// A constant under another shape.
fn constant_as(rewriter: &mut Rewriter<'_>, constant: ValueId, shape: &[usize]) -> Result<ValueId, CompileError> {
    let ty = TensorType::new(rewriter.ty(constant).dtype, shape);
    match rewriter.source().constant(constant) {
        Some(Constant::Weight(weight)) => {
            let weight = weight.reshaped(shape).ok_or_else(|| CompileError::internal("a gain changed its size"))?;
            let name = rewriter.name(constant);
            Ok(rewriter.builder().weight(name, weight))
        }
        Some(Constant::Values(values)) => Ok(rewriter.builder().values(ty, values.clone())),
        _ => Err(CompileError::internal("a gain is no constant")),
    }
}

/// Writes a root mean square norm by its length: `l2_norm` took a fifth of the time of the steps that it is spelled with (256 rows of
/// 1024 on an M5 Pro: 133 against 608 us, PyPI package aneforge 0.4.0).
pub const LENGTH_NORMS: Pass = Pass {
    name: "length-norms",
    summary: "writes root mean square norms as l2_norm times the root of the number of features",
    stage: Stage::Fuse,
    effect: Effect::Numeric("two roundings to fp16, one of a number the root of the features smaller, in place of those on the way"),
    after: &["native-norms"],
    applies: |_| true,
    run: run_lengths,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [2, 4]> x) {
            tensor<fp16, [2, 4]> q = square(x = x)[name = string(\"q\")];
            tensor<fp16, [2, 1]> v = reduce_mean(x = q, axes = tensor<int32, [1]>([-1]), keep_dims = bool(true))[name = string(\"v\")];
            tensor<fp16, [2, 1]> r = rsqrt(x = v, epsilon = fp16(0x1p-10))[name = string(\"r\")];
            tensor<fp16, [2, 4]> y = mul(x = x, y = r)[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [2, 4]> x) {
            tensor<fp16, [2, 1, 1, 4]> a = reshape(x = x, shape = tensor<int32, [4]>([2, 1, 1, 4]))[name = string(\"a\")];
            tensor<fp16, [2, 1, 1, 4]> b = l2_norm(x = a, epsilon = fp16(0x1p-8))[name = string(\"b\")];
            tensor<fp16, [2, 1, 1, 4]> c = mul(x = b, y = fp16(0x1p+1))[name = string(\"c\")];
            tensor<fp16, [2, 4]> y = reshape(x = c, shape = tensor<int32, [2]>([2, 4]))[name = string(\"y\")];
        } -> (y);",
    },
};

fn run_lengths(body: Body, context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    let counts = body.use_counts();
    if !body.operations.iter().any(|operation| matches!(operation.op.name, "reduce_mean" | "reduce_l2_norm")) {
        return Ok(body);
    }
    let mut changed = false;
    let new = rewrite(&body, |rewriter, operation| {
        let &[result] = &operation.outputs[..] else { return Ok(false) };
        let hint = rewriter.name(result);
        let spelled = match ratio(&body, &counts, operation) {
            Ok(Some(spelled)) if spelled.statistic == Statistic::MeanSquare => spelled,
            Ok(_) => return Ok(false),
            Err(reason) => {
                notes.missed(hint, format!("norm kept: {reason}"));
                return Ok(false);
            }
        };
        let ty = rewriter.ty(spelled.x).clone();
        let (rank, features) = (ty.rank(), ty.shape.last().copied().unwrap_or(1));
        let rows = ty.count() / features;
        let epsilon = spelled.epsilon * features as f64;
        let obstacle = if spelled.axes != [rank - 1] {
            Some(format!("its axes are {:?}, l2_norm runs over the last ones", spelled.axes))
        } else if epsilon < f64::from(half::f16::MIN_POSITIVE) {
            Some("its epsilon times the features is below what fp16 holds well".to_string())
        } else if context.target.chip().is_some_and(|chip| rows > chip.max_extent) {
            Some(format!("{rows} rows are more than the chip takes"))
        } else {
            None
        };
        if let Some(obstacle) = obstacle {
            notes.missed(hint, format!("norm kept: {obstacle}"));
            return Ok(false);
        }
        let x = rewriter.value(spelled.x)?;
        let builder = rewriter.builder();
        let (epsilon, factor) = (builder.scalar(ty.dtype, epsilon), builder.scalar(ty.dtype, (features as f64).sqrt()));
        let planes = wide(&[rows, 1, 1, features]);
        let x = builder.op_named("reshape", &[("x", x.into()), ("shape", planes.into())], &format!("{hint}_rows"))?;
        let unit = builder.op_named("l2_norm", &[("x", x.into()), ("epsilon", epsilon.into())], &format!("{hint}_unit"))?;
        let scaled = builder.op_named("mul", &[("x", unit.into()), ("y", factor.into())], &format!("{hint}_scaled"))?;
        let new = builder.op_named("reshape", &[("x", scaled.into()), ("shape", wide(&ty.shape).into())], hint)?;
        rewriter.replace(result, new);
        notes.applied(hint, format!("root mean square of {features} features by l2_norm"));
        changed = true;
        Ok(true)
    })?;
    Ok(finished(new, changed))
}
