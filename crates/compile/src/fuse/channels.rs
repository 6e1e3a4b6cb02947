//! Dense layers as convolutions, with channels first from one to the next.

use super::layout::{Form, Kept, plain_form, reshaped, through_reshape};
use super::pattern::{finished, flag};
use crate::pass::{Context, Effect, Example, Pass, Stage};
use crate::rewrite::{Rewriter, known_values, one};
use crate::{CompileError, Notes};
use aneforge_mil::{Body, Constant, Operand, Operation, ValueId};

/// Writes dense layers as convolutions of one place over channels first, the layout of the engine's memory (maderix/ANE, README), and keeps
/// values so between them: transposes of heads vanish into reshapes and the flags of products.
pub const CHANNELS_FIRST: Pass = Pass {
    name: "channels-first",
    summary: "writes dense layers as 1x1 convolutions and keeps values with channels first between them, so that transposes vanish",
    stage: Stage::Fuse,
    effect: Effect::Numeric("the same sums, in the order in which a convolution adds them"),
    after: &["grouped-heads", "query-tiles", "attention-operator", "native-norms", "length-norms", "scale-folding", "sum-by-product"],
    applies: |_| true,
    run,
    example: Example {
        before: "func main<ios18>(tensor<fp16, [1, 5, 32]> x) {
            tensor<fp16, [32, 32]> w = const()[name = string(\"w\"), val = tensor<fp16, [32, 32]>(BLOBFILE(path = string(\"@model_path/weights.bin\"), offset = uint64(64)))];
            tensor<fp16, [1, 5, 32]> h = linear(x = x, weight = w)[name = string(\"h\")];
            tensor<fp16, [1, 5, 32]> y = relu(x = h)[name = string(\"y\")];
        } -> (y);",
        after: "func main<ios18>(tensor<fp16, [1, 5, 32]> x) {
            tensor<fp16, [32, 32, 1, 1]> w = const()[name = string(\"w\"), val = tensor<fp16, [32, 32, 1, 1]>(BLOBFILE(path = string(\"@model_path/weights.bin\"), offset = uint64(64)))];
            tensor<fp16, [1, 32, 5]> t = transpose(x = x, perm = tensor<int32, [3]>([0, 2, 1]))[name = string(\"t\")];
            tensor<fp16, [1, 32, 1, 5]> a = reshape(x = t, shape = tensor<int32, [4]>([1, 32, 1, 5]))[name = string(\"a\")];
            tensor<fp16, [1, 32, 1, 5]> h = conv(x = a, weight = w)[name = string(\"h\")];
            tensor<fp16, [1, 32, 1, 5]> r = relu(x = h)[name = string(\"r\")];
            tensor<fp16, [1, 32, 5]> b = reshape(x = r, shape = tensor<int32, [3]>([1, 32, 5]))[name = string(\"b\")];
            tensor<fp16, [1, 5, 32]> y = transpose(x = b, perm = tensor<int32, [3]>([0, 2, 1]))[name = string(\"y\")];
        } -> (y);",
    },
};

/// Operators that work on each element of their operands, which broadcast.
const ELEMENTS: &[&str] = &[
    "add",
    "sub",
    "mul",
    "real_div",
    "maximum",
    "minimum",
    "pow",
    "relu",
    "relu6",
    "gelu",
    "silu",
    "sigmoid",
    "tanh",
    "exp",
    "erf",
    "sqrt",
    "rsqrt",
    "square",
    "abs",
    "softplus",
    "clip",
    "cast",
    "leaky_relu",
    "elu",
];

fn run(body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    if !body.operations.iter().any(|operation| weight_of(&body, operation).is_some()) {
        return Ok(body);
    }
    let before = count(&body, "transpose");
    let mut rewriter = Rewriter::new(&body);
    let (mut kept, mut layers) = (Kept::default(), 0);
    for operation in &body.operations {
        let layer = match weight_of(&body, operation) {
            Some(weight) => linear(&mut rewriter, &mut kept, operation, weight, notes)?,
            None => false,
        };
        layers += usize::from(layer);
        let done = layer
            || match operation.op.name {
                "transpose" => transpose(&mut rewriter, &mut kept, operation)?,
                "reshape" => reshape(&mut rewriter, &mut kept, operation)?,
                "matmul" => matmul(&mut rewriter, &mut kept, operation)?,
                "layer_norm" | "softmax" => along_axes(&mut rewriter, &mut kept, operation)?,
                op if ELEMENTS.contains(&op) => elements(&mut rewriter, &mut kept, operation)?,
                _ => false,
            };
        if !done {
            for id in operation.arguments.iter().flat_map(Operand::values) {
                kept.plain(&mut rewriter, *id)?;
            }
            rewriter.copy(operation)?;
        }
    }
    for id in body.roots() {
        kept.plain(&mut rewriter, id)?;
    }
    let after = finished(rewriter.finish()?, true);
    let text =
        format!("{layers} dense layers as convolutions; transposes: {} where there were {before}", count(&after, "transpose"));
    if layers > 0 {
        notes.applied(&body.name, text);
        Ok(after)
    } else {
        Ok(body)
    }
}

fn count(body: &Body, op: &str) -> usize {
    body.operations.iter().filter(|operation| operation.op.name == op).count()
}

/// The weight `[out, in]` of a dense layer: of `linear`, or of a product with a constant that is transposed.
fn weight_of(body: &Body, operation: &Operation) -> Option<ValueId> {
    match operation.op.name {
        "linear" => one(operation, "weight"),
        "matmul" => {
            let straight =
                flag(body, operation, "transpose_x") == Some(false) && flag(body, operation, "transpose_y") == Some(true);
            let weight = one(operation, "y").filter(|&id| body.constant(id).is_some() && body.ty(id).rank() == 2)?;
            straight.then_some(weight)
        }
        _ => None,
    }
}

/// A dense layer over `[batch, places, features]` or `[places, features]`.
fn linear(
    rewriter: &mut Rewriter<'_>,
    kept: &mut Kept,
    operation: &Operation,
    weight: ValueId,
    notes: &mut Notes,
) -> Result<bool, CompileError> {
    let (Some(x), &[result]) = (one(operation, "x"), &operation.outputs[..]) else { return Ok(false) };
    let hint = rewriter.name(result);
    let form: Form = match rewriter.ty(x).rank() {
        2 => vec![None, Some(1), None, Some(0)],
        3 => vec![Some(0), Some(2), None, Some(1)],
        rank => {
            notes.missed(hint, format!("dense layer kept: its operand has {rank} axes"));
            return Ok(false);
        }
    };
    let mut shape = rewriter.ty(weight).shape.clone();
    shape.extend([1, 1]);
    let name = rewriter.name(weight);
    let kernel = match rewriter.source().constant(weight) {
        Some(Constant::Weight(weight)) => {
            let kernel = weight.reshaped(shape).ok_or_else(|| CompileError::internal("a weight changed its size"))?;
            rewriter.builder().weight(name, kernel)
        }
        Some(Constant::Values(values)) => {
            let ty = aneforge_mil::TensorType::new(rewriter.ty(weight).dtype, shape);
            rewriter.builder().values(ty, values.clone())
        }
        _ => {
            notes.missed(hint, "dense layer kept: its weight is computed or compressed");
            return Ok(false);
        }
    };
    let bias = one(operation, "bias").map(|bias| rewriter.value(bias)).transpose()?;
    let x = kept.in_form(rewriter, x, &form)?;
    let mut given = vec![("x", x.into()), ("weight", kernel.into())];
    given.extend(bias.map(|bias| ("bias", bias.into())));
    let new = rewriter.builder().op_named("conv", &given, hint)?;
    kept.keep(rewriter, result, form, new);
    Ok(true)
}

/// A transpose is nothing but another form.
fn transpose(rewriter: &mut Rewriter<'_>, kept: &mut Kept, operation: &Operation) -> Result<bool, CompileError> {
    let (Some(x), &[result]) = (one(operation, "x"), &operation.outputs[..]) else { return Ok(false) };
    let Some(form) = kept.form(x).cloned() else { return Ok(false) };
    let body = rewriter.source();
    let Some(perm) = one(operation, "perm").and_then(|id| known_values(body, id)) else { return Ok(false) };
    let Some((_, new)) = kept.stored(x).cloned() else { return Ok(false) };
    let moved = form.iter().map(|axis| axis.and_then(|axis| perm.iter().position(|&from| from == axis as f64)));
    let moved: Form = moved.collect();
    kept.keep(rewriter, result, moved, new);
    Ok(true)
}

/// Splitting and joining axes that stand together.
fn reshape(rewriter: &mut Rewriter<'_>, kept: &mut Kept, operation: &Operation) -> Result<bool, CompileError> {
    let (Some(x), &[result]) = (one(operation, "x"), &operation.outputs[..]) else { return Ok(false) };
    let Some(form) = kept.form(x).cloned() else { return Ok(false) };
    let (from, to) = (rewriter.ty(x).shape.clone(), rewriter.ty(result).shape.clone());
    let Some(moved) = through_reshape(&form, &from, &to) else { return Ok(false) };
    let Some((_, value)) = kept.stored(x).cloned() else { return Ok(false) };
    let shape: Vec<usize> = moved.iter().map(|axis| axis.map_or(1, |axis| to[axis])).collect();
    let new = reshaped(rewriter, value, &shape, rewriter.name(result))?;
    kept.keep(rewriter, result, moved, new);
    Ok(true)
}

/// A product of two values that may each be kept with the last two axes exchanged.
fn matmul(rewriter: &mut Rewriter<'_>, kept: &mut Kept, operation: &Operation) -> Result<bool, CompileError> {
    let (Some(x), Some(y), &[result]) = (one(operation, "x"), one(operation, "y"), &operation.outputs[..]) else {
        return Ok(false);
    };
    let body = rewriter.source();
    let flags = [flag(body, operation, "transpose_x"), flag(body, operation, "transpose_y")];
    let [Some(turned_x), Some(turned_y)] = flags else { return Ok(false) };
    let exchanged = |kept: &Kept, id: ValueId| {
        let rank = body.ty(id).rank();
        let mut form = plain_form(rank);
        (rank >= 2).then(|| form.swap(rank - 2, rank - 1));
        kept.form(id).is_some_and(|own| *own == form)
    };
    let (over_x, over_y) = (exchanged(kept, x), exchanged(kept, y));
    if !over_x && !over_y {
        return Ok(false);
    }
    let mut operand = |rewriter: &mut Rewriter<'_>, id: ValueId, over: bool| match kept.stored(id).filter(|_| over) {
        Some(&(_, new)) => Ok(new),
        None => kept.plain(rewriter, id),
    };
    let (a, b) = (operand(rewriter, x, over_x)?, operand(rewriter, y, over_y)?);
    let (turned_x, turned_y) = (turned_x != over_x, turned_y != over_y);
    let rank = body.ty(result).rank();
    let same_rank = body.ty(x).rank() == rank && body.ty(y).rank() == rank;
    let hint = rewriter.name(result);
    // Values with channels first give a result with channels first: the product of the transposes in the other order.
    let given = if over_y && !over_x && same_rank {
        [("x", b.into()), ("y", a.into()), ("transpose_x", (!turned_y).into()), ("transpose_y", (!turned_x).into())]
    } else {
        [("x", a.into()), ("y", b.into()), ("transpose_x", turned_x.into()), ("transpose_y", turned_y.into())]
    };
    let new = rewriter.builder().op_named("matmul", &given, hint)?;
    let mut form = plain_form(rank);
    if over_y && !over_x && same_rank {
        form.swap(rank - 2, rank - 1);
    }
    kept.keep(rewriter, result, form, new);
    Ok(true)
}

/// A norm or softmax along axes.
fn along_axes(rewriter: &mut Rewriter<'_>, kept: &mut Kept, operation: &Operation) -> Result<bool, CompileError> {
    let (Some(x), &[result]) = (one(operation, "x"), &operation.outputs[..]) else { return Ok(false) };
    let Some(form) = kept.form(x).cloned() else { return Ok(false) };
    let (port, rank) = (if operation.op.name == "softmax" { "axis" } else { "axes" }, rewriter.ty(x).rank() as f64);
    let Some(axes) = one(operation, port).and_then(|id| known_values(rewriter.source(), id)) else { return Ok(false) };
    let place = |axis: f64| {
        let axis = if axis < 0.0 { axis + rank } else { axis } as usize;
        form.iter().position(|&own| own == Some(axis)).map(|at| at as i64)
    };
    let Some(places) = axes.into_iter().map(place).collect::<Option<Vec<i64>>>() else { return Ok(false) };
    // Gain and offset have the axes' extents in their order.
    let (1, Some((_, value))) = (places.len(), kept.stored(x).cloned()) else { return Ok(false) };
    let mut given = vec![("x", value.into())];
    given.push(if port == "axis" { (port, places[0].into()) } else { (port, places.into()) });
    for (spec, operand) in operation.op.ports.iter().zip(&operation.arguments) {
        if let (Operand::One(id), false) = (operand, spec.name == "x" || spec.name == port) {
            given.push((spec.name, rewriter.value(*id)?.into()));
        }
    }
    let hint = rewriter.name(result);
    let new = rewriter.builder().op_named(operation.op.name, &given, hint)?;
    kept.keep(rewriter, result, form, new);
    Ok(true)
}

/// Element by element: all operands in the form of the first that is not kept in its own.
fn elements(rewriter: &mut Rewriter<'_>, kept: &mut Kept, operation: &Operation) -> Result<bool, CompileError> {
    let &[result] = &operation.outputs[..] else { return Ok(false) };
    let shape = rewriter.ty(result).shape.clone();
    let operands: Vec<ValueId> = operation.arguments.iter().flat_map(Operand::values).copied().collect();
    let whole = |id: &&ValueId| rewriter.ty(**id).shape == shape;
    let Some(form) = operands.iter().filter(whole).find_map(|&id| kept.form(id).cloned()) else { return Ok(false) };
    let mut arguments = Vec::with_capacity(operation.arguments.len());
    for (spec, operand) in operation.op.ports.iter().zip(&operation.arguments) {
        let new = match operand {
            Operand::One(id) if ["x", "y"].contains(&spec.name) => Operand::One(kept.in_form(rewriter, *id, &form)?),
            other => rewriter.operand(other)?,
        };
        arguments.push(new);
    }
    let hint = rewriter.name(result);
    let made = rewriter.builder().apply(operation.op, arguments, hint)?;
    let new = made.first().copied().ok_or_else(|| CompileError::internal("an operation without a result"))?;
    kept.keep(rewriter, result, form, new);
    Ok(true)
}
