//! Scales and offsets behind layers, folded into the layers.

use super::pattern::{finished, per_feature};
use crate::pass::{Context, Effect, Example, Pass, Stage};
use crate::rewrite::{Rewriter, one, rewrite};
use crate::{CompileError, Notes};
use aneforge_mil::{Body, Constant, DType, Operand, Operation, ValueId, Weight};
use half::f16;
use std::collections::HashMap;

/// Folds batch norms, products and sums with a constant per channel into the convolution or dense layer before them.
pub const SCALE_FOLDING: Pass = Pass {
    name: "scale-folding",
    summary: "folds batch norms, scales and offsets per channel into weight and bias of the layer before them",
    stage: Stage::Fuse,
    effect: Effect::Numeric("weights are rounded once more, each layer's by less than 1/1000 of their norm; results once less"),
    after: &[],
    applies: |_| true,
    run,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [1, 2]> x) {
            tensor<fp16, [2, 2]> w = const()[name = string(\"w\"), val = tensor<fp16, [2, 2]>([[0x1p+0, 0x1p+1], [0x1p+2, 0x1p+0]])];
            tensor<fp16, [1, 2]> l = linear(x = x, weight = w)[name = string(\"l\")];
            tensor<fp16, [1, 2]> s = mul(x = l, y = tensor<fp16, [2]>([0x1p+1, 0x1p-1]))[name = string(\"s\")];
            tensor<fp16, [1, 2]> y = add(x = s, y = tensor<fp16, [2]>([0x1p+0, 0x0p+0]))[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [1, 2]> x) {
            tensor<fp16, [2, 2]> w = const()[name = string(\"w\"), val = tensor<fp16, [2, 2]>([[0x1p+1, 0x1p+2], [0x1p+1, 0x1p-1]])];
            tensor<fp16, [2]> b = const()[name = string(\"b\"), val = tensor<fp16, [2]>([0x1p+0, 0x0p+0])];
            tensor<fp16, [1, 2]> y = linear(x = x, weight = w, bias = b)[name = string(\"y\")];
        } -> (y);",
    },
};

/// Largest norm of what rounding the folded weights loses, over the norm of the weights.
const MOST_LOST: f64 = 1e-3;

/// A layer and what follows it: `scale * layer + offset` per channel.
struct Folded<'a> {
    layer: &'a Operation,
    scale: Vec<f64>,
    offset: Vec<f64>,
    steps: usize,
}

fn run(body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    let counts = body.use_counts();
    let mut found: HashMap<ValueId, Folded<'_>> = HashMap::new();
    for operation in &body.operations {
        let Some(&result) = operation.outputs.first() else { continue };
        if is_layer(&body, operation) {
            let channels = body.ty(result).shape[channel_axis(&body, operation)];
            let (scale, offset) = (vec![1.0; channels], bias(&body, operation, channels));
            if let Some(offset) = offset {
                found.insert(result, Folded { layer: operation, scale, offset, steps: 0 });
            }
            continue;
        }
        let ports = ["x", "y"].into_iter().filter_map(|port| one(operation, port));
        let Some(before) = ports.into_iter().find(|id| found.contains_key(id)) else { continue };
        let Some(folded) = found.get(&before) else { continue };
        let Some((scale, offset)) = affine(&body, operation, before, channel_axis(&body, folded.layer)) else { continue };
        if counts[before.index()] != 1 {
            let text = format!("not folded into the layer before it: {:?} has another use", body.value(before).name);
            notes.missed(&body.value(result).name, text);
            continue;
        }
        if let Some(mut folded) = found.remove(&before) {
            for ((own, held), (s, o)) in folded.scale.iter_mut().zip(&mut folded.offset).zip(scale.iter().zip(&offset)) {
                (*own, *held) = (*own * s, *held * s + o);
            }
            folded.steps += 1;
            found.insert(result, folded);
        }
    }
    found.retain(|_, folded| folded.steps > 0);
    if found.is_empty() {
        return Ok(body);
    }
    let mut changed = false;
    let new = rewrite(&body, |rewriter, operation| {
        let Some(&result) = operation.outputs.first() else { return Ok(false) };
        let Some(folded) = found.get(&result) else { return Ok(false) };
        match write(rewriter, folded, result) {
            Ok(()) => {
                notes.applied(rewriter.name(result), format!("{} step(s) folded into the {}", folded.steps, folded.layer.op.name));
                changed = true;
                Ok(true)
            }
            Err(Obstacle::Reason(reason)) => {
                notes.missed(rewriter.name(result), format!("not folded into the layer before it: {reason}"));
                Ok(false)
            }
            Err(Obstacle::Fault(error)) => Err(error),
        }
    })?;
    Ok(finished(new, changed))
}

enum Obstacle {
    Reason(String),
    Fault(CompileError),
}

impl From<CompileError> for Obstacle {
    fn from(error: CompileError) -> Self {
        Self::Fault(error)
    }
}

/// A convolution or dense layer of fp16 whose weight stands as it is.
fn is_layer(body: &Body, operation: &Operation) -> bool {
    let constant = one(operation, "weight").is_some_and(|id| body.constant(id).is_some() && body.ty(id).dtype == DType::Fp16);
    let result = operation.outputs.first().is_some_and(|&id| body.ty(id).dtype == DType::Fp16 && body.ty(id).rank() >= 2);
    matches!(operation.op.name, "conv" | "linear") && constant && result
}

fn channel_axis(body: &Body, layer: &Operation) -> usize {
    match layer.op.name {
        "conv" => 1,
        _ => layer.outputs.first().map_or(0, |&id| body.ty(id).rank() - 1),
    }
}

/// The layer's bias; `None` where it is computed.
fn bias(body: &Body, layer: &Operation, channels: usize) -> Option<Vec<f64>> {
    match one(layer, "bias") {
        None => Some(vec![0.0; channels]),
        Some(id) => Some(body.constant(id)?.to_array(body.ty(id))?.data).filter(|data| data.len() == channels),
    }
}

/// What an operation does to `x` per channel: a factor and a summand each.
fn affine(body: &Body, operation: &Operation, x: ValueId, axis: usize) -> Option<(Vec<f64>, Vec<f64>)> {
    let shape = &body.ty(x).shape;
    let channels = shape[axis];
    let numbers = |id: ValueId| -> Option<Vec<f64>> {
        let ty = body.ty(id);
        let constant = body.constant(id).filter(|_| ty.count() == 1 || ty.count() == channels)?;
        let data = constant.to_array(ty)?.data;
        if ty.count() == 1 && ty.rank() <= shape.len() {
            return Some(vec![data[0]; channels]);
        }
        per_feature(&ty.shape, shape, &[axis]).then_some(data)
    };
    let kept = operation.outputs.first().map(|&id| body.ty(id)) == Some(body.ty(x));
    let other = || if one(operation, "x") == Some(x) { one(operation, "y") } else { one(operation, "x") };
    let (ones, zeros) = (vec![1.0; channels], vec![0.0; channels]);
    let negated = |values: Vec<f64>| values.into_iter().map(|value| -value).collect();
    match operation.op.name {
        _ if !kept => None,
        "mul" => Some((numbers(other()?)?, zeros)),
        "add" => Some((ones, numbers(other()?)?)),
        "sub" if one(operation, "x") == Some(x) => Some((ones, negated(numbers(other()?)?))),
        "batch_norm" if axis == 1 && one(operation, "x") == Some(x) => {
            let all = |port: &str, otherwise: f64| match one(operation, port) {
                None => Some(vec![otherwise; channels]),
                Some(id) => body.constant(id)?.to_array(body.ty(id)).map(|array| array.data),
            };
            let epsilon = match one(operation, "epsilon") {
                None => 1e-5,
                Some(_) => super::pattern::number(body, operation, "epsilon")?,
            };
            let (mean, variance) = (all("mean", 0.0)?, all("variance", 1.0)?);
            let (gamma, beta) = (all("gamma", 1.0)?, all("beta", 0.0)?);
            let scale: Vec<f64> =
                gamma.iter().zip(&variance).map(|(gamma, variance)| gamma / (variance + epsilon).sqrt()).collect();
            let offset = beta.iter().zip(&mean).zip(&scale).map(|((beta, mean), scale)| beta - mean * scale).collect();
            Some((scale, offset))
        }
        _ => None,
    }
}

fn write(rewriter: &mut Rewriter<'_>, folded: &Folded<'_>, result: ValueId) -> Result<(), Obstacle> {
    let layer = folded.layer;
    let missing = || CompileError::internal("a layer without a weight");
    let old = one(layer, "weight").ok_or_else(missing)?;
    let shape = rewriter.ty(old).shape.clone();
    let weight = if folded.scale.iter().all(|&scale| scale == 1.0) {
        rewriter.value(old)?
    } else {
        let values = held(rewriter.source(), old).ok_or_else(|| Obstacle::Reason("its weight cannot be read".to_string()))?;
        let values = scaled(&values, &folded.scale)?;
        let name = rewriter.name(old);
        let weight = Weight::from_fp16(shape, &values).map_err(|error| CompileError::internal(error.to_string()))?;
        rewriter.builder().weight(name, weight)
    };
    let offset: Vec<f16> = folded.offset.iter().map(|&value| f16::from_f64(value)).collect();
    if offset.iter().any(|value| !value.is_finite()) {
        return Err(Obstacle::Reason("the bias would leave fp16's range".to_string()));
    }
    let hint = rewriter.name(result);
    let mut arguments = Vec::with_capacity(layer.arguments.len());
    for (spec, operand) in layer.op.ports.iter().zip(&layer.arguments) {
        arguments.push(match spec.name {
            "weight" => Operand::One(weight),
            "bias" if one(layer, "bias").is_none() && offset.iter().all(|value| value.to_bits() == 0) => Operand::Absent,
            "bias" => {
                let bias = Weight::from_fp16([offset.len()], &offset).map_err(|error| CompileError::internal(error.to_string()))?;
                Operand::One(rewriter.builder().weight(&format!("{hint}_bias"), bias))
            }
            _ => rewriter.operand(operand)?,
        });
    }
    let made = rewriter.builder().apply(layer.op, arguments, hint).map_err(CompileError::from)?;
    let new = made.first().copied().ok_or_else(missing)?;
    rewriter.replace(result, new);
    Ok(())
}

/// The elements of a constant in fp16.
fn held(body: &Body, id: ValueId) -> Option<Vec<f16>> {
    match body.constant(id)? {
        Constant::Weight(weight) => weight.to_fp16().ok(),
        Constant::Values(values) => Some(values.iter().map(|&value| f16::from_f64(value)).collect()),
        Constant::Text(_) => None,
    }
}

/// Rows times their factors, rounded.
fn scaled(values: &[f16], scale: &[f64]) -> Result<Vec<f16>, Obstacle> {
    let (mut lost, mut kept) = (0.0, 0.0);
    let mut rounded = Vec::with_capacity(values.len());
    for (row, &factor) in values.chunks((values.len() / scale.len()).max(1)).zip(scale) {
        for value in row {
            let exact = value.to_f64() * factor;
            let near = f16::from_f64(exact);
            if !near.is_finite() {
                return Err(Obstacle::Reason("its weights would leave fp16's range".to_string()));
            }
            lost += (near.to_f64() - exact).powi(2);
            kept += exact * exact;
            rounded.push(near);
        }
    }
    let error = if kept > 0.0 { (lost / kept).sqrt() } else { 0.0 };
    match error <= MOST_LOST {
        true => Ok(rounded),
        false => Err(Obstacle::Reason(format!("its weights would lose {error:.2e} of their norm, more than {MOST_LOST:.0e}"))),
    }
}
