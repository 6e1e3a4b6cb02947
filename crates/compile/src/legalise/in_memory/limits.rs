//! What models in memory cannot be given, and nothing can be written instead of.

use crate::CompileError;
use crate::rewrite::one;
use aneforge_core::{Chip, Family, Target};
use aneforge_mil::op::Arguments;
use aneforge_mil::{Body, BuildError, DType, Operation, ValueId};

/// A convolution with this many input channels was refused, one with as many output channels ran (maderix/ANE, the classifier of its
/// training kernels).
const REFUSED_CHANNELS: usize = 32000;

/// The longest axis whose largest element is found: 2048 passes and 2049 fails (ANE guide, arXiv 2606.22283, chapter 17).
const LONGEST_SEARCH: usize = 2048;

/// Checks a legalised body for what the route refuses.
///
/// # Errors
/// [`CompileError::Limit`] with the operation or port, the rule and what to do about it.
pub fn check(body: &Body, target: &Target, chip: &Chip) -> Result<(), CompileError> {
    let refuse = |op: &'static str, id: ValueId, rule: &str, remedy: &'static str| {
        Err(CompileError::Limit {
            op,
            name: body.value(id).name.clone(),
            ty: body.ty(id).to_string(),
            rule: rule.to_string(),
            target: target.to_string(),
            remedy,
            is_size: false,
        })
    };
    // Reported of an M1 Pro on macOS 26.3 for M1 and M2 (maderix/ANE, pull request 6); M3 to M5 convert.
    let converts = chip.family >= Family::A15;
    let inputs = body.inputs.iter().map(|&id| ("input", id));
    for (op, id) in inputs.chain(body.outputs.iter().map(|output| ("output", output.value))) {
        // The ports of a network have the types that its net.plist states: positions are uint16 there.
        if layers_alone(body, id) {
            continue;
        }
        match body.ty(id).dtype {
            DType::Fp16 => {}
            DType::Fp32 if converts => {}
            DType::Fp32 => return refuse(op, id, "ports are fp16 and nothing converts from or to fp32", "make the port fp16"),
            _ => return refuse(op, id, "ports are floats", "make the port fp16 and convert on the host"),
        }
    }
    for operation in &body.operations {
        let Some(&result) = operation.outputs.first() else { continue };
        let name = operation.op.name;
        if name == "cast" && !converts && wide_cast(body, operation) {
            return refuse(name, result, "nothing converts between fp16 and fp32", "keep the whole program in fp16");
        }
        if !["conv", "matmul", "reduce_argmax", "reduce_argmin"].contains(&name) {
            continue;
        }
        let ports = body.argument_ports(&operation.arguments);
        let arguments = Arguments::checked(operation.op, &ports).map_err(BuildError::from)?;
        let x = arguments.shape("x");
        // ANE guide, arXiv 2606.22283, chapter 4.
        if name == "matmul" && x.len().max(arguments.shape("y").len()) >= 5 {
            return refuse(name, result, "products have four axes at most", "merge axes of the batch with reshape");
        }
        let searched = arguments.int("axis").and_then(|axis| arguments.axis(axis, x.len())).map(|axis| x[axis]);
        if name.starts_with("reduce_arg") && searched.is_some_and(|extent| extent > LONGEST_SEARCH) {
            let rule = format!("the position of an extreme is found along {LONGEST_SEARCH} elements at most");
            return refuse(name, result, &rule, "search parts of the axis, then their winners, or do it on the host");
        }
        if name != "conv" {
            continue;
        }
        if arguments.get("weight").is_some_and(|weight| !weight.constant) {
            return refuse(name, result, "the weight of a convolution is a constant", "use matmul for weights that are computed");
        }
        if x.get(1).is_some_and(|&channels| channels >= REFUSED_CHANNELS) {
            let rule = format!("a convolution takes fewer than {REFUSED_CHANNELS} input channels");
            return refuse(name, result, &rule, "split the channels and add the convolutions of the parts, or use matmul");
        }
    }
    Ok(())
}

/// Whether a port is made and read by native layers and nothing else.
fn layers_alone(body: &Body, id: ValueId) -> bool {
    let native = |operation: &Operation| aneforge_native::layer::of(operation.op).is_some();
    let reads = |operation: &&Operation| operation.arguments.iter().any(|operand| operand.values().contains(&id));
    let mut users = body.operations.iter().filter(reads).chain(body.producer(id)).peekable();
    users.peek().is_some() && users.all(native)
}

fn wide_cast(body: &Body, operation: &Operation) -> bool {
    let given = one(operation, "x").map(|id| body.ty(id).dtype);
    let made = operation.outputs.first().map(|&id| body.ty(id).dtype);
    given != made && (given == Some(DType::Fp32) || made == Some(DType::Fp32))
}
