//! Convolution.

use super::family::{base, integers, rule};
use super::general::result;
use super::window::{self, Axis, MAPS, ONE_DTYPE, PAD_TYPE, WELL_FORMED, groups};
use super::{
    Arguments, Arithmetic, Case, Constraint, Default, FLOATS, MilOp, OpError, PortSpec, TEXT, constant, given, int, ints, optional,
    sample, tensor, text,
};
use crate::{Array, TensorType};
use rayon::prelude::*;

const PORTS: &[PortSpec] = &[
    tensor("x", FLOATS),
    tensor("weight", FLOATS),
    optional("bias", FLOATS),
    integers("strides", Default::Absent),
    constant("pad_type", TEXT, Default::Text("valid")),
    integers("pad", Default::Absent),
    integers("dilations", Default::Absent),
    integers("groups", Default::Int(1)),
];

const RULES: &[Constraint] = &[
    MAPS,
    ONE_DTYPE,
    rule("C3", "groups divides the channels of x and of the result, and weight has shape [out, in / groups, kernel...]", |a| {
        let (Some(groups), Some(&input)) = (groups(a), a.shape("x").get(1)) else { return false };
        let (Some(&output), Some(&per_group)) = (a.shape("weight").first(), a.shape("weight").get(1)) else { return false };
        output % groups == 0 && per_group.checked_mul(groups) == Some(input)
    }),
    rule("C4", "bias has shape [out channels]", |a| !a.has("bias") || a.shape("bias") == a.shape("weight").get(..1).unwrap_or(&[])),
    WELL_FORMED,
    PAD_TYPE,
    rule("C7", "the padded input is at least as large as the dilated kernel: add padding", |a| axes(a).is_some()),
];

pub(super) const OPS: &[MilOp] = &[MilOp {
    opset: "ios15",
    ports: PORTS,
    constraints: RULES,
    arithmetic: Arithmetic::Exact(
        "products on the 2^-16 grid, exact sum, stored half away from zero, infinite from 2^15; M5 and M6 do 3x3 of stride 1 as \
         Winograd F(2,3) along rows: reproduces the errors that arXiv 2606.17090 publishes; M3 and other shapes on M5 and M6 are \
         presumed direct",
    ),
    published_error: Some(2.8e-4),
    cases: &[
        Case::new(
            "one_dimension_by_hand",
            &[("x", given(&[1, 1, 4], &[1.0, 2.0, 3.0, 4.0])), ("weight", given(&[1, 1, 2], &[1.0, -2.0]))],
            &[(&[1, 1, 3], &[-3.0, -4.0, -5.0])],
            "by hand",
        ),
        Case::new(
            "ones_count_the_neighbours",
            &[
                ("x", given(&[1, 1, 3, 3], &[1.0; 9])),
                ("weight", given(&[1, 1, 3, 3], &[1.0; 9])),
                ("pad_type", text("custom")),
                ("pad", ints(&[4], &[1.0, 1.0, 1.0, 1.0])),
                ("strides", ints(&[2], &[1.0, 1.0])),
                ("dilations", ints(&[2], &[1.0, 1.0])),
                ("groups", int(&[1.0])),
            ],
            &[(&[1, 1, 3, 3], &[4.0, 6.0, 4.0, 6.0, 9.0, 6.0, 4.0, 6.0, 4.0])],
            "by hand",
        ),
        Case::new(
            "groups_and_bias",
            &[
                ("x", given(&[1, 2, 1, 2], &[1.0, 2.0, 3.0, 4.0])),
                ("weight", given(&[2, 1, 1, 1], &[10.0, -1.0])),
                ("bias", given(&[2], &[0.5, 100.0])),
                ("groups", int(&[2.0])),
            ],
            &[(&[1, 2, 1, 2], &[10.5, 20.5, 97.0, 96.0])],
            "by hand",
        ),
        Case::oracle(
            "stride_two_uneven_padding",
            &[
                ("x", sample(&[2, 3, 7, 6], 1)),
                ("weight", sample(&[4, 3, 3, 2], 2)),
                ("bias", sample(&[4], 3)),
                ("pad_type", text("custom")),
                ("pad", ints(&[4], &[1.0, 0.0, 2.0, 1.0])),
                ("strides", ints(&[2], &[2.0, 3.0])),
            ],
        ),
        Case::oracle(
            "depthwise_dilated_same",
            &[
                ("x", sample(&[1, 4, 6, 5], 4)),
                ("weight", sample(&[4, 1, 3, 3], 5)),
                ("pad_type", text("same")),
                ("dilations", ints(&[2], &[2.0, 1.0])),
                ("groups", int(&[4.0])),
            ],
        ),
        Case::oracle(
            "same_lower_with_stride",
            &[
                ("x", sample(&[1, 2, 6, 7], 6)),
                ("weight", sample(&[3, 2, 2, 4], 7)),
                ("pad_type", text("same_lower")),
                ("strides", ints(&[2], &[2.0, 2.0])),
            ],
        ),
        Case::oracle("three_dimensions", &[("x", sample(&[1, 2, 3, 4, 5], 8)), ("weight", sample(&[2, 2, 2, 3, 1], 9))]),
    ],
    ..base("conv", "Convolution of x [batch, in, spatial...] with weight [out, in / groups, kernel...].", infer, meaning)
}];

fn axes(a: &Arguments<'_>) -> Option<Vec<Axis>> {
    window::axes(a, a.shape("x").get(2..)?, a.shape("weight").get(2..)?)
}

fn infer(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let x = a.ty("x")?;
    let mut shape = vec![x.shape.first().copied().unwrap_or(0), a.ty("weight")?.shape.first().copied().unwrap_or(0)];
    shape.extend(axes(a).unwrap_or_default().iter().map(|axis| axis.output));
    result(a, x.dtype, shape)
}

fn meaning(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let (x, weight) = (a.array("x")?, a.array("weight")?);
    let bias = if a.has("bias") { Some(a.array("bias")?) } else { None };
    let ty = infer(a)?.remove(0);
    let three = window::three(&axes(a).unwrap_or_default());
    let (input, output, kernel) = (three.map(|axis| axis.input), three.map(|axis| axis.output), three.map(|axis| axis.kernel));
    let (inputs, outputs) = (input.iter().product::<usize>(), output.iter().product::<usize>());
    let taps = kernel.iter().product::<usize>();
    let (channels, per_group) = (ty.shape[1], weight.ty.shape[1]);
    let group_size = channels / groups(a).unwrap_or(1);
    let mut data = vec![0.0; ty.count()];
    // One plane of one channel at a time: the plane stays in cache while every tap adds its shifted rows to it.
    data.par_chunks_mut(outputs).enumerate().for_each(|(index, plane)| {
        let (image, channel) = (index / channels, index % channels);
        plane.fill(bias.map_or(0.0, |bias| bias.data[channel]));
        for source in 0..per_group {
            let from = (image * x.ty.shape[1] + channel / group_size * per_group + source) * inputs;
            let taps_at = (channel * per_group + source) * taps;
            add_plane(plane, &x.data[from..from + inputs], &weight.data[taps_at..taps_at + taps], &three);
        }
    });
    Ok(vec![Array { ty, data }])
}

/// Adds one input channel, weighted by its taps, to one output plane.
fn add_plane(plane: &mut [f64], x: &[f64], taps: &[f64], [depth, height, width]: &[Axis; 3]) {
    for (tap, &weight) in taps.iter().enumerate() {
        let across = tap % width.kernel;
        let down = tap / width.kernel % height.kernel;
        let deep = tap / width.kernel / height.kernel;
        let (first, last) = width.inside(across);
        if first >= last {
            continue;
        }
        for z in depth.inside(deep).0..depth.inside(deep).1 {
            for y in height.inside(down).0..height.inside(down).1 {
                let row = &x[(depth.at(z, deep) * height.input + height.at(y, down)) * width.input..][..width.input];
                let out = &mut plane[(z * height.output + y) * width.output..][first..last];
                let values = row[width.at(first, across)..].iter().step_by(width.stride);
                if width.stride == 1 {
                    out.iter_mut().zip(&row[width.at(first, across)..]).for_each(|(out, x)| *out += weight * x);
                } else {
                    out.iter_mut().zip(values).for_each(|(out, x)| *out += weight * x);
                }
            }
        }
    }
}
