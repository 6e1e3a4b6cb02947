//! Weights with a scale per block.

use crate::pass::{Context, Effect, Example, Pass, Stage};
use crate::rewrite::rewrite;
use crate::{CompileError, Notes};
use aneforge_core::{Route, Target};
use aneforge_mil::{Body, Operand, ValueId};
use std::collections::HashMap;

/// Puts an addition of zero between a weight in blocks and the product that reads it: Espresso does not take the expansion itself
/// as a weight (PyPI aneforge 0.4.0).
pub const BLOCKWISE_WEIGHT: Pass = Pass {
    name: "blockwise-weight",
    summary: "adds zero to weights in blocks, because products do not take their expansion as a weight",
    stage: Stage::Legalise,
    effect: Effect::Numeric("a weight of -0 becomes +0"),
    after: &[],
    applies: |target| matches!(target, Target::Chip { route: Route::E5rt, .. }),
    run,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [1, 2]> x) {
            tensor<fp16, [2, 2]> w = constexpr_blockwise_shift_scale()[name = string(\"w\"), data = tensor<int8, [2, 2]>([4, -8, 127, 1]), scale = tensor<fp16, [2, 1]>([0x1p-1, 0x1p-2])];
            tensor<fp16, [1, 2]> y = matmul(x = x, y = w, transpose_x = bool(false), transpose_y = bool(true))[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [1, 2]> x) {
            tensor<fp16, [2, 2]> w = constexpr_blockwise_shift_scale()[name = string(\"w\"), data = tensor<int8, [2, 2]>([4, -8, 127, 1]), scale = tensor<fp16, [2, 1]>([0x1p-1, 0x1p-2])];
            tensor<fp16, [2, 2]> w_d = add(x = w, y = fp16(0x0p+0))[name = string(\"w_d\")];
            tensor<fp16, [1, 2]> y = matmul(x = x, y = w_d, transpose_x = bool(false), transpose_y = bool(true))[name = string(\"y\")];
        } -> (y);",
    },
};

const READERS: &[&str] = &["conv", "conv_transpose", "linear", "matmul"];

fn run(body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    let mut sums: HashMap<ValueId, ValueId> = HashMap::new();
    rewrite(&body, |rewriter, operation| {
        let source = rewriter.source();
        let blocks = |id: ValueId| source.producer(id).is_some_and(|made| made.op.name == "constexpr_blockwise_shift_scale");
        let read = || operation.arguments.iter().flat_map(Operand::values).copied();
        if !READERS.contains(&operation.op.name) || !read().any(blocks) {
            return Ok(false);
        }
        for id in read().filter(|&id| blocks(id)) {
            if sums.contains_key(&id) {
                continue;
            }
            let name = rewriter.name(id);
            let (expanded, dtype) = (rewriter.value(id)?, rewriter.ty(id).dtype);
            let builder = rewriter.builder();
            let zero = builder.scalar(dtype, 0.0);
            let sum = builder.op_named("add", &[("x", expanded.into()), ("y", zero.into())], &format!("{name}_d"))?;
            notes.applied(name, "added zero");
            sums.insert(id, sum);
        }
        let kept: Vec<(ValueId, ValueId)> = read().filter_map(|id| sums.get(&id).map(|&sum| (id, sum))).collect();
        // The products read the sums; whoever else reads the weight reads it as it was.
        let mut before = Vec::with_capacity(kept.len());
        for (id, sum) in kept {
            before.push((id, rewriter.value(id)?));
            rewriter.replace(id, sum);
        }
        rewriter.copy(operation)?;
        before.into_iter().for_each(|(id, value)| rewriter.replace(id, value));
        Ok(true)
    })
}
