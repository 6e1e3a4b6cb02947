//! Scalar factors after `floor`, `ceil` and `round`.

use super::through_espresso;
use crate::pass::{Context, Effect, Example, Pass, Stage};
use crate::rewrite::{one, rewrite, uniform};
use crate::{CompileError, Notes};
use aneforge_mil::{Body, ValueId, Weight, pack};

/// Largest result for which the factor is written out: beyond it the program text would swell.
const LARGEST: usize = 1 << 22;

/// Expands a scalar factor after `floor`, `ceil` or `round` to the full shape: Espresso drops the scalar form.
pub const SCALAR_AFTER_ROUNDING: Pass = Pass {
    name: "full-shape-factor",
    summary: "writes a scalar factor after floor, ceil or round as a tensor of the full shape, because the scalar is dropped",
    stage: Stage::Legalise,
    effect: Effect::Lossless,
    after: &["guard-round"],
    applies: through_espresso,
    run,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [2]> x) {
            tensor<fp16, [2]> f = floor(x = x)[name = string(\"f\")];
            tensor<fp16, [2]> y = mul(x = f, y = fp16(0x1p-1))[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [2]> x) {
            tensor<fp16, [2]> f = floor(x = x)[name = string(\"f\")];
            tensor<fp16, [2]> c = const()[name = string(\"c\"), val = tensor<fp16, [2]>([0x1p-1, 0x1p-1])];
            tensor<fp16, [2]> y = mul(x = f, y = c)[name = string(\"y\")];
        } -> (y);",
    },
};

fn run(body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    rewrite(&body, |rewriter, operation| {
        let ("mul", Some(x), Some(y), [result]) =
            (operation.op.name, one(operation, "x"), one(operation, "y"), &operation.outputs[..])
        else {
            return Ok(false);
        };
        let source = rewriter.source();
        let (rounded, factor) = match (scalar(source, y), scalar(source, x)) {
            (Some(factor), _) if from_rounding(source, x) => (x, factor),
            (_, Some(factor)) if from_rounding(source, y) => (y, factor),
            _ => return Ok(false),
        };
        let (name, ty) = (rewriter.name(*result), rewriter.ty(*result).clone());
        if ty.count() <= 1 {
            return Ok(false);
        }
        if ty.count() > LARGEST {
            notes.missed(name, format!("factor {factor} kept scalar: {ty} is too large to write it out"));
            return Ok(false);
        }
        let rounded = rewriter.value(rounded)?;
        let count = ty.count();
        let full = if count <= aneforge_mil::SMALL_CONSTANT {
            rewriter.builder().values(ty, vec![factor; count])
        } else {
            let bytes = pack(ty.dtype, &[factor]).repeat(count);
            let weight = Weight::from_bytes(ty, bytes).map_err(|error| CompileError::internal(error.to_string()))?;
            rewriter.builder().weight(&format!("{name}_k"), weight)
        };
        let new = rewriter.builder().op_named("mul", &[("x", rounded.into()), ("y", full.into())], name)?;
        notes.applied(name, format!("scalar factor {factor} written out"));
        rewriter.replace(*result, new);
        Ok(true)
    })
}

fn scalar(body: &Body, id: ValueId) -> Option<f64> {
    (body.ty(id).count() == 1).then(|| uniform(body, id)).flatten()
}

/// Whether a value comes from a rounding, also through one that is guarded or reduced first.
fn from_rounding(body: &Body, id: ValueId) -> bool {
    let Some(producer) = body.producer(id) else { return false };
    match producer.op.name {
        "floor" | "ceil" | "round" => true,
        "select" => one(producer, "a").is_some_and(|a| body.producer(a).is_some_and(|inner| inner.op.name == "round")),
        _ => false,
    }
}
