//! Parts of tensors.

use super::build::*;
use super::{Channels, DIMENSIONS, Layer, ParamKind};
use aneforge_mil::op::{Arguments, Arithmetic, Case, MilOp, OpError, int, ints as ints_given, tensor, values};
use aneforge_mil::{Array, DType, TensorType};

/// A window of an axis, fixed when the program is compiled.
pub static INPUT_VIEW: Layer = Layer {
    channels: Channels::Omitted,
    ..layer(
        MilOp {
            ports: &[x("x"), word("Dimension"), ints("Offset"), ints("Size"), int_or("Step", 1)],
            constraints: &[
                FOUR,
                rule("C2", "Dimension is Width, Height, Channel or Batch", |a| named_axis(a, "Dimension").is_some()),
                rule("C3", "the window, Size places from Offset on, lies within the axis and is not empty", |a| {
                    let extent = named_axis(a, "Dimension").map_or(0, |axis| extents(a, "x")[axis]);
                    let end = a.int("Offset").filter(|&offset| offset >= 0).and_then(|offset| offset.checked_add(a.int("Size")?));
                    size(a, "Size") > 0 && end.is_some_and(|end| end <= extent as i64)
                }),
                rule("C4", "Step is 1: how other steps count is not published", |a| a.int("Step") == Some(1)),
            ],
            tolerance: 0.0,
            arithmetic: Arithmetic::Copy,
            cases: &[Case::new(
                "the_middle_of_a_row",
                &[
                    ("x", given(&[1, 1, 1, 4], &[1.0, 2.0, 3.0, 4.0])),
                    ("Dimension", text("Width")),
                    ("Offset", int(&[1.0])),
                    ("Size", int(&[2.0])),
                ],
                &[(&[1, 1, 1, 2], &[2.0, 3.0])],
                BY_HAND,
            )],
            ..unary(
                "InputView",
                "A window of an axis of x.",
                |a| with_extent(a, named_axis(a, "Dimension").unwrap_or(3), size(a, "Size") as i128),
                |a| {
                    let axis = named_axis(a, "Dimension").unwrap_or(3);
                    let (from, count) = (size(a, "Offset"), size(a, "Size"));
                    Ok(vec![lines(a.array("x")?, axis, |line| line[from..from + count].to_vec())])
                },
            )
        },
        &[
            param("Dimension", ParamKind::Word(DIMENSIONS)),
            param("Offset", ParamKind::Int),
            param("Size", ParamKind::Int),
            param("Step", ParamKind::Int),
        ],
    )
};

const MODES: &[&str] = &["NonNormalized", "NormalizedSymmetric", "NormalizedReflect"];
const PADDINGS: &[&str] = &["Background"];
const AXIS_LISTS: [&str; 4] =
    ["DynamicSliceAxisOrder", "CoordinateInfo_Coordinate", "DynamicSliceInfo_Coordinate", "PaddingInfo_Coordinate"];

/// A window that starts where a tensor says.
pub static DYNAMIC_SLICE: Layer = Layer {
    bottoms: &[&["x", "index"]],
    channels: Channels::Omitted,
    ..layer(
        MilOp {
            ports: &[
                x("x"),
                tensor("index", INDEX),
                real("BackgroundValue"),
                word("CoordinateMode"),
                ints("DynamicSliceAxisOrder"),
                ints("CoordinateInfo_Coordinate"),
                ints("CoordinateInfo_CoordinateMode"),
                ints("DynamicSliceInfo_Coordinate"),
                ints("DynamicSliceInfo_SliceSize"),
                ints("PaddingInfo_Coordinate"),
                ints("PaddingInfo_PaddingMode"),
            ],
            constraints: &[
                FOUR,
                rule(
                    "C2",
                    "DynamicSliceAxisOrder, CoordinateInfo, DynamicSliceInfo and PaddingInfo name the same axes in the same order, \
                            each once, none of them the depth",
                    |a| {
                        let axes = named_axes(a, AXIS_LISTS[0]).filter(|axes| !axes.is_empty());
                        axes.is_some() && AXIS_LISTS.iter().all(|list| named_axes(a, list) == axes)
                    },
                ),
                rule("C3", "every axis has a positive SliceSize, a CoordinateMode and a PaddingMode", |a| {
                    let count = a.ints(AXIS_LISTS[0]).map(|axes| axes.len());
                    let length = |port: &str| a.ints(port).map(|list| list.len());
                    let listed = ["DynamicSliceInfo_SliceSize", "CoordinateInfo_CoordinateMode", "PaddingInfo_PaddingMode"];
                    listed.iter().all(|port| length(port) == count)
                        && a.ints(listed[0]).is_some_and(|sizes| sizes.iter().all(|&size| size > 0))
                }),
                rule("C4", "coordinates are NonNormalized and the padding is Background: what others do is not published", |a| {
                    let plain = |port: &str| a.ints(port).is_some_and(|list| list.iter().all(|&mode| mode == 0));
                    is_one_of(a, "CoordinateMode", &["NonNormalized"])
                        && plain("CoordinateInfo_CoordinateMode")
                        && plain("PaddingInfo_PaddingMode")
                }),
                rule("C5", "index holds one number for each axis: [1, 1, 1, axes]", |a| {
                    Some(extents(a, "index")) == a.ints(AXIS_LISTS[0]).map(|axes| [1, 1, 1, axes.len()])
                }),
            ],
            tolerance: 0.0,
            arithmetic: Arithmetic::Copy,
            support: FROM_A14,
            cases: &[Case::new(
                "what_lies_outside_is_background",
                &[
                    ("x", given(&[1, 1, 1, 4], &[1.0, 2.0, 3.0, 4.0])),
                    ("index", values(DType::UInt16, &[1, 1, 1, 1], &[3.0])),
                    ("BackgroundValue", values(DType::Fp32, &[], &[9.0])),
                    ("CoordinateMode", text("NonNormalized")),
                    ("DynamicSliceAxisOrder", ints_given(&[1], &[4.0])),
                    ("CoordinateInfo_Coordinate", ints_given(&[1], &[4.0])),
                    ("CoordinateInfo_CoordinateMode", ints_given(&[1], &[0.0])),
                    ("DynamicSliceInfo_Coordinate", ints_given(&[1], &[4.0])),
                    ("DynamicSliceInfo_SliceSize", ints_given(&[1], &[2.0])),
                    ("PaddingInfo_Coordinate", ints_given(&[1], &[4.0])),
                    ("PaddingInfo_PaddingMode", ints_given(&[1], &[0.0])),
                ],
                &[(&[1, 1, 1, 2], &[4.0, 9.0])],
                BY_HAND,
            )],
            ..unary("DynamicSlice", "A window of x that starts where index says.", sliced, |a| {
                let background = a.number("BackgroundValue").unwrap_or(0.0);
                let axes = named_axes(a, AXIS_LISTS[0]).unwrap_or_default();
                let sizes = a.ints("DynamicSliceInfo_SliceSize").unwrap_or_default();
                let mut part: Array = a.array("x")?.clone();
                for ((axis, size), &start) in axes.into_iter().zip(sizes).zip(&a.array("index")?.data) {
                    let place = |offset: i64| start + offset as f64;
                    part = lines(&part, axis, |line| {
                        let inside = |at: f64| at >= 0.0 && at.fract() == 0.0 && at < line.len() as f64;
                        let at = |at: f64| if inside(at) { line[at as usize] } else { background };
                        (0..size).map(|offset| at(place(offset))).collect()
                    });
                }
                Ok(vec![part])
            })
        },
        &[
            param("BackgroundValue", ParamKind::Real),
            param("CoordinateMode", ParamKind::Word(MODES)),
            param("DynamicSliceAxisOrder", ParamKind::Words(DIMENSIONS)),
            param(
                "CoordinateInfo",
                ParamKind::Table(&[
                    param("Coordinate", ParamKind::Words(DIMENSIONS)),
                    param("CoordinateMode", ParamKind::Words(MODES)),
                ]),
            ),
            param(
                "DynamicSliceInfo",
                ParamKind::Table(&[param("Coordinate", ParamKind::Words(DIMENSIONS)), param("SliceSize", ParamKind::Ints)]),
            ),
            param(
                "PaddingInfo",
                ParamKind::Table(&[
                    param("Coordinate", ParamKind::Words(DIMENSIONS)),
                    param("PaddingMode", ParamKind::Words(PADDINGS)),
                ]),
            ),
        ],
    )
};

fn sliced(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let mut shape = extents(a, "x").map(|extent| extent as i128);
    let sizes = a.ints("DynamicSliceInfo_SliceSize").unwrap_or_default();
    for (axis, size) in named_axes(a, AXIS_LISTS[0]).unwrap_or_default().into_iter().zip(sizes) {
        shape[axis] = i128::from(size);
    }
    computed(a, DType::Fp16, shape.to_vec())
}

/// Places of an axis by number.
pub static GATHER: Layer = Layer {
    bottoms: &[&["x", "index"]],
    ..layer(
        MilOp {
            ports: &[x("x"), tensor("index", INDEX), ints("GatherNDAxes")],
            constraints: &[
                FOUR,
                rule("C2", "GatherNDAxes names one axis, not the depth: how several are counted is not published", |a| {
                    named_axes(a, "GatherNDAxes").is_some_and(|axes| axes.len() == 1)
                }),
                rule("C3", "index is one row of places: [1, 1, 1, count]", |a| extents(a, "index")[..3] == [1, 1, 1]),
                rule("C4", "places that are known lie within the axis", |a| {
                    let extent = extents(a, "x")[gathered(a)] as f64;
                    let known = a.get("index").filter(|index| index.constant).and_then(|index| index.value.as_ref());
                    known.is_none_or(|index| index.data.iter().all(|&place| place.fract() == 0.0 && (0.0..extent).contains(&place)))
                }),
            ],
            tolerance: 0.0,
            arithmetic: Arithmetic::Copy,
            domain: &[("index", 0.0, 0.0001)],
            cases: &[Case::new(
                "places_of_a_row",
                &[
                    ("x", given(&[1, 1, 1, 3], &[10.0, 11.0, 12.0])),
                    ("index", values(DType::UInt16, &[1, 1, 1, 4], &[2.0, 0.0, 0.0, 1.0])),
                    ("GatherNDAxes", ints_given(&[1], &[4.0])),
                ],
                &[(&[1, 1, 1, 4], &[12.0, 10.0, 10.0, 11.0])],
                "numpy.take",
            )],
            ..unary(
                "Gather",
                "The places of an axis of x that index names, in its order.",
                |a| with_extent(a, gathered(a), extents(a, "index")[3] as i128),
                |a| {
                    let index = a.array("index")?;
                    // A place that is not there reads the nearest one: what the engine does is not published.
                    let at = |line: &[f64], place: f64| line[(place.max(0.0) as usize).min(line.len() - 1)];
                    Ok(vec![lines(a.array("x")?, gathered(a), |line| index.data.iter().map(|&place| at(line, place)).collect())])
                },
            )
        },
        &[param("GatherNDAxes", ParamKind::Words(DIMENSIONS))],
    )
};

fn gathered(a: &Arguments<'_>) -> usize {
    named_axes(a, "GatherNDAxes").and_then(|axes| axes.first().copied()).unwrap_or(3)
}
