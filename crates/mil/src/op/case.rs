//! Hand-written uses of operators as data, and what builds arguments from them.

use super::{Argument, MilOp};
use crate::{Array, DType, TensorType};

/// One use of an operator with its expected results.
#[derive(Debug)]
pub struct Case {
    /// What it shows, unique within the operator, in snake case.
    pub name: &'static str,
    /// Arguments by port; a variadic port stands once per value. Ports that are missing are left out.
    pub given: &'static [(&'static str, Given)],
    /// What comes out.
    pub expected: Expected,
}

/// Expected results.
#[derive(Clone, Copy, Debug)]
pub enum Expected {
    /// Shape and values per result, and where they come from.
    Values {
        /// Shape and row-major values of each result.
        results: &'static [(&'static [usize], &'static [f64])],
        /// A formula worked by hand, or the library that computed them.
        source: &'static str,
    },
    /// Nothing written here: checked against coremltools and PyTorch where those are installed, and by every device against
    /// the operator's meaning.
    Oracle,
}

/// One argument of a case.
#[derive(Clone, Copy, Debug)]
pub enum Given {
    /// A tensor; rank 0 is a scalar.
    Tensor(DType, &'static [usize], Data),
    /// A string.
    Text(&'static str),
}

/// Values of a tensor in a case.
#[derive(Clone, Copy, Debug)]
pub enum Data {
    /// Written out, row major.
    Values(&'static [f64]),
    /// Drawn from the operator's domain of the port, then rounded to the element type.
    Seeded(u64),
}

/// An fp16 tensor with its values.
pub const fn given(shape: &'static [usize], values: &'static [f64]) -> Given {
    Given::Tensor(DType::Fp16, shape, Data::Values(values))
}

/// An fp16 tensor drawn from the operator's domain.
pub const fn sample(shape: &'static [usize], seed: u64) -> Given {
    Given::Tensor(DType::Fp16, shape, Data::Seeded(seed))
}

/// A tensor of another element type with its values.
pub const fn values(dtype: DType, shape: &'static [usize], values: &'static [f64]) -> Given {
    Given::Tensor(dtype, shape, Data::Values(values))
}

/// An int32 vector; its length must be given because constants cannot compute it.
pub const fn ints(shape: &'static [usize], values: &'static [f64]) -> Given {
    Given::Tensor(DType::Int32, shape, Data::Values(values))
}

/// An int32 scalar.
pub const fn int(value: &'static [f64; 1]) -> Given {
    Given::Tensor(DType::Int32, &[], Data::Values(value))
}

/// An fp16 scalar.
pub const fn float(value: &'static [f64; 1]) -> Given {
    Given::Tensor(DType::Fp16, &[], Data::Values(value))
}

/// A scalar of another element type.
pub const fn number(dtype: DType, value: &'static [f64; 1]) -> Given {
    Given::Tensor(dtype, &[], Data::Values(value))
}

/// A bool scalar.
pub const fn flag(value: bool) -> Given {
    Given::Tensor(DType::Bool, &[], Data::Values(if value { &[1.0] } else { &[0.0] }))
}

/// A string.
pub const fn text(text: &'static str) -> Given {
    Given::Text(text)
}

impl Case {
    /// A case with written results: shape and row-major values of each.
    pub const fn new(
        name: &'static str,
        given: &'static [(&'static str, Given)],
        results: &'static [(&'static [usize], &'static [f64])],
        source: &'static str,
    ) -> Self {
        Self { name, given, expected: Expected::Values { results, source } }
    }

    /// A case whose results come from another library at test time.
    pub const fn oracle(name: &'static str, given: &'static [(&'static str, Given)]) -> Self {
        Self { name, given, expected: Expected::Oracle }
    }

    /// The arguments per port of the operator, with values. Names that are not ports of it are ignored.
    pub fn arguments(&self, op: &MilOp) -> Vec<Vec<Argument>> {
        build(op, self.given)
    }
}

/// Arguments per port of the operator from a list by name.
pub fn build(op: &MilOp, given: &[(&str, Given)]) -> Vec<Vec<Argument>> {
    let mut ports = vec![Vec::new(); op.ports.len()];
    for (name, given) in given {
        if let Some(index) = op.port(name) {
            ports[index].push(given.argument(op.domain(name)));
        }
    }
    ports
}

impl Given {
    /// The argument; seeded values are drawn from `domain`.
    pub fn argument(&self, domain: (f64, f64)) -> Argument {
        match *self {
            Self::Text(text) => Argument::string(text),
            Self::Tensor(dtype, shape, Data::Seeded(seed)) => {
                Argument::valued(Array::seeded(TensorType::new(dtype, shape), seed, domain))
            }
            Self::Tensor(dtype, shape, Data::Values(values)) => {
                Argument::valued(Array { ty: TensorType::new(dtype, shape), data: values.to_vec() })
            }
        }
    }
}
