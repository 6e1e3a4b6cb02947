//! Matrix products.

use super::{Step, Steps, in_memory, replaced};
use crate::pass::{Context, Effect, Example, Pass, Stage};
use crate::rewrite::one;
use crate::{CompileError, Notes};
use aneforge_mil::op::Arguments;
use aneforge_mil::{Body, Constant, DType, Weight, WeightError};
use half::f16;
use std::sync::Arc;

/// The inner extent of a product must be a multiple of this.
const MULTIPLE: usize = 32;

/// Fills the inner axis of matrix products with zeros: an M1 answers zeros, without an error, where its extent is no multiple of 32
/// (maderix/ANE, issue 47).
pub const INNER_EXTENT: Pass = Pass {
    name: "padded-product",
    summary: "fills the inner axis of matmul with zeros to a multiple of 32, because the product is silently zero otherwise",
    stage: Stage::Legalise,
    effect: Effect::Lossless,
    after: &["linear-as-product", "attention-in-steps", "dense-weights"],
    applies: in_memory,
    run,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [2, 30]> x, tensor<fp16, [30, 4]> z) {
            tensor<fp16, [2, 4]> y = matmul(x = x, y = z)[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [2, 30]> x, tensor<fp16, [30, 4]> z) {
            tensor<fp16, [2, 32]> a = pad(x = x, pad = tensor<int32, [4]>([0, 0, 0, 2]), mode = string(\"constant\"), constant_val = fp16(0x0p+0))[name = string(\"a\")];
            tensor<fp16, [32, 4]> b = pad(x = z, pad = tensor<int32, [4]>([0, 2, 0, 0]), mode = string(\"constant\"), constant_val = fp16(0x0p+0))[name = string(\"b\")];
            tensor<fp16, [2, 4]> y = matmul(x = a, y = b, transpose_x = bool(false), transpose_y = bool(false))[name = string(\"y\")];
        } -> (y);",
    },
};

fn run(body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    replaced(&body, "matmul", "inner axis filled with zeros", notes, |steps, arguments| {
        if arguments.get("x").is_none_or(|x| !x.ty.dtype.is_float()) {
            return Ok(false);
        }
        let (x, y) = (inner(arguments, "x", "transpose_x", 1), inner(arguments, "y", "transpose_y", 0));
        let extent = arguments.shape("x").get(x).copied().unwrap_or(1);
        let missing = extent.next_multiple_of(MULTIPLE) - extent;
        if missing == 0 {
            return Ok(false);
        }
        let (left, right) = (filled(steps, "x", x, missing)?, filled(steps, "y", y, missing)?);
        let flags = ["transpose_x", "transpose_y"].map(|port| arguments.flag(port));
        steps.finish(
            "matmul",
            &[("x", left.into()), ("y", right.into()), ("transpose_x", flags[0].into()), ("transpose_y", flags[1].into())],
        )
    })
}

/// The axis of an operand that is summed over: `place` counts within the last two where nothing is transposed.
fn inner(arguments: &Arguments<'_>, port: &str, flag: &str, place: usize) -> usize {
    let rank = arguments.shape(port).len();
    let place = if arguments.flag(flag) { 1 - place } else { place };
    if rank < 2 { 0 } else { rank - 2 + place }
}

/// An operand with zeros at the end of an axis; constants are filled as they are read.
fn filled(steps: &mut Steps<'_, '_>, port: &'static str, axis: usize, missing: usize) -> Step {
    let value = steps.required(port)?;
    let mut shape = steps.shape(value);
    let old = one(steps.operation, port);
    if let Some(Constant::Weight(weight)) = old.and_then(|id| steps.rewriter.source().constant(id))
        && weight.ty().dtype == DType::Fp16
    {
        let inside: usize = shape[axis + 1..].iter().product();
        let (block, extra) = (shape[axis] * inside, missing * inside);
        shape[axis] += missing;
        let name = old.map_or("", |id| steps.rewriter.name(id));
        let weight = with_zeros(weight.clone(), shape, block, extra);
        return Ok(steps.rewriter.builder().weight(name, weight));
    }
    let mut pad = vec![0i64; 2 * shape.len()];
    pad[2 * axis + 1] = missing as i64;
    let zero = steps.number(value, 0.0);
    let given = [("x", value.into()), ("pad", pad.into()), ("mode", "constant".into()), ("constant_val", zero.into())];
    steps.op("pad", &given)
}

/// A weight with `extra` zeros after every `block` elements.
fn with_zeros(weight: Weight, shape: Vec<usize>, block: usize, extra: usize) -> Weight {
    let zeros = vec![f16::ZERO; extra];
    Weight::computed(
        shape,
        Arc::new(move |sink: &mut dyn FnMut(&[f16]) -> Result<(), WeightError>| {
            let mut left = block;
            weight.stream(&mut |bytes| {
                let values: Vec<f16> = bytes.chunks_exact(2).map(|pair| f16::from_le_bytes([pair[0], pair[1]])).collect();
                let mut rest = &values[..];
                while !rest.is_empty() {
                    let (now, later) = rest.split_at(left.min(rest.len()));
                    sink(now)?;
                    left -= now.len();
                    if left == 0 {
                        sink(&zeros)?;
                        left = block;
                    }
                    rest = later;
                }
                Ok(())
            })
        }),
    )
}
