//! One-hot vectors, bands, and lines of a tensor in another arrangement.

use super::*;

/// One-hot vectors.
pub static ONE_HOT: GraphOp = GraphOp {
    inputs: &[input("indices", INDICES)],
    attributes: &[
        int("one_hot_vector_size", Default::Required),
        int("axis", Default::Int(-1)),
        float("on_value", 1.0),
        float("off_value", 0.0),
    ],
    constraints: &[
        rule(
            "C1",
            "axis is an axis of the result, which has at most 5",
            |s| s.rank("indices") < 5 && s.axis("axis", s.rank("indices") + 1).is_some(),
            Case::refused(
                &[given("indices", &[1], &[0.0]).of(DType::Int32)],
                &[("one_hot_vector_size", Default::Int(2)), ("axis", Default::Int(2))],
            ),
        ),
        rule(
            "C2",
            "one_hot_vector_size is positive",
            |s| (1..1 << 24).contains(&s.int("one_hot_vector_size")),
            Case::refused(&[given("indices", &[1], &[0.0]).of(DType::Int32)], &[("one_hot_vector_size", Default::Int(0))]),
        ),
    ],
    tolerance: 0.0,
    vjp: Vjp::None("indices are integers"),
    lower: |l, s| {
        let (indices, dtype) = (s.value("indices")?, s.dtype("indices"));
        let rank = s.rank("indices") + 1;
        let axis = s.axis("axis", rank).unwrap_or(0);
        let size = s.size("one_hot_vector_size").unwrap_or(1);
        let mut shape = s.shape("indices").to_vec();
        shape.insert(axis, 1);
        let indices = l.reshaped(indices, &shape)?;
        let mut line = vec![1; rank];
        line[axis] = size;
        let places: Vec<f64> = (0..size).map(|place| place as f64).collect();
        let places = l.constant("places", TensorType::new(dtype, line), &places)?;
        let hit = l.op("equal", &[("x", indices.into()), ("y", places.into())])?;
        let hit = l.op("cast", &[("x", hit.into()), ("dtype", "fp16".into())])?;
        let (on, off) = (s.float("on_value").unwrap_or(1.0), s.float("off_value").unwrap_or(0.0));
        if (on, off) == (1.0, 0.0) {
            return Ok(vec![hit]);
        }
        // One of the two products is 0, so the sum is the other number itself.
        let mut steps = super::steps::Steps::new(l, hit);
        let miss = steps.two("sub", 1.0, hit)?;
        let (on, off) = (steps.two("mul", hit, on)?, steps.two("mul", miss, off)?);
        Ok(vec![steps.two("add", on, off)?])
    },
    cases: &[
        Case::values(
            "a_row_per_index",
            &[given("indices", &[3], &[2.0, 0.0, 1.0]).of(DType::Int32)],
            &[("one_hot_vector_size", Default::Int(3))],
            (&[3, 3], &[0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0]),
            "by hand",
        ),
        Case::values(
            "other_values_in_front",
            &[given("indices", &[2], &[1.0, 9.0]).of(DType::Int32)],
            &[
                ("one_hot_vector_size", Default::Int(2)),
                ("axis", Default::Int(0)),
                ("on_value", Default::Float(5.0)),
                ("off_value", Default::Float(-1.0)),
            ],
            (&[2, 2], &[-1.0, -1.0, 5.0, -1.0]),
            "by hand",
        ),
    ],
    ..direct("one_hot", "on_value where the place along a new axis is the index, else off_value; fp16.")
};

/// A band around the diagonal.
pub static BAND_PART: GraphOp = GraphOp {
    attributes: &[int("lower", Default::Int(-1)), int("upper", Default::Int(-1))],
    constraints: &[rule(
        "C1",
        "x has at least two axes: reshape it",
        |s| s.rank("x") >= 2,
        Case::refused(&[drawn("x", &[3])], &[]),
    )],
    tolerance: 0.0,
    lower: |l, s| {
        let Some(&[rows, columns]) = s.shape("x").last_chunk::<2>() else { return Ok(vec![s.value("x")?]) };
        let (lower, upper) = (s.int("lower"), s.int("upper"));
        let inside = |at: usize| {
            let (row, column) = ((at / columns) as i64, (at % columns) as i64);
            f64::from(u8::from((lower < 0 || row - column <= lower) && (upper < 0 || column - row <= upper)))
        };
        let band: Vec<f64> = (0..rows * columns).map(inside).collect();
        let band = l.constant("band", TensorType::new(DType::Bool, [rows, columns]), &band)?;
        let zero = Arg::Float(s.dtype("x"), 0.0);
        l.ops("select", &[("cond", band.into()), ("a", s.value("x")?.into()), ("b", zero)])
    },
    cases: &[
        Case::values(
            "lower_triangle",
            &[given("x", &[3, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])],
            &[("upper", Default::Int(0))],
            (&[3, 3], &[1.0, 0.0, 0.0, 4.0, 5.0, 0.0, 7.0, 8.0, 9.0]),
            "numpy.tril",
        ),
        Case::shape(
            "two_sided_band_of_matrices",
            &[drawn("x", &[2, 3, 4])],
            &[("lower", Default::Int(1)), ("upper", Default::Int(1))],
            &[2, 3, 4],
        ),
    ],
    vjp: Vjp::Rule(|b| {
        let grad = b.grad().band_part(b.site().int("lower"), b.site().int("upper"));
        b.give("x", grad);
    }),
    ..direct("band_part", "The last two axes of x with zeros more than lower below or upper above the diagonal; -1 keeps all.")
};

/// Beginnings of lines backwards.
pub static REVERSE_SEQUENCE: GraphOp = GraphOp {
    inputs: X_ANY,
    attributes: &[ints("lengths", Default::Required), int("seq_axis", Default::Int(1)), int("batch_axis", Default::Int(0))],
    constraints: &[
        rule(
            "C1",
            "seq_axis and batch_axis are two axes of x",
            |s| {
                let axes = (s.axis("seq_axis", s.rank("x")), s.axis("batch_axis", s.rank("x")));
                matches!(axes, (Some(sequence), Some(batch)) if sequence != batch)
            },
            Case::refused(&[drawn("x", &[2, 3])], &[("lengths", Default::Ints(&[1, 1])), ("seq_axis", Default::Int(0))]),
        ),
        rule(
            "C2",
            "lengths have one entry per element of batch_axis, from 0 to the extent of seq_axis",
            |s| {
                let extent = |name| s.axis(name, s.rank("x")).map_or(0, |axis| s.shape("x")[axis]);
                let longest = extent("seq_axis") as i64;
                s.ints("lengths").len() == extent("batch_axis")
                    && s.ints("lengths").iter().all(|&length| (0..=longest).contains(&length))
            },
            Case::refused(&[drawn("x", &[2, 3])], &[("lengths", Default::Ints(&[4, 1]))]),
        ),
    ],
    tolerance: 0.0,
    lower: |l, s| {
        let (x, rank) = (s.value("x")?, s.rank("x"));
        let (sequence, batch) = (s.axis("seq_axis", rank).unwrap_or(0), s.axis("batch_axis", rank).unwrap_or(0));
        let mut perm = vec![batch, sequence];
        perm.extend((0..rank).filter(|axis| ![batch, sequence].contains(axis)));
        let mut back = vec![0; rank];
        perm.iter().enumerate().for_each(|(to, &from)| back[from] = to);
        let still = perm.is_sorted();
        let lead = if still { x } else { l.op("transpose", &[("x", x.into()), ("perm", perm.into())])? };
        let shape = l.shape(lead).to_vec();
        let rows = l.reshaped(lead, &[shape[0] * shape[1], shape[2..].iter().product()])?;
        let place = |(row, &length): (usize, &i64)| {
            let (length, extent) = (length as usize, shape[1]);
            (0..extent).map(move |at| (row * extent + if at < length { length - 1 - at } else { at }) as f64)
        };
        let places: Vec<f64> = s.ints("lengths").iter().enumerate().flat_map(place).collect();
        let places = l.constant("places", TensorType::new(DType::Int32, [places.len()]), &places)?;
        let rows = l.op("gather", &[("x", rows.into()), ("indices", places.into()), ("axis", 0i64.into())])?;
        let lead = l.reshaped(rows, &shape)?;
        Ok(vec![if still { lead } else { l.op("transpose", &[("x", lead.into()), ("perm", back.into())])? }])
    },
    cases: &[
        Case::values(
            "two_of_three",
            &[given("x", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])],
            &[("lengths", Default::Ints(&[2, 3]))],
            (&[2, 3], &[2.0, 1.0, 3.0, 6.0, 5.0, 4.0]),
            "by hand",
        ),
        Case::shape(
            "sequence_in_front",
            &[drawn("x", &[3, 2, 2])],
            &[("lengths", Default::Ints(&[2, 0])), ("seq_axis", Default::Int(0)), ("batch_axis", Default::Int(2))],
            &[3, 2, 2],
        ),
    ],
    vjp: Vjp::Rule(|b| {
        let s = b.site();
        let grad = b.grad().reverse_sequence(s.ints("lengths"), s.int("seq_axis"), s.int("batch_axis"));
        b.give("x", grad);
    }),
    ..direct(
        "reverse_sequence",
        "The first elements along seq_axis backwards, as many as lengths say for each element of batch_axis.",
    )
};

/// Overlapping windows.
pub static SLIDING_WINDOWS: GraphOp = GraphOp {
    attributes: &[int("axis", Default::Required), int("size", Default::Required), int("stride", Default::Int(1))],
    constraints: &[
        rule(
            "C1",
            "axis is an axis of x, which has at most 4",
            |s| s.rank("x") <= 4 && s.axis("axis", s.rank("x")).is_some(),
            Case::refused(&[drawn("x", &[3])], &[("axis", Default::Int(1)), ("size", Default::Int(2))]),
        ),
        rule(
            "C2",
            "size and stride are positive and a window fits",
            |s| {
                let extent = s.axis("axis", s.rank("x")).map_or(0, |axis| s.shape("x")[axis]);
                s.int("stride") > 0 && s.size("size").is_some_and(|size| (1..=extent).contains(&size))
            },
            Case::refused(&[drawn("x", &[3])], &[("axis", Default::Int(0)), ("size", Default::Int(4))]),
        ),
    ],
    tolerance: 0.0,
    lower: |l, s| {
        let (axis, size, places) = window_places(s);
        let count = places.len() / size;
        let places = l.constant("places", TensorType::new(DType::Int32, [places.len()]), &places)?;
        let arguments = [("x", s.value("x")?.into()), ("indices", places.into()), ("axis", (axis as i64).into())];
        let rows = l.op("gather", &arguments)?;
        let mut shape = s.shape("x").to_vec();
        shape[axis] = count;
        shape.insert(axis + 1, size);
        Ok(vec![l.reshaped(rows, &shape)?])
    },
    cases: &[Case::values(
        "pairs_of_a_row",
        &[given("x", &[1, 4], &[1.0, 2.0, 3.0, 4.0])],
        &[("axis", Default::Int(1)), ("size", Default::Int(2))],
        (&[1, 3, 2], &[1.0, 2.0, 2.0, 3.0, 3.0, 4.0]),
        "by hand",
    )],
    vjp: Vjp::Rule(|b| {
        let (axis, _, places) = window_places(&b.site());
        let shape = b.site().shape("x").to_vec();
        let (outer, inner): (usize, usize) = (shape[..axis].iter().product(), shape[axis + 1..].iter().product());
        let rows = b.grad().reshape(&[outer as i64, places.len() as i64, inner as i64]);
        let places = b.graph().values(DType::Int32, &[1, places.len()], &places);
        let sums = super::gather::one_hot(&places, shape[axis], &[shape[axis], 1], &rows).matmul(&rows);
        let all: Vec<i64> = shape.iter().map(|&extent| extent as i64).collect();
        b.give("x", sums.reshape(&all));
    }),
    ..direct("sliding_windows", "All windows of size places along axis, stride apart: the places of a window on an axis behind it.")
};

/// Axis, window size, and the places that the windows see, window by window.
fn window_places(s: &Site<'_>) -> (usize, usize, Vec<f64>) {
    let axis = s.axis("axis", s.rank("x")).unwrap_or(0);
    let (size, stride) = (s.size("size").unwrap_or(1), s.size("stride").unwrap_or(1));
    let count = (s.shape("x")[axis] - size) / stride + 1;
    let places = (0..count).flat_map(|window| (0..size).map(move |at| (window * stride + at) as f64)).collect();
    (axis, size, places)
}

pub(super) const ALL: &[&GraphOp] = &[&ONE_HOT, &BAND_PART, &REVERSE_SEQUENCE, &SLIDING_WINDOWS];
