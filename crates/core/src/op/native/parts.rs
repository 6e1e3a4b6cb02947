//! Flat tensors and windows of them.

use super::*;
use crate::TensorType;
use aneforge_native::layer;

const FIVE: Sample = drawn("x", &[1, 1, 1, 1, 2]);

/// All elements in one row.
pub static FLATTEN: GraphOp = GraphOp {
    constraints: &[
        rule("C1", AXES, |s| fits(s, "x"), Case::refused(&[FIVE], &[])),
        rule(
            "C2",
            "x of four axes is a single image: use reshape for more",
            |s| s.rank("x") < 4 || s.shape("x")[0] == 1,
            Case::refused(&[drawn("x", &[2, 1, 1, 2])], &[]),
        ),
    ],
    vjp: Vjp::Rule(|b| {
        let shape: Vec<i64> = b.site().shape("x").iter().map(|&extent| extent as i64).collect();
        let grad = b.grad().reshape(&shape);
        b.give("x", grad);
    }),
    tolerance: 0.0,
    cases: &[Case::values(
        "row_major",
        &[given("x", &[2, 1, 2], &[1.0, 2.0, 3.0, 4.0])],
        &[],
        (&[4], &[1.0, 2.0, 3.0, 4.0]),
        "numpy.ravel",
    )],
    ..native("flatten", "All elements of x in one row.", |l, s| {
        let x = s.value("x").and_then(|x| four(l, x))?;
        let arguments = [("x", x.into()), ("FlattenType", word("NCHW")), ("Mode", word("NCHW"))];
        let flat = super::layer(l, &layer::FLATTEN, &arguments)?;
        Ok(vec![l.reshaped(flat, &[s.shape("x").iter().product()])?])
    })
};

/// Shape and axis that a window is taken of: the flattened x where no axis is named.
fn viewed(s: &Site<'_>) -> Option<(Vec<usize>, usize)> {
    match s.attribute("axis") {
        Attribute::Absent => Some((vec![s.shape("x").iter().product()], 0)),
        _ => s.axis("axis", s.rank("x")).map(|axis| (s.shape("x").to_vec(), axis)),
    }
}

/// A window of an axis.
pub static INPUT_VIEW: GraphOp = GraphOp {
    attributes: &[
        int("offset", Default::Required),
        int("size", Default::Required),
        AttributeSpec { name: "axis", kind: AttributeKind::Int, default: Default::Absent },
    ],
    constraints: &[
        rule("C1", AXES, |s| fits(s, "x"), Case::refused(&[FIVE], &[("offset", Default::Int(0)), ("size", Default::Int(1))])),
        rule(
            "C2",
            "axis is left out, for the flattened x, or an axis of x",
            |s| viewed(s).is_some(),
            Case::refused(
                &[drawn("x", &[4])],
                &[("offset", Default::Int(0)), ("size", Default::Int(1)), ("axis", Default::Int(1))],
            ),
        ),
        rule(
            "C3",
            "the window, size places from offset on, lies within the axis and is not empty",
            |s| {
                let extent = viewed(s).map_or(0, |(shape, axis)| shape[axis]);
                let end = s.size("offset").and_then(|offset| offset.checked_add(s.size("size")?));
                s.int("size") > 0 && end.is_some_and(|end| end <= extent)
            },
            Case::refused(&[drawn("x", &[4])], &[("offset", Default::Int(3)), ("size", Default::Int(2))]),
        ),
    ],
    vjp: Vjp::Rule(|b| {
        let site = b.site();
        let (shape, axis) = viewed(&site).unwrap_or_default();
        let (offset, size) = (site.int("offset"), site.int("size"));
        let mut pads = vec![0; 2 * shape.len()];
        (pads[2 * axis], pads[2 * axis + 1]) = (offset, shape[axis] as i64 - offset - size);
        let whole: Vec<i64> = site.shape("x").iter().map(|&extent| extent as i64).collect();
        let grad = b.grad().pad(&pads, 0.0).reshape(&whole);
        b.give("x", grad);
    }),
    tolerance: 0.0,
    cases: &[
        Case::values(
            "of_the_flat_tensor",
            &[given("x", &[2, 2], &[1.0, 2.0, 3.0, 4.0])],
            &[("offset", Default::Int(1)), ("size", Default::Int(2))],
            (&[2], &[2.0, 3.0]),
            "by hand",
        ),
        Case::values(
            "of_rows",
            &[given("x", &[2, 2], &[1.0, 2.0, 3.0, 4.0])],
            &[("offset", Default::Int(1)), ("size", Default::Int(1)), ("axis", Default::Int(0))],
            (&[1, 2], &[3.0, 4.0]),
            "by hand",
        ),
    ],
    ..native("input_view", "size places of an axis, or of the flattened x, from offset on.", |l, s| {
        let (shape, axis) = viewed(s).unwrap_or_default();
        let name = ["Batch", "Channel", "Height", "Width"][(axis + 4).saturating_sub(shape.len()).min(3)];
        let x = l.reshaped(s.value("x")?, &padded(&shape))?;
        let (offset, size) = (s.size("offset").unwrap_or(0), s.size("size").unwrap_or(1));
        let arguments = [("x", x.into()), ("Dimension", word(name)), ("Offset", int_arg(offset)), ("Size", int_arg(size))];
        let view = super::layer(l, &layer::INPUT_VIEW, &arguments)?;
        let mut result = shape;
        result[axis] = size;
        Ok(vec![l.reshaped(view, &result)?])
    })
};

/// A window of trailing axes.
pub static DYNAMIC_SLICE: GraphOp = GraphOp {
    attributes: &[ints("start", Default::Required), ints("size", Default::Required)],
    constraints: &[
        rule(
            "C1",
            AXES,
            |s| fits(s, "x"),
            Case::refused(&[FIVE], &[("start", Default::Ints(&[0])), ("size", Default::Ints(&[1]))]),
        ),
        rule(
            "C2",
            "start and size hold one number for each of the last axes that are cut, at least one and at most as many as x has",
            |s| s.ints("start").len() == s.ints("size").len() && (1..=s.rank("x")).contains(&s.ints("start").len()),
            Case::refused(&[drawn("x", &[4])], &[("start", Default::Ints(&[0])), ("size", Default::Ints(&[]))]),
        ),
        rule(
            "C3",
            "every window lies within its axis and is not empty",
            |s| {
                let cut = s.shape("x").len() - s.ints("start").len();
                s.ints("start").iter().zip(s.ints("size")).zip(&s.shape("x")[cut..]).all(|((&start, &size), &extent)| {
                    start >= 0 && size > 0 && start.checked_add(size).is_some_and(|end| end <= extent as i64)
                })
            },
            Case::refused(&[drawn("x", &[4])], &[("start", Default::Ints(&[3])), ("size", Default::Ints(&[2]))]),
        ),
    ],
    vjp: Vjp::Rule(|b| {
        let site = b.site();
        let (shape, start, size) = (site.shape("x"), site.ints("start"), site.ints("size"));
        let mut pads = vec![0; 2 * (shape.len() - start.len())];
        for ((&start, &size), &extent) in start.iter().zip(size).zip(&shape[shape.len() - start.len()..]) {
            pads.extend([start, extent as i64 - start - size]);
        }
        let grad = b.grad().pad(&pads, 0.0);
        b.give("x", grad);
    }),
    tolerance: 0.0,
    cases: &[
        Case::values(
            "two_of_four",
            &[given("x", &[4], &[1.0, 2.0, 3.0, 4.0])],
            &[("start", Default::Ints(&[1])), ("size", Default::Ints(&[2]))],
            (&[2], &[2.0, 3.0]),
            "by hand",
        ),
        Case::values(
            "a_block",
            &[given("x", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])],
            &[("start", Default::Ints(&[1, 0])), ("size", Default::Ints(&[1, 2]))],
            (&[1, 2], &[4.0, 5.0]),
            "by hand",
        ),
    ],
    ..native("dynamic_slice", "The block of the last axes of x that starts at start and has the extents size.", |l, s| {
        let x = s.value("x").and_then(|x| four(l, x))?;
        let (start, size) = (s.ints("start"), s.ints("size"));
        let count = start.len();
        // Places of the axes in the list batch, depth, channel, height, width.
        let axes: Vec<i64> = [0, 2, 3, 4][4 - count..].to_vec();
        let numbers: Vec<f64> = start.iter().map(|&start| start as f64).collect();
        let index = l.constant("index", TensorType::new(DType::UInt16, [1, 1, 1, count]), &numbers)?;
        let zeros = vec![0i64; count];
        let list = |values: &[i64]| Arg::from(values);
        let arguments = [
            ("x", x.into()),
            ("index", index.into()),
            ("BackgroundValue", Arg::Float(DType::Fp32, 0.0)),
            ("CoordinateMode", word("NonNormalized")),
            ("DynamicSliceAxisOrder", list(&axes)),
            ("CoordinateInfo_Coordinate", list(&axes)),
            ("CoordinateInfo_CoordinateMode", list(&zeros)),
            ("DynamicSliceInfo_Coordinate", list(&axes)),
            ("DynamicSliceInfo_SliceSize", list(size)),
            ("PaddingInfo_Coordinate", list(&axes)),
            ("PaddingInfo_PaddingMode", list(&zeros)),
        ];
        let part = super::layer(l, &layer::DYNAMIC_SLICE, &arguments)?;
        let mut shape = s.shape("x").to_vec();
        let cut = shape.len() - count;
        shape[cut..].iter_mut().zip(size).for_each(|(extent, &size)| *extent = size as usize);
        Ok(vec![l.reshaped(part, &shape)?])
    })
};
