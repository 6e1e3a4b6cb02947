//! Bytes for floats and back.

use super::*;

const BYTES: &[DType] = &[DType::Int8, DType::UInt8];
const SCALES: &[Constraint] = &[rule(
    "C1",
    "scale and zero_point are scalars, or vectors as long as the axis of x that axis names",
    |s| {
        let extent = match s.attribute("axis") {
            Attribute::Int(_) => s.axis("axis", s.rank("x")).map(|axis| s.shape("x")[axis]),
            _ => None,
        };
        ["scale", "zero_point"].iter().all(|name| match *s.shape(name) {
            [] => true,
            [length] => Some(length) == extent,
            _ => false,
        })
    },
    Case::refused(&[drawn("x", &[2, 3]), given("scale", &[2], &[0.5, 0.25]).fixed()], &[]),
)];

fn arguments(s: &Site<'_>) -> Result<Vec<(&'static str, Arg)>, GraphError> {
    let mut arguments: Vec<(&'static str, Arg)> = vec![("input", s.value("x")?.into()), ("scale", s.value("scale")?.into())];
    if s.has("zero_point") {
        arguments.push(("zero_point", s.value("zero_point")?.into()));
    }
    // The axis stands there only where a vector needs it.
    if !s.shape("scale").is_empty() || !s.shape("zero_point").is_empty() {
        arguments.push(("axis", (s.axis("axis", s.rank("x")).unwrap_or(0) as i64).into()));
    }
    Ok(arguments)
}

/// Floats to bytes.
pub static QUANTIZE: GraphOp = GraphOp {
    inputs: &[input("x", FLOATS), weight("scale", FLOATS), optional_weight("zero_point", BYTES)],
    attributes: &[int("axis", Default::Absent), word("output_dtype", &["int8", "uint8"], "int8")],
    constraints: SCALES,
    // A value half way between two bytes may go either way.
    tolerance: 0.1,
    vjp: Vjp::None("it is constant between its jumps; train with the unquantized values"),
    lower: |l, s| {
        let mut arguments = arguments(s)?;
        arguments.push(("output_dtype", s.text("output_dtype").into()));
        l.ops("quantize", &arguments)
    },
    cases: &[Case::values(
        "rounds_then_stops_at_the_ends",
        &[given("x", &[4], &[0.25, 0.8, -1.3, 100.0]), given("scale", &[], &[0.5]).fixed()],
        &[],
        (&[4], &[0.0, 2.0, -3.0, 127.0]),
        "by hand",
    )],
    ..direct("quantize", "x / scale rounded to an integer, plus zero_point, kept within the bytes' range.")
};

/// Bytes to floats.
pub static DEQUANTIZE: GraphOp = GraphOp {
    inputs: &[input("x", BYTES), weight("scale", FLOATS), optional_weight("zero_point", BYTES)],
    attributes: &[int("axis", Default::Absent)],
    constraints: &[rule(
        "C1",
        "scale and zero_point are scalars, or vectors as long as the axis of x that axis names",
        SCALES[0].holds,
        Case::refused(&[given("x", &[2], &[1.0, 2.0]).of(DType::Int8), given("scale", &[2], &[0.5, 0.25]).fixed()], &[]),
    )],
    vjp: Vjp::None("its input is an integer"),
    lower: |l, s| l.ops("dequantize", &arguments(s)?),
    cases: &[Case::values(
        "scale_per_row",
        &[
            given("x", &[2, 2], &[1.0, -2.0, 3.0, -4.0]).of(DType::Int8),
            given("scale", &[2], &[0.5, 2.0]).fixed(),
            given("zero_point", &[2], &[1.0, 0.0]).of(DType::Int8).fixed(),
        ],
        &[("axis", Default::Int(0))],
        (&[2, 2], &[0.0, -1.5, 6.0, -8.0]),
        "by hand",
    )],
    ..direct("dequantize", "scale (x - zero_point).")
};

pub(super) const ALL: &[&GraphOp] = &[&QUANTIZE, &DEQUANTIZE];
