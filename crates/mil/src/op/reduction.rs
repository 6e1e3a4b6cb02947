//! Reductions over axes, and running sums.

use super::family::{CHOOSES, COMPOSED, PICKS, REDUCED, around, axes, axis, base, integers, legal_axis, rule, same_as_x};
use super::general::result;
use super::{
    ALL_FAMILIES, Arguments, Arithmetic, BOOL, Case, Constraint, Default, MilOp, NOWHERE, NUMBERS, OpError, PortSpec, TEXT,
    constant, flag, given, int, ints, sample, tensor,
};
use crate::{Array, DType, TensorType};

const PORTS: &[PortSpec] =
    &[tensor("x", NUMBERS), integers("axes", Default::Absent), constant("keep_dims", BOOL, Default::Flag(false))];
const RULES: &[Constraint] = &[rule("C1", "axes are distinct axes of x", |a| axes(a, "axes", a.shape("x").len()).is_some())];
const ARG_PORTS: &[PortSpec] = &[
    tensor("x", NUMBERS),
    integers("axis", Default::Int(-1)),
    constant("keep_dims", BOOL, Default::Flag(false)),
    constant("output_dtype", TEXT, Default::Text("int32")),
];
const ARG_RULES: &[Constraint] = &[
    rule("C1", "axis is an axis of x", |a| axis(a, "axis", a.shape("x").len()).is_some()),
    rule("C2", "output_dtype is int32 or uint16", |a| matches!(a.text("output_dtype"), Some("int32" | "uint16"))),
];

const BY_HAND: &str = "by hand";
const X: super::Given = given(&[2, 3], &[1.0, -2.0, 3.0, 4.0, 5.0, -6.0]);
const POSITIVE: super::Given = given(&[2, 2], &[1.0, 3.0, 0.25, 0.75]);
const LAST: super::Given = ints(&[1], &[-1.0]);
/// A map reduced over its plane, as in a global pool.
const PLANE: &[(&str, super::Given)] =
    &[("x", sample(&[2, 3, 4, 5], 11)), ("axes", ints(&[2], &[2.0, 3.0])), ("keep_dims", flag(true))];

const fn reduce(
    name: &'static str,
    summary: &'static str,
    meaning: fn(&Arguments<'_>) -> Result<Vec<Array>, OpError>,
    cases: &'static [Case],
) -> MilOp {
    MilOp { ports: PORTS, constraints: RULES, arithmetic: REDUCED, cases, ..base(name, summary, infer, meaning) }
}

pub(super) const OPS: &[MilOp] = &[
    MilOp {
        published_error: Some(8e-4),
        ..reduce(
            "reduce_sum",
            "The sum over axes.",
            |a| fold(a, |values| values.iter().sum()),
            &[
                Case::new("rows", &[("x", X), ("axes", LAST)], &[(&[2], &[2.0, 3.0])], BY_HAND),
                Case::new("everything_by_default", &[("x", X)], &[(&[], &[5.0])], BY_HAND),
                Case::new(
                    "columns_kept",
                    &[("x", X), ("axes", ints(&[1], &[0.0])), ("keep_dims", flag(true))],
                    &[(&[1, 3], &[5.0, 3.0, -3.0])],
                    BY_HAND,
                ),
                Case::oracle("plane", PLANE),
            ],
        )
    },
    MilOp {
        published_error: Some(8e-4),
        ..reduce(
            "reduce_mean",
            "The mean over axes.",
            |a| fold(a, |values| values.iter().sum::<f64>() / values.len() as f64),
            &[
                Case::new("columns", &[("x", X), ("axes", ints(&[1], &[0.0]))], &[(&[3], &[2.5, 1.5, -1.5])], BY_HAND),
                Case::oracle("plane", PLANE),
            ],
        )
    },
    MilOp {
        arithmetic: PICKS,
        published_error: Some(0.0),
        tolerance: 0.0,
        ..reduce(
            "reduce_max",
            "The largest value over axes.",
            |a| fold(a, |values| values.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
            &[Case::new("rows", &[("x", X), ("axes", LAST)], &[(&[2], &[3.0, 5.0])], BY_HAND), Case::oracle("plane", PLANE)],
        )
    },
    MilOp {
        arithmetic: PICKS,
        published_error: Some(0.0),
        tolerance: 0.0,
        ..reduce(
            "reduce_min",
            "The smallest value over axes.",
            |a| fold(a, |values| values.iter().copied().fold(f64::INFINITY, f64::min)),
            &[Case::new("rows", &[("x", X), ("axes", LAST)], &[(&[2], &[-2.0, -6.0])], BY_HAND)],
        )
    },
    MilOp {
        arithmetic: Arithmetic::Unknown,
        support: NOWHERE,
        ..reduce(
            "reduce_prod",
            "The product over axes.",
            |a| fold(a, |values| values.iter().product()),
            &[Case::new("rows", &[("x", X), ("axes", LAST)], &[(&[2], &[-6.0, -120.0])], BY_HAND)],
        )
    },
    MilOp {
        published_error: Some(7.1e-4),
        ..reduce(
            "reduce_l1_norm",
            "The sum of magnitudes over axes.",
            |a| fold(a, |values| values.iter().map(|x| x.abs()).sum()),
            &[Case::new("rows", &[("x", X), ("axes", LAST)], &[(&[2], &[6.0, 15.0])], BY_HAND)],
        )
    },
    MilOp {
        arithmetic: COMPOSED,
        ..reduce(
            "reduce_l2_norm",
            "The root of the sum of squares over axes.",
            |a| fold(a, |values| values.iter().map(|x| x * x).sum::<f64>().sqrt()),
            &[
                Case::new("three_four_five", &[("x", given(&[1, 2], &[3.0, -4.0])), ("axes", LAST)], &[(&[1], &[5.0])], BY_HAND),
                Case::oracle("plane", PLANE),
            ],
        )
    },
    MilOp {
        arithmetic: COMPOSED,
        published_error: Some(5.4e-4),
        support: ALL_FAMILIES.limited("one more rounding to fp16 between square and sum on the M1"),
        ..reduce(
            "reduce_sum_square",
            "The sum of squares over axes; the M1 rounds once more between square and sum.",
            |a| fold(a, |values| values.iter().map(|x| x * x).sum()),
            &[Case::new("rows", &[("x", X), ("axes", LAST)], &[(&[2], &[14.0, 77.0])], BY_HAND)],
        )
    },
    MilOp {
        arithmetic: COMPOSED,
        domain: &[("x", 0.1, 2.0)],
        published_error: Some(9.1e-4),
        ..reduce(
            "reduce_log_sum",
            "The logarithm of the sum over axes.",
            |a| fold(a, |values| values.iter().sum::<f64>().ln()),
            &[Case::new("rows", &[("x", POSITIVE), ("axes", LAST)], &[(&[2], &[2.0 * std::f64::consts::LN_2, 0.0])], BY_HAND)],
        )
    },
    MilOp {
        arithmetic: COMPOSED,
        published_error: Some(7.7e-4),
        ..reduce(
            "reduce_log_sum_exp",
            "The logarithm of the sum of exponentials over axes, the maximum taken out first.",
            |a| fold(a, log_sum_exp),
            &[
                Case::new(
                    "equal_values_add_log_of_their_number",
                    &[("x", given(&[2, 4], &[1.0, 1.0, 1.0, 1.0, 300.0, 300.0, 300.0, 300.0])), ("axes", LAST)],
                    &[(&[2], &[1.0 + 2.0 * std::f64::consts::LN_2, 300.0 + 2.0 * std::f64::consts::LN_2])],
                    BY_HAND,
                ),
                Case::oracle("plane", PLANE),
            ],
        )
    },
    MilOp {
        ports: ARG_PORTS,
        constraints: ARG_RULES,
        arithmetic: CHOOSES,
        tolerance: 0.0,
        cases: &[
            Case::new(
                "first_of_equal_values",
                &[("x", given(&[2, 3], &[1.0, 7.0, 7.0, 4.0, 2.0, 3.0]))],
                &[(&[2], &[1.0, 0.0])],
                BY_HAND,
            ),
            Case::new(
                "over_rows_kept",
                &[("x", X), ("axis", int(&[0.0])), ("keep_dims", flag(true))],
                &[(&[1, 3], &[1.0, 1.0, 0.0])],
                BY_HAND,
            ),
        ],
        ..base("reduce_argmax", "The index of the largest value along an axis, the first one of several.", infer_arg, |a| {
            position(a, |candidate, best| candidate > best)
        })
    },
    MilOp {
        ports: ARG_PORTS,
        constraints: ARG_RULES,
        arithmetic: CHOOSES,
        support: super::native_from(15),
        tolerance: 0.0,
        cases: &[Case::new("smallest_value", &[("x", X)], &[(&[2], &[1.0, 2.0])], BY_HAND)],
        ..base("reduce_argmin", "The index of the smallest value along an axis, the first one of several.", infer_arg, |a| {
            position(a, |candidate, best| candidate < best)
        })
    },
    MilOp {
        ports: &[
            tensor("x", NUMBERS),
            integers("axis", Default::Int(0)),
            constant("exclusive", BOOL, Default::Flag(false)),
            constant("reverse", BOOL, Default::Flag(false)),
        ],
        constraints: &[rule("C1", "axis is an axis of x", |a| axis(a, "axis", a.shape("x").len()).is_some())],
        arithmetic: REDUCED,
        cases: &[
            Case::new("down_the_rows", &[("x", X)], &[(&[2, 3], &[1.0, -2.0, 3.0, 5.0, 3.0, -3.0])], BY_HAND),
            Case::new(
                "from_the_end_without_itself",
                &[("x", X), ("axis", int(&[1.0])), ("exclusive", flag(true)), ("reverse", flag(true))],
                &[(&[2, 3], &[1.0, 3.0, 0.0, -1.0, -6.0, 0.0])],
                BY_HAND,
            ),
        ],
        support: ALL_FAMILIES.limited("reached on a curated runtime path"),
        ..base("cumsum", "The running sum along an axis.", same_as_x, cumsum)
    },
];

fn log_sum_exp(values: &[f64]) -> f64 {
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    largest + values.iter().map(|x| (x - largest).exp()).sum::<f64>().ln()
}

fn reduced_shape(a: &Arguments<'_>, shape: &[usize], gone: &[usize]) -> Vec<usize> {
    let keep = a.flag("keep_dims");
    let extents = shape.iter().enumerate();
    extents.filter_map(|(axis, &extent)| if gone.contains(&axis) { keep.then_some(1) } else { Some(extent) }).collect()
}

fn infer(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let x = a.ty("x")?;
    let gone = axes(a, "axes", x.rank()).unwrap_or_default();
    result(a, x.dtype, reduced_shape(a, &x.shape, &gone))
}

/// `f` of all values that end in one element of the result, in row-major order.
fn fold(a: &Arguments<'_>, f: impl Fn(&[f64]) -> f64) -> Result<Vec<Array>, OpError> {
    let x = a.array("x")?;
    let gone = axes(a, "axes", x.ty.rank()).unwrap_or_default();
    let kept: Vec<_> = (0..x.ty.rank()).filter(|axis| !gone.contains(axis)).collect();
    let mut sorted = gone.clone();
    sorted.sort_unstable();
    let together: usize = sorted.iter().map(|&axis| x.ty.shape[axis]).product();
    let order: Vec<_> = kept.iter().chain(&sorted).copied().collect();
    let data = x.transposed(&order).data.chunks(together).map(f).collect();
    Ok(vec![Array::new(x.ty.dtype, reduced_shape(a, &x.ty.shape, &gone), data)])
}

fn index_dtype(a: &Arguments<'_>) -> DType {
    a.text("output_dtype").and_then(DType::from_keyword).unwrap_or(DType::Int32)
}

fn infer_arg(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let x = a.ty("x")?;
    result(a, index_dtype(a), reduced_shape(a, &x.shape, &[legal_axis(a, "axis", x.rank())]))
}

fn position(a: &Arguments<'_>, better: impl Fn(f64, f64) -> bool) -> Result<Vec<Array>, OpError> {
    let x = a.array("x")?;
    let axis = legal_axis(a, "axis", x.ty.rank());
    let (outer, extent, inner) = around(&x.ty.shape, axis);
    let mut data = Vec::with_capacity(outer * inner);
    for start in (0..outer).flat_map(|block| (0..inner).map(move |lane| block * extent * inner + lane)) {
        let mut best = 0;
        for index in 1..extent {
            if better(x.data[start + index * inner], x.data[start + best * inner]) {
                best = index;
            }
        }
        data.push(best as f64);
    }
    Ok(vec![Array::new(index_dtype(a), reduced_shape(a, &x.ty.shape, &[axis]), data)])
}

fn cumsum(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let mut y = a.array("x")?.clone();
    let (outer, extent, inner) = around(&y.ty.shape, legal_axis(a, "axis", y.ty.rank()));
    let (exclusive, reverse) = (a.flag("exclusive"), a.flag("reverse"));
    for start in (0..outer).flat_map(|block| (0..inner).map(move |lane| block * extent * inner + lane)) {
        let mut sum = 0.0;
        for step in 0..extent {
            let at = start + if reverse { extent - 1 - step } else { step } * inner;
            let before = sum;
            sum += y.data[at];
            y.data[at] = if exclusive { before } else { sum };
        }
    }
    Ok(vec![y])
}
