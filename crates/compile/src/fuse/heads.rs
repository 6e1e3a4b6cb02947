//! Products with keys and values that several heads share.

use super::pattern::{finished, flag, wide};
use crate::pass::{Context, Effect, Example, Pass, Stage};
use crate::rewrite::{known_values, one, operand, rewrite};
use crate::{CompileError, Notes};
use aneforge_mil::{Body, Operand, Operation, ValueId};

/// Multiplies the rows of all heads of a group by the group's keys or values at once, in place of repeating those for each head.
pub const GROUPED_HEADS: Pass = Pass {
    name: "grouped-heads",
    summary: "multiplies the heads of a group by the keys or values that they share without repeating those",
    stage: Stage::Fuse,
    effect: Effect::Lossless,
    // Attention is found by its products, which this one takes apart.
    after: &["query-tiles", "attention-operator"],
    applies: |_| true,
    run,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [1, 4, 3, 8]> q, tensor<fp16, [1, 2, 5, 8]> k) {
            tensor<fp16, [1, 2, 1, 5, 8]> g = reshape(x = k, shape = tensor<int32, [5]>([1, 2, 1, 5, 8]))[name = string(\"g\")];
            tensor<fp16, [1, 2, 2, 5, 8]> t = tile(x = g, reps = tensor<int32, [5]>([1, 1, 2, 1, 1]))[name = string(\"t\")];
            tensor<fp16, [1, 4, 5, 8]> r = reshape(x = t, shape = tensor<int32, [4]>([1, 4, 5, 8]))[name = string(\"r\")];
            tensor<fp16, [1, 4, 3, 5]> y = matmul(x = q, y = r, transpose_x = bool(false), transpose_y = bool(true))[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [1, 4, 3, 8]> q, tensor<fp16, [1, 2, 5, 8]> k) {
            tensor<fp16, [1, 2, 6, 8]> a = reshape(x = q, shape = tensor<int32, [4]>([1, 2, 6, 8]))[name = string(\"a\")];
            tensor<fp16, [1, 2, 6, 5]> p = matmul(x = a, y = k, transpose_x = bool(false), transpose_y = bool(true))[name = string(\"p\")];
            tensor<fp16, [1, 4, 3, 5]> y = reshape(x = p, shape = tensor<int32, [4]>([1, 4, 3, 5]))[name = string(\"y\")];
        } -> (y);",
    },
};

fn run(body: Body, context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    if !body.operations.iter().any(|operation| matches!(operation.op.name, "tile" | "concat")) {
        return Ok(body);
    }
    let mut changed = false;
    let new = rewrite(&body, |rewriter, operation| {
        let ("matmul", &[result]) = (operation.op.name, &operation.outputs[..]) else { return Ok(false) };
        let (Some(x), Some(y)) = (one(operation, "x"), one(operation, "y")) else { return Ok(false) };
        let Some((shared, group)) = repeated(&body, y) else { return Ok(false) };
        let hint = rewriter.name(result);
        let (rows, wanted) = (rewriter.ty(x).shape.clone(), rewriter.ty(result).shape.clone());
        let heads = rewriter.ty(y).shape[1];
        if rows.len() != 4 || rows[1] != heads || flag(&body, operation, "transpose_x") != Some(false) {
            notes.missed(hint, "shared keys or values stay repeated: the other factor has no rows per head");
            return Ok(false);
        }
        let joined = group * rows[2];
        if context.target.chip().is_some_and(|chip| joined > chip.max_extent) {
            notes
                .missed(hint, format!("shared keys or values stay repeated: {joined} rows per group are more than the chip takes"));
            return Ok(false);
        }
        let (x, shared) = (rewriter.value(x)?, rewriter.value(shared)?);
        let turned = rewriter.operand(operand(operation, "transpose_y"))?;
        let builder = rewriter.builder();
        let by_group = wide(&[rows[0], heads / group, joined, rows[3]]);
        let x = builder.op_named("reshape", &[("x", x.into()), ("shape", by_group.into())], &format!("{hint}_groups"))?;
        let mut given = vec![("x", x.into()), ("y", shared.into()), ("transpose_x", false.into())];
        if let Operand::One(turned) = turned {
            given.push(("transpose_y", turned.into()));
        }
        let product = builder.op_named("matmul", &given, &format!("{hint}_product"))?;
        let new = builder.op_named("reshape", &[("x", product.into()), ("shape", wide(&wanted).into())], hint)?;
        rewriter.replace(result, new);
        notes.applied(hint, format!("{group} heads per group multiplied at once, nothing repeated"));
        changed = true;
        Ok(true)
    })?;
    Ok(finished(new, changed))
}

/// The value of which `[batch, heads, ...]` is a repetition of each head `group` times in a row, and `group`.
fn repeated(body: &Body, id: ValueId) -> Option<(ValueId, usize)> {
    let joined = body.producer(id)?;
    let shape = &body.ty(id).shape;
    if shape.len() != 4 {
        return None;
    }
    let (copies, of) = if joined.op.name == "reshape" {
        let spread = one(joined, "x")?;
        let inner = body.producer(spread)?;
        let of = one_copy(body, inner, 2)?;
        (body.ty(spread).shape.clone(), of)
    } else {
        // One head for all: repeated along its own axis.
        let of = one_copy(body, joined, 1)?;
        let kept = body.ty(of).shape.get(1) == Some(&1);
        return kept.then_some((of, shape[1]));
    };
    let &[batch, groups, group, length, features] = &copies[..] else { return None };
    let before = &body.ty(of).shape;
    let fits = before[..] == [batch, groups, 1, length, features] && shape[..] == [batch, groups * group, length, features];
    // What the axis of ones was put into.
    let made = body.producer(of).filter(|operation| matches!(operation.op.name, "reshape" | "expand_dims"))?;
    let shared = one(made, "x")?;
    (fits && group > 1 && body.ty(shared).shape[..] == [batch, groups, length, features]).then_some((shared, group))
}

/// What an operation repeats along one axis and no other.
fn one_copy(body: &Body, operation: &Operation, axis: usize) -> Option<ValueId> {
    match operation.op.name {
        "tile" => {
            let reps = known_values(body, one(operation, "reps")?)?;
            let alone = reps.iter().enumerate().all(|(at, &rep)| (at == axis) == (rep > 1.0));
            alone.then(|| one(operation, "x")).flatten()
        }
        "concat" => {
            let Operand::Many(values) = operand(operation, "values") else { return None };
            let rank = body.ty(*values.first()?).rank() as f64;
            let given = known_values(body, one(operation, "axis")?)?.first().copied()?;
            let interleaved = flag(body, operation, "interleave")?;
            let same = values.len() > 1 && values.iter().all(|id| Some(id) == values.first());
            let along = if given < 0.0 { given + rank } else { given };
            (same && !interleaved && along == axis as f64).then(|| values.first().copied()).flatten()
        }
        _ => None,
    }
}
