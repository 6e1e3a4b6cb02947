//! Attention in one operator.

use super::{in_memory, largest, replaced};
use crate::pass::{Context, Effect, Example, Pass, Stage};
use crate::{CompileError, Notes};
use aneforge_mil::{Body, DType};

/// Writes attention out: the operator runs and ignores its mask, and fails on M1 and M2 (maderix/ANE, README and pull request 6).
pub const ATTENTION: Pass = Pass {
    name: "attention-in-steps",
    summary: "writes scaled_dot_product_attention as products, mask and softmax, because the operator ignores its mask",
    stage: Stage::Legalise,
    effect: Effect::Numeric(
        "each step is rounded; a query for which no key counts gives the mean of its values' rows with the largest score",
    ),
    after: &[],
    applies: in_memory,
    run,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [1, 2, 64]> q, tensor<fp16, [1, 4, 64]> k, tensor<fp16, [1, 4, 8]> v, tensor<fp16, [2, 4]> m) {
            tensor<fp16, [1, 2, 8]> y = scaled_dot_product_attention(query = q, key = k, value = v, attn_mask = m)[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [1, 2, 64]> q, tensor<fp16, [1, 4, 64]> k, tensor<fp16, [1, 4, 8]> v, tensor<fp16, [2, 4]> m) {
            tensor<fp16, [1, 2, 4]> p = matmul(x = q, y = k, transpose_x = bool(false), transpose_y = bool(true))[name = string(\"p\")];
            tensor<fp16, [1, 2, 4]> s = mul(x = p, y = fp16(0x1p-3))[name = string(\"s\")];
            tensor<fp16, [1, 2, 4]> a = add(x = s, y = m)[name = string(\"a\")];
            tensor<fp16, [1, 2, 4]> w = softmax(x = a, axis = int32(-1))[name = string(\"w\")];
            tensor<fp16, [1, 2, 8]> y = matmul(x = w, y = v, transpose_x = bool(false), transpose_y = bool(false))[name = string(\"y\")];
        } -> (y);",
    },
};

fn run(body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    replaced(&body, "scaled_dot_product_attention", "attention written out", notes, |steps, arguments| {
        let (query, key, value) = (steps.required("query")?, steps.required("key")?, steps.required("value")?);
        let features = arguments.shape("query").last().copied().unwrap_or(1);
        let product = |x: aneforge_mil::ValueId, y: aneforge_mil::ValueId, transposed: bool| {
            [("x", x.into()), ("y", y.into()), ("transpose_x", false.into()), ("transpose_y", transposed.into())]
        };
        let scores = steps.op("matmul", &product(query, key, true))?;
        let mut scores = steps.with_number("mul", scores, (features as f64).sqrt().recip())?;
        if let Some(mask) = steps.port("attn_mask")? {
            let dtypes = (arguments.ty("attn_mask").map(|ty| ty.dtype), arguments.ty("query").map(|ty| ty.dtype));
            scores = match dtypes {
                (Ok(DType::Bool), Ok(dtype)) => {
                    let hidden = steps.number(scores, -largest(dtype));
                    steps.op("select", &[("cond", mask.into()), ("a", scores.into()), ("b", hidden.into())])?
                }
                (Ok(given), Ok(wanted)) if given != wanted => {
                    let mask = steps.op("cast", &[("x", mask.into()), ("dtype", wanted.keyword().into())])?;
                    steps.two("add", scores, mask)?
                }
                _ => steps.two("add", scores, mask)?,
            };
        }
        let weights = steps.op("softmax", &[("x", scores.into()), ("axis", (-1i64).into())])?;
        steps.finish("matmul", &product(weights, value, false))
    })
}
