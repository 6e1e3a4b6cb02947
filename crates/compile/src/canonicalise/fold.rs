//! Computes at compile time what depends on constants alone.

use crate::pass::{Context, Effect, Example, Pass, Stage};
use crate::rewrite::rewrite;
use crate::{CompileError, Notes};
use aneforge_mil::op::{Argument, Arguments};
use aneforge_mil::{Array, Body, Operand, Operation, SMALL_CONSTANT};

/// Replaces an operation on constants by its value, where that value is exact in the result's type.
pub const FOLD: Pass = Pass {
    name: "constant-folding",
    summary: "replaces operations on small constants by their value where no rounding is needed",
    stage: Stage::Canonicalise,
    effect: Effect::Lossless,
    after: &[],
    applies: |_| true,
    run,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [2]> x) {
            fp16 two = const()[name = string(\"two\"), val = fp16(0x1p+1)];
            fp16 half = const()[name = string(\"half\"), val = fp16(0x1p-1)];
            fp16 sum = add(x = two, y = half)[name = string(\"sum\")];
            tensor<fp16, [2]> y = mul(x = x, y = sum)[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [2]> x) {
            fp16 c = const()[name = string(\"c\"), val = fp16(0x1.4p+1)];
            tensor<fp16, [2]> y = mul(x = x, y = c)[name = string(\"y\")];
        } -> (y);",
    },
};

fn run(body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    rewrite(&body, |rewriter, operation| {
        // Compressed weights stay compressed: expanding them is what `constexpr_*` exists to avoid.
        if operation.op.expands_weight() || operation.outputs.is_empty() {
            return Ok(false);
        }
        let mut ports = Vec::with_capacity(operation.arguments.len());
        for operand in &operation.arguments {
            let new = rewriter.operand(operand)?;
            match constants(rewriter.builder().body(), &new) {
                Some(arguments) => ports.push(arguments),
                None => return Ok(false),
            }
        }
        let name = rewriter.name(operation.outputs[0]);
        match evaluate(operation, &ports) {
            Ok(arrays) => {
                for (&old, array) in operation.outputs.iter().zip(arrays) {
                    let new = rewriter.builder().values(array.ty, array.data);
                    rewriter.replace(old, new);
                }
                notes.applied(name, format!("{} of constants", operation.op.name));
                Ok(true)
            }
            Err(reason) => {
                notes.missed(name, format!("{} of constants kept: {reason}", operation.op.name));
                Ok(false)
            }
        }
    })
}

fn constants(body: &Body, operand: &Operand) -> Option<Vec<Argument>> {
    operand
        .values()
        .iter()
        .map(|&id| {
            let argument = body.argument(id);
            (argument.value.is_some() || argument.text.is_some()).then_some(argument)
        })
        .collect()
}

fn evaluate(operation: &Operation, ports: &[Vec<Argument>]) -> Result<Vec<Array>, String> {
    let arguments = Arguments::checked(operation.op, ports).map_err(|error| error.to_string())?;
    let types = (operation.op.infer)(&arguments).map_err(|error| error.to_string())?;
    if types.iter().any(|ty| ty.count() > SMALL_CONSTANT) {
        return Err(format!("the result has more than {SMALL_CONSTANT} elements"));
    }
    let arrays = (operation.op.meaning)(&arguments).map_err(|error| error.to_string())?;
    if arrays.iter().any(|array| array.clone().rounded() != *array || array.data.iter().any(|value| !value.is_finite())) {
        return Err("the result is not exact in its type".to_string());
    }
    Ok(arrays)
}
