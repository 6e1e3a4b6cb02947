//! Compressed weights in their form of iOS 16, which packs indices and masks into bytes beside a shape, as the form of iOS 18,
//! which the operator table describes.

use super::ReadFault;
use super::function::Ports;
use aneforge_mil::{Body, Constant, DType, TensorType, ValueId, ValueKind, Weight, pack};

/// The ports of an operator's form of iOS 18; those of any other operator as they are.
pub fn modern<'a>(body: &mut Body, op: &str, mut ports: Ports<'a>) -> Result<Ports<'a>, ReadFault> {
    let packed = match op {
        "constexpr_lut_to_dense" => "indices",
        "constexpr_sparse_to_dense" => "mask",
        _ => return Ok(ports),
    };
    let find = |ports: &Ports<'_>, name: &str| ports.iter().find(|port| port.0 == name).and_then(|port| port.1.first().copied());
    let (Some(shape), Some(data)) = (find(&ports, "shape"), find(&ports, packed)) else { return Ok(ports) };
    let shape = extents(body, shape)?;
    let dtype = match find(&ports, "lut") {
        Some(lut) => {
            let entries = body.ty(lut).count();
            let dtype = index_type(entries);
            let dtype =
                dtype.ok_or_else(|| fault(body, lut, format!("has {entries} entries; tables have 2 to 256, a power of two")))?;
            let mut modern = vec![1; shape.len()];
            modern.extend([entries, 1]);
            retype(body, lut, TensorType::new(body.ty(lut).dtype, modern))?;
            dtype
        }
        None => DType::UInt1,
    };
    retype(body, data, TensorType::new(dtype, shape))?;
    ports.retain(|port| port.0 != "shape");
    Ok(ports)
}

/// The index type of a table by its number of entries.
fn index_type(entries: usize) -> Option<DType> {
    let types = [DType::UInt1, DType::UInt2, DType::UInt3, DType::UInt4, DType::UInt6, DType::UInt8];
    types.into_iter().find(|dtype| 1 << dtype.bits() == entries)
}

fn extents(body: &Body, id: ValueId) -> Result<Vec<usize>, ReadFault> {
    let values = body.constant(id).filter(|_| body.ty(id).count() <= 16).and_then(|constant| constant.to_array(body.ty(id)));
    let values = values.ok_or_else(|| fault(body, id, "is no shape".to_string()))?;
    Ok(values.data.iter().map(|&extent| extent as usize).collect())
}

/// Gives a constant another type over the same bytes.
fn retype(body: &mut Body, id: ValueId, ty: TensorType) -> Result<(), ReadFault> {
    let wrong = |problem: String| fault(body, id, problem);
    let bytes = match body.constant(id) {
        Some(Constant::Weight(weight)) => match weight.direct_bytes() {
            Some(bytes) => bytes.to_vec(),
            None => return Err(wrong("cannot be read".to_string())),
        },
        Some(Constant::Values(values)) => pack(body.ty(id).dtype, values),
        _ => return Err(wrong("must be a constant".to_string())),
    };
    let weight = Weight::from_bytes(ty.clone(), bytes).map_err(|error| wrong(error.to_string()))?;
    let value = &mut body.values[id.index()];
    value.ty = ty;
    value.kind = ValueKind::Constant(Constant::Weight(weight));
    Ok(())
}

fn fault(body: &Body, id: ValueId, problem: String) -> ReadFault {
    ReadFault::Literal { name: body.value(id).name.clone(), problem }
}
