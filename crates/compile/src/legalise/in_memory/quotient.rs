//! Quotients and reciprocals, all as powers.

use super::{in_memory, replaced};
use crate::pass::{Context, Effect, Example, Pass, Stage};
use crate::rewrite::{one, uniform};
use crate::{CompileError, Notes};
use aneforge_mil::Body;

/// Writes `rsqrt` as a power: the operator is not available (maderix/ANE's forks; its kernels and Orion's use the power).
pub const RECIPROCAL_ROOT: Pass = Pass {
    name: "rsqrt-as-power",
    summary: "writes rsqrt(x) as (x + epsilon) ^ -0.5, because models in memory have no rsqrt",
    stage: Stage::Legalise,
    effect: Effect::Numeric("the sum with epsilon is rounded before the power"),
    after: &["affine-at-rank-2"],
    applies: in_memory,
    run: |body, _, notes| power(&body, "rsqrt", -0.5, notes),
    example: Example {
        before: "func main<ios18>(tensor<fp16, [2]> x) {
            tensor<fp16, [2]> y = rsqrt(x = x, epsilon = fp16(0x1p-10))[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [2]> x) {
            tensor<fp16, [2]> s = add(x = x, y = fp16(0x1p-10))[name = string(\"s\")];
            tensor<fp16, [2]> y = pow(x = s, y = fp16(-0x1p-1))[name = string(\"y\")];
        } -> (y);",
    },
};

/// Writes `inverse` as a power.
pub const INVERSE: Pass = Pass {
    name: "inverse-as-power",
    summary: "writes inverse(x) as (x + epsilon) ^ -1, because models in memory are not known to have inverse",
    stage: Stage::Legalise,
    effect: Effect::Numeric("the sum with epsilon is rounded before the power"),
    after: &[],
    applies: in_memory,
    run: |body, _, notes| power(&body, "inverse", -1.0, notes),
    example: Example {
        before: "func main<ios18>(tensor<fp16, [2]> x) {
            tensor<fp16, [2]> y = inverse(x = x, epsilon = fp16(0x0p+0))[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [2]> x) {
            tensor<fp16, [2]> y = pow(x = x, y = fp16(-0x1p+0))[name = string(\"y\")];
        } -> (y);",
    },
};

/// Writes `real_div` as a product with a power, or with a constant's reciprocal: no program with it is known to have run.
pub const QUOTIENT: Pass = Pass {
    name: "quotient-as-product",
    summary: "writes x / y as x * y ^ -1, because models in memory are not known to have real_div",
    stage: Stage::Legalise,
    effect: Effect::Numeric("the reciprocal is rounded before the product; it is infinite for |y| below 1.6e-5"),
    after: &["affine-at-rank-2"],
    applies: in_memory,
    run: run_quotient,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [2]> x, tensor<fp16, [2]> z) {
            tensor<fp16, [2]> q = real_div(x = x, y = z)[name = string(\"q\")];
            tensor<fp16, [2]> y = real_div(x = q, y = fp16(0x1p+3))[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [2]> x, tensor<fp16, [2]> z) {
            tensor<fp16, [2]> r = pow(x = z, y = fp16(-0x1p+0))[name = string(\"r\")];
            tensor<fp16, [2]> q = mul(x = x, y = r)[name = string(\"q\")];
            tensor<fp16, [2]> y = mul(x = q, y = fp16(0x1p-3))[name = string(\"y\")];
        } -> (y);",
    },
};

fn power(body: &Body, op: &str, exponent: f64, notes: &mut Notes) -> Result<Body, CompileError> {
    replaced(body, op, &format!("{op} written as a power"), notes, |steps, arguments| {
        let mut x = steps.required("x")?;
        if arguments.number("epsilon") != Some(0.0) {
            // In the operand's type, whatever type epsilon came in.
            let epsilon = arguments.number("epsilon").unwrap_or_default();
            x = steps.with_number("add", x, epsilon)?;
        }
        steps.finish_with_number("pow", x, exponent)
    })
}

fn run_quotient(body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    replaced(&body, "real_div", "quotient written as a product", notes, |steps, arguments| {
        let float = |port| arguments.get(port).is_some_and(|argument| argument.ty.dtype.is_float());
        if !float("x") || !float("y") {
            return Ok(false);
        }
        let (x, y) = (steps.required("x")?, steps.required("y")?);
        let divisor = one(steps.operation, "y").filter(|&y| steps.rewriter.ty(y).rank() == 0);
        let divisor = divisor.and_then(|y| uniform(steps.rewriter.source(), y));
        match divisor.filter(|&divisor| divisor != 0.0) {
            Some(divisor) => steps.finish_with_number("mul", x, divisor.recip()),
            None => {
                let reciprocal = steps.with_number("pow", y, -1.0)?;
                steps.finish_two("mul", x, reciprocal)
            }
        }
    })
}
