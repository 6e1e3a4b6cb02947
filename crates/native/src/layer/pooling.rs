//! Windows and whole axes folded to one value.

use super::build::*;
use super::{DIMENSIONS, Layer, ParamKind};
use aneforge_mil::op::family::REDUCED;
use aneforge_mil::op::{Arguments, Arithmetic, Case, Given, MilOp, OpError, flag as given_flag, int, ints as ints_given};
use aneforge_mil::{Array, DType, TensorType};

const KINDS: &[&str] = &["Max", "Avg"];
const MAP: Given = given(&[1, 1, 2, 4], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);

/// Largest or mean values under a moving window.
pub static POOLING: Layer = layer(
    MilOp {
        ports: &[
            x("x"),
            word("Type"),
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
            flag("AverageCountExcludePadding"),
        ],
        constraints: &[
            FOUR,
            rule("C2", "Type is Max with PaddingMode Negative, or Avg with PaddingMode Zero", |a| {
                matches!((a.text("Type"), a.text("PaddingMode")), (Some("Max"), Some("Negative")) | (Some("Avg"), Some("Zero")))
            }),
            rule(
                "C3",
                "Step holds a positive width and height and, where there is a third, a depth of 1",
                |a| matches!(a.ints("Step").as_deref(), Some(&[x, y] | &[x, y, 1]) if x > 0 && y > 0),
            ),
            rule("C4", "nothing happens along the depth: KernelDepth is 1, PadFront and PadBack are 0", |a| {
                (a.int("KernelDepth"), a.int("PadFront"), a.int("PadBack")) == (Some(1), Some(0), Some(0))
            }),
            rule("C5", "paddings are at least 0 and smaller than the kernel, which fits into the padded map", |a| {
                [("KernelHeight", "PadTop", "PadBot", 2), ("KernelWidth", "PadLeft", "PadRight", 3)].iter().all(
                    |&(kernel, before, after, axis)| {
                        let kernel = size(a, kernel) as i64;
                        let pads = [before, after].map(|pad| a.int(pad).unwrap_or(-1));
                        pads.iter().all(|pad| (0..kernel).contains(pad))
                            && kernel <= (extents(a, "x")[axis] as i64).saturating_add(pads[0]).saturating_add(pads[1])
                    },
                )
            }),
            rule("C6", "AverageCountExcludePadding belongs to Avg", |a| {
                !a.flag("AverageCountExcludePadding") || a.text("Type") == Some("Avg")
            }),
        ],
        arithmetic: Arithmetic::Modelled("largest values need no rounding; means in f64, rounded once"),
        cases: &[
            Case::new(
                "largest_of_squares",
                &[
                    ("x", MAP),
                    ("Type", text("Max")),
                    ("KernelWidth", int(&[2.0])),
                    ("KernelHeight", int(&[2.0])),
                    ("PaddingMode", text("Negative")),
                    ("Step", ints_given(&[3], &[2.0, 2.0, 1.0])),
                ],
                &[(&[1, 1, 1, 2], &[6.0, 8.0])],
                "torch.nn.functional.max_pool2d",
            ),
            Case::new(
                "padding_does_not_count",
                &[
                    ("x", MAP),
                    ("Type", text("Avg")),
                    ("KernelWidth", int(&[2.0])),
                    ("KernelHeight", int(&[1.0])),
                    ("PadLeft", int(&[1.0])),
                    ("PaddingMode", text("Zero")),
                    ("Step", ints_given(&[3], &[2.0, 1.0, 1.0])),
                    ("AverageCountExcludePadding", given_flag(true)),
                ],
                &[(&[1, 1, 2, 2], &[1.0, 2.5, 5.0, 6.5])],
                "torch.nn.functional.avg_pool2d",
            ),
        ],
        ..unary("Pooling", "The largest or mean value under a moving window.", pooled, pool)
    },
    &[
        param("Type", ParamKind::Word(KINDS)),
        param("KernelWidth", ParamKind::Int),
        param("KernelHeight", ParamKind::Int),
        param("KernelDepth", ParamKind::Int),
        param("PadLeft", ParamKind::Int),
        param("PadRight", ParamKind::Int),
        param("PadTop", ParamKind::Int),
        param("PadBot", ParamKind::Int),
        param("PadFront", ParamKind::Int),
        param("PadBack", ParamKind::Int),
        param("PaddingMode", ParamKind::Word(&["Negative", "Zero"])),
        param("Step", ParamKind::Ints),
        param("AverageCountExcludePadding", ParamKind::Flag),
    ],
);

fn step(a: &Arguments<'_>) -> [usize; 2] {
    let steps = a.ints("Step").unwrap_or_default();
    [1, 0].map(|place| steps.get(place).and_then(|&step| usize::try_from(step).ok()).unwrap_or(1).max(1))
}

fn pooled(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let ([batch, channels, height, width], [down, across]) = (extents(a, "x"), step(a));
    let extent = |own: usize, kernel: &str, before: &str, after: &str, step: usize| {
        let padded = own as i128 + size(a, before) as i128 + size(a, after) as i128;
        (padded - size(a, kernel) as i128) / step as i128 + 1
    };
    let height = extent(height, "KernelHeight", "PadTop", "PadBot", down);
    let width = extent(width, "KernelWidth", "PadLeft", "PadRight", across);
    computed(a, DType::Fp16, vec![batch as i128, channels as i128, height, width])
}

fn pool(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let x = a.array("x")?;
    let ([_, _, height, width], [down, across], types) = (extents(a, "x"), step(a), pooled(a)?);
    let (rows, columns) = (types[0].shape[2], types[0].shape[3]);
    let (kernel_height, kernel_width) = (size(a, "KernelHeight"), size(a, "KernelWidth"));
    let (top, left) = (size(a, "PadTop"), size(a, "PadLeft"));
    let largest = a.text("Type") == Some("Max");
    let value = |index: usize| {
        let (plane, row, column) = (index / (rows * columns), index / columns % rows, index % columns);
        let span =
            |start: usize, kernel: usize, pad: usize, extent: usize| start.max(pad) - pad..(start + kernel).min(pad + extent) - pad;
        let inside = span(row * down, kernel_height, top, height).flat_map(|y| {
            span(column * across, kernel_width, left, width).map(move |place| x.data[(plane * height + y) * width + place])
        });
        if largest {
            return inside.fold(f64::NEG_INFINITY, f64::max);
        }
        let (count, sum) = inside.fold((0usize, 0.0), |(count, sum), value| (count + 1, sum + value));
        sum / if a.flag("AverageCountExcludePadding") { count } else { kernel_height * kernel_width } as f64
    };
    let data = (0..types[0].count()).map(value).collect();
    of(types, data)
}

const FOLDS: &[&str] = &["Sum", "Avg", "Max", "Min"];

/// Whole axes folded to one place.
pub static REDUCTION: Layer = layer(
    MilOp {
        ports: &[x("x"), word("Type"), ints("Dimension")],
        constraints: &[
            FOUR,
            rule("C2", "Type is Sum, Avg, Max or Min", |a| is_one_of(a, "Type", FOLDS)),
            rule("C3", "Dimension names axes once each, none of them the depth", |a| {
                named_axes(a, "Dimension").is_some_and(|axes| !axes.is_empty())
            }),
        ],
        arithmetic: REDUCED,
        cases: &[
            Case::new(
                "sum_of_rows",
                &[("x", MAP), ("Type", text("Sum")), ("Dimension", ints_given(&[1], &[4.0]))],
                &[(&[1, 1, 2, 1], &[10.0, 26.0])],
                "numpy.sum",
            ),
            Case::new(
                "mean_of_planes",
                &[("x", MAP), ("Type", text("Avg")), ("Dimension", ints_given(&[2], &[3.0, 4.0]))],
                &[(&[1, 1, 1, 1], &[4.5])],
                "numpy.mean",
            ),
        ],
        ..unary("Reduction", "The sum, mean, largest or smallest value over axes.", reduced, |a| {
            let kind = a.text("Type").unwrap_or_default();
            let mut values = a.array("x")?.clone();
            // Means over several axes are means of means: all lines of an axis are equally long.
            for axis in named_axes(a, "Dimension").unwrap_or_default() {
                values = lines(&values, axis, |line| {
                    vec![match kind {
                        "Max" => line.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                        "Min" => line.iter().copied().fold(f64::INFINITY, f64::min),
                        "Avg" => line.iter().sum::<f64>() / line.len() as f64,
                        _ => line.iter().sum(),
                    }]
                });
            }
            Ok(vec![values])
        })
    },
    &[param("Type", ParamKind::Word(FOLDS)), param("Dimension", ParamKind::Words(DIMENSIONS))],
);

fn reduced(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let mut shape = extents(a, "x").to_vec();
    named_axes(a, "Dimension").unwrap_or_default().into_iter().for_each(|axis| shape[axis] = 1);
    result(a, DType::Fp16, shape)
}
