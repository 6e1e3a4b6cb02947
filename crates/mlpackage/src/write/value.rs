//! Types and literals as messages.

use super::WriteError;
use crate::proto;
use aneforge_mil::{DType, Literal, LiteralValue, TensorType, Type, pack};

/// A type as a message.
pub fn value_type(name: &str, ty: &Type) -> Result<proto::ValueType, WriteError> {
    match ty {
        Type::Scalar(_) | Type::Tensor(_) => {
            let tensor = ty.as_tensor().unwrap_or_else(|| TensorType::new(DType::Fp16, []));
            Ok(tensor_type(&tensor))
        }
        Type::State(contents) => Ok(proto::ValueType {
            kind: Some(proto::TypeKind::State(Box::new(proto::StateType { wrapped: Some(Box::new(tensor_type(contents))) }))),
        }),
        other => Err(WriteError::Value { name: name.to_string(), problem: format!("values of type {other} cannot be written") }),
    }
}

fn tensor_type(ty: &TensorType) -> proto::ValueType {
    let dimension = |&extent: &usize| proto::Dimension {
        kind: Some(proto::DimensionKind::Constant(proto::ConstantDimension { size: extent as u64 })),
    };
    proto::ValueType {
        kind: Some(proto::TypeKind::Tensor(proto::TensorType {
            data_type: proto::data_type_code(ty.dtype),
            rank: ty.rank() as i64,
            dimensions: ty.shape.iter().map(dimension).collect(),
        })),
    }
}

/// A literal as a message: data in a weight file by their place, all other data as they are.
pub fn value(name: &str, literal: &Literal) -> Result<proto::Value, WriteError> {
    let ty = value_type(name, &literal.ty)?;
    let data = match &literal.value {
        LiteralValue::Blob { path, offset } => {
            proto::ValueData::Blob(proto::BlobFileValue { file_name: path.clone(), offset: *offset })
        }
        immediate => proto::ValueData::Immediate(proto::ImmediateValue {
            kind: Some(proto::ImmediateKind::Tensor(proto::TensorValue { elements: Some(elements(name, literal, immediate)?) })),
        }),
    };
    Ok(proto::Value { ty: Some(ty), data: Some(data) })
}

/// A string as a message, for `name` attributes.
pub fn text(text: &str) -> proto::Value {
    let strings = proto::Elements::Strings(proto::RepeatedStrings { values: vec![text.to_string()] });
    proto::Value {
        ty: Some(tensor_type(&TensorType::new(DType::String, []))),
        data: Some(proto::ValueData::Immediate(proto::ImmediateValue {
            kind: Some(proto::ImmediateKind::Tensor(proto::TensorValue { elements: Some(strings) })),
        })),
    }
}

/// Elements in the list that Apple's writer puts their type into: some have none and are packed as bytes.
fn elements(name: &str, literal: &Literal, value: &LiteralValue) -> Result<proto::Elements, WriteError> {
    let refuse =
        || WriteError::Value { name: name.to_string(), problem: format!("a literal of type {} cannot be written", literal.ty) };
    let dtype = literal.ty.as_tensor().ok_or_else(refuse)?.dtype;
    let all = match value {
        LiteralValue::Elements(elements) => elements.as_slice(),
        scalar => std::slice::from_ref(scalar),
    };
    if dtype == DType::String {
        let strings = all.iter().map(|element| match element {
            LiteralValue::Text(text) => Ok(text.clone()),
            _ => Err(refuse()),
        });
        return Ok(proto::Elements::Strings(proto::RepeatedStrings { values: strings.collect::<Result<_, _>>()? }));
    }
    let numbers: Vec<f64> = all.iter().map(number).collect::<Option<_>>().ok_or_else(refuse)?;
    Ok(match dtype {
        DType::Bool => proto::Elements::Bools(proto::RepeatedBools { values: numbers.iter().map(|&value| value != 0.0).collect() }),
        DType::Fp32 => {
            proto::Elements::Floats(proto::RepeatedFloats { values: numbers.iter().map(|&value| value as f32).collect() })
        }
        DType::Fp64 => proto::Elements::Doubles(proto::RepeatedDoubles { values: numbers }),
        DType::Int16 | DType::UInt16 | DType::Int32 => {
            proto::Elements::Ints(proto::RepeatedInts { values: numbers.iter().map(|&value| value as i32).collect() })
        }
        DType::Int64 | DType::UInt64 => {
            proto::Elements::LongInts(proto::RepeatedLongInts { values: numbers.iter().map(|&value| value as i64).collect() })
        }
        _ => proto::Elements::Bytes(proto::RepeatedBytes { values: pack(dtype, &numbers) }),
    })
}

fn number(value: &LiteralValue) -> Option<f64> {
    match value {
        LiteralValue::Bool(flag) => Some(f64::from(u8::from(*flag))),
        LiteralValue::Int(value) => Some(*value as f64),
        LiteralValue::Float(value) => Some(*value),
        _ => None,
    }
}
