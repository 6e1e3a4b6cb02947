//! Cross products, template matching and stereo costs.

use super::build::*;
use super::{Layer, ParamKind};
use aneforge_mil::op::{Arguments, Case, MilOp, OpError, int};
use aneforge_mil::{Array, DType, TensorType};

/// Cross product of two vectors.
pub static CROSS_PRODUCT: Layer = Layer {
    bottoms: X_AND_Z,
    ..layer(
        MilOp {
            ports: &[x("x"), x("z")],
            constraints: &[
                FOUR,
                rule("C2", "x and z are one vector each, in their channels: [1, 3, 1, 1]", |a| {
                    extents(a, "x") == [1, 3, 1, 1] && extents(a, "z") == [1, 3, 1, 1]
                }),
            ],
            arithmetic: LAYER,
            cases: &[Case::new(
                "first_times_second_axis_is_the_third",
                &[("x", given(&[1, 3, 1, 1], &[1.0, 0.0, 0.0])), ("z", given(&[1, 3, 1, 1], &[0.0, 1.0, 0.0]))],
                &[(&[1, 3, 1, 1], &[0.0, 0.0, 1.0])],
                BY_HAND,
            )],
            ..unary(
                "CrossProduct",
                "The cross product of two vectors of three components.",
                |a| result(a, DType::Fp16, vec![1, 3, 1, 1]),
                |a| {
                    let (x, z) = (&a.array("x")?.data, &a.array("z")?.data);
                    let minor = |i: usize, j: usize| x[i] * z[j] - x[j] * z[i];
                    of(vec![a.ty("x")?.clone()], vec![minor(1, 2), minor(2, 0), minor(0, 1)])
                },
            )
        },
        &[],
    )
};

/// Widest template: the layer becomes a convolution.
const WIDEST_TEMPLATE: usize = 15;

/// Correlation with a template.
pub static CROSS_CORRELATION: Layer = Layer {
    bottoms: &[&["x", "template"]],
    ..layer(
        MilOp {
            ports: &[
                x("x"),
                x("template"),
                ints("TemplateWidth"),
                ints("TemplateHeight"),
                int_or("NumGroups", 1),
                int_or("PadTop", 0),
                int_or("PadBot", 0),
                int_or("PadLeft", 0),
                int_or("PadRight", 0),
            ],
            constraints: &[
                FOUR,
                rule("C2", "x has one channel and NumGroups is 1: correlate channels one by one", |a| {
                    extents(a, "x")[..2] == [1, 1] && a.int("NumGroups") == Some(1)
                }),
                rule("C3", "template is flattened to its width: [1, 1, 1, TemplateWidth * TemplateHeight]", |a| {
                    let area = size(a, "TemplateWidth").saturating_mul(size(a, "TemplateHeight"));
                    area > 0 && extents(a, "template") == [1, 1, 1, area]
                }),
                rule("C4", "the template is at most 15 high and wide: the layer becomes a convolution", |a| {
                    size(a, "TemplateWidth").max(size(a, "TemplateHeight")) <= WIDEST_TEMPLATE
                }),
                rule("C5", "paddings are at least 0 and smaller than the template", |a| {
                    let fits = |pad: &str, extent: &str| a.int(pad).is_some_and(|pad| (0..size(a, extent) as i64).contains(&pad));
                    fits("PadTop", "TemplateHeight")
                        && fits("PadBot", "TemplateHeight")
                        && fits("PadLeft", "TemplateWidth")
                        && fits("PadRight", "TemplateWidth")
                }),
                rule("C6", "the template fits into x with its padding", |a| {
                    let [_, _, height, width] = extents(a, "x");
                    size(a, "TemplateHeight") <= height + size(a, "PadTop") + size(a, "PadBot")
                        && size(a, "TemplateWidth") <= width + size(a, "PadLeft") + size(a, "PadRight")
                }),
            ],
            arithmetic: aneforge_mil::op::family::PRODUCTS_TOO,
            cases: &[
                Case::new(
                    "the_template_is_not_flipped",
                    &[
                        ("x", given(&[1, 1, 2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])),
                        ("template", given(&[1, 1, 1, 2], &[1.0, 10.0])),
                        ("TemplateWidth", int(&[2.0])),
                        ("TemplateHeight", int(&[1.0])),
                    ],
                    &[(&[1, 1, 2, 2], &[21.0, 32.0, 54.0, 65.0])],
                    "scipy.signal.correlate2d",
                ),
                Case::new(
                    "zeros_around",
                    &[
                        ("x", given(&[1, 1, 1, 2], &[1.0, 2.0])),
                        ("template", given(&[1, 1, 1, 2], &[1.0, 10.0])),
                        ("TemplateWidth", int(&[2.0])),
                        ("TemplateHeight", int(&[1.0])),
                        ("PadLeft", int(&[1.0])),
                        ("PadRight", int(&[1.0])),
                    ],
                    &[(&[1, 1, 1, 3], &[10.0, 21.0, 2.0])],
                    "scipy.signal.correlate2d",
                ),
            ],
            ..unary(
                "CrossCorrelation",
                "The sum of products of a template with every part of x of its size.",
                correlated,
                correlate,
            )
        },
        &[
            param("NumGroups", ParamKind::Int),
            param("PadTop", ParamKind::Int),
            param("PadBot", ParamKind::Int),
            param("PadLeft", ParamKind::Int),
            param("PadRight", ParamKind::Int),
            param("TemplateHeight", ParamKind::Int),
            param("TemplateWidth", ParamKind::Int),
        ],
    )
};

fn correlated(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let [_, _, height, width] = extents(a, "x");
    let extent = |own: usize, before: &str, after: &str, template: &str| {
        own as i128 + size(a, before) as i128 + size(a, after) as i128 - size(a, template) as i128 + 1
    };
    let (height, width) =
        (extent(height, "PadTop", "PadBot", "TemplateHeight"), extent(width, "PadLeft", "PadRight", "TemplateWidth"));
    computed(a, DType::Fp16, vec![1, 1, height, width])
}

fn correlate(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let (x, template) = (a.array("x")?, a.array("template")?);
    let ([_, _, height, width], types) = (extents(a, "x"), correlated(a)?);
    let (down, across) = (size(a, "TemplateHeight"), size(a, "TemplateWidth"));
    let (top, left) = (size(a, "PadTop"), size(a, "PadLeft"));
    let columns = types[0].shape[3];
    let at = |y: usize, x_place: usize| match (y.checked_sub(top), x_place.checked_sub(left)) {
        (Some(y), Some(column)) if y < height && column < width => x.data[y * width + column],
        _ => 0.0,
    };
    let value = |index: usize| {
        let (row, column) = (index / columns, index % columns);
        let places = (0..down).flat_map(|i| (0..across).map(move |j| (i, j)));
        places.map(|(i, j)| template.data[i * across + j] * at(row + i, column + j)).sum()
    };
    let data = (0..types[0].count()).map(value).collect();
    of(types, data)
}

/// Costs of matching two lines at several distances.
pub static COST_VOLUME: Layer = Layer {
    bottoms: &[&["aux", "ref"]],
    ..layer(
        MilOp {
            ports: &[
                x("aux"),
                x("ref"),
                ints("DisparityDirection"),
                ints("DisparityRange"),
                optional_real("ScaleFactorX"),
                optional_real("ScaleFactorY"),
            ],
            constraints: &[
                FOUR,
                rule("C2", "DisparityDirection is 0: what other directions give is not published", |a| {
                    a.int("DisparityDirection") == Some(0)
                }),
                rule("C3", "aux and ref are one line each: [1, 1, 1, width]", |a| {
                    extents(a, "aux")[..3] == [1, 1, 1] && extents(a, "ref")[..3] == [1, 1, 1]
                }),
                rule("C4", "DisparityRange is at least 0, and ref is at least that much wider than aux", |a| {
                    a.int("DisparityRange").is_some_and(|range| range >= 0)
                        && extents(a, "ref")[3] >= extents(a, "aux")[3].saturating_add(size(a, "DisparityRange"))
                }),
                rule("C5", "ScaleFactorX and ScaleFactorY are left out: what they do is not published", |a| {
                    !a.has("ScaleFactorX") && !a.has("ScaleFactorY")
                }),
            ],
            arithmetic: LAYER,
            cases: &[Case::new(
                "absolute_differences",
                &[
                    ("aux", given(&[1, 1, 1, 3], &[1.0, 2.0, 3.0])),
                    ("ref", given(&[1, 1, 1, 4], &[1.0, 5.0, 9.0, 2.0])),
                    ("DisparityDirection", int(&[0.0])),
                    ("DisparityRange", int(&[1.0])),
                ],
                &[(&[1, 2, 1, 3], &[0.0, 3.0, 6.0, 4.0, 7.0, 1.0])],
                BY_HAND,
            )],
            ..unary(
                "CostVolume",
                "The distance of each value of aux from that of ref some places further on, one channel for each number of places.",
                |a| {
                    let planes = size(a, "DisparityRange") as i128 + 1;
                    computed(a, DType::Fp16, vec![1, planes, 1, extents(a, "aux")[3] as i128])
                },
                |a| {
                    let (aux, other) = (&a.array("aux")?.data, &a.array("ref")?.data);
                    let planes = size(a, "DisparityRange") + 1;
                    let row = |d: usize| aux.iter().enumerate().map(move |(place, value)| (value - other[place + d]).abs());
                    let types = vec![TensorType::new(DType::Fp16, [1, planes, 1, aux.len()])];
                    of(types, (0..planes).flat_map(row).collect())
                },
            )
        },
        &[
            param("DisparityDirection", ParamKind::Int),
            param("DisparityRange", ParamKind::Int),
            param("ScaleFactorX", ParamKind::Real),
            param("ScaleFactorY", ParamKind::Real),
        ],
    )
};
