//! Moves between layers of one network, as layers themselves.

use super::Move;
use crate::CompileError;
use aneforge_core::DType;
use aneforge_mil::op::MilOp;
use aneforge_mil::{Body, Constant, Operand, TensorType, ValueId};
use aneforge_native::layer;

/// A value after moves, made by `Reshape` and `Transpose` layers of a network whose tensors have four axes.
pub(super) fn as_layers(body: &mut Body, value: ValueId, moves: &[Move], name: &str) -> Result<ValueId, CompileError> {
    let (mut at, mut wanted) = (value, body.ty(value).shape.clone());
    for step in moves {
        let too_deep = || CompileError::internal(format!("{name:?} goes through five axes between two layers"));
        let front = 4usize.checked_sub(wanted.len()).ok_or_else(too_deep)?;
        wanted = step.shape(&wanted).ok_or_else(|| CompileError::internal(format!("{name:?} cannot be moved by {step:?}")))?;
        if let Move::Transpose(order) = step {
            let before = inverse(&wanted, order);
            at = reshaped(body, at, &padded(&before), name)?;
            let order: Vec<usize> = (0..front).chain(order.iter().map(|axis| axis + front)).collect();
            at = transposed(body, at, &order, name)?;
        }
    }
    if wanted.len() > 4 {
        return Err(CompileError::internal(format!("{name:?} has five axes, a layer takes four")));
    }
    reshaped(body, at, &padded(&wanted), name)
}

/// The shape that became `shape` by that order of axes.
fn inverse(shape: &[usize], order: &[usize]) -> Vec<usize> {
    let mut before = vec![1; shape.len()];
    order.iter().zip(shape).for_each(|(&axis, &extent)| before[axis] = extent);
    before
}

fn padded(shape: &[usize]) -> Vec<usize> {
    let mut padded = vec![1; 4usize.saturating_sub(shape.len())];
    padded.extend_from_slice(shape);
    padded
}

fn reshaped(body: &mut Body, value: ValueId, shape: &[usize], name: &str) -> Result<ValueId, CompileError> {
    if body.ty(value).shape == shape {
        return Ok(value);
    }
    let ports = ["ReshapedBatch", "ReshapedChannel", "ReshapedHeight", "ReshapedWidth"];
    let params: Vec<(&str, Vec<f64>)> = ports.iter().zip(shape).map(|(&port, &extent)| (port, vec![extent as f64])).collect();
    add(body, &layer::RESHAPE.op, value, &params, true, name)
}

fn transposed(body: &mut Body, value: ValueId, order: &[usize], name: &str) -> Result<ValueId, CompileError> {
    // Numbers of the axes in the compiler's list, which has the depth behind the batch.
    let number = |axis: usize| if axis == 0 { 0.0 } else { axis as f64 + 1.0 };
    let moved: Vec<(usize, usize)> = order.iter().copied().enumerate().filter(|(to, from)| to != from).collect();
    if moved.is_empty() {
        return Ok(value);
    }
    let params = [
        ("TransposeDimensions_TransposeSourceDimension", moved.iter().map(|&(_, from)| number(from)).collect()),
        ("TransposeDimensions_TransposeDestinationDimension", moved.iter().map(|&(to, _)| number(to)).collect()),
    ];
    add(body, &layer::TRANSPOSE.op, value, &params, false, name)
}

fn add(
    body: &mut Body,
    op: &'static MilOp,
    value: ValueId,
    params: &[(&str, Vec<f64>)],
    scalars: bool,
    name: &str,
) -> Result<ValueId, CompileError> {
    let mut operands = vec![Operand::Absent; op.ports.len()];
    operands[0] = Operand::One(value);
    let name = format!("{name}_{}{}", op.name, body.operations.len());
    for (port, values) in params {
        let shape = if scalars { vec![] } else { vec![values.len()] };
        let ty = TensorType::new(DType::Int32, shape);
        let id = body.add_constant(format!("{name}_{port}"), ty, Constant::Values(values.clone()));
        if let Some(index) = op.port(port) {
            operands[index] = Operand::One(id);
        }
    }
    let types = body.infer(op, &operands).map_err(aneforge_mil::BuildError::from)?;
    let results = types.into_iter().map(|ty| (name.clone(), ty)).collect();
    let made = body.add_operation(op, operands, results);
    made.first().copied().ok_or_else(|| CompileError::internal("a layer has one result"))
}
