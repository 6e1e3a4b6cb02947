//! Convolutions and fully connected layers.

use super::{in_memory, replaced};
use crate::pass::{Context, Effect, Example, Pass, Stage};
use crate::rewrite::one;
use crate::{CompileError, Notes};
use aneforge_mil::{Body, Constant, Given, Operand, ValueId};

/// Adds a convolution's bias after it: a convolution with one is refused (Orion).
pub const CONVOLUTION_BIAS: Pass = Pass {
    name: "bias-after-convolution",
    summary: "adds the bias of a convolution in an operation of its own, because models in memory refuse a convolution with one",
    stage: Stage::Legalise,
    effect: Effect::Numeric("the products' sum is rounded before the bias is added"),
    after: &[],
    applies: in_memory,
    run: run_convolution,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [1, 1024, 1, 2]> x, tensor<fp16, [1, 1, 1, 2]> z) {
            tensor<fp16, [1, 1024, 1, 1]> w = const()[name = string(\"w\"), val = tensor<fp16, [1, 1024, 1, 1]>(BLOBFILE(path = string(\"@model_path/weights.bin\"), offset = uint64(64)))];
            tensor<fp16, [1, 1, 1, 2]> y = conv(x = x, weight = w, bias = tensor<fp16, [1]>([0x1p-1]))[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [1, 1024, 1, 2]> x, tensor<fp16, [1, 1, 1, 2]> z) {
            tensor<fp16, [1, 1024, 1, 1]> w = const()[name = string(\"w\"), val = tensor<fp16, [1, 1024, 1, 1]>(BLOBFILE(path = string(\"@model_path/weights.bin\"), offset = uint64(64)))];
            tensor<fp16, [1, 1, 1, 2]> c = conv(x = x, weight = w)[name = string(\"c\")];
            tensor<fp16, [1, 1, 1, 2]> y = add(x = c, y = tensor<fp16, [1, 1, 1, 1]>([0x1p-1]))[name = string(\"y\")];
        } -> (y);",
    },
};

/// Writes `linear` as a product and a sum: those are what programs that are known to run are made of.
pub const LINEAR: Pass = Pass {
    name: "linear-as-product",
    summary: "writes linear as matmul and add, because models in memory are not known to have linear",
    stage: Stage::Legalise,
    effect: Effect::Numeric("the products' sum is rounded before the bias is added"),
    after: &[],
    applies: in_memory,
    run: run_linear,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [2, 32]> x) {
            tensor<fp16, [32, 32]> w = const()[name = string(\"w\"), val = tensor<fp16, [32, 32]>(BLOBFILE(path = string(\"@model_path/weights.bin\"), offset = uint64(64)))];
            tensor<fp16, [2, 32]> y = linear(x = x, weight = w)[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [2, 32]> x) {
            tensor<fp16, [32, 32]> w = const()[name = string(\"w\"), val = tensor<fp16, [32, 32]>(BLOBFILE(path = string(\"@model_path/weights.bin\"), offset = uint64(64)))];
            tensor<fp16, [2, 32]> y = matmul(x = x, y = w, transpose_x = bool(false), transpose_y = bool(true))[name = string(\"y\")];
        } -> (y);",
    },
};

fn run_convolution(body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    let mut body = body;
    for op in ["conv", "conv_transpose"] {
        body = replaced(&body, op, "bias added after the convolution", notes, |steps, arguments| {
            let Some(bias) = one(steps.operation, "bias") else { return Ok(false) };
            let mut given = Vec::with_capacity(steps.operation.arguments.len());
            for (spec, operand) in steps.operation.op.ports.iter().zip(&steps.operation.arguments) {
                if let (Operand::One(id), true) = (operand, spec.name != "bias") {
                    given.push((spec.name, Given::Value(steps.rewriter.value(*id)?)));
                }
            }
            let bare = steps.op(op, &given)?;
            let mut shape = vec![1; arguments.shape("x").len()];
            shape[1] = arguments.shape("bias").first().copied().unwrap_or(1);
            let bias = reshaped(steps, bias, shape)?;
            steps.finish_two("add", bare, bias)
        })?;
    }
    Ok(body)
}

/// A value in another shape: a constant as it is, anything else through an operation.
fn reshaped(steps: &mut super::Steps<'_, '_>, old: ValueId, shape: Vec<usize>) -> super::Step {
    let changed = || CompileError::internal("a bias changed its size");
    let name = steps.rewriter.name(old);
    let ty = aneforge_mil::TensorType::new(steps.rewriter.ty(old).dtype, shape);
    match steps.rewriter.source().constant(old) {
        Some(Constant::Values(values)) => Ok(steps.rewriter.builder().values(ty, values.clone())),
        Some(Constant::Weight(weight)) => {
            let weight = weight.reshaped(ty.shape).ok_or_else(changed)?;
            Ok(steps.rewriter.builder().weight(name, weight))
        }
        _ => {
            let shape: Vec<i64> = ty.shape.iter().map(|&extent| extent as i64).collect();
            let value = steps.rewriter.value(old)?;
            steps.op("reshape", &[("x", value.into()), ("shape", shape.into())])
        }
    }
}

fn run_linear(body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    replaced(&body, "linear", "linear written as a product", notes, |steps, _| {
        let (x, weight) = (steps.required("x")?, steps.required("weight")?);
        let given = [("x", x.into()), ("y", weight.into()), ("transpose_x", false.into()), ("transpose_y", true.into())];
        match steps.port("bias")? {
            None => steps.finish("matmul", &given),
            Some(bias) => {
                let product = steps.op("matmul", &given)?;
                steps.finish_two("add", product, bias)
            }
        }
    })
}
