//! What a lowering passes to a MIL operation.

use crate::DType;
use aneforge_mil::ValueId;

/// An argument of a MIL operation: a value, or a constant that is made on the spot and shared with equal ones.
#[derive(Clone, Debug, PartialEq)]
pub enum Arg {
    /// Nothing: the port keeps its default.
    Absent,
    /// A value.
    Value(ValueId),
    /// Values at a variadic port.
    Many(Vec<ValueId>),
    /// A bool.
    Flag(bool),
    /// A scalar of an integer type.
    Int(DType, i64),
    /// An int32 vector.
    Ints(Vec<i64>),
    /// A scalar of a float type, rounded to it (to nearest, ties to even).
    Float(DType, f64),
    /// A string.
    Text(String),
}

impl From<ValueId> for Arg {
    fn from(value: ValueId) -> Self {
        Self::Value(value)
    }
}

impl From<Vec<ValueId>> for Arg {
    fn from(values: Vec<ValueId>) -> Self {
        Self::Many(values)
    }
}

impl From<&[ValueId]> for Arg {
    fn from(values: &[ValueId]) -> Self {
        Self::Many(values.to_vec())
    }
}

impl From<bool> for Arg {
    fn from(value: bool) -> Self {
        Self::Flag(value)
    }
}

impl From<i64> for Arg {
    fn from(value: i64) -> Self {
        Self::Int(DType::Int32, value)
    }
}

impl From<Vec<i64>> for Arg {
    fn from(values: Vec<i64>) -> Self {
        Self::Ints(values)
    }
}

impl From<&[i64]> for Arg {
    fn from(values: &[i64]) -> Self {
        Self::Ints(values.to_vec())
    }
}

impl From<&[usize]> for Arg {
    fn from(values: &[usize]) -> Self {
        Self::Ints(values.iter().map(|&value| value as i64).collect())
    }
}

impl From<Vec<usize>> for Arg {
    fn from(values: Vec<usize>) -> Self {
        Self::from(values.as_slice())
    }
}

impl From<&str> for Arg {
    fn from(text: &str) -> Self {
        Self::Text(text.to_string())
    }
}
