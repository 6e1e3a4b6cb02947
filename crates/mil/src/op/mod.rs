//! The operator table of the engine's language: one record per MIL operator.
//!
//! The parser, the verifier, every device and every writer use these records and nothing else. A record says what the operator
//! is called, what it takes, when it is legal, what shape it gives, what it means in f64, how exactly the engine's arithmetic is
//! known, and which chips have it according to whom.

mod activation;
mod arguments;
mod attention;
mod broadcast;
mod case;
mod cast;
mod comparison;
mod constexpr;
mod constexpr_sparse;
mod convolution;
mod convolution_transpose;
mod create;
mod elementwise_binary;
mod elementwise_unary;
pub mod family;
mod gather;
mod general;
mod join;
mod linear;
mod listed;
mod normalization;
mod pooling;
mod rearrange;
mod reduction;
mod resize;
mod sampling;
mod scatter;
mod sequence;
mod shape;
mod slice;
mod sort;
mod support;
mod table;
mod warp;
mod window;

pub use arguments::{Argument, Arguments, OpError};
pub use case::{Case, Data, Expected, Given, build, flag, float, given, int, ints, number, sample, text, values};
pub use general::{GENERAL, MAX_ELEMENTS, MAX_RANK, computed, result};
pub use listed::{Listed, listed};
pub use support::{ALL_FAMILIES, BRIDGED, FAMILIES, GUIDE, NOWHERE, Standing, Support, gated_before, native_from};
pub use table::{OpTable, builtin, declared};

use crate::{Array, DType, TensorType};

/// One operator of MIL.
#[derive(Debug)]
pub struct MilOp {
    /// MIL keyword.
    pub name: &'static str,
    /// First op-set that has it, for example `ios15`.
    pub opset: &'static str,
    /// One sentence: what it computes.
    pub summary: &'static str,
    /// Inputs by MIL's own keywords.
    pub ports: &'static [PortSpec],
    /// Rules checked in order before [`MilOp::infer`].
    pub constraints: &'static [Constraint],
    /// Result types.
    pub infer: fn(&Arguments<'_>) -> Result<Vec<TensorType>, OpError>,
    /// Result values in f64, not rounded; called only where the constraints hold.
    pub meaning: fn(&Arguments<'_>) -> Result<Vec<Array>, OpError>,
    /// How well the engine's arithmetic for it is known.
    pub arithmetic: Arithmetic,
    /// Chip families that have it.
    pub support: Support,
    /// Where generated inputs of a port lie, `(port, low, high)`; ports that are not listed take [`DEFAULT_DOMAIN`].
    pub domain: &'static [(&'static str, f64, f64)],
    /// Largest error of a careful device that stores fp16, relative to the largest magnitude in the exact result.
    pub tolerance: f64,
    /// Relative L2 error of a minimal program on an M5, where one is published (arXiv 2606.17090, operator sweep).
    pub published_error: Option<f64>,
    /// Hand-written uses with their expected results.
    pub cases: &'static [Case],
}

/// Range of generated inputs where [`MilOp::domain`] says nothing.
pub const DEFAULT_DOMAIN: (f64, f64) = (-2.0, 2.0);

/// One input of an operator.
#[derive(Debug)]
pub struct PortSpec {
    /// MIL keyword.
    pub name: &'static str,
    /// What may stand there.
    pub kind: PortKind,
    /// Element types allowed.
    pub dtypes: &'static [DType],
    /// What holds where the port is left out.
    pub default: Default,
}

/// What may stand at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortKind {
    /// Any value.
    Tensor,
    /// A value known when the program is compiled; rules and inference may read it.
    Constant,
    /// A tensor known when the program is compiled of which only the meaning reads the values: it is never loaded to be checked.
    Weight,
    /// A tuple of values.
    Variadic,
    /// A tuple of values known when the program is compiled.
    Constants,
}

impl PortKind {
    /// Whether several values may stand there.
    pub fn is_tuple(self) -> bool {
        matches!(self, Self::Variadic | Self::Constants)
    }

    /// Whether what stands there configures the operator: it is known when the program is compiled, and rules may read it.
    pub fn is_attribute(self) -> bool {
        matches!(self, Self::Constant | Self::Constants)
    }
}

/// The value of a port that is left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Default {
    /// It may not be left out.
    Required,
    /// Left out means absent; the operator says what follows.
    Absent,
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A bool.
    Flag(bool),
    /// A string.
    Text(&'static str),
    /// An integer vector.
    Ints(&'static [i64]),
}

/// A rule that every use of the operator obeys. The label stands in the error and in the name of its negative test.
#[derive(Debug)]
pub struct Constraint {
    /// `C1`, `C2`, ...
    pub label: &'static str,
    /// The rule in words, with what to do where that is not obvious.
    pub rule: &'static str,
    /// Whether it holds.
    pub holds: fn(&Arguments<'_>) -> bool,
}

/// How well the engine's arithmetic for an operator is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// Published figures are reproduced to every digit; the text names rule and source.
    Exact(&'static str),
    /// A stand-in of the right size; the text names rule and source.
    Modelled(&'static str),
    /// Moves bits, computes nothing.
    Copy,
    /// Nothing is known.
    Unknown,
}

/// Element types an operator on the fp16 datapath takes; fp32 appears at program edges and in imported programs.
pub const FLOATS: &[DType] = &[DType::Fp16, DType::Fp32];
/// Element types of arithmetic that also works on indices.
pub const NUMBERS: &[DType] = &[DType::Fp16, DType::Fp32, DType::Int32];
/// Element types of a quantised weight.
pub const QUANTISED: &[DType] = &[DType::Int8, DType::UInt8, DType::Int4, DType::UInt4, DType::Fp16, DType::Fp32];
/// Index and attribute integers.
pub const INTS: &[DType] = &[DType::Int32, DType::UInt32, DType::Int16, DType::UInt16, DType::Int8, DType::UInt8];
/// A bool.
pub const BOOL: &[DType] = &[DType::Bool];
/// A string.
pub const TEXT: &[DType] = &[DType::String];
/// Anything a tensor of activations can hold.
pub const ANY: &[DType] =
    &[DType::Fp16, DType::Fp32, DType::Bool, DType::Int8, DType::UInt8, DType::Int16, DType::UInt16, DType::Int32, DType::UInt32];

/// A port for a tensor.
pub const fn tensor(name: &'static str, dtypes: &'static [DType]) -> PortSpec {
    PortSpec { name, kind: PortKind::Tensor, dtypes, default: Default::Required }
}

/// A port for a tensor that may be left out.
pub const fn optional(name: &'static str, dtypes: &'static [DType]) -> PortSpec {
    PortSpec { name, kind: PortKind::Tensor, dtypes, default: Default::Absent }
}

/// A port for a value known at compile time.
pub const fn constant(name: &'static str, dtypes: &'static [DType], default: Default) -> PortSpec {
    PortSpec { name, kind: PortKind::Constant, dtypes, default }
}

/// A port for a weight.
pub const fn weight(name: &'static str, dtypes: &'static [DType]) -> PortSpec {
    PortSpec { name, kind: PortKind::Weight, dtypes, default: Default::Required }
}

/// A port for a weight that may be left out.
pub const fn optional_weight(name: &'static str, dtypes: &'static [DType]) -> PortSpec {
    PortSpec { name, kind: PortKind::Weight, dtypes, default: Default::Absent }
}

/// A port for a tuple.
pub const fn variadic(name: &'static str, dtypes: &'static [DType]) -> PortSpec {
    PortSpec { name, kind: PortKind::Variadic, dtypes, default: Default::Required }
}

/// A port for a tuple of values known at compile time.
pub const fn constants(name: &'static str, dtypes: &'static [DType]) -> PortSpec {
    PortSpec { name, kind: PortKind::Constants, dtypes, default: Default::Required }
}

impl MilOp {
    /// Position of a port.
    pub fn port(&self, name: &str) -> Option<usize> {
        self.ports.iter().position(|port| port.name == name)
    }

    /// Whether it expands a compressed weight: its operands are constants, and whoever compiles the program evaluates it.
    pub fn expands_weight(&self) -> bool {
        self.name.starts_with("constexpr_")
    }

    /// Range of generated inputs of a port.
    pub fn domain(&self, port: &str) -> (f64, f64) {
        self.domain.iter().find(|row| row.0 == port).map_or(DEFAULT_DOMAIN, |row| (row.1, row.2))
    }
}
