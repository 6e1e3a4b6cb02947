//! Sums as products with ones.

use super::pattern::{finished, wide};
use crate::pass::{Context, Effect, Example, Pass, Stage};
use crate::rewrite::{known_values, one, rewrite};
use crate::{CompileError, Notes};
use aneforge_mil::{Body, DType, SMALL_CONSTANT, TensorType, Weight};
use half::f16;

/// Four of something.
macro_rules! four {
    ($text:expr) => {
        concat!($text, ", ", $text, ", ", $text, ", ", $text)
    };
}

/// Sums long rows by a product with ones: products accumulate wider than reductions (ANE guide, arXiv 2606.22283, chapter 3; the PyPI
/// package aneforge 0.4.0 warns of reductions of 256 and more signed terms).
pub const SUM_BY_PRODUCT: Pass = Pass {
    name: "sum-by-product",
    summary: "writes sums of 256 terms and more along one of the last two axes as products with ones, which accumulate wider",
    stage: Stage::Fuse,
    effect: Effect::Numeric("the order and width of accumulation are the product's; exact sums are rounded alike"),
    after: &[],
    applies: |_| true,
    run,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [2, 256]> x) {
            tensor<fp16, [2, 1]> y = reduce_sum(x = x, axes = tensor<int32, [1]>([-1]), keep_dims = bool(true))[name = string(\"y\")];
        } -> (y);",
        after: concat!(
            "func main<ios18>(tensor<fp16, [2, 256]> x) {
            tensor<fp16, [1, 256]> o = const()[name = string(\"o\"), val = tensor<fp16, [1, 256]>([[",
            four!(four!(four!(four!("0x1p+0")))),
            "]])];
            tensor<fp16, [2, 1]> y = matmul(x = x, y = o, transpose_x = bool(false), transpose_y = bool(true))[name = string(\"y\")];
        } -> (y);"
        ),
    },
};

/// Fewest terms for which it is worth it.
const TERMS: usize = 256;

fn run(body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    if !body.operations.iter().any(|operation| operation.op.name == "reduce_sum") {
        return Ok(body);
    }
    let mut changed = false;
    let new = rewrite(&body, |rewriter, operation| {
        let ("reduce_sum", &[result]) = (operation.op.name, &operation.outputs[..]) else { return Ok(false) };
        let Some(x) = one(operation, "x") else { return Ok(false) };
        let (ty, wanted) = (rewriter.ty(x).clone(), rewriter.ty(result).shape.clone());
        let axes = one(operation, "axes").and_then(|id| known_values(&body, id));
        let Some(&[axis]) = axes.as_deref() else { return Ok(false) };
        let rank = ty.rank();
        let axis = if axis < 0.0 { (axis + rank as f64) as usize } else { axis as usize };
        let terms = ty.shape.get(axis).copied().unwrap_or(1);
        if terms < TERMS || ty.dtype != DType::Fp16 {
            return Ok(false);
        }
        let hint = rewriter.name(result);
        if rank < 2 || axis + 2 < rank {
            notes.missed(hint, format!("sum of {terms} terms kept: axis {axis} is not one of the last two of {rank}"));
            return Ok(false);
        }
        let x = rewriter.value(x)?;
        let ones = TensorType::new(DType::Fp16, [1, terms]);
        let builder = rewriter.builder();
        let ones = match terms <= SMALL_CONSTANT {
            true => builder.values(ones, vec![1.0; terms]),
            false => {
                let ones = Weight::from_fp16([1, terms], &vec![f16::ONE; terms]);
                builder.weight("ones", ones.map_err(|error| CompileError::internal(error.to_string()))?)
            }
        };
        let is_last = axis + 1 == rank;
        let (left, right) = if is_last { (x, ones) } else { (ones, x) };
        let given = [("x", left.into()), ("y", right.into()), ("transpose_x", false.into()), ("transpose_y", is_last.into())];
        let mut kept = ty.shape.clone();
        kept[axis] = 1;
        let new = if wanted == kept {
            builder.op_named("matmul", &given, hint)?
        } else {
            let sums = builder.op_named("matmul", &given, &format!("{hint}_sums"))?;
            builder.op_named("reshape", &[("x", sums.into()), ("shape", wide(&wanted).into())], hint)?
        };
        rewriter.replace(result, new);
        notes.applied(hint, format!("sum of {terms} terms as a product with ones"));
        changed = true;
        Ok(true)
    })?;
    Ok(finished(new, changed))
}
