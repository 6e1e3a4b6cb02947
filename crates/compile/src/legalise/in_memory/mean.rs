//! Means, norms and softmax, all by sums and maxima.

use super::{Step, Steps, in_memory, replaced};
use crate::pass::{Context, Effect, Example, Pass, Stage};
use crate::{CompileError, Notes};
use aneforge_mil::op::Arguments;
use aneforge_mil::op::family::axes;
use aneforge_mil::{Body, Given, ValueId};

/// Writes `reduce_mean` as sums: it "does not exist" for one source, and fails on an M1 Ultra for another (maderix/ANE).
pub const MEAN: Pass = Pass {
    name: "mean-as-sum",
    summary: "writes reduce_mean as reduce_sum and a product with 1 / N, axis by axis, because models in memory have no mean",
    stage: Stage::Legalise,
    effect: Effect::Numeric("1 / N is rounded, 2^-11 relative for N up to 16384; infinite where a sum along one axis exceeds 65504"),
    after: &["affine-at-rank-2"],
    applies: in_memory,
    run: run_mean,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [2, 4]> x) {
            tensor<fp16, [2, 1]> y = reduce_mean(x = x, axes = tensor<int32, [1]>([-1]), keep_dims = bool(true))[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [2, 4]> x) {
            tensor<fp16, [2, 1]> s = reduce_sum(x = x, axes = tensor<int32, [1]>([1]), keep_dims = bool(true))[name = string(\"s\")];
            tensor<fp16, [2, 1]> y = mul(x = s, y = fp16(0x1p-2))[name = string(\"y\")];
        } -> (y);",
    },
};

/// Writes `layer_norm` out: it fails to compile at several widths, on M1 and M2 at 1024 already (ANEForge 0.4.0, issue 149).
pub const LAYER_NORM: Pass = Pass {
    name: "written-out-norm",
    summary: "writes layer_norm as sums, squares and a power, because models in memory are only known to take that form",
    stage: Stage::Legalise,
    effect: Effect::Numeric("each step is rounded; infinite where the sum of squares along one axis exceeds 65504"),
    after: &["affine-at-rank-2"],
    applies: in_memory,
    run: run_norm,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [2, 4]> x, tensor<fp16, [2, 1]> b) {
            tensor<fp16, [2, 4]> y = layer_norm(x = x, axes = tensor<int32, [1]>([1]), epsilon = fp16(0x1p-10))[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [2, 4]> x, tensor<fp16, [2, 1]> b) {
            tensor<fp16, [2, 1]> s = reduce_sum(x = x, axes = tensor<int32, [1]>([1]), keep_dims = bool(true))[name = string(\"s\")];
            tensor<fp16, [2, 1]> m = mul(x = s, y = fp16(0x1p-2))[name = string(\"m\")];
            tensor<fp16, [2, 4]> d = sub(x = x, y = m)[name = string(\"d\")];
            tensor<fp16, [2, 4]> q = mul(x = d, y = d)[name = string(\"q\")];
            tensor<fp16, [2, 1]> t = reduce_sum(x = q, axes = tensor<int32, [1]>([1]), keep_dims = bool(true))[name = string(\"t\")];
            tensor<fp16, [2, 1]> v = mul(x = t, y = fp16(0x1p-2))[name = string(\"v\")];
            tensor<fp16, [2, 1]> e = add(x = v, y = fp16(0x1p-10))[name = string(\"e\")];
            tensor<fp16, [2, 1]> r = pow(x = e, y = fp16(-0x1p-1))[name = string(\"r\")];
            tensor<fp16, [2, 4]> y = mul(x = d, y = r)[name = string(\"y\")];
        } -> (y);",
    },
};

/// Writes softmax out where its axis is no power of two: such programs are refused (forks of maderix/ANE).
pub const SOFTMAX: Pass = Pass {
    name: "written-out-softmax",
    summary: "writes softmax over an axis that is no power of two as exponentials over their sum, because it may be refused",
    stage: Stage::Legalise,
    effect: Effect::Numeric("each step is rounded: 2^-9 relative; infinite sums for more than 65504 equal values"),
    after: &["attention-in-steps"],
    applies: in_memory,
    run: run_softmax,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [2, 3]> x) {
            tensor<fp16, [2, 3]> y = softmax(x = x, axis = int32(-1))[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [2, 3]> x) {
            tensor<fp16, [2, 1]> m = reduce_max(x = x, axes = tensor<int32, [1]>([1]), keep_dims = bool(true))[name = string(\"m\")];
            tensor<fp16, [2, 3]> d = sub(x = x, y = m)[name = string(\"d\")];
            tensor<fp16, [2, 3]> e = exp(x = d)[name = string(\"e\")];
            tensor<fp16, [2, 1]> s = reduce_sum(x = e, axes = tensor<int32, [1]>([1]), keep_dims = bool(true))[name = string(\"s\")];
            tensor<fp16, [2, 1]> r = pow(x = s, y = fp16(-0x1p+0))[name = string(\"r\")];
            tensor<fp16, [2, 3]> y = mul(x = e, y = r)[name = string(\"y\")];
        } -> (y);",
    },
};

/// Axes at a port of a use that has been checked.
fn known_axes(steps: &Steps<'_, '_>, arguments: &Arguments<'_>) -> Result<Vec<usize>, CompileError> {
    let found = axes(arguments, "axes", arguments.shape("x").len());
    found.ok_or_else(|| CompileError::internal(format!("{:?} has illegal axes", steps.name)))
}

/// The mean over axes, one after the other so that no sum is larger than it must be; all axes stay with extent one.
fn mean(steps: &mut Steps<'_, '_>, x: ValueId, axes: &[usize]) -> Step {
    let mut value = x;
    for &axis in axes {
        let extent = steps.shape(value)[axis];
        value = steps.reduced("reduce_sum", value, &[axis], true)?;
        value = steps.with_number("mul", value, 1.0 / extent as f64)?;
    }
    Ok(value)
}

fn run_mean(body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    replaced(&body, "reduce_mean", "mean written as a sum", notes, |steps, arguments| {
        let (mut axes, keep) = (known_axes(steps, arguments)?, arguments.flag("keep_dims"));
        // From the last axis on, so that removing one leaves the places of the others.
        axes.sort_unstable();
        let x = steps.required("x")?;
        let Some((&last, earlier)) = axes.split_first() else { return Ok(false) };
        let mut value = x;
        for &axis in earlier.iter().rev() {
            let extent = steps.shape(value)[axis];
            value = steps.reduced("reduce_sum", value, &[axis], keep)?;
            value = steps.with_number("mul", value, 1.0 / extent as f64)?;
        }
        let extent = steps.shape(value)[last];
        let sum = steps.reduced("reduce_sum", value, &[last], keep)?;
        steps.finish_with_number("mul", sum, 1.0 / extent as f64)
    })
}

fn run_norm(body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    replaced(&body, "layer_norm", "norm written out", notes, |steps, arguments| {
        let axes = known_axes(steps, arguments)?;
        let x = steps.required("x")?;
        let mean_of_x = mean(steps, x, &axes)?;
        let centred = steps.two("sub", x, mean_of_x)?;
        let square = steps.two("mul", centred, centred)?;
        let variance = mean(steps, square, &axes)?;
        let shifted = steps.with_number("add", variance, arguments.number("epsilon").unwrap_or_default())?;
        let power = steps.with_number("pow", shifted, -0.5)?;
        let (mut op, mut value, mut factor) = ("mul", centred, power);
        for (next, port) in [("mul", "gamma"), ("add", "beta")] {
            let Some(constant) = steps.port(port)? else { continue };
            let constant = along(steps, constant, &axes, arguments.shape("x").len())?;
            value = steps.two(op, value, factor)?;
            (op, factor) = (next, constant);
        }
        steps.finish_two(op, value, factor)
    })
}

/// A constant over the given axes of a tensor of some rank, in a shape that broadcasts to it.
fn along(steps: &mut Steps<'_, '_>, constant: ValueId, axes: &[usize], rank: usize) -> Step {
    let mut sorted = axes.to_vec();
    sorted.sort_unstable();
    let held = steps.shape(constant);
    if sorted.iter().rev().zip((0..rank).rev()).all(|(&axis, place)| axis == place) {
        return Ok(constant);
    }
    let mut shape = vec![1i64; rank];
    sorted.iter().zip(&held).for_each(|(&axis, &extent)| shape[axis] = extent as i64);
    steps.op("reshape", &[("x", constant.into()), ("shape", Given::Ints(shape))])
}

fn run_softmax(body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    replaced(&body, "softmax", "softmax written out", notes, |steps, arguments| {
        let shape = arguments.shape("x");
        let axis = arguments.int("axis").and_then(|axis| arguments.axis(axis, shape.len()));
        let Some(axis) = axis.filter(|&axis| !shape[axis].is_power_of_two()) else { return Ok(false) };
        let x = steps.required("x")?;
        let top = steps.reduced("reduce_max", x, &[axis], true)?;
        let below = steps.two("sub", x, top)?;
        let powers = steps.op("exp", &[("x", below.into())])?;
        let sum = steps.reduced("reduce_sum", powers, &[axis], true)?;
        let reciprocal = steps.with_number("pow", sum, -1.0)?;
        steps.finish_two("mul", powers, reciprocal)
    })
}
