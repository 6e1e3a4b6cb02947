//! Outputs that no operation of their own makes.

use crate::pass::{Context, Effect, Example, Pass, Stage};
use crate::rewrite::Rewriter;
use crate::{CompileError, Notes};
use aneforge_mil::{Body, DType, ValueId, ValueKind};

/// Puts a multiplication by one before an output that is an input, a constant or another output: an empty body crashes Espresso, and
/// in the text an output is the name of one result.
pub const MADE_OUTPUTS: Pass = Pass {
    name: "made-outputs",
    summary: "gives every output an operation of its own, because a function that returns its input crashes the compiler",
    stage: Stage::Legalise,
    effect: Effect::Lossless,
    after: &["zero-product", "square-as-product"],
    applies: |_| true,
    run,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [2]> x) {
        } -> (x);",
        after: "func main<ios18>(tensor<fp16, [2]> x) {
            fp16 c = const()[name = string(\"c\"), val = fp16(0x1p+0)];
            tensor<fp16, [2]> x_1 = mul(x = x, y = c)[name = string(\"x_1\")];
        } -> (x_1);",
    },
};

fn run(body: Body, context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    let mut seen: Vec<ValueId> = Vec::with_capacity(body.outputs.len());
    let mut shared = Vec::new();
    for (index, output) in body.outputs.iter().enumerate() {
        let made = matches!(body.value(output.value).kind, ValueKind::Result { .. });
        if !made || seen.contains(&output.value) {
            shared.push(index);
        }
        seen.push(output.value);
    }
    if shared.is_empty() {
        return Ok(body);
    }
    let mut rewriter = Rewriter::new(&body);
    for operation in &body.operations {
        rewriter.copy(operation)?;
    }
    let mut replaced = Vec::with_capacity(shared.len());
    for &index in &shared {
        let output = &body.outputs[index];
        let value = rewriter.value(output.value)?;
        let ty = rewriter.builder().ty(value).clone();
        let new = match (ty.dtype, context.target.chip()) {
            (DType::Fp16, _) => {
                let one = rewriter.builder().scalar(DType::Fp16, 1.0);
                rewriter.builder().op_named("mul", &[("x", value.into()), ("y", one.into())], &output.name)?
            }
            (_, None) => rewriter.builder().op_named("identity", &[("x", value.into())], &output.name)?,
            _ => return Err(CompileError::Output { name: output.name.clone(), ty: ty.to_string() }),
        };
        notes.applied(&output.name, "got an operation of its own");
        replaced.push((index, new));
    }
    let mut rewritten = rewriter.finish()?;
    for (index, new) in replaced {
        rewritten.outputs[index].value = new;
        // In the text an output is named after its value.
        rewritten.outputs[index].name = match &body.outputs[index].name {
            name if rewritten.inputs.iter().any(|&id| rewritten.value(id).name == *name) => rewritten.value(new).name.clone(),
            name => name.clone(),
        };
    }
    Ok(rewritten)
}
