//! Removes operations and constants that no result needs.

use crate::pass::{Context, Effect, Example, Pass, Stage};
use crate::{CompileError, Notes};
use aneforge_mil::{Body, Operation};
use std::collections::HashSet;

/// Removes operations whose results nobody uses; inputs stay, they are the caller's.
pub const DEAD: Pass = Pass {
    name: "dead-code",
    summary: "removes operations that no output needs",
    stage: Stage::Clean,
    effect: Effect::Lossless,
    after: &[],
    applies: |_| true,
    run,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [2]> x) {
            tensor<fp16, [2]> unused = exp(x = x)[name = string(\"unused\")];
            tensor<fp16, [2]> y = relu(x = x)[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [2]> x) {
            tensor<fp16, [2]> y = relu(x = x)[name = string(\"y\")];
        } -> (y);",
    },
};

fn run(mut body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    let names = |body: &Body| -> Vec<(String, &'static str)> {
        let first = |operation: &Operation| operation.outputs.first().map(|&id| body.value(id).name.clone()).unwrap_or_default();
        body.operations.iter().map(|operation| (first(operation), operation.op.name)).collect()
    };
    let before = names(&body);
    body.compact();
    let kept: HashSet<_> = names(&body).into_iter().collect();
    for (name, op) in before.iter().filter(|entry| !kept.contains(*entry)) {
        notes.applied(name, format!("{op} has no use"));
    }
    Ok(body)
}
