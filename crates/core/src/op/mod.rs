//! The operators that people use: one record each.
//!
//! A record says what the operator is called, what it takes, which labelled rules every use obeys, how it is lowered to MIL, and
//! its derivative. It has no kernel: its meaning is that of its lowering. Result types are not written down either, they are those
//! of the MIL operations. Anyone can write such a record as a `static` and use it with [`Graph::apply`](crate::Graph::apply).

mod activation;
mod binary;
mod build;
mod channel_norm;
mod comparison;
mod convolution;
mod gather;
mod linear;
mod normalization;
mod pooling;
mod rearrange;
mod reduction;
mod shape;
mod site;
mod unary;

pub use activation::*;
pub use binary::*;
pub(crate) use build::direct_arguments;
pub use build::*;
pub use channel_norm::*;
pub use comparison::*;
pub use convolution::*;
pub use gather::*;
pub use linear::*;
pub use normalization::*;
pub use pooling::*;
pub use rearrange::*;
pub use reduction::*;
pub(crate) use shape::resolve_shape;
pub use shape::*;
pub use site::Site;
pub(crate) use site::resolve_axis;
pub use unary::*;

use crate::autograd::Backward;
use crate::lower::Arg;
use crate::{Attribute, AttributeKind, AttributeSpec, DType, GraphError, Lowering, Tensor, Window};
use aneforge_mil::ValueId;
use aneforge_mil::op::Default;
use std::sync::LazyLock;

/// One operator of the graph.
#[derive(Debug)]
pub struct GraphOp {
    /// Name in Rust, in Python, in graph text and on the command line.
    pub name: &'static str,
    /// Other names that the Python package aneforge 0.4 has for uses of it, each with how it is written here.
    pub aliases: &'static [(&'static str, &'static str)],
    /// One sentence: what it computes.
    pub summary: &'static str,
    /// Inputs in the order of the builder's arguments.
    pub inputs: &'static [InputSpec],
    /// Attributes.
    pub attributes: &'static [AttributeSpec],
    /// Rules checked in order before the lowering.
    pub constraints: &'static [Constraint],
    /// Adds the operator's MIL operations and returns its results.
    pub lower: LowerRule,
    /// Derivative.
    pub vjp: Vjp,
    /// Where generated tests draw inputs from.
    pub domain: Domain,
    /// Relative error that an fp16 device may show against the f64 meaning on inputs of `domain`, scaled by the largest result.
    pub tolerance: f64,
    /// Examples: each is checked for shape, snapshot and gradient; with expected values where an independent source has them.
    pub cases: &'static [Case],
}

/// Lowering of one use of an operator.
pub type LowerRule = fn(&mut Lowering, &Site<'_>) -> Result<Vec<ValueId>, GraphError>;

/// One input of an operator.
#[derive(Debug)]
pub struct InputSpec {
    /// Name.
    pub name: &'static str,
    /// How many tensors may stand there.
    pub kind: InputKind,
    /// Element types.
    pub dtypes: &'static [DType],
    /// Only constants and parameters may stand there.
    pub constant: bool,
}

/// How many tensors an input takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// Exactly one.
    One,
    /// One or none.
    Optional,
    /// One or more.
    Variadic,
}

/// A labelled rule. The label stands in the error and in the name of the negative test.
#[derive(Debug)]
pub struct Constraint {
    /// `C1`, `C2`, ...
    pub label: &'static str,
    /// The rule in words, with its remedy.
    pub rule: &'static str,
    /// Whether it holds.
    pub holds: fn(&Site<'_>) -> bool,
    /// A use that breaks this rule and no earlier one.
    pub broken_by: Case,
}

/// Derivative of an operator.
#[derive(Clone, Copy, Debug)]
pub enum Vjp {
    /// Adds the inputs' gradients to the [`Backward`] it is given.
    Rule(fn(&mut Backward<'_>)),
    /// There is none, and why, or what to use in its place.
    None(&'static str),
}

/// An interval of input values, without the neighbourhoods of points where the operator has a kink or a jump.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Domain {
    /// Lowest value.
    pub low: f64,
    /// Highest value.
    pub high: f64,
    /// Points that generated values keep a distance of 0.05 from.
    pub avoid: &'static [f64],
}

/// A use of an operator with given or generated inputs.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// What it shows, as part of a test's name.
    pub name: &'static str,
    /// Inputs by port, in the order of the record; several entries with the same name fill a variadic input.
    pub inputs: &'static [Sample],
    /// Attributes that differ from their defaults.
    pub attributes: &'static [(&'static str, Default)],
    /// Values of the first result.
    pub expected: Expected,
}

/// One input of a [`Case`].
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Input.
    pub input: &'static str,
    /// Element type.
    pub dtype: DType,
    /// Shape.
    pub shape: &'static [usize],
    /// Values; drawn from the operator's domain where the list is empty.
    pub values: &'static [f64],
    /// A constant of the graph, not an input.
    pub constant: bool,
}

/// What a case knows of its first result.
#[derive(Clone, Copy, Debug)]
pub enum Expected {
    /// The shape only.
    Shape(&'static [usize]),
    /// The values, and who says so.
    Values {
        /// Shape.
        shape: &'static [usize],
        /// Values, row major.
        values: &'static [f64],
        /// Source that does not depend on this project: a closed form, PyTorch, ONNX, ...
        source: &'static str,
    },
    /// The use is illegal.
    Refused,
}

/// The operators of this crate, by family.
pub fn builtin() -> &'static [&'static GraphOp] {
    static ALL: LazyLock<Vec<&'static GraphOp>> = LazyLock::new(|| {
        let families: [&[&GraphOp]; 13] = [
            unary::ALL,
            activation::ALL,
            binary::ALL,
            comparison::ALL,
            linear::ALL,
            convolution::ALL,
            pooling::ALL,
            reduction::ALL,
            normalization::ALL,
            channel_norm::ALL,
            shape::ALL,
            rearrange::ALL,
            gather::ALL,
        ];
        families.concat()
    });
    &ALL
}

/// The operator of this crate with that name.
pub fn find(name: &str) -> Option<&'static GraphOp> {
    builtin().iter().copied().find(|op| op.name == name)
}

impl GraphOp {
    /// Position of an input.
    pub fn input(&self, name: &str) -> Option<usize> {
        self.inputs.iter().position(|input| input.name == name)
    }

    /// Position of an attribute.
    pub fn attribute(&self, name: &str) -> Option<usize> {
        self.attributes.iter().position(|attribute| attribute.name == name)
    }
}
