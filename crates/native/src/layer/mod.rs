//! The layers that the engine's compiler takes in a net.plist, as records.
//!
//! A layer is an operator record like those of MIL, in a table of its own: MIL text cannot name one. Beside the operator it says how
//! net.plist spells its parameters. Tensors have four axes, batch, channels, height and width; a depth other than 1 is not known to
//! work in any layer here.
//!
//! Sources: the ANE guide, arXiv 2606.22283, chapters 6, 22 and 26 and appendix B (layers, validators, limits), and the net.plists
//! that the Python package aneforge 0.4.0 writes (MIT).

mod attention;
mod build;
mod convolution;
mod elementwise;
mod geometry;
mod neuron;
mod normalization;
mod point;
mod pooling;
mod rank;
mod rearrange;
mod shape;
mod slice;
mod unusable;

pub use attention::SDPA;
pub use convolution::{CONV, MATRIX_MULTIPLICATION};
pub use elementwise::{DYNAMIC_GOC, ELEMENT_WISE, GOC, SCALED_ELEMENT_WISE};
pub use geometry::{COST_VOLUME, CROSS_CORRELATION, CROSS_PRODUCT};
pub use neuron::NEURON;
pub use normalization::{LOCAL_RESPONSE_NORMALIZATION, MIN_MAX_NORMALIZATION, SOFTMAX};
pub use point::{FURTHEST_POINT_SAMPLING, RADIUS_SEARCH};
pub use pooling::{POOLING, REDUCTION};
pub use rank::{ARG_MIN_MAX, GLOBAL_ARG_MIN_MAX, LARGEST_INDEX, SORT, TOP_K};
pub use rearrange::{BATCH_TO_SPACE, CHANNEL_TO_SPACE, PIXEL_SHUFFLE, PIXEL_UNSHUFFLE, SPACE_TO_BATCH, SPACE_TO_CHANNEL};
pub use shape::{BROADCAST, CONCAT, DROPOUT, FLATTEN, RESHAPE, TRANSPOSE};
pub use slice::{DYNAMIC_SLICE, GATHER, INPUT_VIEW};
pub use unusable::{Unusable, unusable};

use aneforge_mil::op::MilOp;

/// One type of layer.
#[derive(Debug)]
pub struct Layer {
    /// Name, ports, rules, types and meaning. Parameters are constant ports under the names of [`Param::port`].
    pub op: MilOp,
    /// Ports that the entries of `Bottom` fill, one list for each number of entries that the layer takes. A single list with one
    /// variadic port takes any number.
    pub bottoms: &'static [&'static [&'static str]],
    /// Parameters as net.plist has them.
    pub params: &'static [Param],
    /// What `OutputChannels` says.
    pub channels: Channels,
}

/// One entry of a unit's `Params`.
#[derive(Debug)]
pub struct Param {
    /// Key in net.plist.
    pub key: &'static str,
    /// What stands there.
    pub kind: ParamKind,
}

/// What a parameter holds and how.
#[derive(Clone, Copy, Debug)]
pub enum ParamKind {
    /// A bool.
    Flag,
    /// An integer.
    Int,
    /// One of some words.
    Word(&'static [&'static str]),
    /// A number written as it is.
    Real,
    /// A number written as the integer with its fp16 bits: 1.0 is 15360.
    Half,
    /// Integers.
    Ints,
    /// Words; the port holds their places in the list.
    Words(&'static [&'static str]),
    /// Dictionaries of equal keys; the port of a column is called `<key>_<column>` and holds one entry for each dictionary.
    Table(&'static [Param]),
    /// An integer that stands in the unit itself, not in its `Params`.
    UnitInt,
    /// The weights of a convolution: place, type and extents are keys of their own.
    Kernel,
}

/// What the key `OutputChannels` of a unit says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channels {
    /// The channels of the result: the layer is made of that many.
    Result,
    /// The channels of the result when we write it. Published nets that run have 1 or the channels of a bottom there just as well, so
    /// the compiler infers it and the reader takes those too.
    Inferred,
    /// The unit has no such key.
    Omitted,
}

/// Axes in the numbering of Apple's compiler: batch, depth, channels, height, width (arXiv 2606.22283, appendix C).
pub const DIMENSIONS: &[&str] = &["Batch", "Depth", "Channel", "Height", "Width"];

/// Axis of a tensor with four axes that a dimension names; `None` for the depth and for unknown words.
pub fn axis(dimension: &str) -> Option<usize> {
    ["Batch", "Channel", "Height", "Width"].iter().position(|name| *name == dimension)
}

static LAYERS: &[&Layer] = &[
    &ARG_MIN_MAX,
    &BATCH_TO_SPACE,
    &BROADCAST,
    &CHANNEL_TO_SPACE,
    &CONCAT,
    &CONV,
    &COST_VOLUME,
    &CROSS_CORRELATION,
    &CROSS_PRODUCT,
    &DROPOUT,
    &DYNAMIC_GOC,
    &DYNAMIC_SLICE,
    &ELEMENT_WISE,
    &FLATTEN,
    &FURTHEST_POINT_SAMPLING,
    &GOC,
    &GATHER,
    &GLOBAL_ARG_MIN_MAX,
    &INPUT_VIEW,
    &LOCAL_RESPONSE_NORMALIZATION,
    &MATRIX_MULTIPLICATION,
    &MIN_MAX_NORMALIZATION,
    &NEURON,
    &PIXEL_SHUFFLE,
    &PIXEL_UNSHUFFLE,
    &POOLING,
    &RADIUS_SEARCH,
    &REDUCTION,
    &RESHAPE,
    &SDPA,
    &SCALED_ELEMENT_WISE,
    &SOFTMAX,
    &SORT,
    &SPACE_TO_BATCH,
    &SPACE_TO_CHANNEL,
    &TOP_K,
    &TRANSPOSE,
];

/// Every layer that can be written, read and executed, by type name.
pub fn layers() -> &'static [&'static Layer] {
    LAYERS
}

/// The layer of that type.
pub fn find(name: &str) -> Option<&'static Layer> {
    layers().iter().copied().find(|layer| layer.op.name == name)
}

/// The layer behind an operator record; `None` where the record is one of MIL's.
pub fn of(op: &MilOp) -> Option<&'static Layer> {
    find(op.name).filter(|layer| std::ptr::eq(&raw const layer.op, op))
}

impl Layer {
    /// The parameter of that key.
    pub fn param(&self, key: &str) -> Option<&'static Param> {
        self.params.iter().find(|param| param.key == key)
    }
}
