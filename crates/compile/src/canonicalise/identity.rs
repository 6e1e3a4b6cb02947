//! Removes operations that give back what they were given.

use crate::pass::{Context, Effect, Example, Pass, Stage};
use crate::rewrite::{Rewriter, known_values, one, operand, rewrite, uniform};
use crate::{CompileError, Notes};
use aneforge_mil::{Body, Operand, Operation, ValueId};

/// Removes multiplications by one, additions of minus zero, reshapes to the same shape, casts to the same type and the like;
/// merges chains of reshapes and of transposes.
pub const IDENTITY: Pass = Pass {
    name: "identities",
    summary: "removes operations that return their operand bit for bit and merges chains of reshapes and transposes",
    stage: Stage::Canonicalise,
    effect: Effect::Lossless,
    after: &["constant-folding"],
    applies: |_| true,
    run,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [2]> x) {
            tensor<fp16, [2]> same = mul(x = x, y = fp16(0x1p+0))[name = string(\"same\")];
            tensor<fp16, [2]> y = relu(x = same)[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [2]> x) {
            tensor<fp16, [2]> y = relu(x = x)[name = string(\"y\")];
        } -> (y);",
    },
};

fn run(body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    rewrite(&body, |rewriter, operation| {
        let [result] = operation.outputs[..] else { return Ok(false) };
        if let Some(kept) = same_as(rewriter.source(), operation, notes) {
            let new = rewriter.value(kept)?;
            // An operand of another type broadcasts or converts: the operation is then more than an identity.
            let wanted = rewriter.ty(result);
            if rewriter.builder().ty(new) == wanted {
                notes.applied(rewriter.name(result), format!("{} changes nothing", operation.op.name));
                rewriter.replace(result, new);
                return Ok(true);
            }
        }
        merge_chain(rewriter, operation, result, notes)
    })
}

/// The operand that an operation returns unchanged, if it does.
fn same_as(body: &Body, operation: &Operation, notes: &mut Notes) -> Option<ValueId> {
    let x = one(operation, "x");
    let y = one(operation, "y");
    let is = |id: Option<ValueId>, wanted: f64| {
        id.and_then(|id| uniform(body, id)).is_some_and(|value| value.to_bits() == wanted.to_bits())
    };
    match operation.op.name {
        "mul" if is(y, 1.0) => x,
        "mul" if is(x, 1.0) => y,
        "real_div" | "pow" if is(y, 1.0) => x,
        "sub" if is(y, 0.0) => x,
        "add" if is(y, -0.0) => x,
        "add" if is(x, -0.0) => y,
        "add" if is(y, 0.0) || is(x, 0.0) => {
            let name = operation.outputs.first().map_or("", |&id| body.value(id).name.as_str());
            notes.missed(name, "adding +0 is kept: it turns -0 into +0");
            None
        }
        "identity" | "cast" | "reshape" | "tile" | "slice_by_size" | "pad" if type_kept(body, operation) => x,
        "transpose" => {
            let perm = known_values(body, one(operation, "perm")?)?;
            let straight = perm.iter().enumerate().all(|(axis, &source)| source == axis as f64);
            straight.then_some(x).flatten()
        }
        "relu" => x.filter(|&x| body.producer(x).is_some_and(|producer| producer.op.name == "relu")),
        "concat" => match operand(operation, "values") {
            Operand::Many(values) if values.len() == 1 => values.first().copied(),
            _ => None,
        },
        _ => None,
    }
}

/// For the operators whose only effect is a change of type or extent: nothing changes where the type stays.
fn type_kept(body: &Body, operation: &Operation) -> bool {
    let input = one(operation, "x").map(|id| body.ty(id));
    let output = operation.outputs.first().map(|&id| body.ty(id));
    input == output
}

/// `reshape(reshape(x))` needs the last shape alone, `transpose(transpose(x))` one permutation.
fn merge_chain(
    rewriter: &mut Rewriter<'_>,
    operation: &Operation,
    result: ValueId,
    notes: &mut Notes,
) -> Result<bool, CompileError> {
    let body = rewriter.source();
    let name = operation.op.name;
    let Some((x, inner)) = one(operation, "x").and_then(|x| Some((x, body.producer(x)?))) else { return Ok(false) };
    let Some(origin) = one(inner, "x") else { return Ok(false) };
    let hint = rewriter.name(result);
    let new = match (inner.op.name, name) {
        ("reshape" | "expand_dims" | "squeeze", "reshape") => {
            let shape: Vec<i64> = rewriter.ty(result).shape.iter().map(|&extent| extent as i64).collect();
            let origin = rewriter.value(origin)?;
            rewriter.builder().op_named("reshape", &[("x", origin.into()), ("shape", shape.into())], hint)?
        }
        ("transpose", "transpose") => {
            let perms = [inner, operation].map(|op| one(op, "perm").and_then(|id| known_values(body, id)));
            let [Some(first), Some(second)] = perms else { return Ok(false) };
            let composed: Vec<i64> = second.iter().filter_map(|&axis| first.get(axis as usize).map(|&a| a as i64)).collect();
            let origin = rewriter.value(origin)?;
            if composed.iter().enumerate().all(|(axis, &source)| source == axis as i64) {
                origin
            } else {
                rewriter.builder().op_named("transpose", &[("x", origin.into()), ("perm", composed.into())], hint)?
            }
        }
        _ => return Ok(false),
    };
    notes.applied(hint, format!("merged with the {} that makes {:?}", inner.op.name, rewriter.name(x)));
    rewriter.replace(result, new);
    Ok(true)
}
