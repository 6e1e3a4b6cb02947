//! Comparisons, negation and selection.

use super::broadcast::{BROADCASTS, SAME_DTYPE, broadcast, infer_as, infer_bool, zip};
use super::elementwise_binary::truth;
use super::family::{CHOOSES, PICKS, base, map, rule, same_as_x};
use super::{ANY, Arguments, BOOL, Case, Constraint, MilOp, OpError, PortSpec, given, tensor, values};
use crate::{Array, DType};

const PAIR: &[PortSpec] = &[tensor("x", ANY), tensor("y", ANY)];
const RULES: &[Constraint] = &[SAME_DTYPE, BROADCASTS];
const BY_HAND: &str = "by hand";
/// Less, equal, greater.
const THREE: &[(&str, super::Given)] = &[("x", given(&[3], &[-1.0, 0.5, 2.0])), ("y", given(&[1], &[0.5]))];

/// A comparison; `cases` expects its results on [`THREE`].
const fn comparison(
    name: &'static str,
    summary: &'static str,
    meaning: fn(&Arguments<'_>) -> Result<Vec<Array>, OpError>,
    cases: &'static [Case],
) -> MilOp {
    let record = base(name, summary, infer_bool, meaning);
    MilOp { ports: PAIR, constraints: RULES, arithmetic: CHOOSES, tolerance: 0.0, cases, ..record }
}

pub(super) const OPS: &[MilOp] = &[
    comparison(
        "greater",
        "Whether x is above y.",
        |a| zip(a, DType::Bool, |x, y| truth(x > y)),
        &[Case::new("less_equal_greater", THREE, &[(&[3], &[0.0, 0.0, 1.0])], BY_HAND)],
    ),
    comparison(
        "greater_equal",
        "Whether x is not below y.",
        |a| zip(a, DType::Bool, |x, y| truth(x >= y)),
        &[Case::new("less_equal_greater", THREE, &[(&[3], &[0.0, 1.0, 1.0])], BY_HAND)],
    ),
    comparison(
        "less",
        "Whether x is below y.",
        |a| zip(a, DType::Bool, |x, y| truth(x < y)),
        &[Case::new("less_equal_greater", THREE, &[(&[3], &[1.0, 0.0, 0.0])], BY_HAND)],
    ),
    comparison(
        "less_equal",
        "Whether x is not above y.",
        |a| zip(a, DType::Bool, |x, y| truth(x <= y)),
        &[Case::new("less_equal_greater", THREE, &[(&[3], &[1.0, 1.0, 0.0])], BY_HAND)],
    ),
    comparison(
        "equal",
        "Whether x equals y.",
        |a| zip(a, DType::Bool, |x, y| truth(x == y)),
        &[Case::new("less_equal_greater", THREE, &[(&[3], &[0.0, 1.0, 0.0])], BY_HAND)],
    ),
    comparison(
        "not_equal",
        "Whether x differs from y.",
        |a| zip(a, DType::Bool, |x, y| truth(x != y)),
        &[Case::new("less_equal_greater", THREE, &[(&[3], &[1.0, 0.0, 1.0])], BY_HAND)],
    ),
    MilOp {
        ports: &[tensor("x", BOOL)],
        arithmetic: CHOOSES,
        tolerance: 0.0,
        cases: &[Case::new("turns_both_values", &[("x", values(DType::Bool, &[2], &[0.0, 1.0]))], &[(&[2], &[1.0, 0.0])], BY_HAND)],
        ..base("logical_not", "True where x is false.", same_as_x, |a| map(a, |x| truth(x == 0.0)))
    },
    MilOp {
        ports: &[tensor("cond", BOOL), tensor("a", ANY), tensor("b", ANY)],
        constraints: &[
            rule("C1", "a and b have the same element type: cast one of them", |a| match (a.get("a"), a.get("b")) {
                (Some(x), Some(y)) => x.ty.dtype == y.ty.dtype,
                _ => true,
            }),
            rule("C2", "a and b broadcast, and cond to the shape of both: seen from the last axis, extents are equal or 1", |a| {
                broadcast(&[a.shape("a"), a.shape("b")])
                    .is_some_and(|both| broadcast(&[a.shape("cond"), &both]).is_some_and(|all| all == both))
            }),
        ],
        arithmetic: PICKS,
        published_error: Some(0.0),
        tolerance: 0.0,
        cases: &[
            Case::new(
                "picks_by_element",
                &[
                    ("cond", values(DType::Bool, &[2, 2], &[1.0, 0.0, 0.0, 1.0])),
                    ("a", given(&[2, 2], &[1.0, 2.0, 3.0, 4.0])),
                    ("b", given(&[2, 2], &[-1.0, -2.0, -3.0, -4.0])),
                ],
                &[(&[2, 2], &[1.0, -2.0, -3.0, 4.0])],
                BY_HAND,
            ),
            Case::new(
                "all_three_broadcast",
                &[
                    ("cond", values(DType::Bool, &[1, 3], &[1.0, 0.0, 1.0])),
                    ("a", given(&[3], &[0.0, 1.0, 2.0])),
                    ("b", given(&[2, 1], &[5.0, 6.0])),
                ],
                &[(&[2, 3], &[0.0, 5.0, 2.0, 0.0, 6.0, 2.0])],
                BY_HAND,
            ),
        ],
        ..base(
            "select",
            "a where cond is true, else b.",
            |a| infer_as(a, &["a", "b"], a.ty("a")?.dtype),
            |a| {
                let ty = infer_as(a, &["a", "b"], a.ty("a")?.dtype)?.remove(0);
                let expand = |port| Ok::<_, OpError>(a.array(port)?.broadcast_to(&ty.shape));
                let (cond, yes, no) = (expand("cond")?, expand("a")?, expand("b")?);
                let picked = cond.data.iter().zip(yes.data.iter().zip(&no.data));
                let data = picked.map(|(&cond, (&yes, &no))| if cond != 0.0 { yes } else { no }).collect();
                Ok(vec![Array { ty, data }])
            },
        )
    },
];
