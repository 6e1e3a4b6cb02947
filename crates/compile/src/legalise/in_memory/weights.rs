//! Compressed weights.

use super::in_memory;
use crate::pass::{Context, Effect, Example, Pass, Stage};
use crate::rewrite::rewrite;
use crate::{CompileError, Notes};
use aneforge_mil::op::{Argument, Arguments};
use aneforge_mil::{Body, Constant, DType, Operation, Weight, WeightError};
use half::f16;
use std::sync::Arc;

/// Expands compressed weights: an M3 Max on macOS 15 refuses the operators, nobody reports tables or blocks at work (maderix/ANE,
/// pull requests 16 and its forks).
pub const DENSE_WEIGHTS: Pass = Pass {
    name: "dense-weights",
    summary: "expands compressed weights to fp16 when the bundle is written, because models in memory may refuse them",
    stage: Stage::Legalise,
    effect: Effect::Numeric("each element is rounded to fp16, as the engine's compiler does"),
    after: &[],
    applies: in_memory,
    run,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [2, 2]> x) {
            tensor<fp16, [2, 2]> w = constexpr_affine_dequantize()[axis = int32(0), name = string(\"w\"), quantized_data = tensor<int8, [2, 2]>([4, -8, 127, 1]), scale = fp16(0x1p-1), zero_point = int8(0)];
            tensor<fp16, [2, 2]> y = add(x = x, y = w)[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [2, 2]> x) {
            tensor<fp16, [2, 2]> y = add(x = x, y = tensor<fp16, [2, 2]>([0x1p+1, -0x1p+2, 0x1.fcp+5, 0x1p-1]))[name = string(\"y\")];
        } -> (y);",
    },
};

fn run(body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    rewrite(&body, |rewriter, operation| {
        let (true, &[result]) = (operation.op.expands_weight(), &operation.outputs[..]) else { return Ok(false) };
        let Some(parts) = parts(rewriter.source(), operation) else { return Ok(false) };
        let (name, ty) = (rewriter.name(result), rewriter.ty(result).clone());
        if ty.dtype != DType::Fp16 {
            return Ok(false);
        }
        let record = operation.op;
        let expand = move || -> Result<Vec<f16>, WeightError> {
            let read = |part: &(aneforge_mil::TensorType, Constant)| match &part.1 {
                Constant::Text(text) => Ok(Argument::string(text.clone())),
                data => {
                    data.to_array(&part.0).map(Argument::valued).ok_or_else(|| WeightError::Other("cannot be read".to_string()))
                }
            };
            let ports: Vec<Vec<Argument>> =
                parts.iter().map(|port| port.iter().map(read).collect::<Result<_, _>>()).collect::<Result<_, _>>()?;
            let fail = |error: aneforge_mil::op::OpError| WeightError::Other(error.to_string());
            let arrays = (record.meaning)(&Arguments::checked(record, &ports).map_err(fail)?).map_err(fail)?;
            Ok(arrays.iter().flat_map(|array| &array.data).map(|&value| f16::from_f64(value)).collect())
        };
        let new = if ty.count() <= aneforge_mil::SMALL_CONSTANT {
            let values = expand().map_err(|error| CompileError::internal(format!("{} {name:?}: {error}", record.name)))?;
            rewriter.builder().values(ty, values.into_iter().map(f16::to_f64).collect())
        } else {
            // Expanded while it is written, not held.
            let weight = Weight::computed(ty.shape, Arc::new(move |sink| sink(&expand()?)));
            rewriter.builder().weight(name, weight)
        };
        notes.applied(name, format!("{} expanded", record.name));
        rewriter.replace(result, new);
        Ok(true)
    })
}

/// The constants at each port; `None` where one is computed.
fn parts(body: &Body, operation: &Operation) -> Option<Vec<Vec<(aneforge_mil::TensorType, Constant)>>> {
    let part = |&id: &_| body.constant(id).map(|constant| (body.ty(id).clone(), constant.clone()));
    operation.arguments.iter().map(|operand| operand.values().iter().map(part).collect()).collect()
}
