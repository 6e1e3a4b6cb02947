//! Single elements and slices picked by coordinates.

use super::gather::one_hot;
use super::*;

const PLACES: InputSpec = input("indices", INDICES);

/// Look-up of single elements along an axis.
pub static GATHER_ALONG_AXIS: GraphOp = GraphOp {
    inputs: &[input("x", ANY), PLACES],
    attributes: &[int("axis", Default::Int(0))],
    constraints: &[
        rule(
            "C1",
            "axis is an axis of x",
            |s| s.axis("axis", s.rank("x")).is_some(),
            Case::refused(
                &[drawn("x", &[2, 3]), given("indices", &[1, 3], &[0.0, 1.0, 0.0]).of(DType::Int32)],
                &[("axis", Default::Int(2))],
            ),
        ),
        rule(
            "C2",
            "indices have as many axes as x and its extents but for axis",
            |s| {
                let axis = s.axis("axis", s.rank("x")).unwrap_or(0);
                let extents = s.shape("x").iter().zip(s.shape("indices")).enumerate();
                s.rank("indices") == s.rank("x") && extents.into_iter().all(|(at, (x, other))| at == axis || x == other)
            },
            Case::refused(&[drawn("x", &[2, 3]), given("indices", &[1, 2], &[0.0, 1.0]).of(DType::Int32)], &[]),
        ),
    ],
    tolerance: 0.0,
    cases: &[
        Case::values(
            "one_element_per_row",
            &[given("x", &[2, 3], &[0.0, 1.0, 2.0, 10.0, 11.0, 12.0]), given("indices", &[2, 1], &[2.0, 0.0]).of(DType::Int32)],
            &[("axis", Default::Int(1))],
            (&[2, 1], &[2.0, 10.0]),
            "numpy.take_along_axis",
        ),
        Case::shape(
            "several_per_line",
            &[drawn("x", &[2, 3, 2]), given("indices", &[2, 2, 2], &[0.0, 2.0, 1.0, 2.0, 0.0, 0.0, 0.0, 1.0]).of(DType::Int32)],
            &[("axis", Default::Int(1))],
            &[2, 2, 2],
        ),
    ],
    vjp: Vjp::Rule(|b| {
        if b.wants("x") {
            let grad = along_gradient(b);
            b.give("x", grad);
        }
    }),
    ..direct("gather_along_axis", "The elements of x whose place along axis indices name, at the places of the indices.")
};

/// Each element of the gradient added where it came from: a sum over the indices' axis of the gradient where a place is named.
fn along_gradient(b: &Backward<'_>) -> Tensor {
    let s = b.site();
    let axis = s.axis("axis", s.rank("x")).unwrap_or(0);
    scatter_along(&b.grad(), &b.input("indices"), s.shape("x"), axis)
}

/// A tensor of `shape` with each element of `part` added at the place along `axis` that `indices` name.
pub(super) fn scatter_along(part: &Tensor, indices: &Tensor, shape: &[usize], axis: usize) -> Tensor {
    let outer: usize = shape[..axis].iter().product();
    let inner: usize = shape[axis + 1..].iter().product();
    let (outer, inner) = (outer as i64, inner as i64);
    let hit = one_hot(&indices.reshape(&[outer, 1, -1, inner]), shape[axis], &[1, shape[axis], 1, 1], part);
    let all: Vec<i64> = shape.iter().map(|&extent| extent as i64).collect();
    hit.mul(&part.reshape(&[outer, 1, -1, inner])).reduce_sum(2, false).reshape(&all)
}

/// Look-up by coordinates.
pub static GATHER_ND: GraphOp = GraphOp {
    inputs: &[input("x", ANY), PLACES],
    constraints: &[
        rule(
            "C1",
            "the last axis of indices holds coordinates for the first axes of x, at least one",
            |s| s.shape("indices").last().is_some_and(|&depth| depth <= s.rank("x")),
            Case::refused(&[drawn("x", &[2]), given("indices", &[1, 2], &[0.0, 1.0]).of(DType::Int32)], &[]),
        ),
        rule(
            "C2",
            "the result has at most 5 axes: those of indices but the last, and those of x without coordinates; reshape one of them",
            |s| {
                let depth = s.shape("indices").last().copied().unwrap_or(0);
                s.rank("indices") - 1 + s.rank("x") - depth <= 5
            },
            Case::refused(&[drawn("x", &[2, 1, 1, 1]), given("indices", &[1, 1, 1, 1], &[0.0]).of(DType::Int32)], &[]),
        ),
    ],
    tolerance: 0.0,
    // Known coordinates become places in one axis: A13 has gather, but not gather_nd.
    lower: |l, s| {
        let (x, indices) = (s.value("x")?, s.value("indices")?);
        let Some(places) = l.known(indices) else {
            return l.ops("gather_nd", &[("x", x.into()), ("indices", indices.into())]);
        };
        let depth = s.shape("indices").last().copied().unwrap_or(1);
        let (lead, rest) = s.shape("x").split_at(depth);
        let flat = flat_places(s, "indices", &places, lead)?;
        let rows = l.reshaped(x, &[&[lead.iter().product()], rest].concat())?;
        let flat: Vec<f64> = flat.into_iter().map(|place| place as f64).collect();
        let shape = s.shape("indices")[..s.rank("indices") - 1].to_vec();
        let flat = l.constant("indices", TensorType::new(DType::Int32, shape), &flat)?;
        l.ops("gather", &[("x", rows.into()), ("indices", flat.into()), ("axis", 0i64.into())])
    },
    cases: &[
        Case::values(
            "elements",
            &[
                given("x", &[2, 3], &[0.0, 1.0, 2.0, 10.0, 11.0, 12.0]),
                given("indices", &[2, 2], &[1.0, 2.0, 0.0, -3.0]).of(DType::Int32).fixed(),
            ],
            &[],
            (&[2], &[12.0, 0.0]),
            "numpy: x[[1, 0], [2, -3]]",
        ),
        Case::shape(
            "rows_at_computed_places",
            &[drawn("x", &[3, 2, 2]), given("indices", &[2, 1], &[2.0, 0.0]).of(DType::Int32)],
            &[],
            &[2, 2, 2],
        ),
    ],
    vjp: Vjp::Rule(|b| {
        if b.wants("x") {
            let s = b.site();
            let grad = scatter_coordinates(&b.grad(), &b.input("indices"), s.shape("x"));
            b.give("x", grad);
        }
    }),
    ..direct("gather_nd", "The slices of x whose first coordinates the last axis of indices names.")
};

/// Places in the flattened axes `lead` of coordinates given one after the other.
///
/// # Errors
/// Where a coordinate lies outside its axis.
pub(super) fn flat_places(s: &Site<'_>, name: &str, coordinates: &[f64], lead: &[usize]) -> Result<Vec<usize>, GraphError> {
    let mut places = Vec::with_capacity(coordinates.len() / lead.len().max(1));
    for point in coordinates.chunks(lead.len().max(1)) {
        let mut place = 0;
        for (&coordinate, &extent) in point.iter().zip(lead) {
            let Some(at) = resolve_axis(coordinate as i64, extent) else {
                let problem = format!("names place {coordinate} of an axis of extent {extent}");
                return Err(GraphError::Input { op: s.op.name, input: name.to_string(), problem });
            };
            place = place * extent + at;
        }
        places.push(place);
    }
    Ok(places)
}

/// A tensor of `shape` with each slice of `part` added where its coordinates say.
fn scatter_coordinates(part: &Tensor, indices: &Tensor, shape: &[usize]) -> Tensor {
    let Ok(&[.., depth]) = indices.shape() else { return part.clone() };
    let (lead, rest) = shape.split_at(depth.min(shape.len()));
    let (count, inner): (usize, usize) = (lead.iter().product(), rest.iter().product());
    let mut flat: Option<Tensor> = None;
    let table = indices.reshape(&[-1, depth as i64]);
    for (axis, &extent) in lead.iter().enumerate() {
        let column = table.get((.., axis as i64));
        let Ok(dtype) = column.dtype() else { return column };
        // Places that count from the end, counted from the front.
        let behind = column.less(&column.constant_like(0.0)).cast(dtype);
        let column = column.add(&behind.scale(extent as f64));
        flat = Some(match flat {
            Some(outer) => outer.scale(extent as f64).add(&column),
            None => column,
        });
    }
    let Some(flat) = flat else { return part.clone() };
    let hit = one_hot(&flat.reshape(&[1, -1]), count, &[count, 1], part);
    let all: Vec<i64> = shape.iter().map(|&extent| extent as i64).collect();
    hit.matmul(&part.reshape(&[-1, inner as i64])).reshape(&all)
}

pub(super) const ALL: &[&GraphOp] = &[&GATHER_ALONG_AXIS, &GATHER_ND];
