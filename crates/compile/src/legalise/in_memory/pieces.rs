//! Joining and cutting.

use super::{in_memory, replaced};
use crate::pass::{Context, Effect, Example, Pass, Stage};
use crate::rewrite::{one, operand, rewrite};
use crate::{CompileError, Notes};
use aneforge_mil::op::Arguments;
use aneforge_mil::{Body, DType, Given, Operand, ValueKind};

/// Says of every `concat` that it does not interleave: programs that leave it out are refused (reported of Orion's seven kernels).
pub const CONCAT: Pass = Pass {
    name: "said-interleave",
    summary: "writes the interleave flag of every concat, because models in memory refuse a concat without one",
    stage: Stage::Legalise,
    effect: Effect::Lossless,
    after: &[],
    applies: in_memory,
    run: run_concat,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [2]> x, tensor<fp16, [2]> z) {
            tensor<fp16, [4]> y = concat(values = (x, z), axis = int32(0))[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [2]> x, tensor<fp16, [2]> z) {
            tensor<fp16, [4]> y = concat(values = (x, z), axis = int32(0), interleave = bool(false))[name = string(\"y\")];
        } -> (y);",
    },
};

/// Writes slices by their sizes: by their ends they fail on inputs of larger programs (forks of maderix/ANE).
pub const SLICE: Pass = Pass {
    name: "slice-by-size",
    summary: "writes slice_by_index as slice_by_size, or off an input where it has steps, because it may fail on inputs",
    stage: Stage::Legalise,
    effect: Effect::Lossless,
    after: &[],
    applies: in_memory,
    run: run_slice,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [4]> x) {
            tensor<fp16, [2]> y = slice_by_index(x = x, begin = tensor<int32, [1]>([-3]), end = tensor<int32, [1]>([3]))[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [4]> x) {
            tensor<fp16, [2]> y = slice_by_size(x = x, begin = tensor<int32, [1]>([1]), size = tensor<int32, [1]>([2]))[name = string(\"y\")];
        } -> (y);",
    },
};

fn run_concat(body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    rewrite(&body, |rewriter, operation| {
        let ("concat", None, &[result]) = (operation.op.name, one(operation, "interleave"), &operation.outputs[..]) else {
            return Ok(false);
        };
        let (values, axis) = (rewriter.operand(operand(operation, "values"))?, rewriter.operand(operand(operation, "axis"))?);
        let (Operand::Many(values), Operand::One(axis)) = (values, axis) else { return Ok(false) };
        let name = rewriter.name(result);
        let given = [("values", values.into()), ("axis", axis.into()), ("interleave", false.into())];
        let new = rewriter.builder().op_named("concat", &given, name)?;
        notes.applied(name, "interleave written");
        rewriter.replace(result, new);
        Ok(true)
    })
}

fn run_slice(body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    replaced(&body, "slice_by_index", "slice written by its size", notes, |steps, arguments| {
        let x = steps.required("x")?;
        let result: Vec<i64> = steps.rewriter.ty(steps.result).shape.iter().map(|&extent| extent as i64).collect();
        let Some((begin, size)) = block(arguments, &result) else {
            let input = one(steps.operation, "x").map(|id| &steps.rewriter.source().value(id).kind) == Some(&ValueKind::Input);
            if !input || arguments.ty("x").is_ok_and(|ty| ty.dtype != DType::Fp16) {
                return Ok(false);
            }
            // Not off the input itself any more.
            let copy = steps.with_number("mul", x, 1.0)?;
            let mut given = vec![("x", Given::Value(copy))];
            for spec in steps.operation.op.ports.iter().skip(1) {
                if let Some(id) = steps.port(spec.name)? {
                    given.push((spec.name, id.into()));
                }
            }
            return steps.finish("slice_by_index", &given);
        };
        let squeezed = size.len() != result.len();
        let given = [("x", x.into()), ("begin", begin.into()), ("size", size.into())];
        if !squeezed {
            return steps.finish("slice_by_size", &given);
        }
        let kept = steps.op("slice_by_size", &given)?;
        steps.finish("reshape", &[("x", kept.into()), ("shape", result.into())])
    })
}

/// Where a slice without steps begins and how large it is; `None` where it has steps.
fn block(arguments: &Arguments<'_>, result: &[i64]) -> Option<(Vec<i64>, Vec<i64>)> {
    if arguments.ints("stride").is_some_and(|strides| strides.iter().any(|&stride| stride != 1)) {
        return None;
    }
    let begin = arguments.ints("begin")?;
    let set = |port, axis: usize| arguments.ints(port).is_some_and(|mask| mask.get(axis).is_some_and(|&flag| flag != 0));
    let mut extents = result.iter();
    let mut places = Vec::with_capacity(begin.len());
    for (axis, (&begin, &extent)) in begin.iter().zip(arguments.shape("x")).enumerate() {
        let extent = extent as i64;
        let first = if set("begin_mask", axis) { 0 } else { begin };
        let first = if first < 0 { first + extent } else { first }.clamp(0, extent);
        let size = if set("squeeze_mask", axis) { 1 } else { *extents.next()? };
        places.push((first, size));
    }
    Some(places.into_iter().unzip())
}
