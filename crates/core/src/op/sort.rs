//! The largest values in order, and orders.

use super::pick::scatter_along;
use super::*;

/// Most values that are found one after the other.
const ROUNDS: i64 = 64;

const AXIS: &str = "axis is an axis of x";
const PAIR: &[Sample] = &[given("x", &[2, 4], &[1.0, 7.0, -3.0, 7.0, 0.5, -2.0, 4.0, 3.0])];

/// The largest values.
pub static TOPK_VALUES: GraphOp = GraphOp {
    attributes: &[
        int("k", Default::Int(1)),
        int("axis", Default::Int(-1)),
        flag("ascending", false),
        word("output_indices_dtype", &["int32", "uint16", "fp16"], "int32"),
    ],
    constraints: &[
        rule(
            "C1",
            AXIS,
            |s| s.axis("axis", s.rank("x")).is_some(),
            Case::refused(&[drawn("x", &[2, 3])], &[("axis", Default::Int(2))]),
        ),
        rule(
            "C2",
            "k is between 1 and the extent of axis",
            |s| {
                let extent = s.axis("axis", s.rank("x")).map_or(0, |axis| s.shape("x")[axis]);
                s.size("k").is_some_and(|k| (1..=extent).contains(&k))
            },
            Case::refused(&[drawn("x", &[2, 3])], &[("k", Default::Int(4))]),
        ),
        rule(
            "C3",
            "with fp16 positions, k is at most 64 and the axis at most 2048 long: use int32",
            |s| {
                let extent = s.axis("axis", s.rank("x")).map_or(0, |axis| s.shape("x")[axis]);
                s.text("output_indices_dtype") != "fp16" || (s.int("k") <= ROUNDS && extent <= 2048)
            },
            Case::refused(&[drawn("x", &[65])], &[("k", Default::Int(65)), ("output_indices_dtype", Default::Text("fp16"))]),
        ),
    ],
    tolerance: 0.0,
    lower: |l, s| {
        if s.text("output_indices_dtype") == "fp16" {
            return one_after_the_other(l, s);
        }
        let axis = s.axis("axis", s.rank("x")).unwrap_or(0) as i64;
        let mut arguments: Vec<(&str, Arg)> = vec![
            ("x", s.value("x")?.into()),
            ("k", s.int("k").into()),
            ("axis", axis.into()),
            ("ascending", s.flag("ascending").into()),
        ];
        if s.text("output_indices_dtype") == "uint16" {
            arguments.push(("output_indices_dtype", "uint16".into()));
        }
        l.ops("topk", &arguments)
    },
    cases: &[
        Case::values("two_largest", PAIR, &[("k", Default::Int(2))], (&[2, 2], &[7.0, 7.0, 4.0, 3.0]), "numpy: -sort(-x)"),
        Case::values(
            "two_smallest_one_after_the_other",
            PAIR,
            &[("k", Default::Int(2)), ("ascending", Default::Flag(true)), ("output_indices_dtype", Default::Text("fp16"))],
            (&[2, 2], &[-3.0, 1.0, -2.0, 0.5]),
            "numpy: sort(x)",
        ),
        Case::shape("down_the_rows", &[drawn("x", &[5, 2])], &[("k", Default::Int(3)), ("axis", Default::Int(0))], &[3, 2]),
    ],
    vjp: Vjp::Rule(|b| {
        let s = b.site();
        let axis = s.axis("axis", s.rank("x")).unwrap_or(0);
        let grad = scatter_along(&b.grad(), &b.output_at(1), s.shape("x"), axis);
        b.give("x", grad);
    }),
    ..direct(
        "topk_values",
        "The k largest values along axis in order, or the smallest, and their positions; the first of equal values comes first. With \
         fp16 positions it is composed of maxima, which every chip has, and works for values above -65504 (below 65504 where the \
         smallest are wanted).",
    )
};

/// The largest value, its first position, then the same without that position, k times.
fn one_after_the_other(l: &mut Lowering, s: &Site<'_>) -> Result<Vec<ValueId>, GraphError> {
    let (x, shape, axis) = (s.value("x")?, s.shape("x").to_vec(), s.axis("axis", s.rank("x")).unwrap_or(0));
    let (pick, gone) = if s.flag("ascending") { ("reduce_min", 65504.0) } else { ("reduce_max", -65504.0) };
    let (dtype, axes) = (s.dtype("x"), vec![axis as i64]);
    let mut line = vec![1; shape.len()];
    line[axis] = shape[axis];
    let places: Vec<f64> = (0..shape[axis]).map(|place| place as f64).collect();
    let places = l.constant("places", TensorType::new(DType::Fp16, line.as_slice()), &places)?;
    let (mut rest, mut values, mut positions) = (x, Vec::new(), Vec::new());
    for round in 0..s.int("k") {
        let best = l.op(pick, &[("x", rest.into()), ("axes", axes.clone().into()), ("keep_dims", true.into())])?;
        let hit = l.op("equal", &[("x", rest.into()), ("y", best.into())])?;
        let candidates = super::position::candidates(l, hit, &line, axis)?;
        let position =
            l.op("reduce_min", &[("x", candidates.into()), ("axes", axes.clone().into()), ("keep_dims", true.into())])?;
        values.push(best);
        positions.push(position);
        if round + 1 < s.int("k") {
            let taken = l.op("equal", &[("x", places.into()), ("y", position.into())])?;
            rest = l.op("select", &[("cond", taken.into()), ("a", Arg::Float(dtype, gone)), ("b", rest.into())])?;
        }
    }
    let mut join = |parts: Vec<ValueId>| match *parts.as_slice() {
        [one] => Ok(one),
        _ => l.op("concat", &[("values", parts.into()), ("axis", (axis as i64).into()), ("interleave", false.into())]),
    };
    Ok(vec![join(values)?, join(positions)?])
}

/// Order.
pub static ARGSORT: GraphOp = GraphOp {
    attributes: &[int("axis", Default::Int(-1)), flag("ascending", false)],
    constraints: &[rule(
        "C1",
        AXIS,
        |s| s.axis("axis", s.rank("x")).is_some(),
        Case::refused(&[drawn("x", &[2, 3])], &[("axis", Default::Int(2))]),
    )],
    tolerance: 0.0,
    vjp: Vjp::None("positions have no slope; use topk_values, whose values have one"),
    cases: &[
        Case::values(
            "largest_first",
            PAIR,
            &[],
            (&[2, 4], &[1.0, 3.0, 0.0, 2.0, 2.0, 3.0, 0.0, 1.0]),
            "numpy: argsort(-x, stable)",
        ),
        Case::values(
            "smallest_first_down_the_rows",
            PAIR,
            &[("axis", Default::Int(0)), ("ascending", Default::Flag(true))],
            (&[2, 4], &[1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0]),
            "numpy: argsort(x, axis=0)",
        ),
    ],
    ..direct(
        "argsort",
        "The positions that sort x along axis, largest first unless ascending; the first of equal values comes first.",
    )
};

pub(super) const ALL: &[&GraphOp] = &[&TOPK_VALUES, &ARGSORT];
