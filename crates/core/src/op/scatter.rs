//! Updates at places that are known when the graph is built. No engine scatters: each place looks up what belongs there.

use super::pick::flat_places;
use super::*;

const MODE: AttributeSpec = word("mode", &["update", "add", "sub", "mul", "div", "max", "min"], "add");
const INPUTS: &[InputSpec] = &[input("data", FLOATS), weight("indices", INDICES), input("updates", FLOATS)];
const SAME_TYPE_RULE: &str = "data and updates have the same element type: cast one of them";

/// The first rule of the scatters that take indices of one axis.
const SAME_TYPE: Constraint = rule(
    "C1",
    SAME_TYPE_RULE,
    same_type,
    Case::refused(
        &[drawn("data", &[2]), given("indices", &[1], &[0.0]).of(DType::Int32).fixed(), drawn("updates", &[1]).of(DType::Fp32)],
        &[],
    ),
);

fn same_type(s: &Site<'_>) -> bool {
    s.dtype("data") == s.dtype("updates")
}

const fn scattering(name: &'static str, summary: &'static str, lower: LowerRule, vjp: fn(&mut Backward<'_>)) -> GraphOp {
    GraphOp { inputs: INPUTS, lower, vjp: Vjp::Rule(vjp), ..direct(name, summary) }
}

/// `data` `[outer, extent, inner]` with the rows of `updates` `[outer, count, inner]` combined into the rows that `targets` name.
fn combine(l: &mut Lowering, s: &Site<'_>, data: ValueId, updates: ValueId, targets: &[usize]) -> Result<ValueId, GraphError> {
    let &[outer, extent, inner] = l.shape(data) else { return Ok(data) };
    let mode = s.text("mode");
    let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); extent];
    targets.iter().enumerate().for_each(|(update, &target)| waiting[target].push(update));
    let rounds = waiting.iter().map(Vec::len).max().unwrap_or(0);
    if mode == "update" && rounds > 1 {
        let problem = "names a place twice, and which update wins is not defined; keep one of them".to_string();
        return Err(GraphError::Input { op: s.op.name, input: "indices".to_string(), problem });
    }
    let (op, idle) = match mode {
        "update" => ("", None),
        "sub" => ("sub", Some(0.0)),
        "mul" => ("mul", Some(1.0)),
        "div" => ("real_div", Some(1.0)),
        "max" => ("maximum", None),
        "min" => ("minimum", None),
        _ => ("add", Some(0.0)),
    };
    let mut y = data;
    for round in 0..rounds {
        // A row that waits for nothing gets a row that changes nothing: the neutral one, or its own.
        let rest = match idle {
            Some(number) => {
                l.constant("idle", TensorType::new(s.dtype("data"), [outer, 1, inner]), &vec![number; outer * inner])?
            }
            None => y,
        };
        let spare = |row: usize| targets.len() + if idle.is_some() { 0 } else { row };
        let places: Vec<f64> =
            (0..extent).map(|row| waiting[row].get(round).copied().unwrap_or_else(|| spare(row)) as f64).collect();
        let places = l.constant("places", TensorType::new(DType::Int32, [extent]), &places)?;
        let rows =
            l.op("concat", &[("values", vec![updates, rest].into()), ("axis", 1i64.into()), ("interleave", false.into())])?;
        let rows = l.op("gather", &[("x", rows.into()), ("indices", places.into()), ("axis", 1i64.into())])?;
        y = if op.is_empty() { rows } else { l.op(op, &[("x", y.into()), ("y", rows.into())])? };
    }
    Ok(y)
}

fn places(l: &Lowering, s: &Site<'_>) -> Result<Vec<f64>, GraphError> {
    let known = l.known(s.value("indices")?);
    known.ok_or_else(|| GraphError::Input { op: s.op.name, input: "indices".to_string(), problem: "cannot be read".to_string() })
}

/// Hands back the gradients: that of the updates is looked up at their places by `pick`, that of the data loses replaced places.
fn pass_back(b: &mut Backward<'_>, pick: impl Fn(&Tensor, &Tensor) -> Tensor) {
    let (grad, indices) = (b.grad(), b.input("indices"));
    let mode = b.site().text("mode").to_string();
    match mode.as_str() {
        "add" | "sub" => {
            if b.wants("updates") {
                let part = pick(&grad, &indices);
                b.give("updates", if mode == "sub" { part.neg() } else { part });
            }
            b.give("data", grad);
        }
        "update" => {
            if b.wants("updates") {
                b.give("updates", pick(&grad, &indices));
            }
            if b.wants("data") {
                let nothing = grad.constant_like(0.0).broadcast_to(b.site().shape("updates"));
                let site = b.site();
                let attributes: Vec<(&str, Attribute)> =
                    site.op.attributes.iter().map(|spec| spec.name).zip(site.attributes.iter().cloned()).collect();
                let inputs = [Argument::One(&grad), Argument::One(&indices), Argument::One(&nothing)];
                let kept = b.graph().apply_one(site.op, &inputs, &attributes);
                b.give("data", kept);
            }
        }
        _ => {
            let reason = format!("mode {mode} has none; use mode add or update, or combine with mul, maximum or minimum");
            let failed = b.graph().failed(GraphError::NotDifferentiable { op: b.site().op.name, reason });
            b.give("data", failed.clone());
            b.give("updates", failed);
        }
    }
}

/// Updates of slices.
pub static SCATTER: GraphOp = GraphOp {
    attributes: &[int("axis", Default::Int(0)), MODE],
    constraints: &[
        SAME_TYPE,
        rule(
            "C2",
            "axis is an axis of data, and updates have the shape of data with axis replaced by the axes of indices",
            |s| {
                let Some(axis) = s.axis("axis", s.rank("data")) else { return false };
                let (before, after) = (&s.shape("data")[..axis], &s.shape("data")[axis + 1..]);
                s.shape("updates") == [before, s.shape("indices"), after].concat()
            },
            Case::refused(
                &[drawn("data", &[3, 2]), given("indices", &[1], &[0.0]).of(DType::Int32).fixed(), drawn("updates", &[2, 2])],
                &[],
            ),
        ),
    ],
    cases: &[
        Case::values(
            "rows_that_meet_are_added",
            &[
                given("data", &[3, 2], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
                given("indices", &[3], &[2.0, 0.0, -1.0]).of(DType::Int32).fixed(),
                given("updates", &[3, 2], &[10.0, 20.0, 30.0, 40.0, 50.0, 60.0]),
            ],
            &[],
            (&[3, 2], &[30.0, 41.0, 2.0, 3.0, 64.0, 85.0]),
            "numpy.add.at",
        ),
        Case::values(
            "columns_are_replaced",
            &[
                given("data", &[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
                given("indices", &[1], &[1.0]).of(DType::Int32).fixed(),
                given("updates", &[2, 1], &[10.0, 20.0]),
            ],
            &[("axis", Default::Int(1)), ("mode", Default::Text("update"))],
            (&[2, 3], &[0.0, 10.0, 2.0, 3.0, 20.0, 5.0]),
            "by hand",
        ),
    ],
    ..scattering(
        "scatter",
        "data with updates combined into the slices along axis that indices name.",
        |l, s| {
            let shape = s.shape("data").to_vec();
            let axis = s.axis("axis", shape.len()).unwrap_or(0);
            let targets = flat_places(s, "indices", &places(l, s)?, &shape[axis..=axis])?;
            let (outer, inner): (usize, usize) = (shape[..axis].iter().product(), shape[axis + 1..].iter().product());
            let data = l.reshaped(s.value("data")?, &[outer, shape[axis], inner])?;
            let updates = l.reshaped(s.value("updates")?, &[outer, targets.len(), inner])?;
            let y = combine(l, s, data, updates, &targets)?;
            Ok(vec![l.reshaped(y, &shape)?])
        },
        |b| {
            let axis = b.site().int("axis");
            pass_back(b, |grad, indices| grad.gather(indices, axis));
        },
    )
};

/// Updates of slices by coordinates.
pub static SCATTER_ND: GraphOp = GraphOp {
    attributes: &[MODE],
    constraints: &[
        rule(
            "C1",
            SAME_TYPE_RULE,
            same_type,
            Case::refused(
                &[
                    drawn("data", &[2]),
                    given("indices", &[1, 1], &[0.0]).of(DType::Int32).fixed(),
                    drawn("updates", &[1]).of(DType::Fp32),
                ],
                &[],
            ),
        ),
        rule(
            "C2",
            "the last axis of indices holds coordinates for the first axes of data, and updates have the other axes of indices, then \
             those of data without coordinates",
            |s| {
                let Some((&depth, lead)) = s.shape("indices").split_last() else { return false };
                depth <= s.rank("data") && s.shape("updates") == [lead, &s.shape("data")[depth..]].concat()
            },
            Case::refused(
                &[drawn("data", &[3, 2]), given("indices", &[1, 1], &[0.0]).of(DType::Int32).fixed(), drawn("updates", &[2, 2])],
                &[],
            ),
        ),
    ],
    cases: &[Case::values(
        "elements_are_replaced",
        &[
            given("data", &[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
            given("indices", &[2, 2], &[1.0, 2.0, 0.0, 0.0]).of(DType::Int32).fixed(),
            given("updates", &[2], &[10.0, 20.0]),
        ],
        &[("mode", Default::Text("update"))],
        (&[2, 3], &[20.0, 1.0, 2.0, 3.0, 4.0, 10.0]),
        "by hand",
    )],
    ..scattering(
        "scatter_nd",
        "data with updates combined into the slices whose coordinates indices name.",
        |l, s| {
            let shape = s.shape("data").to_vec();
            let (lead, rest) = shape.split_at(s.shape("indices").last().copied().unwrap_or(0).min(shape.len()));
            let targets = flat_places(s, "indices", &places(l, s)?, lead)?;
            let (extent, inner): (usize, usize) = (lead.iter().product(), rest.iter().product());
            let data = l.reshaped(s.value("data")?, &[1, extent, inner])?;
            let updates = l.reshaped(s.value("updates")?, &[1, targets.len(), inner])?;
            let y = combine(l, s, data, updates, &targets)?;
            Ok(vec![l.reshaped(y, &shape)?])
        },
        |b| pass_back(b, Tensor::gather_nd),
    )
};

/// Updates of elements along an axis.
pub static SCATTER_ALONG_AXIS: GraphOp = GraphOp {
    attributes: &[int("axis", Default::Int(0)), MODE],
    constraints: &[
        SAME_TYPE,
        rule(
            "C2",
            "axis is an axis of data, indices and updates have one shape, that of data but for axis",
            |s| {
                let Some(axis) = s.axis("axis", s.rank("data")) else { return false };
                let extents = s.shape("data").iter().zip(s.shape("indices")).enumerate();
                s.rank("indices") == s.rank("data")
                    && s.shape("indices") == s.shape("updates")
                    && extents.into_iter().all(|(at, (data, other))| at == axis || data == other)
            },
            Case::refused(
                &[drawn("data", &[3, 2]), given("indices", &[1, 1], &[0.0]).of(DType::Int32).fixed(), drawn("updates", &[1, 1])],
                &[],
            ),
        ),
    ],
    cases: &[Case::values(
        "one_element_per_row",
        &[
            given("data", &[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
            given("indices", &[2, 1], &[2.0, 0.0]).of(DType::Int32).fixed(),
            given("updates", &[2, 1], &[10.0, 20.0]),
        ],
        &[("axis", Default::Int(1))],
        (&[2, 3], &[0.0, 1.0, 12.0, 23.0, 4.0, 5.0]),
        "by hand",
    )],
    ..scattering(
        "scatter_along_axis",
        "data with updates combined into the elements whose place along axis indices name.",
        |l, s| {
            let shape = s.shape("data").to_vec();
            let axis = s.axis("axis", shape.len()).unwrap_or(0);
            let along = flat_places(s, "indices", &places(l, s)?, &shape[axis..=axis])?;
            let inner: usize = shape[axis + 1..].iter().product();
            let rows = s.shape("indices")[axis];
            // The element of data behind each element of indices, both counted row by row.
            let element = |(at, place): (usize, usize)| (at / (rows * inner) * shape[axis] + place) * inner + at % inner;
            let targets: Vec<usize> = along.into_iter().enumerate().map(element).collect();
            let data = l.reshaped(s.value("data")?, &[1, shape.iter().product(), 1])?;
            let updates = l.reshaped(s.value("updates")?, &[1, targets.len(), 1])?;
            let y = combine(l, s, data, updates, &targets)?;
            Ok(vec![l.reshaped(y, &shape)?])
        },
        |b| {
            let axis = b.site().int("axis");
            pass_back(b, |grad, indices| grad.gather_along_axis(indices, axis));
        },
    )
};

pub(super) const ALL: &[&GraphOp] = &[&SCATTER, &SCATTER_ND, &SCATTER_ALONG_AXIS];
