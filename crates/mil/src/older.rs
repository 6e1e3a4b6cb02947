//! Operators whose newer form replaced an older one with other arguments: the older is read as the newer.

use crate::op::{MilOp, OpError};
use crate::{Body, Constant, DType, TensorType, ValueId, Weight, emit};

/// Operators of iOS 16 that pack indices or a mask into a vector of bytes beside a shape, and the port of the bytes.
const PACKED: &[(&str, &str)] = &[("constexpr_lut_to_dense", "indices"), ("constexpr_sparse_to_dense", "mask")];

/// Turns the arguments of an operator's older form into those of the form that its record describes; others stay as they are.
///
/// Bytes are not unpacked: both forms pack elements least significant bit first, so that the same bytes get another type. New
/// constants are added to `body`.
///
/// # Errors
/// [`OpError::Port`] where an argument is not what the older form takes.
pub fn modern_form<N: AsRef<str>>(body: &mut Body, op: &'static MilOp, ports: &mut Vec<(N, ValueId)>) -> Result<(), OpError> {
    let find = |ports: &[(N, ValueId)], name: &str| ports.iter().position(|port| port.0.as_ref() == name);
    let Some((_, packed)) = PACKED.iter().find(|row| row.0 == op.name) else { return Ok(()) };
    let (Some(shape_at), Some(data_at)) = (find(ports, "shape"), find(ports, packed)) else { return Ok(()) };
    let fault = |port: &str, problem: String| OpError::Port { op: op.name, port: port.to_string(), problem };
    let shape = shape(body, ports[shape_at].1).ok_or_else(|| fault("shape", "must be a constant vector of extents".to_string()))?;
    let mut dtype = DType::UInt1;
    if let Some(lut_at) = find(ports, "lut") {
        let ty = body.ty(ports[lut_at].1).clone();
        let types = [DType::UInt1, DType::UInt2, DType::UInt4, DType::UInt6, DType::UInt8];
        let fits = types.into_iter().find(|dtype| ty.rank() == 1 && ty.shape[0] == 1 << dtype.bits());
        dtype = fits.ok_or_else(|| fault("lut", format!("is {ty} but takes a vector of 2, 4, 16, 64 or 256 entries")))?;
        let mut modern = vec![1; shape.len()];
        modern.extend([ty.shape[0], 1]);
        ports[lut_at].1 = retyped(body, ports[lut_at].1, TensorType::new(ty.dtype, modern)).map_err(|told| fault("lut", told))?;
    }
    let ty = TensorType::new(dtype, shape);
    ports[data_at].1 = retyped(body, ports[data_at].1, ty).map_err(|told| fault(packed, told))?;
    ports.remove(shape_at);
    Ok(())
}

fn shape(body: &Body, id: ValueId) -> Option<Vec<usize>> {
    let ty = body.ty(id);
    let array = body.constant(id).filter(|_| ty.rank() == 1 && ty.count() <= crate::op::MAX_RANK)?.to_array(ty)?;
    array.data.iter().map(|&extent| (extent >= 1.0 && extent.fract() == 0.0).then_some(extent as usize)).collect()
}

/// The bytes of a constant as a constant of another type.
fn retyped(body: &mut Body, id: ValueId, ty: TensorType) -> Result<ValueId, String> {
    let held = body.ty(id).clone();
    let needed = ty.checked_count().map(|count| ty.dtype.packed_bytes(count));
    if needed != held.checked_count().map(|count| held.dtype.packed_bytes(count)) {
        return Err(format!("is {held}, which does not hold the bytes of {ty}"));
    }
    let weight = match body.constant(id) {
        Some(Constant::Weight(weight)) => weight.seen_as(ty.clone()),
        Some(Constant::Values(values)) => Weight::from_bytes(ty.clone(), emit::pack(held.dtype, values)),
        _ => return Err("must be known when the program is compiled".to_string()),
    };
    let weight = weight.map_err(|error| error.to_string())?;
    let name = format!("{}_typed", body.value(id).name);
    Ok(body.add_constant(name, ty, Constant::Weight(weight)))
}
