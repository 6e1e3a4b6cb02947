//! The messages of a Core ML model file that ML Programs need, with the field numbers of Apple's published `Model.proto`,
//! `FeatureTypes.proto` and `MIL.proto` (coremltools 9.0, BSD-3-Clause). Fields that are not listed are skipped when read.

mod model;
mod program;

pub use model::*;
pub use program::*;

use aneforge_mil::DType;

/// Element types with their numbers in `MILSpec.DataType`; the one place that says so.
const DATA_TYPES: &[(DType, i32)] = &[
    (DType::Bool, 1),
    (DType::String, 2),
    (DType::Fp16, 10),
    (DType::Fp32, 11),
    (DType::Fp64, 12),
    (DType::Bf16, 13),
    (DType::Int8, 21),
    (DType::Int16, 22),
    (DType::Int32, 23),
    (DType::Int64, 24),
    (DType::Int4, 25),
    (DType::UInt8, 31),
    (DType::UInt16, 32),
    (DType::UInt32, 33),
    (DType::UInt64, 34),
    (DType::UInt4, 35),
    (DType::UInt2, 36),
    (DType::UInt1, 37),
    (DType::UInt6, 38),
    (DType::UInt3, 39),
];

/// Element types of multi-arrays with their numbers in `ArrayFeatureType.ArrayDataType`.
const ARRAY_TYPES: &[(DType, i32)] =
    &[(DType::Fp16, 65552), (DType::Fp32, 65568), (DType::Fp64, 65600), (DType::Int8, 131_080), (DType::Int32, 131_104)];

/// The number of an element type in a program.
pub fn data_type_code(dtype: DType) -> i32 {
    DATA_TYPES.iter().find(|row| row.0 == dtype).map_or(0, |row| row.1)
}

/// The element type behind a number in a program.
pub fn data_type(code: i32) -> Option<DType> {
    DATA_TYPES.iter().find(|row| row.1 == code).map(|row| row.0)
}

/// The number of an element type in a description; `None` for those that multi-arrays cannot have.
pub fn array_type_code(dtype: DType) -> Option<i32> {
    ARRAY_TYPES.iter().find(|row| row.0 == dtype).map(|row| row.1)
}
