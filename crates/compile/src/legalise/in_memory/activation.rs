//! Activations that have no name here.

use super::{in_memory, replaced};
use crate::pass::{Context, Effect, Example, Pass, Stage};
use crate::{CompileError, Notes};
use aneforge_mil::Body;
use std::f64::consts::FRAC_2_PI;

/// Writes `gelu` with `tanh` or `sigmoid`: the operator fails to compile (Orion).
pub const GELU: Pass = Pass {
    name: "gelu-by-tanh",
    summary: "writes gelu out with tanh, or sigmoid where its mode asks for that, because models in memory have no gelu",
    stage: Stage::Legalise,
    effect: Effect::Numeric("at most 5e-4 absolute for the exact mode, else the rounding of each step; NaN for minus infinity"),
    after: &[],
    applies: in_memory,
    run: run_gelu,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [2]> x) {
            tensor<fp16, [2]> y = gelu(x = x, mode = string(\"SIGMOID_APPROXIMATION\"))[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [2]> x) {
            tensor<fp16, [2]> s = mul(x = x, y = fp16(1.702))[name = string(\"s\")];
            tensor<fp16, [2]> g = sigmoid(x = s)[name = string(\"g\")];
            tensor<fp16, [2]> y = mul(x = x, y = g)[name = string(\"y\")];
        } -> (y);",
    },
};

/// Writes `silu` as a product: only its parts are known to work (maderix/ANE).
pub const SILU: Pass = Pass {
    name: "silu-as-product",
    summary: "writes silu(x) as x * sigmoid(x), because models in memory have no silu",
    stage: Stage::Legalise,
    effect: Effect::Numeric("the sigmoid is rounded before the product"),
    after: &[],
    applies: in_memory,
    run: run_silu,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [2]> x) {
            tensor<fp16, [2]> y = silu(x = x)[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [2]> x) {
            tensor<fp16, [2]> g = sigmoid(x = x)[name = string(\"g\")];
            tensor<fp16, [2]> y = mul(x = x, y = g)[name = string(\"y\")];
        } -> (y);",
    },
};

fn run_gelu(body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    replaced(&body, "gelu", "gelu written out", notes, |steps, arguments| {
        let x = steps.required("x")?;
        if arguments.text("mode") == Some("SIGMOID_APPROXIMATION") {
            let scaled = steps.with_number("mul", x, 1.702)?;
            let gate = steps.op("sigmoid", &[("x", scaled.into())])?;
            return steps.finish_two("mul", x, gate);
        }
        // x / 2 (1 + tanh(sqrt(2 / pi) x (1 + 0.044715 x^2))): both factors may overflow, their tanh is then right still.
        let square = steps.two("mul", x, x)?;
        let bend = steps.with_number("mul", square, 0.044715)?;
        let bend = steps.with_number("add", bend, 1.0)?;
        let straight = steps.with_number("mul", x, FRAC_2_PI.sqrt())?;
        let argument = steps.two("mul", straight, bend)?;
        let curve = steps.op("tanh", &[("x", argument.into())])?;
        let twice = steps.with_number("add", curve, 1.0)?;
        let half = steps.with_number("mul", x, 0.5)?;
        steps.finish_two("mul", half, twice)
    })
}

fn run_silu(body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    replaced(&body, "silu", "silu written as a product", notes, |steps, _| {
        let x = steps.required("x")?;
        let gate = steps.op("sigmoid", &[("x", x.into())])?;
        steps.finish_two("mul", x, gate)
    })
}
