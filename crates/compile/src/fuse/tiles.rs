//! Attention over its queries in tiles.

use super::attention::{Attention, find};
use super::pattern::{Uses, block, finished, missed, name};
use crate::pass::{Context, Effect, Example, Pass, Stage};
use crate::rewrite::{Rewriter, one, rewrite};
use crate::{CompileError, Notes};
use aneforge_mil::{Body, Operand, Operation, ValueId};
use std::collections::HashMap;
use std::ops::Range;

/// Cuts the queries of long attention into tiles, so that the scores of a tile are small, and leaves out keys that a constant mask hides
/// from a whole tile: half of a causal mask's.
pub const QUERY_TILES: Pass = Pass {
    name: "query-tiles",
    summary: "computes attention over many queries tile by tile, without the keys that a constant mask hides from a whole tile",
    stage: Stage::Fuse,
    effect: Effect::Numeric("bit for bit the same, unless scores of one row differ by more than 9000 behind a mask"),
    after: &[],
    applies: |_| true,
    run,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [1, 768, 32]> q, tensor<fp16, [1, 32, 32]> k, tensor<fp16, [1, 32, 2]> v) {
            tensor<fp16, [1, 768, 32]> s = matmul(x = q, y = k, transpose_x = bool(false), transpose_y = bool(true))[name = string(\"s\")];
            tensor<fp16, [1, 768, 32]> w = softmax(x = s, axis = int32(-1))[name = string(\"w\")];
            tensor<fp16, [1, 768, 2]> y = matmul(x = w, y = v, transpose_x = bool(false), transpose_y = bool(false))[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [1, 768, 32]> q, tensor<fp16, [1, 32, 32]> k, tensor<fp16, [1, 32, 2]> v) {
            tensor<fp16, [1, 384, 32]> q0 = slice_by_size(x = q, begin = tensor<int32, [3]>([0, 0, 0]), size = tensor<int32, [3]>([1, 384, 32]))[name = string(\"q0\")];
            tensor<fp16, [1, 384, 32]> s0 = matmul(x = q0, y = k, transpose_x = bool(false), transpose_y = bool(true))[name = string(\"s0\")];
            tensor<fp16, [1, 384, 32]> w0 = softmax(x = s0, axis = int32(-1))[name = string(\"w0\")];
            tensor<fp16, [1, 384, 2]> y0 = matmul(x = w0, y = v, transpose_x = bool(false), transpose_y = bool(false))[name = string(\"y0\")];
            tensor<fp16, [1, 384, 32]> q1 = slice_by_size(x = q, begin = tensor<int32, [3]>([0, 384, 0]), size = tensor<int32, [3]>([1, 384, 32]))[name = string(\"q1\")];
            tensor<fp16, [1, 384, 32]> s1 = matmul(x = q1, y = k, transpose_x = bool(false), transpose_y = bool(true))[name = string(\"s1\")];
            tensor<fp16, [1, 384, 32]> w1 = softmax(x = s1, axis = int32(-1))[name = string(\"w1\")];
            tensor<fp16, [1, 384, 2]> y1 = matmul(x = w1, y = v, transpose_x = bool(false), transpose_y = bool(false))[name = string(\"y1\")];
            tensor<fp16, [1, 768, 2]> y = concat(values = (y0, y1), axis = int32(1), interleave = bool(false))[name = string(\"y\")];
        } -> (y);",
    },
};

/// Elements of a mask that is read to find what it hides.
const LARGEST_MASK: usize = 4 << 20;
/// What a mask adds to a score that does not count: exp of it is 0 in every type.
const HIDDEN: f64 = -10_000.0;

/// Tiles of so many queries where none are asked for: one up to 767 queries, then about 512 queries each, which is what the PyPI package
/// aneforge 0.4.0 found on chips.
pub fn usual_tiles(queries: usize) -> usize {
    ((queries + 256) / 512).max(1)
}

fn run(body: Body, context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    let uses = Uses::of(&body);
    let mut found: HashMap<ValueId, Attention<'_>> = HashMap::new();
    for softmax in body.operations.iter().filter(|operation| operation.op.name == "softmax") {
        match find(&body, &uses, softmax) {
            Ok(attention) => drop(found.insert(attention.result, attention)),
            Err(reason) => missed(notes, name(&body, softmax), reason),
        }
    }
    if found.is_empty() {
        return Ok(body);
    }
    let mut changed = false;
    let new = rewrite(&body, |rewriter, operation| {
        let Some(attention) = operation.outputs.first().and_then(|id| found.get(id)) else { return Ok(false) };
        let rank = rewriter.ty(attention.result).rank();
        let queries = rewriter.ty(attention.result).shape[rank - 2];
        let asked = context.rewrites.tiles(queries);
        if asked < 2 {
            return Ok(false);
        }
        let rows = queries.div_ceil(asked);
        let tiles: Vec<Range<usize>> = (0..queries).step_by(rows).map(|start| start..(start + rows).min(queries)).collect();
        let hint = rewriter.name(attention.result);
        let seen = seen_keys(rewriter.source(), attention, &tiles);
        let mut results = Vec::with_capacity(tiles.len());
        for (tile, &keys) in tiles.iter().zip(&seen) {
            results.push(write_tile(rewriter, attention, tile.clone(), keys)?);
        }
        let count = results.len();
        let given = [("values", results.into()), ("axis", (rank as i64 - 2).into()), ("interleave", false.into())];
        let whole = rewriter.builder().op_named("concat", &given, hint)?;
        rewriter.replace(attention.result, whole);
        let all = key_count(rewriter.source(), attention) * count;
        let left = seen.iter().sum::<usize>();
        let masked =
            if left < all { format!(", {} of {all} blocks' keys hidden by the mask left out", all - left) } else { String::new() };
        notes.applied(hint, format!("attention over {queries} queries in {count} tiles{masked}"));
        changed = true;
        Ok(true)
    })?;
    Ok(finished(new, changed))
}

fn key_count(body: &Body, attention: &Attention<'_>) -> usize {
    attention.softmax.outputs.first().and_then(|&id| body.ty(id).shape.last().copied()).unwrap_or(0)
}

/// For each tile how many keys from the front count, by constant masks that are added to the scores.
fn seen_keys(body: &Body, attention: &Attention<'_>, tiles: &[Range<usize>]) -> Vec<usize> {
    let keys = key_count(body, attention);
    let queries = tiles.last().map_or(0, |tile| tile.end);
    let mut seen = vec![keys; tiles.len()];
    for &(step, port) in attention.steps.iter().filter(|(step, _)| step.op.name == "add") {
        let Some(mask) = one(step, if port == "x" { "y" } else { "x" }) else { continue };
        let (Some(constant), ty) = (body.constant(mask), body.ty(mask)) else { continue };
        // One plane for all heads, with a row per query.
        let is_plane = ty.shape.ends_with(&[queries, keys]) && ty.count() == queries * keys;
        if !is_plane || ty.count() > LARGEST_MASK {
            continue;
        }
        let Some(array) = constant.to_array(ty) else { continue };
        for (seen, tile) in seen.iter_mut().zip(tiles) {
            let rows = array.data[tile.start * keys..tile.end * keys].chunks(keys);
            let counted =
                rows.map(|row| row.iter().rposition(|&value| value > HIDDEN || value.is_nan()).map_or(keys, |last| last + 1));
            *seen = (*seen).min(counted.max().unwrap_or(keys));
        }
    }
    seen
}

/// Attention of a block of queries to the first `keys` keys.
fn write_tile(
    rewriter: &mut Rewriter<'_>,
    attention: &Attention<'_>,
    tile: Range<usize>,
    keys: usize,
) -> Result<ValueId, CompileError> {
    let missing = || CompileError::internal("attention without operands");
    let hint = format!("{}_tile", rewriter.name(attention.result));
    let rank = rewriter.ty(attention.result).rank();
    let queries = rewriter.ty(attention.result).shape[rank - 2];
    let all_keys = key_count(rewriter.source(), attention);
    let query = rewriter.value(attention.query().ok_or_else(missing)?)?;
    let query = block(rewriter, query, rank - 2, tile.clone(), &hint)?;
    let [mut key, mut value] = [attention.key(), attention.value()].map(|id| id.ok_or_else(missing));
    for (side, are_rows) in [(&mut key, attention.keys_are_rows), (&mut value, attention.values_are_rows)] {
        let old = *side.as_ref().map_err(|_| missing())?;
        let new = rewriter.value(old)?;
        let rank = rewriter.ty(old).rank();
        *side = Ok(block(rewriter, new, if are_rows { rank - 2 } else { rank - 1 }, 0..keys, &hint)?);
    }
    let mut at = with_operands(rewriter, attention.scores, &[("x", query), ("y", key?)], &hint)?;
    for &(step, port) in &attention.steps {
        let mut given = vec![(port, at)];
        for (spec, operand) in step.op.ports.iter().zip(&step.arguments).filter(|(spec, _)| spec.name != port) {
            let Operand::One(other) = *operand else { continue };
            let shape = rewriter.ty(other).shape.clone();
            let mut new = rewriter.value(other)?;
            let own = shape.len();
            if own >= 2 && shape[own - 2] == queries && queries > 1 {
                new = block(rewriter, new, own - 2, tile.clone(), &hint)?;
            }
            if own >= 1 && shape[own - 1] == all_keys && all_keys > 1 {
                new = block(rewriter, new, own - 1, 0..keys, &hint)?;
            }
            given.push((spec.name, new));
        }
        at = with_operands(rewriter, step, &given, &hint)?;
    }
    let shares = with_operands(rewriter, attention.softmax, &[("x", at)], &hint)?;
    with_operands(rewriter, attention.mixed, &[("x", shares), ("y", value?)], &hint)
}

/// The same operation with other values at some ports.
fn with_operands(
    rewriter: &mut Rewriter<'_>,
    operation: &Operation,
    given: &[(&str, ValueId)],
    hint: &str,
) -> Result<ValueId, CompileError> {
    let mut arguments = Vec::with_capacity(operation.arguments.len());
    for (spec, operand) in operation.op.ports.iter().zip(&operation.arguments) {
        let new = given.iter().find(|(port, _)| *port == spec.name).map(|&(_, id)| Operand::One(id));
        arguments.push(new.map_or_else(|| rewriter.operand(operand), Ok)?);
    }
    let made = rewriter.builder().apply(operation.op, arguments, hint)?;
    made.first().copied().ok_or_else(|| CompileError::internal("an operation without a result"))
}
