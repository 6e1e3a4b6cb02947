//! What records of operators are written with.

use super::{Case, Constraint, Domain, Expected, GraphOp, InputKind, InputSpec, Sample, Site, Vjp};
use crate::lower::{Arg, Lowering};
use crate::{Attribute, AttributeKind, AttributeSpec, DType, GraphError};
use aneforge_mil::ValueId;
use aneforge_mil::op::{Default, builtin};

/// Floats: fp16 on the engine, fp32 at the edges of imported programs.
pub const FLOATS: &[DType] = &[DType::Fp16, DType::Fp32];
/// Floats and integers.
pub const NUMBERS: &[DType] = &[DType::Fp16, DType::Fp32, DType::Int32, DType::UInt8, DType::Int8, DType::UInt16, DType::Int16];
/// A mask.
pub const BOOL: &[DType] = &[DType::Bool];
/// Indices.
pub const INDICES: &[DType] = &[DType::Int32, DType::UInt16, DType::Int16, DType::UInt8];
/// Anything a tensor holds.
pub const ANY: &[DType] =
    &[DType::Fp16, DType::Fp32, DType::Int32, DType::Bool, DType::UInt8, DType::Int8, DType::UInt16, DType::Int16];

/// The only input of most operators.
pub const X: &[InputSpec] = &[input("x", FLOATS)];
/// The only input of operators that move any kind of element.
pub const X_ANY: &[InputSpec] = &[input("x", ANY)];

/// An input that takes one tensor.
pub const fn input(name: &'static str, dtypes: &'static [DType]) -> InputSpec {
    InputSpec { name, kind: InputKind::One, dtypes, constant: false }
}

/// An input that may be left out.
pub const fn optional(name: &'static str, dtypes: &'static [DType]) -> InputSpec {
    InputSpec { name, kind: InputKind::Optional, dtypes, constant: false }
}

/// An input that takes a constant or parameter.
pub const fn weight(name: &'static str, dtypes: &'static [DType]) -> InputSpec {
    InputSpec { name, kind: InputKind::One, dtypes, constant: true }
}

/// An input that takes a constant or parameter and may be left out.
pub const fn optional_weight(name: &'static str, dtypes: &'static [DType]) -> InputSpec {
    InputSpec { name, kind: InputKind::Optional, dtypes, constant: true }
}

/// An input that takes one or more tensors.
pub const fn variadic(name: &'static str, dtypes: &'static [DType]) -> InputSpec {
    InputSpec { name, kind: InputKind::Variadic, dtypes, constant: false }
}

/// An integer attribute.
pub const fn int(name: &'static str, default: Default) -> AttributeSpec {
    AttributeSpec { name, kind: AttributeKind::Int, default }
}

/// A number.
pub const fn float(name: &'static str, default: f64) -> AttributeSpec {
    AttributeSpec { name, kind: AttributeKind::Float, default: Default::Float(default) }
}

/// A number that must be given.
pub const fn required_float(name: &'static str) -> AttributeSpec {
    AttributeSpec { name, kind: AttributeKind::Float, default: Default::Required }
}

/// A switch.
pub const fn flag(name: &'static str, default: bool) -> AttributeSpec {
    AttributeSpec { name, kind: AttributeKind::Flag, default: Default::Flag(default) }
}

/// Integers.
pub const fn ints(name: &'static str, default: Default) -> AttributeSpec {
    AttributeSpec { name, kind: AttributeKind::Ints, default }
}

/// One of some words.
pub const fn word(name: &'static str, words: &'static [&'static str], default: &'static str) -> AttributeSpec {
    AttributeSpec { name, kind: AttributeKind::Text(words), default: Default::Text(default) }
}

/// A labelled rule with a use that breaks it.
pub const fn rule(label: &'static str, rule: &'static str, holds: fn(&Site<'_>) -> bool, broken_by: Case) -> Constraint {
    Constraint { label, rule, holds, broken_by }
}

/// Values between two ends, except near some points.
pub const fn domain(low: f64, high: f64, avoid: &'static [f64]) -> Domain {
    Domain { low, high, avoid }
}

/// A record whose lowering is the MIL operator of the same name, with everything else at its usual value.
pub const fn direct(name: &'static str, summary: &'static str) -> GraphOp {
    GraphOp {
        name,
        aliases: &[],
        summary,
        inputs: X,
        attributes: &[],
        constraints: &[],
        lower: lower_direct,
        vjp: Vjp::None("nobody has written it yet"),
        domain: Domain { low: -2.0, high: 2.0, avoid: &[] },
        tolerance: 2e-3,
        cases: &[],
    }
}

/// An input drawn from the operator's domain.
pub const fn drawn(input: &'static str, shape: &'static [usize]) -> Sample {
    Sample { input, dtype: DType::Fp16, shape, values: &[], constant: false }
}

/// An input with its values.
pub const fn given(input: &'static str, shape: &'static [usize], values: &'static [f64]) -> Sample {
    Sample { input, dtype: DType::Fp16, shape, values, constant: false }
}

impl Sample {
    /// The same with another element type.
    pub const fn of(self, dtype: DType) -> Self {
        Self { dtype, ..self }
    }

    /// The same as a constant of the graph.
    pub const fn fixed(self) -> Self {
        Self { constant: true, ..self }
    }
}

impl Case {
    /// A use of which the shape of the first result is known.
    pub const fn shape(
        name: &'static str,
        inputs: &'static [Sample],
        attributes: &'static [(&'static str, Default)],
        shape: &'static [usize],
    ) -> Self {
        Self { name, inputs, attributes, expected: Expected::Shape(shape) }
    }

    /// A use of which the values of the first result are known.
    pub const fn values(
        name: &'static str,
        inputs: &'static [Sample],
        attributes: &'static [(&'static str, Default)],
        result: (&'static [usize], &'static [f64]),
        source: &'static str,
    ) -> Self {
        Self { name, inputs, attributes, expected: Expected::Values { shape: result.0, values: result.1, source } }
    }

    /// An illegal use.
    pub const fn refused(inputs: &'static [Sample], attributes: &'static [(&'static str, Default)]) -> Self {
        Self { name: "refused", inputs, attributes, expected: Expected::Refused }
    }
}

/// Lowers to the MIL operator of the same name: inputs and attributes go to the ports of their names, floats in the element type
/// of the first input, axes counted from the front.
///
/// # Errors
/// What the MIL operator's record says about the arguments.
pub fn lower_direct(lowering: &mut Lowering, site: &Site<'_>) -> Result<Vec<ValueId>, GraphError> {
    let arguments = direct_arguments(site);
    lowering.ops(site.op.name, &arguments)
}

/// fp32 where the MIL operator's port takes that before fp16; other float attributes have the element type of the data.
fn single(op: &str, port: &str) -> Option<DType> {
    let record = builtin().get(op)?;
    record.ports[record.port(port)?].dtypes.first().copied().filter(|&dtype| dtype == DType::Fp32)
}

/// The arguments of [`lower_direct`], for lowerings that add to them.
pub(crate) fn direct_arguments(site: &Site<'_>) -> Vec<(&'static str, Arg)> {
    let first = site.types.iter().flatten().next();
    let (dtype, rank) = first.map_or((DType::Fp16, 0), |ty| (ty.dtype, ty.rank()));
    let mut arguments = Vec::with_capacity(site.op.inputs.len() + site.op.attributes.len());
    for (spec, values) in site.op.inputs.iter().zip(site.values) {
        match (spec.kind, values.as_slice()) {
            (InputKind::Variadic, values) => arguments.push((spec.name, Arg::from(values))),
            (_, [value]) => arguments.push((spec.name, Arg::from(*value))),
            _ => {}
        }
    }
    for (spec, value) in site.op.attributes.iter().zip(site.attributes) {
        let argument = match (spec.name, value) {
            (_, Attribute::Absent) => continue,
            ("axis", Attribute::Int(axis)) => Arg::from(super::resolve_axis(*axis, rank).map_or(*axis, |axis| axis as i64)),
            ("axes", Attribute::Ints(axes)) => match site.axes("axes", rank) {
                Some(axes) => Arg::from(axes),
                None => Arg::from(axes.as_ref()),
            },
            (_, Attribute::Int(value)) => Arg::from(*value),
            (port, Attribute::Float(value)) => Arg::Float(single(site.op.name, port).unwrap_or(dtype), *value),
            (_, Attribute::Flag(value)) => Arg::from(*value),
            (_, Attribute::Text(text)) => Arg::from(text.as_ref()),
            (_, Attribute::Ints(values)) => Arg::from(values.as_ref()),
        };
        arguments.push((spec.name, argument));
    }
    arguments
}
