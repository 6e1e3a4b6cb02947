//! Numpy's broadcasting, and element-wise results built on it.

use super::general::result;
use super::{Arguments, Constraint, OpError};
use crate::{Array, DType, TensorType};

/// The shape that all of them broadcast to, if there is one.
pub(super) fn broadcast(shapes: &[&[usize]]) -> Option<Vec<usize>> {
    let rank = shapes.iter().map(|shape| shape.len()).max()?;
    let mut joined = vec![1; rank];
    for shape in shapes {
        for (axis, &extent) in shape.iter().enumerate() {
            let joined = &mut joined[rank - shape.len() + axis];
            match (*joined, extent) {
                (a, b) if a == b => {}
                (1, _) => *joined = extent,
                (_, 1) => {}
                _ => return None,
            }
        }
    }
    Some(joined)
}

/// The rule that both operands agree in element type.
pub(super) const SAME_DTYPE: Constraint = Constraint {
    label: "C1",
    rule: "x and y have the same element type: cast one of them",
    holds: |a| match (a.get("x"), a.get("y")) {
        (Some(x), Some(y)) => x.ty.dtype == y.ty.dtype,
        _ => true,
    },
};

/// The rule that both operands broadcast.
pub(super) const BROADCASTS: Constraint = Constraint {
    label: "C2",
    rule: "x and y broadcast: seen from the last axis, extents are equal or one of them is 1",
    holds: |a| broadcast(&[a.shape("x"), a.shape("y")]).is_some(),
};

/// Type of an element-wise result of `x` and `y` with the element type of `x`.
pub(super) fn infer_pair(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let dtype = a.ty("x")?.dtype;
    infer_as(a, &["x", "y"], dtype)
}

/// Type of a comparison of `x` and `y`.
pub(super) fn infer_bool(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    infer_as(a, &["x", "y"], DType::Bool)
}

/// Type of an element-wise result of the named ports.
pub(super) fn infer_as(a: &Arguments<'_>, ports: &[&'static str], dtype: DType) -> Result<Vec<TensorType>, OpError> {
    let mut shapes = Vec::with_capacity(ports.len());
    for &port in ports {
        shapes.push(a.ty(port)?.shape.as_slice());
    }
    // The constraints have made sure of it; an illegal use that skipped them ends as an empty axis, not as a panic.
    result(a, dtype, broadcast(&shapes).unwrap_or_else(|| vec![0]))
}

/// Values of an element-wise result of `x` and `y`.
pub(super) fn zip(a: &Arguments<'_>, dtype: DType, f: impl Fn(f64, f64) -> f64) -> Result<Vec<Array>, OpError> {
    let (x, y) = (a.array("x")?, a.array("y")?);
    let shape = infer_as(a, &["x", "y"], dtype)?.remove(0).shape;
    let (x, y) = (x.broadcast_to(&shape), y.broadcast_to(&shape));
    let data = x.data.iter().zip(&y.data).map(|(&x, &y)| f(x, y)).collect();
    Ok(vec![Array::new(dtype, shape, data)])
}
