//! Convolutions whose weight is computed, over more than one image.

use crate::pass::{Context, Effect, Example, Pass, Stage};
use crate::rewrite::{one, rewrite};
use crate::{CompileError, Notes};
use aneforge_core::Route;
use aneforge_mil::{Body, Given, Operand, ValueId, ValueKind};

/// Writes a convolution for each image where the weight is no constant: a batch of them crashes the compiler's service (ANE guide,
/// arXiv 2606.22283, chapter 17). Models in memory take no such weight at all.
pub const BATCHED_WEIGHT: Pass = Pass {
    name: "computed-weight-per-image",
    summary: "convolves each image of a batch alone where the weight is computed, because the batch crashes the compiler",
    stage: Stage::Legalise,
    effect: Effect::Lossless,
    after: &[],
    applies: |target| target.route() == Some(Route::E5rt),
    run,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [2, 1, 1, 2]> x, tensor<fp16, [1, 1, 1, 1]> w) {
            tensor<fp16, [2, 1, 1, 2]> y = conv(x = x, weight = w)[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [2, 1, 1, 2]> x, tensor<fp16, [1, 1, 1, 1]> w) {
            tensor<fp16, [1, 1, 1, 2]> a = slice_by_size(x = x, begin = tensor<int32, [4]>([0, 0, 0, 0]), size = tensor<int32, [4]>([1, 1, 1, 2]))[name = string(\"a\")];
            tensor<fp16, [1, 1, 1, 2]> b = conv(x = a, weight = w)[name = string(\"b\")];
            tensor<fp16, [1, 1, 1, 2]> c = slice_by_size(x = x, begin = tensor<int32, [4]>([1, 0, 0, 0]), size = tensor<int32, [4]>([1, 1, 1, 2]))[name = string(\"c\")];
            tensor<fp16, [1, 1, 1, 2]> d = conv(x = c, weight = w)[name = string(\"d\")];
            tensor<fp16, [2, 1, 1, 2]> y = concat(values = (b, d), axis = int32(0))[name = string(\"y\")];
        } -> (y);",
    },
};

fn run(body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    rewrite(&body, |rewriter, operation| {
        let ("conv", Some(x), Some(weight), &[result]) =
            (operation.op.name, one(operation, "x"), one(operation, "weight"), &operation.outputs[..])
        else {
            return Ok(false);
        };
        let images = rewriter.ty(x).shape.first().copied().unwrap_or(0);
        if images < 2 || known(rewriter.source(), weight) {
            return Ok(false);
        }
        let name = rewriter.name(result);
        let mut size: Vec<i64> = rewriter.ty(x).shape.iter().map(|&extent| extent as i64).collect();
        size[0] = 1;
        let batch = rewriter.value(x)?;
        let mut others = Vec::with_capacity(operation.arguments.len());
        for (spec, operand) in operation.op.ports.iter().zip(&operation.arguments) {
            if let (Operand::One(id), true) = (operand, spec.name != "x") {
                others.push((spec.name, Given::Value(rewriter.value(*id)?)));
            }
        }
        let mut parts = Vec::with_capacity(images);
        for image in 0..images {
            let mut begin = vec![0i64; size.len()];
            begin[0] = image as i64;
            let cut = [("x", batch.into()), ("begin", begin.into()), ("size", size.clone().into())];
            let one = rewriter.builder().op_named("slice_by_size", &cut, &format!("{name}_image"))?;
            let mut given = others.clone();
            given.push(("x", one.into()));
            parts.push(rewriter.builder().op_named("conv", &given, &format!("{name}_part"))?);
        }
        let given = [("values", parts.into()), ("axis", 0i64.into())];
        let new = rewriter.builder().op_named("concat", &given, name)?;
        notes.applied(name, "a convolution for each image");
        rewriter.replace(result, new);
        Ok(true)
    })
}

/// Whether the compiler knows the values: those of constants and of weights that are unpacked from them.
fn known(body: &Body, id: ValueId) -> bool {
    match body.value(id).kind {
        ValueKind::Constant(_) => true,
        ValueKind::Result { operation, .. } => body.operations[operation as usize].op.expands_weight(),
        ValueKind::Input | ValueKind::State => false,
    }
}
