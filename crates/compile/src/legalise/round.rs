//! `round` of large numbers.

use super::through_espresso;
use crate::pass::{Context, Effect, Example, Pass, Stage};
use crate::rewrite::{one, rewrite};
use crate::{CompileError, Notes};
use aneforge_mil::{Body, Given};

/// Guards `round`: the engine adds one half in fp16, which is wrong from 1024 on, where every fp16 number but the halves just above
/// it is already whole.
pub const ROUND: Pass = Pass {
    name: "guard-round",
    summary: "passes numbers of magnitude 1024 and more around `round`, whose native form is wrong there",
    stage: Stage::Legalise,
    effect: Effect::Numeric("fp16 numbers from 1024 on are whole or end in one half (below 2048): halves are then not rounded"),
    after: &[],
    applies: through_espresso,
    run,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [2]> x) {
            tensor<fp16, [2]> y = round(x = x)[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [2]> x) {
            fp16 c = const()[name = string(\"c\"), val = fp16(0x1p+10)];
            tensor<fp16, [2]> y_a = abs(x = x)[name = string(\"y_a\")];
            tensor<bool, [2]> y_lt = less(x = y_a, y = c)[name = string(\"y_lt\")];
            tensor<fp16, [2]> y_r = round(x = x)[name = string(\"y_r\")];
            tensor<fp16, [2]> y = select(cond = y_lt, a = y_r, b = x)[name = string(\"y\")];
        } -> (y);",
    },
};

fn run(body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    rewrite(&body, |rewriter, operation| {
        let ("round", Some(x), [result]) = (operation.op.name, one(operation, "x"), &operation.outputs[..]) else {
            return Ok(false);
        };
        // The guard itself is written with `round`: leave what is already guarded.
        if is_guarded(rewriter.source(), *result) {
            return Ok(false);
        }
        let name = rewriter.name(*result);
        let x = rewriter.value(x)?;
        let builder = rewriter.builder();
        let limit = builder.fp16(1024.0);
        let magnitude = builder.op_named("abs", &[("x", x.into())], &format!("{name}_a"))?;
        let small = builder.op_named("less", &[("x", magnitude.into()), ("y", limit.into())], &format!("{name}_lt"))?;
        let rounded = builder.op_named("round", &[("x", x.into())], &format!("{name}_r"))?;
        let parts = [("cond", Given::Value(small)), ("a", rounded.into()), ("b", x.into())];
        let new = builder.op_named("select", &parts, name)?;
        notes.applied(name, "guarded round");
        rewriter.replace(*result, new);
        Ok(true)
    })
}

fn is_guarded(body: &Body, result: aneforge_mil::ValueId) -> bool {
    body.operations.iter().any(|user| user.op.name == "select" && one(user, "a") == Some(result) && one(user, "cond").is_some())
}
