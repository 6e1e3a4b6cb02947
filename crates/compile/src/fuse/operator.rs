//! Attention as one operator.

use super::attention::{Attention, find};
use super::pattern::{Uses, finished, missed, name};
use crate::pass::{Context, Effect, Example, Pass, Stage};
use crate::rewrite::rewrite;
use crate::{CompileError, Notes};
use aneforge_core::Route;
use aneforge_mil::{Body, ValueId};
use std::collections::HashMap;

/// Writes attention as `scaled_dot_product_attention`. With a mask only for no chip in particular: engines are reported to ignore it
/// (maderix/ANE, README). No choice of default: M1 and M2 are reported to refuse the operator (its pull request 6), the ANE guide (arXiv
/// 2606.22283, chapter 22) has it native from M1 on.
pub const ATTENTION_OPERATOR: Pass = Pass {
    name: "attention-operator",
    summary: "writes products, scale, mask and softmax as scaled_dot_product_attention, whose scores are never stored",
    stage: Stage::Fuse,
    effect: Effect::Numeric("scores and shares are not rounded to fp16 on the way; a scale within 2^-11 of 1/sqrt(features) becomes it"),
    after: &["query-tiles"],
    applies: |_| true,
    run,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [1, 2, 64]> q, tensor<fp16, [1, 4, 64]> k, tensor<fp16, [1, 4, 8]> v) {
            tensor<fp16, [1, 2, 4]> p = matmul(x = q, y = k, transpose_x = bool(false), transpose_y = bool(true))[name = string(\"p\")];
            tensor<fp16, [1, 2, 4]> s = mul(x = p, y = fp16(0x1p-3))[name = string(\"s\")];
            tensor<fp16, [1, 2, 4]> w = softmax(x = s, axis = int32(-1))[name = string(\"w\")];
            tensor<fp16, [1, 2, 8]> y = matmul(x = w, y = v, transpose_x = bool(false), transpose_y = bool(false))[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [1, 2, 64]> q, tensor<fp16, [1, 4, 64]> k, tensor<fp16, [1, 4, 8]> v) {
            tensor<fp16, [1, 2, 8]> y = scaled_dot_product_attention(query = q, key = k, value = v)[name = string(\"y\")];
        } -> (y);",
    },
};

/// The operator's own scale is exact; a program's was rounded to fp16.
const SAME_SCALE: f64 = 1.0 / 2048.0;

/// What the operator takes.
struct Form {
    query: ValueId,
    key: ValueId,
    value: ValueId,
    mask: Option<ValueId>,
    /// Factor of the queries beside the operator's own.
    factor: f64,
}

fn run(body: Body, context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    let uses = Uses::of(&body);
    let mut found: HashMap<ValueId, Form> = HashMap::new();
    for softmax in body.operations.iter().filter(|operation| operation.op.name == "softmax") {
        let form = find(&body, &uses, softmax).and_then(|attention| {
            let result = attention.result;
            form(&body, &attention, context).map(|form| (result, form)).map_err(|reason| Some(format!("attention kept: {reason}")))
        });
        match form {
            Ok((result, form)) => drop(found.insert(result, form)),
            Err(reason) => missed(notes, name(&body, softmax), reason),
        }
    }
    if found.is_empty() {
        return Ok(body);
    }
    let mut changed = false;
    let new = rewrite(&body, |rewriter, operation| {
        let Some(&result) = operation.outputs.first() else { return Ok(false) };
        let Some(form) = found.get(&result) else { return Ok(false) };
        let hint = rewriter.name(result);
        let (mut query, key, value) = (rewriter.value(form.query)?, rewriter.value(form.key)?, rewriter.value(form.value)?);
        if form.factor != 1.0 {
            let builder = rewriter.builder();
            let factor = builder.scalar(builder.ty(query).dtype, form.factor);
            query = builder.op_named("mul", &[("x", query.into()), ("y", factor.into())], &format!("{hint}_query"))?;
        }
        let mut given = vec![("query", query.into()), ("key", key.into()), ("value", value.into())];
        if let Some(mask) = form.mask {
            given.push(("attn_mask", rewriter.value(mask)?.into()));
        }
        let new = rewriter.builder().op_named("scaled_dot_product_attention", &given, hint)?;
        rewriter.replace(result, new);
        notes.applied(hint, "attention as one operator");
        changed = true;
        Ok(true)
    })?;
    Ok(finished(new, changed))
}

fn form(body: &Body, attention: &Attention<'_>, context: &Context<'_>) -> Result<Form, &'static str> {
    let ports = [attention.query(), attention.key(), attention.value()];
    let [Some(query), Some(key), Some(value)] = ports else { return Err("an operand is missing") };
    if !attention.keys_are_rows || !attention.values_are_rows {
        return Err("the operator takes keys and values in rows");
    }
    if context.target.route() == Some(Route::InMemory) {
        return Err("models in memory have it written out");
    }
    let (scale, mask) = attention.scale_and_mask(body).ok_or("more than a scale and a mask happens to its scores")?;
    if mask.is_some() && context.target.chip().is_some() {
        return Err("engines ignore the operator's mask");
    }
    let [q, k, v] = [query, key, value].map(|id| &body.ty(id).shape);
    let rank = q.len();
    if !(3..=5).contains(&rank)
        || k.len() != rank
        || v.len() != rank
        || k[..rank - 2] != q[..rank - 2]
        || v[..rank - 2] != q[..rank - 2]
    {
        return Err("the operator takes three to five axes, the same ones before the last two");
    }
    if let Some(mask) = mask {
        let keys = k[rank - 2];
        if body.ty(mask).shape.last() != Some(&keys) {
            return Err("the operator's mask has an extent per key");
        }
    }
    let factor = scale * (q[rank - 1] as f64).sqrt();
    let factor = if (factor - 1.0).abs() < SAME_SCALE { 1.0 } else { factor };
    Ok(Form { query, key, value, mask, factor })
}
