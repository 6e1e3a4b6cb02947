//! Other shapes of the same values, repeated or joined.

use super::build::*;
use super::{Channels, DIMENSIONS, Layer, ParamKind};
use aneforge_mil::op::{Arguments, Arithmetic, Case, MilOp, OpError, int, ints as ints_given, variadic};
use aneforge_mil::{Array, DType, TensorType};

const ORDERS: &[&str] = &["NCHW", "NHWC"];

/// All values of an image in one row.
pub static FLATTEN: Layer = layer(
    MilOp {
        ports: &[x("x"), word("FlattenType"), word("Mode")],
        constraints: &[
            FOUR,
            rule("C2", "FlattenType and Mode are both NCHW or both NHWC", |a| {
                is_one_of(a, "Mode", ORDERS) && a.text("Mode") == a.text("FlattenType")
            }),
        ],
        tolerance: 0.0,
        arithmetic: Arithmetic::Copy,
        cases: &[
            Case::new(
                "channels_first",
                &[("x", given(&[1, 2, 1, 2], &[1.0, 2.0, 3.0, 4.0])), ("FlattenType", text("NCHW")), ("Mode", text("NCHW"))],
                &[(&[1, 1, 1, 4], &[1.0, 2.0, 3.0, 4.0])],
                BY_HAND,
            ),
            Case::new(
                "channels_last",
                &[("x", given(&[1, 2, 1, 2], &[1.0, 2.0, 3.0, 4.0])), ("FlattenType", text("NHWC")), ("Mode", text("NHWC"))],
                &[(&[1, 1, 1, 4], &[1.0, 3.0, 2.0, 4.0])],
                BY_HAND,
            ),
        ],
        ..unary(
            "Flatten",
            "All values of each image in one row.",
            |a| {
                let [n, c, h, w] = extents(a, "x").map(|extent| extent as i128);
                computed(a, DType::Fp16, vec![n, 1, 1, c.saturating_mul(h).saturating_mul(w)])
            },
            |a| {
                let x = a.array("x")?;
                let [n, c, h, w] = extents(a, "x");
                let moved = if a.text("Mode") == Some("NHWC") { x.transposed(&[0, 2, 3, 1]) } else { x.clone() };
                Ok(vec![moved.reshaped([n, 1, 1, c * h * w])])
            },
        )
    },
    &[param("FlattenType", ParamKind::Word(ORDERS)), param("Mode", ParamKind::Word(ORDERS))],
);

/// Nothing, at the only rate that means the same every time.
pub static DROPOUT: Layer = layer(
    MilOp {
        ports: &[x("x"), optional_real("DropoutRate"), int_or("Seed", 0)],
        constraints: &[
            FOUR,
            rule("C2", "DropoutRate is 0: what other rates drop depends on the engine's generator, which is not published", |a| {
                a.number("DropoutRate").is_none_or(|rate| rate == 0.0)
            }),
        ],
        tolerance: 0.0,
        arithmetic: Arithmetic::Copy,
        support: aneforge_mil::op::gated_before(15).told_by("ANE guide, arXiv 2606.22283, chapter 24, byte 0x4a9"),
        cases: &[Case::new(
            "everything_stays",
            &[("x", given(&[1, 1, 1, 2], &[1.0, 2.0])), ("Seed", int(&[0.0]))],
            &[(&[1, 1, 1, 2], &[1.0, 2.0])],
            BY_HAND,
        )],
        ..unary("Dropout", "x itself, at a rate of 0.", aneforge_mil::op::family::same_as_x, |a| Ok(vec![a.array("x")?.clone()]))
    },
    &[param("DropoutRate", ParamKind::Real), param("Seed", ParamKind::Int)],
);

/// Values repeated along axes of extent 1.
pub static BROADCAST: Layer = layer(
    MilOp {
        ports: &[x("x"), ints("BroadcastInfo_Dimension"), ints("BroadcastInfo_Size")],
        constraints: &[
            FOUR,
            rule("C2", "BroadcastInfo names axes once each, none of them the depth, with positive sizes", |a| {
                let (axes, sizes) = (named_axes(a, "BroadcastInfo_Dimension"), a.ints("BroadcastInfo_Size").unwrap_or_default());
                axes.is_some_and(|axes| axes.len() == sizes.len()) && sizes.iter().all(|&size| size > 0)
            }),
            rule("C3", "only axes of extent 1 are repeated: tile the others", |a| {
                named_axes(a, "BroadcastInfo_Dimension").is_some_and(|axes| axes.iter().all(|&axis| extents(a, "x")[axis] == 1))
            }),
        ],
        tolerance: 0.0,
        arithmetic: Arithmetic::Copy,
        cases: &[Case::new(
            "along_the_width",
            &[
                ("x", given(&[1, 1, 2, 1], &[1.0, 2.0])),
                ("BroadcastInfo_Dimension", ints_given(&[1], &[4.0])),
                ("BroadcastInfo_Size", ints_given(&[1], &[2.0])),
            ],
            &[(&[1, 1, 2, 2], &[1.0, 1.0, 2.0, 2.0])],
            BY_HAND,
        )],
        ..unary("Broadcast", "x repeated along axes of extent 1.", broadcast, |a| {
            let x = a.array("x")?;
            Ok(broadcast(a)?.into_iter().map(|ty| x.broadcast_to(&ty.shape)).collect())
        })
    },
    &[param(
        "BroadcastInfo",
        ParamKind::Table(&[param("Dimension", ParamKind::Words(DIMENSIONS)), param("Size", ParamKind::Ints)]),
    )],
);

fn broadcast(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let mut shape = extents(a, "x").map(|extent| extent as i128);
    let sizes = a.ints("BroadcastInfo_Size").unwrap_or_default();
    for (axis, size) in named_axes(a, "BroadcastInfo_Dimension").unwrap_or_default().into_iter().zip(sizes) {
        shape[axis] = i128::from(size);
    }
    computed(a, DType::Fp16, shape.to_vec())
}

/// Axes in another order.
pub static TRANSPOSE: Layer = layer(
    MilOp {
        ports: &[
            x("x"),
            ints("TransposeDimensions_TransposeSourceDimension"),
            ints("TransposeDimensions_TransposeDestinationDimension"),
        ],
        constraints: &[
            FOUR,
            rule("C2", "TransposeDimensions moves axes once each onto the same axes, none of them the depth", |a| {
                order(a).is_some()
            }),
        ],
        tolerance: 0.0,
        arithmetic: Arithmetic::Copy,
        cases: &[Case::new(
            "three_axes_in_a_circle",
            &[
                ("x", given(&[1, 2, 1, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])),
                ("TransposeDimensions_TransposeSourceDimension", ints_given(&[3], &[2.0, 3.0, 4.0])),
                ("TransposeDimensions_TransposeDestinationDimension", ints_given(&[3], &[3.0, 4.0, 2.0])),
            ],
            &[(&[1, 3, 2, 1], &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0])],
            "numpy.transpose",
        )],
        ..unary(
            "Transpose",
            "The axes of x in another order.",
            |a| {
                let (order, e) = (order(a).unwrap_or_default(), extents(a, "x"));
                result(a, DType::Fp16, order.iter().map(|&axis| e[axis]).collect())
            },
            |a| Ok(vec![a.array("x")?.transposed(&order(a).unwrap_or_default())]),
        )
    },
    &[param(
        "TransposeDimensions",
        ParamKind::Table(&[
            param("TransposeSourceDimension", ParamKind::Words(DIMENSIONS)),
            param("TransposeDestinationDimension", ParamKind::Words(DIMENSIONS)),
        ]),
    )],
);

/// For each axis of the result the axis of `x` that it is.
fn order(a: &Arguments<'_>) -> Option<Vec<usize>> {
    let from = named_axes(a, "TransposeDimensions_TransposeSourceDimension")?;
    let to = named_axes(a, "TransposeDimensions_TransposeDestinationDimension")?;
    let mut order: Vec<usize> = (0..4).collect();
    from.iter().zip(&to).for_each(|(&from, &to)| order[to] = from);
    let mut sorted = order.clone();
    sorted.sort_unstable();
    (from.len() == to.len() && sorted == [0, 1, 2, 3]).then_some(order)
}

/// Tensors one after the other.
pub static CONCAT: Layer = Layer {
    bottoms: &[&["values"]],
    ..layer(
        MilOp {
            ports: &[variadic("values", HALF), word("Dimension")],
            constraints: &[
                FOUR,
                rule("C2", "there are at least two tensors", |a| a.all("values").len() >= 2),
                rule("C3", "Dimension is Width, Height, Channel or Batch", |a| named_axis(a, "Dimension").is_some()),
                rule("C4", "all tensors have the same extents on the other axes", |a| {
                    let joined = named_axis(a, "Dimension").unwrap_or(3);
                    let rest = |shape: &[usize]| -> Vec<usize> {
                        shape.iter().enumerate().filter(|(axis, _)| *axis != joined).map(|(_, &extent)| extent).collect()
                    };
                    a.all("values").windows(2).all(|pair| rest(&pair[0].ty.shape) == rest(&pair[1].ty.shape))
                }),
            ],
            tolerance: 0.0,
            arithmetic: Arithmetic::Copy,
            cases: &[Case::new(
                "along_the_width",
                &[
                    ("values", given(&[1, 1, 2, 1], &[1.0, 2.0])),
                    ("values", given(&[1, 1, 2, 2], &[3.0, 4.0, 5.0, 6.0])),
                    ("Dimension", text("Width")),
                ],
                &[(&[1, 1, 2, 3], &[1.0, 3.0, 4.0, 2.0, 5.0, 6.0])],
                "numpy.concatenate",
            )],
            ..unary("Concat", "Tensors one after the other along an axis.", concat, |a| {
                let axis = named_axis(a, "Dimension").unwrap_or(3);
                let types = concat(a)?;
                let outer: usize = types[0].shape[..axis].iter().product();
                let mut data = Vec::with_capacity(types[0].count());
                for place in 0..outer {
                    for argument in a.all("values") {
                        let values = argument.value.as_ref().ok_or_else(|| a.missing("values"))?;
                        let run = values.data.len() / outer.max(1);
                        data.extend_from_slice(&values.data[place * run..(place + 1) * run]);
                    }
                }
                of(types, data)
            })
        },
        &[param("Dimension", ParamKind::Word(DIMENSIONS))],
    )
};

fn concat(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let axis = named_axis(a, "Dimension").unwrap_or(3);
    let mut shape: Vec<i128> = a.shape("values").iter().map(|&extent| extent as i128).collect();
    if let Some(extent) = shape.get_mut(axis) {
        *extent = a.all("values").iter().map(|argument| argument.ty.shape.get(axis).map_or(0, |&extent| extent as i128)).sum();
    }
    computed(a, DType::Fp16, shape)
}

const RESHAPED: [&str; 4] = ["ReshapedBatch", "ReshapedChannel", "ReshapedHeight", "ReshapedWidth"];

/// The same values under another shape.
pub static RESHAPE: Layer = Layer {
    channels: Channels::Omitted,
    ..layer(
        MilOp {
            ports: &[x("x"), ints(RESHAPED[0]), ints(RESHAPED[1]), ints(RESHAPED[2]), ints(RESHAPED[3])],
            constraints: &[
                FOUR,
                rule("C2", "the new shape has as many elements as x", |a| {
                    let wanted = RESHAPED.iter().try_fold(1usize, |count, port| count.checked_mul(size(a, port)));
                    wanted == Some(a.shape("x").iter().product())
                }),
            ],
            tolerance: 0.0,
            arithmetic: Arithmetic::Copy,
            cases: &[Case::new(
                "a_row_becomes_a_square",
                &[
                    ("x", given(&[1, 1, 1, 4], &[1.0, 2.0, 3.0, 4.0])),
                    (RESHAPED[0], int(&[1.0])),
                    (RESHAPED[1], int(&[1.0])),
                    (RESHAPED[2], int(&[2.0])),
                    (RESHAPED[3], int(&[2.0])),
                ],
                &[(&[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0])],
                BY_HAND,
            )],
            ..unary("Reshape", "The values of x under another shape.", reshape, |a| {
                let data: &Array = a.array("x")?;
                of(reshape(a)?, data.data.clone())
            })
        },
        &[
            param(RESHAPED[0], ParamKind::Int),
            param(RESHAPED[1], ParamKind::Int),
            param(RESHAPED[2], ParamKind::Int),
            param(RESHAPED[3], ParamKind::Int),
        ],
    )
};

fn reshape(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    computed(a, DType::Fp16, RESHAPED.iter().map(|port| size(a, port) as i128).collect())
}
