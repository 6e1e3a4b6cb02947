//! Types and values of messages.

use super::ReadFault;
use crate::proto::{self, DimensionKind, Elements, ImmediateKind, TypeKind, ValueData};
use aneforge_mil::{BlobSource, Constant, DType, DisplayShape, TensorType, unpack};

/// Largest integer magnitude up to which f64 holds every integer.
const EXACT_INTEGER: u64 = 1 << 53;
/// Most axes that a declared type may have; the rules of operators draw the line lower.
const MAX_DECLARED_RANK: usize = 16;

/// A type whose extents may be unknown until shapes are bound.
#[derive(Clone, Debug, PartialEq)]
pub struct DeclaredType {
    pub dtype: DType,
    /// Extents, outermost first; `None` where one is unknown.
    pub shape: Vec<Option<usize>>,
}

impl DeclaredType {
    /// The type, where every extent is known.
    pub fn fixed(&self) -> Option<TensorType> {
        let shape: Option<Vec<usize>> = self.shape.iter().copied().collect();
        shape.map(|shape| TensorType::new(self.dtype, shape))
    }

    /// Whether a type is what was declared, unknown extents aside.
    pub fn admits(&self, ty: &TensorType) -> bool {
        self.dtype == ty.dtype
            && self.shape.len() == ty.rank()
            && self.shape.iter().zip(&ty.shape).all(|(declared, extent)| declared.is_none_or(|declared| declared == *extent))
    }
}

impl std::fmt::Display for DeclaredType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let extents = self.shape.iter().map(|extent| extent.map_or("?".to_string(), |extent| extent.to_string()));
        write!(f, "tensor<{}, [{}]>", self.dtype, extents.collect::<Vec<_>>().join(", "))
    }
}

/// The type that a message declares for the value `name`.
pub fn declared(name: &str, ty: Option<&proto::ValueType>) -> Result<DeclaredType, ReadFault> {
    let wrong = |problem: &str| ReadFault::Type { name: name.to_string(), problem: problem.to_string() };
    let tensor = match ty.and_then(|ty| ty.kind.as_ref()) {
        Some(TypeKind::Tensor(tensor)) => tensor,
        Some(TypeKind::State(_)) => return Err(wrong("a state")),
        Some(TypeKind::List(_)) => return Err(wrong("a list")),
        Some(TypeKind::Tuple(_)) => return Err(wrong("a tuple")),
        Some(TypeKind::Dictionary(_)) => return Err(wrong("a dictionary")),
        None => return Err(wrong("without a type")),
    };
    let dtype = proto::data_type(tensor.data_type).ok_or_else(|| wrong(&format!("of element type {}", tensor.data_type)))?;
    if tensor.dimensions.len() > MAX_DECLARED_RANK || tensor.rank != tensor.dimensions.len() as i64 {
        return Err(wrong(&format!("of rank {} with {} extents", tensor.rank, tensor.dimensions.len())));
    }
    let extent = |dimension: &proto::Dimension| match dimension.kind {
        Some(DimensionKind::Constant(constant)) => usize::try_from(constant.size).map(Some).map_err(|_| wrong("too large")),
        Some(DimensionKind::Unknown(unknown)) if unknown.variadic => Err(wrong("of unknown rank")),
        Some(DimensionKind::Unknown(_)) => Ok(None),
        None => Err(wrong("of a shape with an empty extent")),
    };
    let shape = tensor.dimensions.iter().map(extent).collect::<Result<_, _>>()?;
    Ok(DeclaredType { dtype, shape })
}

/// The type of the contents, where a message declares a buffer that lives across calls.
pub fn state(ty: Option<&proto::ValueType>) -> Option<Option<&proto::ValueType>> {
    match ty.and_then(|ty| ty.kind.as_ref()) {
        Some(TypeKind::State(state)) => Some(state.wrapped.as_deref()),
        _ => None,
    }
}

/// The constant that a message holds, with its type. Nothing is allocated before the data are known to be there.
pub fn constant(name: &str, value: &proto::Value, blobs: &dyn BlobSource) -> Result<(TensorType, Constant), ReadFault> {
    let declared = declared(name, value.ty.as_ref())?;
    let literal = |problem: String| ReadFault::Literal { name: name.to_string(), problem };
    let ty = declared.fixed().ok_or_else(|| literal(format!("is declared {declared}, of unknown extent")))?;
    match &value.data {
        Some(ValueData::Blob(blob)) => {
            let file = blobs.file(&blob.file_name)?;
            Ok((ty.clone(), Constant::Weight(file.weight(blob.offset, &ty)?)))
        }
        Some(ValueData::Immediate(immediate)) => {
            let elements = match &immediate.kind {
                Some(ImmediateKind::Tensor(tensor)) => tensor.elements.as_ref(),
                Some(_) => return Err(literal("is a tuple, a list or a dictionary".to_string())),
                None => None,
            };
            let constant = immediate_constant(&ty, elements).map_err(literal)?;
            Ok((ty, constant))
        }
        None => Err(literal("is missing".to_string())),
    }
}

fn immediate_constant(ty: &TensorType, elements: Option<&Elements>) -> Result<Constant, String> {
    let count = ty.checked_count().ok_or_else(|| format!("is declared {ty}, with too many elements"))?;
    if let Some(Elements::Strings(strings)) = elements {
        return match (ty.dtype, ty.rank(), strings.values.as_slice()) {
            (DType::String, 0, [text]) => Ok(Constant::Text(text.clone())),
            (DType::String, ..) => Err(format!("holds {} strings for {ty}; single strings are read", strings.values.len())),
            _ => Err(format!("holds strings for {ty}")),
        };
    }
    let wrong_list = |list: &str| format!("holds {list} for {ty}");
    let is_integer = ty.dtype.is_integer();
    let values: Vec<f64> = match elements {
        None if count == 0 => Vec::new(),
        None => return Err("is empty".to_string()),
        Some(Elements::Floats(list)) if ty.dtype.is_float() => list.values.iter().map(|&value| f64::from(value)).collect(),
        Some(Elements::Floats(_)) => return Err(wrong_list("floats")),
        Some(Elements::Doubles(list)) if ty.dtype.is_float() => list.values.clone(),
        Some(Elements::Doubles(_)) => return Err(wrong_list("doubles")),
        Some(Elements::Ints(list)) if is_integer => list.values.iter().map(|&value| f64::from(value)).collect(),
        Some(Elements::Ints(_)) => return Err(wrong_list("integers")),
        Some(Elements::LongInts(list)) if is_integer => {
            match list.values.iter().find(|value| value.unsigned_abs() > EXACT_INTEGER) {
                Some(large) => return Err(format!("holds {large}, which is larger than 2^53")),
                None => list.values.iter().map(|&value| value as f64).collect(),
            }
        }
        Some(Elements::LongInts(_)) => return Err(wrong_list("long integers")),
        Some(Elements::Bools(list)) if ty.dtype == DType::Bool => {
            list.values.iter().map(|&flag| f64::from(u8::from(flag))).collect()
        }
        Some(Elements::Bools(_)) => return Err(wrong_list("bools")),
        Some(Elements::Bytes(list)) => {
            let expected = ty.dtype.bits().checked_mul(count).map(|bits| bits.div_ceil(8));
            if expected != Some(list.values.len()) {
                return Err(format!("holds {} bytes for {ty}", list.values.len()));
            }
            unpack(ty.dtype, &list.values, count).ok_or_else(|| wrong_list("bytes"))?
        }
        Some(Elements::Strings(_)) => return Err(wrong_list("strings")),
    };
    if values.len() != count {
        return Err(format!("holds {} elements for shape {}", values.len(), DisplayShape(&ty.shape)));
    }
    let whole = aneforge_mil::Array { ty: ty.clone(), data: values }.rounded();
    Ok(Constant::Values(whole.data))
}
