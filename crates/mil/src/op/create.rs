//! Tensors made from attributes: fills, ranges, one-hot vectors, and what is known of a tensor's shape or values.

use super::family::{around, base, integers, rule};
use super::general::{computed, result};
use super::{
    ANY, Arguments, Arithmetic, BRIDGED, Case, Constraint, Default, INTS, MilOp, NOWHERE, NUMBERS, OpError, constant, float, given,
    int, ints, number, tensor, values,
};
use crate::{Array, DType, TensorType};

const BY_HAND: &str = "by hand";
/// Element types that a fill value can have.
const FILLS: &[DType] = &[DType::Fp16, DType::Fp32, DType::Int32, DType::Bool];
const SCALAR: Constraint = rule("C1", "value is a scalar", |a| a.shape("value").is_empty());
const X: super::Given = given(&[3, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);

pub(super) const OPS: &[MilOp] = &[
    MilOp {
        ports: &[integers("shape", Default::Required), constant("value", FILLS, Default::Float(0.0))],
        constraints: &[
            SCALAR,
            rule("C2", "shape is a vector of positive integers", |a| {
                a.shape("shape").len() == 1 && a.ints("shape").is_some_and(|shape| shape.iter().all(|&extent| extent > 0))
            }),
        ],
        tolerance: 0.0,
        cases: &[
            Case::new("halves", &[("shape", ints(&[2], &[2.0, 3.0])), ("value", float(&[0.5]))], &[(&[2, 3], &[0.5; 6])], BY_HAND),
            Case::new("zeros_of_fp32_by_default", &[("shape", ints(&[1], &[2.0]))], &[(&[2], &[0.0; 2])], BY_HAND),
        ],
        ..base("fill", "A tensor of the given shape with one value everywhere.", infer_fill, |a| full(a, infer_fill(a)?.remove(0)))
    },
    MilOp {
        opset: "ios16",
        ports: &[tensor("ref_tensor", ANY), constant("value", FILLS, Default::Float(0.0))],
        constraints: &[SCALAR],
        tolerance: 0.0,
        cases: &[Case::new(
            "sevens_like_another",
            &[("ref_tensor", given(&[2, 2], &[1.0; 4])), ("value", number(DType::Int32, &[7.0]))],
            &[(&[2, 2], &[7.0; 4])],
            BY_HAND,
        )],
        ..base("fill_like", "A tensor of the shape of another with one value everywhere.", infer_like, |a| {
            full(a, infer_like(a)?.remove(0))
        })
    },
    MilOp {
        ports: &[
            constant("end", NUMBERS, Default::Required),
            constant("start", NUMBERS, Default::Required),
            constant("step", NUMBERS, Default::Required),
        ],
        constraints: &[
            rule("C1", "start, end and step are scalars of one element type", |a| {
                let parts = ["end", "start", "step"].map(|port| a.get(port).map(|value| &value.ty));
                parts.iter().all(|ty| ty.is_some_and(|ty| ty.shape.is_empty())) && parts.windows(2).all(|two| two[0] == two[1])
            }),
            rule("C2", "steps lead from start towards end and there is one at least", |a| range(a).is_some()),
        ],
        support: BRIDGED,
        tolerance: 1e-3,
        cases: &[
            Case::new(
                "by_halves",
                &[("end", float(&[2.0])), ("start", float(&[0.5])), ("step", float(&[0.5]))],
                &[(&[3], &[0.5, 1.0, 1.5])],
                BY_HAND,
            ),
            Case::new(
                "backwards_over_the_end",
                &[("end", int(&[-4.0])), ("start", int(&[3.0])), ("step", int(&[-3.0]))],
                &[(&[3], &[3.0, 0.0, -3.0])],
                BY_HAND,
            ),
        ],
        ..base("range_1d", "start, start + step and so on up to end, which is left out.", infer_range, |a| {
            let ty = infer_range(a)?.remove(0);
            let (start, step, _) = range(a).unwrap_or((0.0, 0.0, 0));
            let data = (0..ty.count()).map(|index| start + index as f64 * step).collect();
            Ok(vec![Array { ty, data }])
        })
    },
    MilOp {
        ports: &[
            tensor("indices", INTS),
            integers("one_hot_vector_size", Default::Required),
            integers("axis", Default::Int(-1)),
            constant("on_value", FILLS, Default::Int(1)),
            constant("off_value", FILLS, Default::Int(0)),
        ],
        constraints: &[
            rule("C1", "axis is an axis of the result", |a| new_axis(a).is_some()),
            rule("C2", "one_hot_vector_size is positive", |a| a.int("one_hot_vector_size").is_some_and(|size| size > 0)),
            rule("C3", "on_value and off_value are scalars of one element type, int32 where they are left out", |a| {
                let dtype = |port| a.get(port).map_or(DType::Int32, |value| value.ty.dtype);
                dtype("on_value") == dtype("off_value") && a.shape("on_value").is_empty() && a.shape("off_value").is_empty()
            }),
        ],
        arithmetic: Arithmetic::Unknown,
        support: NOWHERE,
        domain: &[("indices", 0.0, 3.0)],
        tolerance: 0.0,
        cases: &[
            Case::new(
                "a_row_per_class",
                &[
                    ("indices", values(DType::Int32, &[2], &[2.0, 0.0])),
                    ("one_hot_vector_size", int(&[3.0])),
                    ("on_value", float(&[1.0])),
                    ("off_value", float(&[-1.0])),
                ],
                &[(&[2, 3], &[-1.0, -1.0, 1.0, 1.0, -1.0, -1.0])],
                BY_HAND,
            ),
            Case::new(
                "classes_in_front",
                &[
                    ("indices", values(DType::Int32, &[2], &[1.0, 9.0])),
                    ("one_hot_vector_size", int(&[2.0])),
                    ("axis", int(&[0.0])),
                ],
                &[(&[2, 2], &[0.0, 0.0, 1.0, 0.0])],
                BY_HAND,
            ),
            Case::oracle(
                "classes_of_a_map",
                &[
                    ("indices", values(DType::Int32, &[2, 3], &[0.0, 3.0, 1.0, 2.0, 2.0, 0.0])),
                    ("one_hot_vector_size", int(&[4.0])),
                ],
            ),
        ],
        ..base(
            "one_hot",
            "off_value everywhere but where the place along a new axis is the index; indices outside give off_value alone.",
            infer_one_hot,
            one_hot,
        )
    },
    MilOp {
        ports: &[tensor("x", FILLS), integers("lower", Default::Int(-1)), integers("upper", Default::Int(-1))],
        constraints: &[rule("C1", "x has at least two axes: reshape x", |a| a.shape("x").len() >= 2)],
        support: NOWHERE,
        tolerance: 0.0,
        cases: &[
            Case::new(
                "lower_triangle",
                &[("x", X), ("upper", int(&[0.0]))],
                &[(&[3, 3], &[1.0, 0.0, 0.0, 4.0, 5.0, 0.0, 7.0, 8.0, 9.0])],
                BY_HAND,
            ),
            Case::new(
                "diagonal_and_one_above",
                &[("x", X), ("lower", int(&[0.0])), ("upper", int(&[1.0]))],
                &[(&[3, 3], &[1.0, 2.0, 0.0, 0.0, 5.0, 6.0, 0.0, 0.0, 9.0])],
                BY_HAND,
            ),
            Case::oracle("of_a_batch", &[("x", super::sample(&[2, 3, 5], 4)), ("lower", int(&[1.0])), ("upper", int(&[2.0]))]),
        ],
        ..base(
            "band_part",
            "x with zeros further below or above the diagonal of the last two axes than lower and upper; negative keeps all.",
            super::family::same_as_x,
            band_part,
        )
    },
    MilOp {
        ports: &[tensor("x", ANY)],
        constraints: &[rule("C1", "x has axes: a scalar has no shape to give", |a| !a.shape("x").is_empty())],
        support: NOWHERE,
        tolerance: 0.0,
        cases: &[Case::new("two_rows_of_three", &[("x", given(&[2, 3], &[0.0; 6]))], &[(&[2], &[2.0, 3.0])], BY_HAND)],
        ..base(
            "shape",
            "The extents of x, known when the program is compiled: write them as a constant for an engine.",
            |a| result(a, DType::Int32, vec![a.shape("x").len()]),
            |a| {
                let extents: Vec<_> = a.shape("x").iter().map(|&extent| extent as f64).collect();
                Ok(vec![Array::new(DType::Int32, [extents.len()], extents)])
            },
        )
    },
    MilOp {
        ports: &[constant("x", FILLS, Default::Required)],
        constraints: &[rule("C1", "something in x is not zero, and x has axes", |a| {
            let known = a.get("x").and_then(|x| x.value.as_ref());
            !a.shape("x").is_empty() && known.is_none_or(|x| x.data.iter().any(|&value| value != 0.0))
        })],
        support: NOWHERE,
        tolerance: 0.0,
        cases: &[Case::new(
            "corners",
            &[("x", given(&[2, 2], &[3.0, 0.0, 0.0, -1.0]))],
            &[(&[2, 2], &[0.0, 0.0, 1.0, 1.0])],
            BY_HAND,
        )],
        ..base(
            "non_zero",
            "The indices of the elements of x that are not zero; x must be known when the program is compiled, because its values \
             decide the shape of the result.",
            |a| {
                let x = a.array("x")?;
                let count = x.data.iter().filter(|&&value| value != 0.0).count();
                result(a, DType::Int32, vec![count, x.ty.rank()])
            },
            non_zero,
        )
    },
];

fn fill_dtype(a: &Arguments<'_>) -> DType {
    a.get("value").map_or(DType::Fp32, |value| value.ty.dtype)
}

fn infer_fill(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    computed(a, fill_dtype(a), a.ints("shape").unwrap_or_default().into_iter().map(i128::from).collect())
}

fn infer_like(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    result(a, fill_dtype(a), a.ty("ref_tensor")?.shape.clone())
}

fn full(a: &Arguments<'_>, ty: TensorType) -> Result<Vec<Array>, OpError> {
    let data = vec![a.number("value").unwrap_or(0.0); ty.count()];
    Ok(vec![Array { ty, data }])
}

/// Start, step and number of elements of a legal range.
fn range(a: &Arguments<'_>) -> Option<(f64, f64, i128)> {
    let (start, end, step) = (a.number("start")?, a.number("end")?, a.number("step")?);
    let count = ((end - start) / step).ceil();
    (count.is_finite() && count >= 1.0).then_some((start, step, count as i128))
}

fn infer_range(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    computed(a, a.ty("end")?.dtype, vec![range(a).map_or(0, |range| range.2)])
}

/// Where the new axis of a legal `one_hot` stands in the result.
fn new_axis(a: &Arguments<'_>) -> Option<usize> {
    a.axis(a.int("axis")?, a.shape("indices").len() + 1)
}

fn infer_one_hot(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let mut shape: Vec<_> = a.ty("indices")?.shape.iter().map(|&extent| extent as i128).collect();
    shape.insert(new_axis(a).unwrap_or(0), a.int("one_hot_vector_size").unwrap_or(0).into());
    computed(a, a.get("on_value").map_or(DType::Int32, |value| value.ty.dtype), shape)
}

fn one_hot(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let indices = a.array("indices")?;
    let ty = infer_one_hot(a)?.remove(0);
    let (_, size, inner) = around(&ty.shape, new_axis(a).unwrap_or(0));
    let (on, off) = (a.number("on_value").unwrap_or(1.0), a.number("off_value").unwrap_or(0.0));
    let element = |place: usize| {
        let class = place / inner % size;
        if indices.data[place / inner / size * inner + place % inner] == class as f64 { on } else { off }
    };
    let data = (0..ty.count()).map(element).collect();
    Ok(vec![Array { ty, data }])
}

fn band_part(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let mut x = a.array("x")?.clone();
    let (lower, upper) = (a.int("lower").unwrap_or(-1), a.int("upper").unwrap_or(-1));
    let [rows, columns] = x.ty.shape.last_chunk::<2>().copied().unwrap_or([1, 1]);
    for (place, value) in x.data.iter_mut().enumerate() {
        let below = (place / columns % rows) as i64 - (place % columns) as i64;
        if (lower >= 0 && below > lower) || (upper >= 0 && -below > upper) {
            *value = 0.0;
        }
    }
    Ok(vec![x])
}

fn non_zero(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let x = a.array("x")?;
    let strides = x.strides();
    let places = x.data.iter().enumerate().filter(|(_, value)| **value != 0.0).map(|(place, _)| place);
    let index = |place: usize| strides.iter().zip(&x.ty.shape).map(move |(&step, &extent)| (place / step % extent) as f64);
    let data: Vec<_> = places.flat_map(index).collect();
    Ok(vec![Array::new(DType::Int32, [data.len() / strides.len().max(1), strides.len()], data)])
}
