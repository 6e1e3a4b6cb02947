//! `round` of large numbers.

use super::through_espresso;
use crate::pass::{Context, Effect, Example, Pass, Stage};
use crate::rewrite::{one, rewrite, uniform};
use crate::{CompileError, Notes};
use aneforge_mil::{Body, Given, Operation, ValueId};

/// Guards `round`: the engine adds one half in fp16, which is wrong from 1024 on, where every fp16 number is already whole.
pub const ROUND: Pass = Pass {
    name: "guard-round",
    summary: "passes numbers of magnitude 1024 and more around `round`, whose native form is wrong there",
    stage: Stage::Legalise,
    effect: Effect::Numeric(
        "equal for fp16 numbers, which are whole from 1024 on; a device that keeps more digits may keep a fraction",
    ),
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

/// From here on every fp16 number is whole.
const LIMIT: f64 = 1024.0;

fn run(body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    rewrite(&body, |rewriter, operation| {
        let ("round", Some(x), [result]) = (operation.op.name, one(operation, "x"), &operation.outputs[..]) else {
            return Ok(false);
        };
        // The guard itself is written with `round`: leave what is already guarded.
        if is_guarded(rewriter.source(), x, *result) {
            return Ok(false);
        }
        let name = rewriter.name(*result);
        let x = rewriter.value(x)?;
        let builder = rewriter.builder();
        let limit = builder.scalar(builder.ty(x).dtype, LIMIT);
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

/// Whether the only use of a rounding is the choice between it and its argument, by the argument's magnitude.
fn is_guarded(body: &Body, x: ValueId, result: ValueId) -> bool {
    let guards = |user: &Operation| {
        user.op.name == "select"
            && one(user, "a") == Some(result)
            && one(user, "b") == Some(x)
            && one(user, "cond").is_some_and(|cond| is_below_limit(body, cond, x))
    };
    body.use_counts()[result.index()] == 1 && body.operations.iter().any(guards)
}

/// Whether a mask is `abs(x) < c` with a `c` up to [`LIMIT`].
fn is_below_limit(body: &Body, mask: ValueId, x: ValueId) -> bool {
    let Some(less) = body.producer(mask).filter(|less| less.op.name == "less") else { return false };
    let magnitude = one(less, "x").and_then(|id| body.producer(id)).filter(|abs| abs.op.name == "abs");
    let limit = one(less, "y").and_then(|id| uniform(body, id));
    magnitude.and_then(|abs| one(abs, "x")) == Some(x) && limit.is_some_and(|limit| limit <= LIMIT)
}
