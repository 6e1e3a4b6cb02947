//! Changes of element type.

use super::family::{base, integers, rule};
use super::general::result;
use super::{
    ALL_FAMILIES, ANY, Arguments, Arithmetic, Case, Default, FLOATS, MilOp, OpError, PortSpec, TEXT, constant, given,
    optional_weight, tensor, text, values, weight,
};
use crate::array::into_integer;
use crate::{Array, DType, TensorType};

const BY_HAND: &str = "by hand";
const BYTES: &[DType] = &[DType::Int8, DType::UInt8];
const ROUNDS: Arithmetic = Arithmetic::Modelled("fp16 to and from fp32 to nearest, ties to even, at the edge of a program");

pub(super) const OPS: &[MilOp] = &[
    MilOp {
        ports: &[tensor("x", ANY), constant("dtype", TEXT, Default::Required)],
        constraints: &[rule(
            "C1",
            "dtype is fp16, fp32, bool, int32 or an integer of 8 or 16 bits; the M1 has no cast to int32",
            |a| target(a).is_some(),
        )],
        arithmetic: ROUNDS,
        // Twice the spacing of fp16: the result is exact but for the rounding of its own type.
        tolerance: 1e-3,
        cases: &[
            Case::new(
                "floats_lose_their_fraction",
                &[("x", given(&[4], &[1.5, -1.5, 0.25, 7.0])), ("dtype", text("int32"))],
                &[(&[4], &[1.0, -1.0, 0.0, 7.0])],
                BY_HAND,
            ),
            Case::new(
                "bytes_of_an_image_become_floats",
                &[("x", values(DType::UInt8, &[3], &[0.0, 128.0, 255.0])), ("dtype", text("fp16"))],
                &[(&[3], &[0.0, 128.0, 255.0])],
                BY_HAND,
            ),
            Case::new(
                "anything_but_zero_is_true",
                &[("x", given(&[3], &[0.0, -0.5, 2.0])), ("dtype", text("bool"))],
                &[(&[3], &[0.0, 1.0, 1.0])],
                BY_HAND,
            ),
            Case::new(
                "integers_stop_at_their_ends",
                &[("x", given(&[3], &[300.0, -300.0, 5.0])), ("dtype", text("int8"))],
                &[(&[3], &[127.0, -128.0, 5.0])],
                "by hand; numpy wraps instead",
            ),
        ],
        support: ALL_FAMILIES.limited("fp16 to and from fp32, and bool; int32 is rejected on the M1"),
        ..base(
            "cast",
            "x in another element type: towards zero into integers and stopped at their ends, not equal to zero into bools.",
            |a| result(a, target(a).unwrap_or(DType::Fp16), a.ty("x")?.shape.clone()),
            |a| {
                let x = a.array("x")?;
                let dtype = target(a).unwrap_or(DType::Fp16);
                let convert = |&value: &f64| match dtype {
                    DType::Bool => f64::from(u8::from(value != 0.0)),
                    dtype if dtype.is_integer() => into_integer(value.trunc(), dtype),
                    _ => value,
                };
                Ok(vec![Array::new(dtype, x.ty.shape.clone(), x.data.iter().map(convert).collect())])
            },
        )
    },
    MilOp {
        opset: "ios17",
        ports: QUANTIZE,
        constraints: &[
            rule("C1", "output_dtype is int8 or uint8", |a| matches!(a.text("output_dtype"), Some("int8" | "uint8"))),
            rule("C2", "scale and zero_point are scalars, or vectors as long as axis, which must be given then", per_axis),
        ],
        arithmetic: Arithmetic::Unknown,
        domain: &[("scale", 0.0625, 0.125)],
        tolerance: 0.1,
        cases: &[Case::new(
            "rounds_then_stops_at_the_ends",
            &[("input", given(&[4], &[0.25, 0.75, -1.25, 100.0])), ("scale", given(&[], &[0.5])), ("output_dtype", text("int8"))],
            &[(&[4], &[0.0, 2.0, -2.0, 127.0])],
            "by hand, ties to even",
        )],
        ..base(
            "quantize",
            "input / scale rounded to an integer, plus zero_point.",
            |a| result(a, quantized(a), a.ty("input")?.shape.clone()),
            |a| {
                let dtype = quantized(a);
                affine(a, dtype, |x, scale, zero| into_integer((x / scale).round_ties_even() + zero, dtype))
            },
        )
    },
    MilOp {
        opset: "ios17",
        ports: &[
            tensor("input", BYTES),
            optional_weight("zero_point", BYTES),
            weight("scale", FLOATS),
            integers("axis", Default::Absent),
        ],
        constraints: &[rule(
            "C1",
            "scale and zero_point are scalars, or vectors as long as axis, which must be given then",
            per_axis,
        )],
        arithmetic: Arithmetic::Unknown,
        domain: &[("scale", 0.0625, 0.125), ("input", -100.0, 100.0)],
        cases: &[Case::new(
            "scale_per_row",
            &[
                ("input", values(DType::Int8, &[2, 2], &[1.0, -2.0, 3.0, -4.0])),
                ("zero_point", values(DType::Int8, &[2], &[1.0, 0.0])),
                ("scale", given(&[2], &[0.5, 2.0])),
                ("axis", super::int(&[0.0])),
            ],
            &[(&[2, 2], &[0.0, -1.5, 6.0, -8.0])],
            BY_HAND,
        )],
        ..base(
            "dequantize",
            "scale (input - zero_point).",
            |a| result(a, a.ty("scale")?.dtype, a.ty("input")?.shape.clone()),
            |a| affine(a, a.ty("scale")?.dtype, |x, scale, zero| scale * (x - zero)),
        )
    },
];

const QUANTIZE: &[PortSpec] = &[
    tensor("input", FLOATS),
    optional_weight("zero_point", BYTES),
    weight("scale", FLOATS),
    integers("axis", Default::Absent),
    constant("output_dtype", TEXT, Default::Required),
];

fn target(a: &Arguments<'_>) -> Option<DType> {
    let dtype = DType::from_keyword(a.text("dtype")?)?;
    ANY.contains(&dtype).then_some(dtype)
}

fn quantized(a: &Arguments<'_>) -> DType {
    a.text("output_dtype").and_then(DType::from_keyword).unwrap_or(DType::Int8)
}

fn per_axis(a: &Arguments<'_>) -> bool {
    let input = a.shape("input");
    let extent = a.int("axis").and_then(|axis| a.axis(axis, input.len())).map(|axis| input[axis]);
    ["scale", "zero_point"].iter().all(|port| match *a.shape(port) {
        [] => true,
        [length] => Some(length) == extent,
        _ => false,
    })
}

/// `f` of each element of `input` with its scale and zero point.
fn affine(a: &Arguments<'_>, dtype: DType, f: impl Fn(f64, f64, f64) -> f64) -> Result<Vec<Array>, OpError> {
    let input = a.array("input")?;
    let scale = a.array("scale")?;
    let zero = if a.has("zero_point") { Some(a.array("zero_point")?) } else { None };
    let axis = a.int("axis").and_then(|axis| a.axis(axis, input.ty.rank())).unwrap_or(0);
    let (_, extent, inner) = super::family::around(&input.ty.shape, axis);
    let pick = |array: &Array, index: usize| array.data[if array.data.len() == 1 { 0 } else { index / inner % extent }];
    let element = |(index, &x): (usize, &f64)| f(x, pick(scale, index), zero.map_or(0.0, |zero| pick(zero, index)));
    let data = input.data.iter().enumerate().map(element).collect();
    Ok(vec![Array { ty: TensorType::new(dtype, input.ty.shape.clone()), data }])
}
