//! Arithmetic of two values, broadcast.

use super::broadcast::{BROADCASTS, SAME_DTYPE, infer_pair, zip};
use super::family::{PICKS, ROUNDED_ONCE, base};
use super::{
    ALL_FAMILIES, Arguments, Arithmetic, BOOL, Case, Constraint, FLOATS, MilOp, NOWHERE, NUMBERS, OpError, PortSpec, given, sample,
    tensor, values,
};
use crate::{Array, DType};

const NUMBER_PAIR: &[PortSpec] = &[tensor("x", NUMBERS), tensor("y", NUMBERS)];
const FLOAT_PAIR: &[PortSpec] = &[tensor("x", FLOATS), tensor("y", FLOATS)];
const BOOL_PAIR: &[PortSpec] = &[tensor("x", BOOL), tensor("y", BOOL)];
const RULES: &[Constraint] = &[SAME_DTYPE, BROADCASTS];
const LOGICAL_RULES: &[Constraint] = &[Constraint { label: "C1", ..BROADCASTS }];
const BY_HAND: &str = "by hand";

const A: &[f64] = &[-2.0, -0.5, 0.0, 0.25, 1.5, 3.0];
const ROW: &[f64] = &[1.0, 2.0, -4.0];

const fn pair(name: &'static str, summary: &'static str, meaning: fn(&Arguments<'_>) -> Result<Vec<Array>, OpError>) -> MilOp {
    MilOp { ports: NUMBER_PAIR, constraints: RULES, arithmetic: ROUNDED_ONCE, ..base(name, summary, infer_pair, meaning) }
}

pub(super) const OPS: &[MilOp] = &[
    MilOp {
        published_error: Some(3e-4),
        cases: &[
            Case::new(
                "row_broadcasts_over_rows",
                &[("x", given(&[2, 3], A)), ("y", given(&[3], ROW))],
                &[(&[2, 3], &[-1.0, 1.5, -4.0, 1.25, 3.5, -1.0])],
                BY_HAND,
            ),
            Case::new(
                "scalar_broadcasts_over_everything",
                &[("x", given(&[3], ROW)), ("y", given(&[], &[0.5]))],
                &[(&[3], &[1.5, 2.5, -3.5])],
                BY_HAND,
            ),
            Case::new(
                "both_sides_broadcast",
                &[("x", given(&[2, 1], &[1.0, 2.0])), ("y", given(&[1, 3], ROW))],
                &[(&[2, 3], &[2.0, 3.0, -3.0, 3.0, 4.0, -2.0])],
                BY_HAND,
            ),
            Case::oracle("two_maps", &[("x", sample(&[1, 4, 3, 2], 1)), ("y", sample(&[1, 4, 3, 2], 2))]),
        ],
        ..pair("add", "x + y.", |a| numbers(a, |x, y| x + y))
    },
    MilOp {
        arithmetic: Arithmetic::Exact(
            "exact difference rounded once, half away from zero: reproduces the Jacobi solver error of arXiv 2606.17090",
        ),
        published_error: Some(3e-4),
        cases: &[Case::new(
            "second_from_first",
            &[("x", given(&[2, 3], A)), ("y", given(&[3], ROW))],
            &[(&[2, 3], &[-3.0, -2.5, 4.0, -0.75, -0.5, 7.0])],
            BY_HAND,
        )],
        support: ALL_FAMILIES.limited("subtraction of a constant is addition of its negation"),
        ..pair("sub", "x - y.", |a| numbers(a, |x, y| x - y))
    },
    MilOp {
        arithmetic: Arithmetic::Exact(
            "product rounded half away to 11 bits, then half away once more where it is below 2^-14: reproduces the Jacobi solver \
             error of arXiv 2606.17090",
        ),
        published_error: Some(1.7e-4),
        cases: &[Case::new(
            "channel_scale",
            &[("x", given(&[1, 2, 3], A)), ("y", given(&[1, 2, 1], &[2.0, -4.0]))],
            &[(&[1, 2, 3], &[-4.0, -1.0, 0.0, -1.0, -6.0, -12.0])],
            BY_HAND,
        )],
        ..pair("mul", "x times y.", |a| numbers(a, |x, y| x * y))
    },
    MilOp {
        ports: FLOAT_PAIR,
        domain: &[("y", 0.5, 3.0)],
        published_error: Some(1.7e-4),
        cases: &[Case::new(
            "quotients",
            &[("x", given(&[2, 3], A)), ("y", given(&[3], ROW))],
            &[(&[2, 3], &[-2.0, -0.25, 0.0, 0.25, 0.75, -0.75])],
            BY_HAND,
        )],
        ..pair("real_div", "x / y.", |a| numbers(a, |x, y| x / y))
    },
    MilOp {
        domain: &[("x", -20.0, 20.0), ("y", 1.0, 4.0)],
        // A quotient that rounds across an integer moves the result by a whole unit.
        tolerance: 0.2,
        cases: &[
            Case::new(
                "rounds_towards_minus_infinity",
                &[("x", given(&[4], &[7.0, -7.0, 7.0, -8.0])), ("y", given(&[4], &[2.0, 2.0, -2.0, 4.0]))],
                &[(&[4], &[3.0, -4.0, -4.0, -2.0])],
                BY_HAND,
            ),
            Case::new(
                "works_on_integers",
                &[("x", values(DType::Int32, &[2], &[9.0, -9.0])), ("y", values(DType::Int32, &[], &[4.0]))],
                &[(&[2], &[2.0, -3.0])],
                BY_HAND,
            ),
        ],
        ..pair("floor_div", "The largest integer that is not above x / y.", |a| numbers(a, |x, y| (x / y).floor()))
    },
    MilOp {
        arithmetic: Arithmetic::Unknown,
        support: NOWHERE,
        domain: &[("x", -20.0, 20.0), ("y", 1.0, 4.0)],
        tolerance: 0.2,
        cases: &[Case::new(
            "takes_the_sign_of_y",
            &[("x", given(&[4], &[7.0, -7.0, 7.5, -7.0])), ("y", given(&[4], &[4.0, 4.0, -4.0, -4.0]))],
            &[(&[4], &[3.0, 1.0, -0.5, -3.0])],
            BY_HAND,
        )],
        ..pair("mod", "x - y floor(x / y).", |a| numbers(a, |x, y| x - y * (x / y).floor()))
    },
    MilOp {
        arithmetic: PICKS,
        published_error: Some(0.0),
        tolerance: 0.0,
        cases: &[Case::new(
            "larger_of_two",
            &[("x", given(&[2, 3], A)), ("y", given(&[], &[0.125]))],
            &[(&[2, 3], &[0.125, 0.125, 0.125, 0.25, 1.5, 3.0])],
            BY_HAND,
        )],
        ..pair("maximum", "The larger of x and y.", |a| numbers(a, |x, y| if x > y || x.is_nan() { x } else { y }))
    },
    MilOp {
        arithmetic: PICKS,
        published_error: Some(0.0),
        tolerance: 0.0,
        cases: &[Case::new(
            "smaller_of_two",
            &[("x", given(&[2, 3], A)), ("y", given(&[], &[0.125]))],
            &[(&[2, 3], &[-2.0, -0.5, 0.0, 0.125, 0.125, 0.125])],
            BY_HAND,
        )],
        ..pair("minimum", "The smaller of x and y.", |a| numbers(a, |x, y| if x < y || x.is_nan() { x } else { y }))
    },
    MilOp {
        arithmetic: Arithmetic::Modelled("exact power rounded once to fp16; how the engine computes it is not published"),
        domain: &[("x", 0.25, 3.0), ("y", -2.0, 2.0)],
        published_error: Some(1.8e-4),
        cases: &[Case::new(
            "whole_and_half_exponents",
            &[("x", given(&[4], &[2.0, 4.0, -3.0, 0.5])), ("y", given(&[4], &[3.0, 0.5, 2.0, -1.0]))],
            &[(&[4], &[8.0, 2.0, 9.0, 2.0])],
            BY_HAND,
        )],
        ..pair("pow", "x to the power of y.", |a| numbers(a, f64::powf))
    },
    logical(
        "logical_and",
        "True where both are.",
        |a| zip(a, DType::Bool, |x, y| truth(x != 0.0 && y != 0.0)),
        &[Case::new("truth_table", TRUTH, &[(&[4], &[0.0, 0.0, 0.0, 1.0])], BY_HAND)],
    ),
    logical(
        "logical_or",
        "True where one or both are.",
        |a| zip(a, DType::Bool, |x, y| truth(x != 0.0 || y != 0.0)),
        &[Case::new("truth_table", TRUTH, &[(&[4], &[0.0, 1.0, 1.0, 1.0])], BY_HAND)],
    ),
    logical(
        "logical_xor",
        "True where exactly one is.",
        |a| zip(a, DType::Bool, |x, y| truth((x != 0.0) != (y != 0.0))),
        &[Case::new("truth_table", TRUTH, &[(&[4], &[0.0, 1.0, 1.0, 0.0])], BY_HAND)],
    ),
];

const TRUTH: &[(&str, super::Given)] =
    &[("x", values(DType::Bool, &[4], &[0.0, 0.0, 1.0, 1.0])), ("y", values(DType::Bool, &[4], &[0.0, 1.0, 0.0, 1.0]))];

const fn logical(
    name: &'static str,
    summary: &'static str,
    meaning: fn(&Arguments<'_>) -> Result<Vec<Array>, OpError>,
    cases: &'static [Case],
) -> MilOp {
    let record = pair(name, summary, meaning);
    MilOp {
        ports: BOOL_PAIR,
        constraints: LOGICAL_RULES,
        arithmetic: Arithmetic::Unknown,
        support: NOWHERE,
        tolerance: 0.0,
        cases,
        ..record
    }
}

/// A truth value as a number.
pub(super) fn truth(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

fn numbers(a: &Arguments<'_>, f: impl Fn(f64, f64) -> f64) -> Result<Vec<Array>, OpError> {
    zip(a, a.ty("x")?.dtype, f)
}
