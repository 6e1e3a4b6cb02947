//! What a chip cannot take, checked once every rewrite had its chance.

use crate::CompileError;
use crate::rewrite::one;
use aneforge_core::{Chip, Route, Target};
use aneforge_mil::op::Standing;
use aneforge_mil::{Body, DType, Operation, TensorType, ValueId};

/// Checks a legalised body against the limits of the target's chip; `generic` has none.
///
/// # Errors
/// [`CompileError::Limit`] with the first operation that the chip cannot take and what to do about it.
pub fn check(body: &Body, target: &Target) -> Result<(), CompileError> {
    let Some(chip) = target.chip() else { return Ok(()) };
    for &input in &body.inputs {
        extents(body, chip, "input", input)?;
    }
    for state in &body.states {
        extents(body, chip, "state", state.input)?;
    }
    for operation in &body.operations {
        for &output in &operation.outputs {
            extents(body, chip, operation.op.name, output)?;
        }
        present(body, chip, operation)?;
        conversion(body, chip, operation)?;
        kernel(body, chip, operation)?;
    }
    match target.route() {
        Some(Route::InMemory) => super::in_memory::check(body, target, chip),
        _ => Ok(()),
    }
}

fn extents(body: &Body, chip: &Chip, op: &'static str, id: ValueId) -> Result<(), CompileError> {
    let ty = body.ty(id);
    let limit = |axis: usize| if ty.rank() == 4 && axis == 1 { chip.max_channels } else { chip.max_extent };
    match ty.shape.iter().enumerate().find(|&(axis, &extent)| extent > limit(axis)) {
        None => Ok(()),
        Some((axis, extent)) => {
            let rule = format!("axis {axis} has extent {extent}, the limit is {}", limit(axis));
            Err(limit_error(chip, op, &body.value(id).name, ty, true, rule, "split the tensor along that axis or reshape it"))
        }
    }
}

/// Whether the chip has the operator: natively, or folded and bridged by its compiler.
fn present(body: &Body, chip: &Chip, operation: &Operation) -> Result<(), CompileError> {
    let support = &operation.op.support;
    let standing = support.standing(chip.family.number());
    let (Standing::Gated | Standing::Absent, Some(&output)) = (standing, operation.outputs.first()) else { return Ok(()) };
    let rule = match support.native_from() {
        Some(family) => format!("the operator is {standing} here and native from A{family} on"),
        None => format!("the operator is {standing} on every engine"),
    };
    let remedy = "compose it of operators that the chip has, choose a later chip, or compute it on the host";
    Err(limit_error(chip, operation.op.name, &body.value(output).name, body.ty(output), false, rule, remedy))
}

/// Whether the engine converts between the two element types: floats, bools and bytes into floats. int32 is rejected, says the ANE
/// guide (arXiv 2606.22283, appendix A).
fn conversion(body: &Body, chip: &Chip, operation: &Operation) -> Result<(), CompileError> {
    let ("cast", Some(x), Some(&output)) = (operation.op.name, one(operation, "x"), operation.outputs.first()) else {
        return Ok(());
    };
    let (from, to) = (body.ty(x), body.ty(output));
    if from.dtype != DType::Int32 && to.dtype != DType::Int32 {
        return Ok(());
    }
    let rule = format!("a conversion from {} to {} is none the engine makes", from.dtype, to.dtype);
    let remedy = "convert integers on the host, or ask operators that give positions for fp16 ones (output_dtype)";
    Err(limit_error(chip, operation.op.name, &body.value(output).name, from, false, rule, remedy))
}

fn kernel(body: &Body, chip: &Chip, operation: &Operation) -> Result<(), CompileError> {
    let Some(weight) = one(operation, "weight").filter(|_| operation.op.name.starts_with("conv")) else { return Ok(()) };
    let ty = body.ty(weight);
    // Listed by the compiler, refused by its code generator on every device: ANE guide, arXiv 2606.22283.
    if let (5, Some(&output)) = (ty.rank(), operation.outputs.first()) {
        let rule = "the convolution has three spatial axes, which no chip can be made to run".to_string();
        let remedy = "sum convolutions of two axes over the places of the third kernel axis";
        return Err(limit_error(chip, operation.op.name, &body.value(output).name, ty, false, rule, remedy));
    }
    match (ty.shape.last(), operation.outputs.first()) {
        (Some(&width), Some(&output)) if ty.rank() >= 3 && width > chip.max_kernel_width => {
            let rule = format!("the kernel is {width} wide, the limit is {}", chip.max_kernel_width);
            let remedy = "put the long axis of the kernel on its height, or use space_to_depth and a smaller kernel";
            Err(limit_error(chip, operation.op.name, &body.value(output).name, ty, true, rule, remedy))
        }
        _ => Ok(()),
    }
}

fn limit_error(
    chip: &Chip,
    op: &'static str,
    name: &str,
    ty: &TensorType,
    is_size: bool,
    rule: String,
    remedy: &'static str,
) -> CompileError {
    CompileError::Limit { op, name: name.to_string(), ty: ty.to_string(), rule, target: chip.product.to_string(), remedy, is_size }
}
