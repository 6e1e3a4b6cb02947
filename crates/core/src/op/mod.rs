//! The operators that people use: one record each.
//!
//! A record says what the operator is called, what it takes, which labelled rules every use obeys, how it is lowered to MIL, and
//! its derivative. It has no kernel: its meaning is that of its lowering. Result types are not written down either, they are those
//! of the MIL operations. Anyone can write such a record as a `static` and use it with [`Graph::apply`](crate::Graph::apply).

mod activation;
mod attention;
mod batch;
mod binary;
mod build;
mod channel_norm;
mod comparison;
mod convolution;
mod division;
mod einsum;
mod gather;
mod hyperbolic;
mod layout;
mod linear;
mod logic;
mod native;
mod normalization;
mod pad;
mod pick;
mod pooling;
mod position;
mod quantize;
mod rearrange;
mod reduction;
mod resize;
mod scan;
mod scatter;
mod shape;
mod site;
mod slice;
mod sort;
mod steps;
mod trigonometry;
mod unary;
mod unavailable;
mod warp;

pub use activation::*;
pub use attention::*;
pub use batch::*;
pub use binary::*;
pub(crate) use build::direct_arguments;
pub use build::*;
pub use channel_norm::*;
pub use comparison::*;
pub use convolution::*;
pub use division::*;
pub use einsum::*;
pub use gather::*;
pub use hyperbolic::*;
pub use layout::*;
pub use linear::*;
pub use logic::*;
pub use native::{
    ARGMAX, BATCH_TO_SPACE, CHANNEL_TO_SPACE, COST_VOLUME, CROSS_CORRELATION, CROSS_PRODUCT, DYNAMIC_SLICE, FLATTEN, FPS,
    INPUT_VIEW, LRN, MINMAX_NORM, RADIUS_SEARCH, SCALED_ELEMENTWISE, SDPA, SORT, SPACE_TO_BATCH, SPACE_TO_CHANNEL, TOPK,
};
pub use normalization::*;
pub use pad::*;
pub use pick::*;
pub use pooling::*;
pub use position::*;
pub use quantize::*;
pub use rearrange::*;
pub use reduction::*;
pub use resize::*;
pub use scan::*;
pub use scatter::*;
pub(crate) use shape::resolve_shape;
pub use shape::*;
pub use site::Site;
pub(crate) use site::resolve_axis;
pub use slice::*;
pub use sort::*;
pub use trigonometry::*;
pub use unary::*;
pub use unavailable::*;
pub use warp::*;

use crate::autograd::Backward;
use crate::lower::Arg;
use crate::{
    Argument, Array, Attribute, AttributeKind, AttributeSpec, DType, Graph, GraphError, Lowering, Tensor, TensorType, Window,
};
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
        let families: [&[&GraphOp]; 33] = [
            unary::ALL,
            trigonometry::ALL,
            hyperbolic::ALL,
            activation::ALL,
            binary::ALL,
            division::ALL,
            comparison::ALL,
            logic::ALL,
            linear::ALL,
            einsum::ALL,
            attention::ALL,
            convolution::ALL,
            pooling::ALL,
            reduction::ALL,
            scan::ALL,
            position::ALL,
            normalization::ALL,
            channel_norm::ALL,
            shape::ALL,
            pad::ALL,
            slice::ALL,
            rearrange::ALL,
            resize::ALL,
            warp::ALL,
            gather::ALL,
            pick::ALL,
            scatter::ALL,
            sort::ALL,
            layout::ALL,
            batch::ALL,
            quantize::ALL,
            native::ALL,
            unavailable::ALL,
        ];
        families.concat()
    });
    &ALL
}

/// The operator of this crate that a name stands for: its own name, or another one that the Python package has for a use of it.
pub fn find(name: &str) -> Option<&'static GraphOp> {
    let named = |op: &&GraphOp| op.name == name;
    let aliased = |op: &&GraphOp| op.aliases.iter().any(|alias| alias.0 == name);
    builtin().iter().copied().find(named).or_else(|| builtin().iter().copied().find(aliased))
}

/// How a use is written here that has a name of its own in the Python package aneforge 0.4 or in MIL.
pub fn written_here(name: &str) -> Option<&'static str> {
    let aliases = builtin().iter().flat_map(|op| op.aliases);
    aliases.chain(NODES).find(|alias| alias.0 == name).map(|alias| alias.1)
}

/// Names for what is no operator here, each with how it is written.
pub fn nodes() -> &'static [(&'static str, &'static str)] {
    NODES
}

/// See [`nodes`].
const NODES: &[(&str, &str)] = &[
    ("const_array", "graph.values, graph.full, graph.constant or graph.weight: constants are nodes"),
    ("fill", "graph.full(shape, value)"),
    ("fill_like", "graph.full(x.shape()?, value)"),
    ("range_1d", "graph.range(dtype, start, end, step)"),
    ("reshape_like", "x.reshape to the shape of the other tensor, which is known"),
    ("shape", "x.shape(), which is known while the graph is built"),
    ("identity", "the tensor itself"),
];

impl GraphOp {
    /// Whether a use can be legal at all. Operators that no engine has and that nothing composes are records too, whose only rule
    /// says what to do in their place.
    pub fn is_available(&self) -> bool {
        self.constraints.iter().all(|constraint| constraint.label != unavailable::NEVER)
    }

    /// Whether it is made of the engine's native layers, which programs reach through a net.plist and not through their text.
    pub fn is_native(&self) -> bool {
        native::ALL.iter().any(|op| std::ptr::eq(*op, self))
    }

    /// Position of an input.
    pub fn input(&self, name: &str) -> Option<usize> {
        self.inputs.iter().position(|input| input.name == name)
    }

    /// Position of an attribute.
    pub fn attribute(&self, name: &str) -> Option<usize> {
        self.attributes.iter().position(|attribute| attribute.name == name)
    }
}
