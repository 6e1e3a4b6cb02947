//! Convolutions and matrix products.

use super::build::*;
use super::{Channels, Layer, ParamKind};
use aneforge_mil::op::family::PRODUCTS_TOO;
use aneforge_mil::op::{Arguments, Case, Given, MilOp, OpError, int, ints as ints_given, optional_weight};
use aneforge_mil::{Array, DType, TensorType};

const TYPES: &[&str] = &["Conv", "ChannelWiseDeConv"];
const ROW: Given = given(&[1, 1, 1, 3], &[1.0, 2.0, 3.0]);
const ONE: Given = int(&[1.0]);

/// Convolution, and the enlargement that a kernel of ones gives between zeros.
pub static CONV: Layer = Layer {
    channels: Channels::Result,
    ..layer(
        MilOp {
            ports: &[
                x("x"),
                optional_weight("kernel", HALF),
                word("Type"),
                word("KernelMode"),
                flag("KernelMutable"),
                flag("KernelGroupReuse"),
                ints("KernelWidth"),
                ints("KernelHeight"),
                int_or("KernelDepth", 1),
                int_or("PadLeft", 0),
                int_or("PadRight", 0),
                int_or("PadTop", 0),
                int_or("PadBot", 0),
                int_or("PadFront", 0),
                int_or("PadBack", 0),
                word("PaddingMode"),
                ints("Step"),
                int_or("NumGroups", 1),
            ],
            constraints: &[
                FOUR,
                rule(
                    "C2",
                    "Type is Conv with a Dense kernel of weights, or ChannelWiseDeConv with the Unity kernel, which has none; \
                     PaddingMode is Zero and KernelMutable is off",
                    |a| {
                        let dense = match (a.text("Type"), a.text("KernelMode")) {
                            (Some("Conv"), Some("Dense")) => true,
                            (Some("ChannelWiseDeConv"), Some("Unity")) => false,
                            _ => return false,
                        };
                        a.has("kernel") == dense && is_one_of(a, "PaddingMode", &["Zero"]) && !a.flag("KernelMutable")
                    },
                ),
                rule(
                    "C3",
                    "the kernel is [out, in / NumGroups, KernelHeight, KernelWidth], and NumGroups divides in and out",
                    |a| {
                        let (channels, groups) = (extents(a, "x")[1], size(a, "NumGroups"));
                        let [out, within, height, width] = extents(a, "kernel");
                        if groups == 0 || size(a, "KernelHeight") == 0 || size(a, "KernelWidth") == 0 {
                            return false;
                        }
                        match a.has("kernel") {
                            true => {
                                channels % groups == 0
                                    && out % groups == 0
                                    && (within, height, width)
                                        == (channels / groups, size(a, "KernelHeight"), size(a, "KernelWidth"))
                            }
                            false => groups == channels,
                        }
                    },
                ),
                rule(
                    "C4",
                    "Step holds a positive width and height and, where there is a third, a depth of 1",
                    |a| matches!(a.ints("Step").as_deref(), Some(&[x, y] | &[x, y, 1]) if x > 0 && y > 0),
                ),
                rule("C5", "nothing happens along the depth: KernelDepth is 1, PadFront and PadBack are 0", |a| {
                    (a.int("KernelDepth"), a.int("PadFront"), a.int("PadBack")) == (Some(1), Some(0), Some(0))
                }),
                rule("C6", "paddings are not negative, and the kernel fits into the padded map", |a| {
                    ["PadLeft", "PadRight", "PadTop", "PadBot"]
                        .iter()
                        .all(|pad| a.int(pad).is_some_and(|pad| (0..1 << 20).contains(&pad)))
                        && padded(a).iter().zip(kernel(a)).all(|(&extent, kernel)| kernel as i128 <= extent)
                }),
            ],
            arithmetic: PRODUCTS_TOO,
            cases: &[
                Case::new(
                    "the_kernel_is_not_flipped",
                    &[
                        ("x", ROW),
                        ("kernel", given(&[2, 1, 1, 2], &[1.0, 10.0, 0.0, 1.0])),
                        ("Type", text("Conv")),
                        ("KernelMode", text("Dense")),
                        ("KernelWidth", int(&[2.0])),
                        ("KernelHeight", ONE),
                        ("PaddingMode", text("Zero")),
                        ("Step", ints_given(&[3], &[1.0, 1.0, 1.0])),
                    ],
                    &[(&[1, 2, 1, 2], &[21.0, 32.0, 2.0, 3.0])],
                    "torch.nn.functional.conv2d",
                ),
                Case::new(
                    "ones_between_zeros_repeat",
                    &[
                        ("x", ROW),
                        ("Type", text("ChannelWiseDeConv")),
                        ("KernelMode", text("Unity")),
                        ("KernelWidth", int(&[2.0])),
                        ("KernelHeight", ONE),
                        ("PadLeft", ONE),
                        ("PaddingMode", text("Zero")),
                        ("Step", ints_given(&[2], &[2.0, 1.0])),
                    ],
                    &[(&[1, 1, 1, 6], &[1.0, 1.0, 2.0, 2.0, 3.0, 3.0])],
                    "torch.nn.functional.interpolate, nearest",
                ),
            ],
            ..unary(
                "Conv",
                "Sums of products of a kernel with every part of x; between zeros where Type says so.",
                convolved,
                convolve,
            )
        },
        &[
            param("Type", ParamKind::Word(TYPES)),
            param("kernel", ParamKind::Kernel),
            param("KernelMode", ParamKind::Word(&["Dense", "Unity"])),
            param("KernelMutable", ParamKind::Flag),
            param("KernelGroupReuse", ParamKind::Flag),
            param("KernelWidth", ParamKind::Int),
            param("KernelHeight", ParamKind::Int),
            param("KernelDepth", ParamKind::Int),
            param("PadLeft", ParamKind::Int),
            param("PadRight", ParamKind::Int),
            param("PadTop", ParamKind::Int),
            param("PadBot", ParamKind::Int),
            param("PadFront", ParamKind::Int),
            param("PadBack", ParamKind::Int),
            param("PaddingMode", ParamKind::Word(&["Zero"])),
            param("Step", ParamKind::Ints),
            param("NumGroups", ParamKind::UnitInt),
        ],
    )
};

fn kernel(a: &Arguments<'_>) -> [usize; 2] {
    [size(a, "KernelHeight"), size(a, "KernelWidth")]
}

fn step(a: &Arguments<'_>) -> [usize; 2] {
    let steps = a.ints("Step").unwrap_or_default();
    [1, 0].map(|place| steps.get(place).and_then(|&step| usize::try_from(step).ok()).unwrap_or(1).max(1))
}

fn enlarges(a: &Arguments<'_>) -> bool {
    a.text("Type") == Some("ChannelWiseDeConv")
}

/// Height and width with padding and, where the layer enlarges, with zeros behind every value.
fn padded(a: &Arguments<'_>) -> [i128; 2] {
    let ([_, _, height, width], steps) = (extents(a, "x"), step(a));
    let apart = steps.map(|step| if enlarges(a) { step as i128 } else { 1 });
    let pads = [["PadTop", "PadBot"], ["PadLeft", "PadRight"]].map(|pair| size(a, pair[0]) as i128 + size(a, pair[1]) as i128);
    [(height as i128).saturating_mul(apart[0]) + pads[0], (width as i128).saturating_mul(apart[1]) + pads[1]]
}

fn convolved(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let (padded, kernel, steps) = (padded(a), kernel(a), step(a).map(|step| if enlarges(a) { 1 } else { step }));
    let space = [0, 1].map(|axis| (padded[axis] - kernel[axis] as i128) / steps[axis] as i128 + 1);
    let channels = if a.has("kernel") { extents(a, "kernel")[0] } else { extents(a, "x")[1] };
    computed(a, DType::Fp16, vec![extents(a, "x")[0] as i128, channels as i128, space[0], space[1]])
}

fn convolve(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let x = a.array("x")?;
    let weights = a.get("kernel").and_then(|kernel| kernel.value.as_ref());
    let types = convolved(a)?;
    let [_, channels, height, width] = extents(a, "x");
    let ([down, across], steps) = (kernel(a), step(a));
    let apart = steps.map(|step| if enlarges(a) { step } else { 1 });
    let stride = steps.map(|step| if enlarges(a) { 1 } else { step });
    let (top, left, groups) = (size(a, "PadTop"), size(a, "PadLeft"), size(a, "NumGroups").max(1));
    let (out, rows, columns) = (types[0].shape[1], types[0].shape[2], types[0].shape[3]);
    // Where a place of the padded and spread map comes from, if from a value.
    let source = |place: usize, pad: usize, apart: usize, extent: usize| {
        place.checked_sub(pad).filter(|at| at % apart == 0).map(|at| at / apart).filter(|&at| at < extent)
    };
    let within = channels / groups;
    let value = |index: usize| {
        let (row, column) = (index / columns % rows, index % columns);
        let (image, channel) = (index / (out * rows * columns), index / (rows * columns) % out);
        let first = channel / (out / groups).max(1) * within;
        let mut sum = 0.0;
        for (i, j) in (0..down).flat_map(|i| (0..across).map(move |j| (i, j))) {
            let y = source(row * stride[0] + i, top, apart[0], height);
            let Some((y, at)) = y.zip(source(column * stride[1] + j, left, apart[1], width)) else { continue };
            for c in 0..within {
                let weight = weights.map_or(1.0, |weights| weights.data[((channel * within + c) * down + i) * across + j]);
                sum += weight * x.data[((image * channels + first + c) * height + y) * width + at];
            }
        }
        sum
    };
    let data = (0..types[0].count()).map(value).collect();
    of(types, data)
}

/// Products of matrices whose rows are the channels.
pub static MATRIX_MULTIPLICATION: Layer = Layer {
    bottoms: X_AND_Z,
    ..layer(
        MilOp {
            ports: &[x("x"), x("z")],
            constraints: &[
                FOUR,
                rule("C2", "the width of x is the number of channels of z", |a| extents(a, "x")[3] == extents(a, "z")[1]),
                rule("C3", "batches and heights are equal, or 1 on one side", |a| {
                    let (x, z) = (extents(a, "x"), extents(a, "z"));
                    [0, 2].iter().all(|&axis| x[axis] == z[axis] || x[axis] == 1 || z[axis] == 1)
                }),
            ],
            arithmetic: PRODUCTS_TOO,
            cases: &[Case::new(
                "matrix_times_vector",
                &[("x", given(&[1, 2, 1, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])), ("z", given(&[1, 3, 1, 1], &[1.0, 10.0, 100.0]))],
                &[(&[1, 2, 1, 1], &[321.0, 654.0])],
                "numpy.matmul",
            )],
            ..unary(
                "MatrixMultiplication",
                "The product of matrices [channels, width], for each place of batch and height.",
                product,
                |a| {
                    let (x, z, types) = (a.array("x")?, a.array("z")?, product(a)?);
                    let (own, other) = (extents(a, "x"), extents(a, "z"));
                    let [_, rows, heights, columns] = <[usize; 4]>::try_from(types[0].shape.as_slice()).unwrap_or([1; 4]);
                    let at = |e: [usize; 4], n: usize, c: usize, h: usize, w: usize| {
                        ((n.min(e[0] - 1) * e[1] + c) * e[2] + h.min(e[2] - 1)) * e[3] + w
                    };
                    let value = |index: usize| {
                        let (n, c) = (index / (rows * heights * columns), index / (heights * columns) % rows);
                        let (h, w) = (index / columns % heights, index % columns);
                        (0..own[3]).map(|k| x.data[at(own, n, c, h, k)] * z.data[at(other, n, k, h, w)]).sum()
                    };
                    let data = (0..types[0].count()).map(value).collect();
                    of(types, data)
                },
            )
        },
        &[],
    )
};

fn product(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let (x, z) = (extents(a, "x"), extents(a, "z"));
    result(a, DType::Fp16, vec![x[0].max(z[0]), x[1], x[2].max(z[2]), z[3]])
}
