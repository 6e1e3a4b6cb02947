//! Computes equal things once.

use crate::pass::{Context, Effect, Example, Pass, Stage};
use crate::rewrite::rewrite;
use crate::{CompileError, Notes};
use aneforge_mil::{Body, Constant, DType, Operand, TensorType, ValueId};
use std::collections::HashMap;

/// Replaces an operation by an earlier one with the same operator and the same operands.
pub const DUPLICATE: Pass = Pass {
    name: "common-subexpressions",
    summary: "computes equal operations once and keeps equal weights once",
    stage: Stage::Canonicalise,
    effect: Effect::Lossless,
    after: &["constant-folding", "identities"],
    applies: |_| true,
    run,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [2]> x) {
            tensor<fp16, [2]> a = relu(x = x)[name = string(\"a\")];
            tensor<fp16, [2]> b = relu(x = x)[name = string(\"b\")];
            tensor<fp16, [2]> y = mul(x = a, y = b)[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [2]> x) {
            tensor<fp16, [2]> a = relu(x = x)[name = string(\"a\")];
            tensor<fp16, [2]> y = mul(x = a, y = a)[name = string(\"y\")];
        } -> (y);",
    },
};

/// Where a weight's data are, and its type: the same bytes may be read as several types.
type WeightKey = ((usize, usize, DType), TensorType);

fn run(body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    let mut seen: HashMap<(&'static str, Vec<Operand>), Vec<ValueId>> = HashMap::new();
    let mut weights: HashMap<WeightKey, ValueId> = HashMap::new();
    let mut canonical = HashMap::new();
    for (index, value) in body.values.iter().enumerate() {
        if let aneforge_mil::ValueKind::Constant(Constant::Weight(weight)) = &value.kind {
            let id = ValueId(index as u32);
            let first = *weights.entry((weight.identity(), value.ty.clone())).or_insert(id);
            if first != id {
                canonical.insert(id, first);
            }
        }
    }
    rewrite(&body, |rewriter, operation| {
        for id in operation.arguments.iter().flat_map(Operand::values) {
            if let Some(&first) = canonical.get(id) {
                let new = rewriter.value(first)?;
                rewriter.replace(*id, new);
            }
        }
        let operands = operation.arguments.iter().map(|operand| rewriter.operand(operand)).collect::<Result<Vec<_>, _>>()?;
        let key = (operation.op.name, operands);
        if let Some(first) = seen.get(&key) {
            for (&old, &new) in operation.outputs.iter().zip(first) {
                let kept = rewriter.builder().body().value(new).name.clone();
                notes.applied(rewriter.name(old), format!("equals {kept}"));
                rewriter.replace(old, new);
            }
            return Ok(true);
        }
        rewriter.copy(operation)?;
        let copied = operation.outputs.iter().map(|&old| rewriter.value(old)).collect::<Result<Vec<_>, _>>()?;
        seen.insert(key, copied);
        Ok(true)
    })
}
