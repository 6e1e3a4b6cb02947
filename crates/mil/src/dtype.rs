//! Element types of MIL.

use std::fmt;

/// Element type of a tensor or scalar, named by its MIL keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum DType {
    Bool,
    Fp16,
    Bf16,
    Fp32,
    Fp64,
    Int4,
    Int8,
    Int16,
    Int32,
    Int64,
    UInt1,
    UInt2,
    UInt3,
    UInt4,
    UInt6,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    String,
}

/// What each element type is called and how wide it is; the one place that says so.
const KEYWORDS: &[(DType, &str, usize)] = &[
    (DType::Bool, "bool", 8),
    (DType::Fp16, "fp16", 16),
    (DType::Bf16, "bf16", 16),
    (DType::Fp32, "fp32", 32),
    (DType::Fp64, "fp64", 64),
    (DType::Int4, "int4", 4),
    (DType::Int8, "int8", 8),
    (DType::Int16, "int16", 16),
    (DType::Int32, "int32", 32),
    (DType::Int64, "int64", 64),
    (DType::UInt1, "uint1", 1),
    (DType::UInt2, "uint2", 2),
    (DType::UInt3, "uint3", 3),
    (DType::UInt4, "uint4", 4),
    (DType::UInt6, "uint6", 6),
    (DType::UInt8, "uint8", 8),
    (DType::UInt16, "uint16", 16),
    (DType::UInt32, "uint32", 32),
    (DType::UInt64, "uint64", 64),
    (DType::String, "string", 0),
];

impl DType {
    /// The MIL keyword, for example `fp16`.
    pub fn keyword(self) -> &'static str {
        KEYWORDS.iter().find(|row| row.0 == self).map_or("", |row| row.1)
    }

    /// The type a MIL keyword names.
    pub fn from_keyword(word: &str) -> Option<Self> {
        KEYWORDS.iter().find(|row| row.1 == word).map(|row| row.0)
    }

    /// Width of one element in bits when packed; 0 for strings.
    pub fn bits(self) -> usize {
        KEYWORDS.iter().find(|row| row.0 == self).map_or(0, |row| row.2)
    }

    /// True for fp16, bf16, fp32 and fp64.
    pub fn is_float(self) -> bool {
        matches!(self, Self::Fp16 | Self::Bf16 | Self::Fp32 | Self::Fp64)
    }

    /// True for every signed or unsigned integer type; bool is not one.
    pub fn is_integer(self) -> bool {
        !self.is_float() && !matches!(self, Self::Bool | Self::String)
    }

    /// Bytes that `count` elements take when packed, sub-byte types rounded up to whole bytes; saturates.
    pub fn packed_bytes(self, count: usize) -> usize {
        self.bits().saturating_mul(count).div_ceil(8)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.keyword())
    }
}
