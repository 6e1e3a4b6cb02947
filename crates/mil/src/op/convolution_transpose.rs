//! Transposed convolution.

use super::family::{PRODUCTS_TOO, base, integers, rule};
use super::general::computed;
use super::window::{MAPS, ONE_DTYPE, PAD_TYPE, WELL_FORMED, groups};
use super::{
    Arguments, Case, Constraint, Default, FLOATS, MilOp, OpError, PortSpec, TEXT, constant, given, int, ints, optional, sample,
    tensor, text,
};
use crate::{Array, TensorType, strides};
use rayon::prelude::*;

const PORTS: &[PortSpec] = &[
    tensor("x", FLOATS),
    tensor("weight", FLOATS),
    optional("bias", FLOATS),
    integers("pad", Default::Absent),
    integers("output_shape", Default::Absent),
    constant("pad_type", TEXT, Default::Text("valid")),
    integers("strides", Default::Absent),
    integers("dilations", Default::Absent),
    integers("groups", Default::Int(1)),
];

const RULES: &[Constraint] = &[
    MAPS,
    ONE_DTYPE,
    rule("C3", "weight has shape [in, out / groups, kernel...] and groups divides the channels of x", |a| {
        let Some(groups) = groups(a) else { return false };
        a.shape("weight").first() == a.shape("x").get(1) && a.shape("x").get(1).is_some_and(|input| input % groups == 0)
    }),
    rule("C4", "bias has shape [out channels]", |a| {
        let channels = a.shape("weight").get(1).copied().unwrap_or(0).checked_mul(groups(a).unwrap_or(1));
        !a.has("bias") || (a.shape("bias").len() == 1 && a.shape("bias").first().copied() == channels)
    }),
    WELL_FORMED,
    PAD_TYPE,
    rule("C7", "output_shape has the rank of x and agrees with its batch and the out channels", |a| {
        let Some(shape) = a.ints("output_shape") else { return true };
        let channels = a.shape("weight").get(1).copied().unwrap_or(0).saturating_mul(groups(a).unwrap_or(1));
        let lead = [a.shape("x").first().copied().unwrap_or(0), channels];
        shape.len() == a.shape("x").len() && shape.iter().zip(lead).all(|(&extent, want)| usize::try_from(extent) == Ok(want))
    }),
];

pub(super) const OPS: &[MilOp] = &[MilOp {
    ports: PORTS,
    constraints: RULES,
    arithmetic: PRODUCTS_TOO,
    published_error: Some(2.5e-4),
    cases: &[
        Case::new(
            "every_element_stamps_the_kernel",
            &[
                ("x", given(&[1, 1, 3], &[1.0, 2.0, 3.0])),
                ("weight", given(&[1, 1, 2], &[1.0, 10.0])),
                ("strides", ints(&[1], &[2.0])),
            ],
            &[(&[1, 1, 6], &[1.0, 10.0, 2.0, 20.0, 3.0, 30.0])],
            "by hand",
        ),
        Case::new(
            "stamps_overlap_and_bias_is_added_once",
            &[
                ("x", given(&[1, 1, 1, 2], &[1.0, 2.0])),
                ("weight", given(&[1, 1, 1, 2], &[1.0, 3.0])),
                ("bias", given(&[1], &[0.5])),
            ],
            &[(&[1, 1, 1, 3], &[1.5, 5.5, 6.5])],
            "by hand",
        ),
        Case::oracle(
            "stride_padding_groups",
            &[
                ("x", sample(&[2, 4, 3, 4], 1)),
                ("weight", sample(&[4, 3, 3, 2], 2)),
                ("bias", sample(&[6], 3)),
                ("pad_type", text("custom")),
                ("pad", ints(&[4], &[1.0, 1.0, 0.0, 0.0])),
                ("strides", ints(&[2], &[2.0, 3.0])),
                ("dilations", ints(&[2], &[2.0, 1.0])),
                ("groups", int(&[2.0])),
            ],
        ),
        Case::new(
            "output_shape_leaves_a_border",
            &[
                ("x", given(&[1, 1, 2], &[1.0, 2.0])),
                ("weight", given(&[1, 1, 2], &[1.0, 10.0])),
                ("strides", ints(&[1], &[3.0])),
                ("output_shape", ints(&[3], &[1.0, 1.0, 6.0])),
            ],
            &[(&[1, 1, 6], &[1.0, 10.0, 0.0, 2.0, 20.0, 0.0])],
            "by hand",
        ),
    ],
    ..base("conv_transpose", "Transposed convolution of x with weight [in, out / groups, kernel...].", infer, meaning)
}];

/// Per spatial axis: stride, dilation, elements cut at the front, extent of the result.
fn geometry(a: &Arguments<'_>) -> Vec<(i128, i128, i128, i128)> {
    let (x, weight) = (a.shape("x").get(2..).unwrap_or(&[]), a.shape("weight").get(2..).unwrap_or(&[]));
    let list =
        |port, index: usize, otherwise| a.ints(port).and_then(|values| values.get(index).copied()).unwrap_or(otherwise).into();
    let axis = |(axis, (&extent, &kernel)): (usize, (&usize, &usize))| {
        let (stride, dilation): (i128, i128) = (list("strides", axis, 1), list("dilations", axis, 1));
        let reach = (kernel as i128 - 1) * dilation + 1;
        let full = (extent as i128 - 1) * stride + reach;
        let (before, output) = match a.text("pad_type") {
            Some("custom") => {
                let before: i128 = list("pad", 2 * axis, 0);
                (before, full - before - list("pad", 2 * axis + 1, 0))
            }
            Some(same @ ("same" | "same_lower")) => {
                let total = (reach - stride).max(0);
                (if same == "same" { total / 2 } else { total - total / 2 }, extent as i128 * stride)
            }
            _ => (0, full),
        };
        (stride, dilation, before, list("output_shape", axis + 2, output.clamp(i64::MIN.into(), i64::MAX.into()) as i64))
    };
    x.iter().zip(weight).enumerate().map(axis).collect()
}

fn infer(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let x = a.ty("x")?;
    let channels = a.ty("weight")?.shape.get(1).copied().unwrap_or(0) as i128 * groups(a).unwrap_or(1) as i128;
    let mut shape = vec![x.shape.first().copied().unwrap_or(0) as i128, channels];
    shape.extend(geometry(a).iter().map(|axis| axis.3));
    computed(a, x.dtype, shape)
}

fn meaning(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let (x, weight) = (a.array("x")?, a.array("weight")?);
    let bias = if a.has("bias") { Some(a.array("bias")?) } else { None };
    let ty = infer(a)?.remove(0);
    let geometry = geometry(a);
    let (inputs, kernel) = (&x.ty.shape[2..], &weight.ty.shape[2..]);
    let (pixels, taps) = (inputs.iter().product::<usize>(), kernel.iter().product::<usize>());
    let plane_strides = strides(&ty.shape[2..]);
    let (channels, per_group) = (ty.shape[1], weight.ty.shape[1]);
    let group_inputs = x.ty.shape[1] / groups(a).unwrap_or(1);
    // Where element `pixel` puts its tap, if that is inside the result.
    let target = |pixel: usize, tap: usize| {
        let (mut pixel, mut tap, mut target) = (pixel, tap, 0);
        for axis in (0..inputs.len()).rev() {
            let (stride, dilation, before, output) = geometry[axis];
            let at = (pixel % inputs[axis]) as i128 * stride + (tap % kernel[axis]) as i128 * dilation - before;
            if !(0..output).contains(&at) {
                return None;
            }
            target += at as usize * plane_strides[axis];
            (pixel, tap) = (pixel / inputs[axis], tap / kernel[axis]);
        }
        Some(target)
    };
    let mut data = vec![0.0; ty.count()];
    let plane_size = ty.shape[2..].iter().product();
    data.par_chunks_mut(plane_size).enumerate().for_each(|(index, plane)| {
        let (image, channel) = (index / channels, index % channels);
        plane.fill(bias.map_or(0.0, |bias| bias.data[channel]));
        for source in 0..group_inputs {
            let input = channel / per_group * group_inputs + source;
            let from = (image * x.ty.shape[1] + input) * pixels;
            let taps_at = (input * per_group + channel % per_group) * taps;
            for (pixel, &value) in x.data[from..from + pixels].iter().enumerate() {
                for (tap, &weight) in weight.data[taps_at..taps_at + taps].iter().enumerate() {
                    if let Some(target) = target(pixel, tap) {
                        plane[target] += value * weight;
                    }
                }
            }
        }
    });
    Ok(vec![Array { ty, data }])
}
