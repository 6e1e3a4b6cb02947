//! Types of MIL values.

use crate::DType;
use std::fmt;

/// Element type and static shape. Rank 0 is a scalar tensor, `tensor<fp16, []>` in text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// Element type.
    pub dtype: DType,
    /// Extent of each axis, outermost first.
    pub shape: Vec<usize>,
}

impl TensorType {
    /// A tensor type from its parts.
    pub fn new(dtype: DType, shape: impl Into<Vec<usize>>) -> Self {
        Self { dtype, shape: shape.into() }
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Number of elements (1 for rank 0), or `None` where the product does not fit a `usize`.
    pub fn checked_count(&self) -> Option<usize> {
        self.shape.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent))
    }

    /// Number of elements; saturates, so callers that allocate check [`Self::checked_count`] first.
    pub fn count(&self) -> usize {
        self.checked_count().unwrap_or(usize::MAX)
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tensor<{}, {}>", self.dtype, DisplayShape(&self.shape))
    }
}

/// Prints a shape the way MIL and the error messages write it: `[1, 3, 224, 224]`.
pub struct DisplayShape<'a>(pub &'a [usize]);

impl fmt::Display for DisplayShape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (index, extent) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{extent}")?;
        }
        f.write_str("]")
    }
}

/// The type of a value as MIL text writes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// `fp16`, `string`: the shorthand of the modern dialect for a rank-0 tensor.
    Scalar(DType),
    /// `tensor<fp16, [2, 4]>`.
    Tensor(TensorType),
    /// `dict<key, value>`, seen in program attributes.
    Dict(Box<Type>, Box<Type>),
    /// `list<element, length>`; the length is absent where the text leaves it open.
    List(Box<Type>, Option<usize>),
    /// `tuple<...>`.
    Tuple(Vec<Type>),
    /// `state<tensor<...>>`: a buffer that lives across calls.
    State(TensorType),
}

impl Type {
    /// A tensor type from its parts.
    pub fn tensor(dtype: DType, shape: impl Into<Vec<usize>>) -> Self {
        Self::Tensor(TensorType::new(dtype, shape))
    }

    /// The tensor type behind a tensor, scalar or state; `None` for the compound types.
    pub fn as_tensor(&self) -> Option<TensorType> {
        match self {
            Self::Scalar(dtype) => Some(TensorType::new(*dtype, [])),
            Self::Tensor(tensor) | Self::State(tensor) => Some(tensor.clone()),
            _ => None,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(dtype) => dtype.fmt(f),
            Self::Tensor(tensor) => tensor.fmt(f),
            Self::State(tensor) => write!(f, "state<{tensor}>"),
            Self::Dict(key, value) => write!(f, "dict<{key}, {value}>"),
            Self::List(element, Some(length)) => write!(f, "list<{element}, {length}>"),
            Self::List(element, None) => write!(f, "list<{element}, ?>"),
            Self::Tuple(parts) => {
                f.write_str("tuple<")?;
                for (index, part) in parts.iter().enumerate() {
                    if index > 0 {
                        f.write_str(", ")?;
                    }
                    part.fmt(f)?;
                }
                f.write_str(">")
            }
        }
    }
}
