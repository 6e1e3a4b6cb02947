//! `softplus` of numbers whose exponential overflows.

use super::through_espresso;
use crate::pass::{Context, Effect, Example, Pass, Stage};
use crate::rewrite::{one, rewrite};
use crate::{CompileError, Notes};
use aneforge_mil::Body;

/// Splits `softplus`: the engine gives 0 from ln 65504 = 11.09 on.
pub const SOFTPLUS: Pass = Pass {
    name: "split-softplus",
    summary: "computes softplus as softplus(min(x, 10)) + relu(x - 10), because the native form is 0 from 11.09 on",
    stage: Stage::Legalise,
    effect: Effect::Numeric("at most 4.6e-5 absolute, the value of ln(1 + exp(-10))"),
    after: &[],
    applies: through_espresso,
    run,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [2]> x) {
            tensor<fp16, [2]> y = softplus(x = x)[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [2]> x) {
            fp16 c = const()[name = string(\"c\"), val = fp16(0x1.4p+3)];
            fp16 c_1 = const()[name = string(\"c_1\"), val = fp16(-0x1.4p+3)];
            tensor<fp16, [2]> y_m = minimum(x = x, y = c)[name = string(\"y_m\")];
            tensor<fp16, [2]> y_s = softplus(x = y_m)[name = string(\"y_s\")];
            tensor<fp16, [2]> y_t = add(x = x, y = c_1)[name = string(\"y_t\")];
            tensor<fp16, [2]> y_r = relu(x = y_t)[name = string(\"y_r\")];
            tensor<fp16, [2]> y = add(x = y_s, y = y_r)[name = string(\"y\")];
        } -> (y);",
    },
};

/// Where the two branches meet.
const SEAM: f64 = 10.0;

fn run(body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    rewrite(&body, |rewriter, operation| {
        let ("softplus", Some(x), [result]) = (operation.op.name, one(operation, "x"), &operation.outputs[..]) else {
            return Ok(false);
        };
        if is_clamped(rewriter.source(), x) {
            return Ok(false);
        }
        let name = rewriter.name(*result);
        let x = rewriter.value(x)?;
        let builder = rewriter.builder();
        let dtype = builder.ty(x).dtype;
        let (seam, below) = (builder.scalar(dtype, SEAM), builder.scalar(dtype, -SEAM));
        let clamped = builder.op_named("minimum", &[("x", x.into()), ("y", seam.into())], &format!("{name}_m"))?;
        let curved = builder.op_named("softplus", &[("x", clamped.into())], &format!("{name}_s"))?;
        let shifted = builder.op_named("add", &[("x", x.into()), ("y", below.into())], &format!("{name}_t"))?;
        let straight = builder.op_named("relu", &[("x", shifted.into())], &format!("{name}_r"))?;
        let new = builder.op_named("add", &[("x", curved.into()), ("y", straight.into())], name)?;
        notes.applied(name, "split softplus");
        rewriter.replace(*result, new);
        Ok(true)
    })
}

fn is_clamped(body: &Body, x: aneforge_mil::ValueId) -> bool {
    body.producer(x).is_some_and(|producer| {
        producer.op.name == "minimum"
            && ["x", "y"]
                .iter()
                .any(|port| one(producer, port).and_then(|id| crate::rewrite::uniform(body, id)).is_some_and(|limit| limit <= SEAM))
    })
}
