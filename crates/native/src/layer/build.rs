//! What records of layers are written with.

use super::{Channels, Layer, Param, ParamKind, axis};
use aneforge_mil::op::family::base;
use aneforge_mil::op::{
    ALL_FAMILIES, Arguments, Arithmetic, BOOL, Constraint, Default, INTS, MilOp, OpError, PortSpec, Support, TEXT, constant,
    gated_before, tensor,
};
use aneforge_mil::{Array, DType, TensorType};

pub(super) use aneforge_mil::op::family::rule;
pub(super) use aneforge_mil::op::{Case, computed, given, optional, result, text};

/// Element types of activations.
pub(super) const HALF: &[DType] = &[DType::Fp16];
/// Element types of indices.
pub(super) const INDEX: &[DType] = &[DType::UInt16, DType::Fp16];
const REAL: &[DType] = &[DType::Fp32];

/// Layers that run on every engine from the M1 on.
pub(super) const EVERYWHERE: Support = ALL_FAMILIES.told_by("ANE guide, arXiv 2606.22283, chapter 26 and appendix B");
/// Layers whose code generation the M1 refuses.
pub(super) const FROM_A14: Support =
    gated_before(14).told_by("ANE guide, arXiv 2606.22283, appendix B: accepted, then refused by code generation, on M1");
/// The commonest bottom.
pub(super) const X: &[&[&str]] = &[&["x"]];
/// A pair of bottoms.
pub(super) const X_AND_Z: &[&[&str]] = &[&["x", "z"]];
/// Where a case comes from.
pub(super) const BY_HAND: &str = "by hand";

/// Steps of a layer of which nothing but its result is published.
pub(super) const LAYER: Arithmetic =
    Arithmetic::Modelled("the layer's definition in f64, rounded once to fp16; how it rounds inside is not published");

const ONE: &[PortSpec] = &[tensor("x", HALF)];
const ONE_RULE: &[Constraint] = &[FOUR];

/// A layer of one activation.
pub(super) const fn unary(
    name: &'static str,
    summary: &'static str,
    infer: fn(&Arguments<'_>) -> Result<Vec<TensorType>, OpError>,
    meaning: fn(&Arguments<'_>) -> Result<Vec<Array>, OpError>,
) -> MilOp {
    MilOp {
        opset: "net.plist 1.0.10",
        ports: ONE,
        constraints: ONE_RULE,
        support: EVERYWHERE,
        ..base(name, summary, infer, meaning)
    }
}

/// A layer of one activation with some parameters.
pub(super) const fn layer(op: MilOp, params: &'static [Param]) -> Layer {
    Layer { op, bottoms: X, params, channels: Channels::Inferred }
}

/// An activation.
pub(super) const fn x(name: &'static str) -> PortSpec {
    tensor(name, HALF)
}

/// A parameter.
pub(super) const fn param(key: &'static str, kind: ParamKind) -> Param {
    Param { key, kind }
}

/// The port of a word.
pub(super) const fn word(name: &'static str) -> PortSpec {
    constant(name, TEXT, Default::Required)
}

/// The port of a word that may be left out.
pub(super) const fn optional_word(name: &'static str) -> PortSpec {
    constant(name, TEXT, Default::Absent)
}

/// The port of an integer or of integers.
pub(super) const fn ints(name: &'static str) -> PortSpec {
    constant(name, INTS, Default::Required)
}

/// The port of an integer with a default.
pub(super) const fn int_or(name: &'static str, value: i64) -> PortSpec {
    constant(name, INTS, Default::Int(value))
}

/// The port of a switch that is off where it is left out.
pub(super) const fn flag(name: &'static str) -> PortSpec {
    constant(name, BOOL, Default::Flag(false))
}

/// The port of a number in fp16 bits.
pub(super) const fn half(name: &'static str) -> PortSpec {
    constant(name, HALF, Default::Required)
}

/// The port of a number in fp16 bits that may be left out.
pub(super) const fn optional_half(name: &'static str) -> PortSpec {
    constant(name, HALF, Default::Absent)
}

/// The port of a number written as it is.
pub(super) const fn real(name: &'static str) -> PortSpec {
    constant(name, REAL, Default::Required)
}

/// The port of a number written as it is that may be left out.
pub(super) const fn optional_real(name: &'static str) -> PortSpec {
    constant(name, REAL, Default::Absent)
}

/// Every activation has the four axes that net.plist describes.
pub(super) const FOUR: Constraint = rule("C1", "every tensor has four axes [batch, channels, height, width]: reshape it", |a| {
    let tensors = a.op.ports.iter().zip(a.ports).filter(|(spec, _)| spec.kind != aneforge_mil::op::PortKind::Constant);
    tensors.flat_map(|(_, given)| given).all(|argument| argument.ty.rank() == 4)
});

/// Extents of a tensor with four axes.
pub(super) fn extents(a: &Arguments<'_>, port: &str) -> [usize; 4] {
    <[usize; 4]>::try_from(a.shape(port)).unwrap_or([1; 4])
}

/// Whether a word is one of some.
pub(super) fn is_one_of(a: &Arguments<'_>, port: &str, words: &[&str]) -> bool {
    a.text(port).is_some_and(|word| words.contains(&word))
}

/// A positive integer as a size; 0 where it is none.
pub(super) fn size(a: &Arguments<'_>, port: &str) -> usize {
    a.int(port).and_then(|value| usize::try_from(value).ok()).unwrap_or(0)
}

/// The axis that a word names.
pub(super) fn named_axis(a: &Arguments<'_>, port: &str) -> Option<usize> {
    axis(a.text(port)?)
}

/// Axes that a list of dimensions names; `None` where one is the depth or stands there twice.
pub(super) fn named_axes(a: &Arguments<'_>, port: &str) -> Option<Vec<usize>> {
    let mut axes = Vec::new();
    for place in a.ints(port)? {
        let axis = axis(super::DIMENSIONS.get(usize::try_from(place).ok()?)?)?;
        if axes.contains(&axis) {
            return None;
        }
        axes.push(axis);
    }
    Some(axes)
}

/// The type of `x` with one axis of another extent.
pub(super) fn with_extent(a: &Arguments<'_>, axis: usize, extent: i128) -> Result<Vec<TensorType>, OpError> {
    let x = a.ty("x")?;
    let shape = x.shape.iter().enumerate().map(|(index, &own)| if index == axis { extent } else { own as i128 });
    computed(a, x.dtype, shape.collect())
}

/// One result from the inferred type and its values.
pub(super) fn of(types: Vec<TensorType>, data: Vec<f64>) -> Result<Vec<Array>, OpError> {
    Ok(types.into_iter().map(|ty| Array { ty, data: data.clone() }).collect())
}

/// `x` with the last of its axes being `axis`, as rows; and what brings rows back.
pub(super) fn rows(x: &Array, axis: usize) -> (Array, Vec<usize>) {
    let rank = x.shape().len();
    let order: Vec<usize> = (0..rank).filter(|&other| other != axis).chain([axis]).collect();
    let mut back = vec![0; rank];
    order.iter().enumerate().for_each(|(place, &axis)| back[axis] = place);
    (x.transposed(&order), back)
}

/// `f` of each line of `x` along an axis; every line becomes a line of the same length or of any other that is always the same.
pub(super) fn lines(x: &Array, axis: usize, f: impl Fn(&[f64]) -> Vec<f64>) -> Array {
    let extent = x.shape().get(axis).copied().unwrap_or(1).max(1);
    let (moved, back) = rows(x, axis);
    let results: Vec<Vec<f64>> = moved.data.chunks(extent).map(f).collect();
    let length = results.first().map_or(0, Vec::len);
    let mut shape = moved.ty.shape.clone();
    if let Some(last) = shape.last_mut() {
        *last = length;
    }
    Array { ty: TensorType::new(x.ty.dtype, shape), data: results.concat() }.transposed(&back)
}
