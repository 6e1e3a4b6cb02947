//! Normalizations.

use super::family::{COMPOSED, around, attribute, axes, base, integers, or, rule, same_as_x};
use super::{
    Arguments, Arithmetic, Case, Constraint, Default, FLOATS, MilOp, OpError, float, given, int, ints, optional_weight, sample,
    tensor, weight,
};
use crate::Array;

const BY_HAND: &str = "by hand";
const CHANNELS: Constraint = rule("C1", "x has 3 to 5 axes [batch, channels, spatial...]: reshape x", |a| a.shape("x").len() >= 3);

pub(super) const OPS: &[MilOp] = &[
    MilOp {
        ports: &[
            tensor("x", FLOATS),
            integers("axes", Default::Absent),
            optional_weight("gamma", FLOATS),
            optional_weight("beta", FLOATS),
            or("epsilon", 1e-5),
        ],
        constraints: &[
            rule("C1", "axes are distinct axes of x", |a| axes(a, "axes", a.shape("x").len()).is_some()),
            rule("C2", "gamma and beta have the extents of the normalized axes, in the order of x", |a| {
                let Some(mut axes) = axes(a, "axes", a.shape("x").len()) else { return true };
                axes.sort_unstable();
                let normalized: Vec<_> = axes.iter().map(|&axis| a.shape("x")[axis]).collect();
                ["gamma", "beta"].iter().all(|port| !a.has(port) || a.shape(port) == normalized)
            }),
        ],
        arithmetic: COMPOSED,
        cases: &[
            Case::new(
                "two_values_become_plus_and_minus_one",
                &[
                    ("x", given(&[2, 2], &[1.0, 3.0, 10.0, -10.0])),
                    ("axes", ints(&[1], &[-1.0])),
                    ("gamma", given(&[2], &[2.0, 3.0])),
                    ("beta", given(&[2], &[0.5, -0.5])),
                    ("epsilon", float(&[0.0])),
                ],
                &[(&[2, 2], &[-1.5, 2.5, 2.5, -3.5])],
                BY_HAND,
            ),
            Case::oracle(
                "tokens",
                &[
                    ("x", sample(&[2, 3, 8], 1)),
                    ("axes", ints(&[1], &[2.0])),
                    ("gamma", sample(&[8], 2)),
                    ("beta", sample(&[8], 3)),
                    ("epsilon", float(&[0.0625])),
                ],
            ),
            Case::oracle(
                "two_axes",
                &[("x", sample(&[2, 3, 4], 4)), ("axes", ints(&[2], &[1.0, 2.0])), ("gamma", sample(&[3, 4], 5))],
            ),
        ],
        ..base(
            "layer_norm",
            "gamma (x - mean) / sqrt(variance + epsilon) + beta over axes, all of them by default.",
            same_as_x,
            layer_norm,
        )
    },
    MilOp {
        ports: &[
            tensor("x", FLOATS),
            weight("mean", FLOATS),
            weight("variance", FLOATS),
            optional_weight("gamma", FLOATS),
            optional_weight("beta", FLOATS),
            or("epsilon", 1e-5),
        ],
        constraints: &[
            CHANNELS,
            rule("C2", "mean, variance, gamma and beta have shape [channels]", |a| {
                ["mean", "variance", "gamma", "beta"].iter().all(|port| per_channel(a, port))
            }),
        ],
        arithmetic: Arithmetic::Modelled("one scale and one offset per channel, each folded to fp16 before it is applied"),
        domain: &[("variance", 0.25, 2.0)],
        published_error: Some(3.7e-4),
        cases: &[
            Case::new(
                "scale_and_offset_per_channel",
                &[
                    ("x", given(&[1, 2, 2], &[1.0, 3.0, 5.0, 9.0])),
                    ("mean", given(&[2], &[1.0, 5.0])),
                    ("variance", given(&[2], &[4.0, 0.25])),
                    ("gamma", given(&[2], &[2.0, 1.0])),
                    ("beta", given(&[2], &[0.0, 0.5])),
                    ("epsilon", float(&[0.0])),
                ],
                &[(&[1, 2, 2], &[0.0, 2.0, 0.5, 8.5])],
                BY_HAND,
            ),
            Case::oracle(
                "on_a_map",
                &[
                    ("x", sample(&[2, 3, 4, 2], 1)),
                    ("mean", sample(&[3], 2)),
                    ("variance", sample(&[3], 3)),
                    ("gamma", sample(&[3], 4)),
                    ("beta", sample(&[3], 5)),
                    ("epsilon", float(&[0.0625])),
                ],
            ),
        ],
        ..base(
            "batch_norm",
            "gamma (x - mean) / sqrt(variance + epsilon) + beta with given statistics per channel.",
            same_as_x,
            |a| {
                let (mean, variance, epsilon) = (a.array("mean")?, a.array("variance")?, attribute(a, "epsilon"));
                affine_by_channel(a, |channel| (mean.data[channel], (variance.data[channel] + epsilon).sqrt()))
            },
        )
    },
    MilOp {
        ports: &[tensor("x", FLOATS), optional_weight("gamma", FLOATS), optional_weight("beta", FLOATS), or("epsilon", 1e-5)],
        constraints: &[
            CHANNELS,
            rule("C2", "gamma and beta have shape [channels]", |a| ["gamma", "beta"].iter().all(|port| per_channel(a, port))),
        ],
        arithmetic: COMPOSED,
        published_error: Some(7.6e-4),
        cases: &[
            Case::new(
                "each_channel_by_itself",
                &[
                    ("x", given(&[1, 2, 2], &[1.0, 3.0, 50.0, 30.0])),
                    ("gamma", given(&[2], &[2.0, 1.0])),
                    ("beta", given(&[2], &[0.0, 0.5])),
                    ("epsilon", float(&[0.0])),
                ],
                &[(&[1, 2, 2], &[-2.0, 2.0, 1.5, -0.5])],
                BY_HAND,
            ),
            Case::oracle("on_a_map", &[("x", sample(&[2, 3, 4, 5], 1)), ("gamma", sample(&[3], 2)), ("epsilon", float(&[0.0625]))]),
        ],
        ..base(
            "instance_norm",
            "gamma (x - mean) / sqrt(variance + epsilon) + beta per image and channel.",
            same_as_x,
            instance_norm,
        )
    },
    MilOp {
        ports: &[tensor("x", FLOATS), or("epsilon", 1e-6)],
        constraints: &[rule("C1", "x has 3 to 5 axes: reshape x", |a| a.shape("x").len() >= 3)],
        arithmetic: COMPOSED,
        cases: &[
            Case::new(
                "over_the_last_three_axes",
                &[("x", given(&[2, 1, 1, 2], &[3.0, 4.0, 5.0, 12.0])), ("epsilon", float(&[0.0]))],
                &[(&[2, 1, 1, 2], &[0.6, 0.8, 5.0 / 13.0, 12.0 / 13.0])],
                BY_HAND,
            ),
            Case::oracle("epsilon_under_the_root", &[("x", sample(&[2, 3, 4], 1)), ("epsilon", float(&[0.0625]))]),
        ],
        ..base("l2_norm", "x / sqrt(sum of squares + epsilon) over the last three axes.", same_as_x, |a| {
            let mut y = a.array("x")?.clone();
            let epsilon = attribute(a, "epsilon");
            let together: usize = y.ty.shape.iter().rev().take(3).product();
            for values in y.data.chunks_mut(together) {
                let norm = (values.iter().map(|x| x * x).sum::<f64>() + epsilon).sqrt();
                values.iter_mut().for_each(|x| *x /= norm);
            }
            Ok(vec![y])
        })
    },
    MilOp {
        ports: &[tensor("x", FLOATS), integers("size", Default::Required), or("alpha", 1e-4), or("beta", 0.75), or("k", 1.0)],
        constraints: &[
            rule("C1", "x has 3 or 4 axes [batch, channels, spatial...]: reshape x", |a| (3..5).contains(&a.shape("x").len())),
            rule("C2", "size is a positive number of channels", |a| a.int("size").is_some_and(|size| size > 0)),
        ],
        arithmetic: COMPOSED,
        published_error: Some(1.4e-4),
        cases: &[
            Case::new(
                "neighbours_in_the_window",
                &[
                    ("x", given(&[1, 3, 1], &[1.0, 2.0, 3.0])),
                    ("size", int(&[3.0])),
                    ("alpha", float(&[3.0])),
                    ("beta", float(&[1.0])),
                    ("k", float(&[1.0])),
                ],
                &[(&[1, 3, 1], &[1.0 / 6.0, 2.0 / 15.0, 3.0 / 14.0])],
                BY_HAND,
            ),
            Case::oracle(
                "on_a_map",
                &[
                    ("x", sample(&[2, 7, 3, 2], 1)),
                    ("size", int(&[5.0])),
                    ("alpha", float(&[0.5])),
                    ("beta", float(&[0.75])),
                    ("k", float(&[2.0])),
                ],
            ),
        ],
        ..base(
            "local_response_norm",
            "x / (k + alpha / size times the squares of size channels around)^beta.",
            same_as_x,
            local_response_norm,
        )
    },
];

fn per_channel(a: &Arguments<'_>, port: &str) -> bool {
    !a.has(port) || (a.shape(port).len() == 1 && a.shape(port).first() == a.shape("x").get(1))
}

fn optional<'a>(a: &Arguments<'a>, port: &'static str) -> Result<Option<&'a Array>, OpError> {
    if a.has(port) { a.array(port).map(Some) } else { Ok(None) }
}

fn mean_and_deviation(values: &[f64], epsilon: f64) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
    (mean, (variance + epsilon).sqrt())
}

fn layer_norm(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let x = a.array("x")?;
    let (gamma, beta, epsilon) = (optional(a, "gamma")?, optional(a, "beta")?, attribute(a, "epsilon"));
    let mut last = axes(a, "axes", x.ty.rank()).unwrap_or_default();
    last.sort_unstable();
    // Normalized axes go last, so that every chunk is one group.
    let order: Vec<_> = (0..x.ty.rank()).filter(|axis| !last.contains(axis)).chain(last.iter().copied()).collect();
    let together: usize = last.iter().map(|&axis| x.ty.shape[axis]).product();
    let mut y = x.transposed(&order);
    for values in y.data.chunks_mut(together) {
        let (mean, deviation) = mean_and_deviation(values, epsilon);
        for (index, value) in values.iter_mut().enumerate() {
            let scaled = (*value - mean) / deviation * gamma.map_or(1.0, |gamma| gamma.data[index]);
            *value = scaled + beta.map_or(0.0, |beta| beta.data[index]);
        }
    }
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(position, &axis)| back[axis] = position);
    Ok(vec![y.transposed(&back)])
}

/// `gamma (x - shift) / divisor + beta` with shift and divisor per channel.
fn affine_by_channel(a: &Arguments<'_>, statistics: impl Fn(usize) -> (f64, f64)) -> Result<Vec<Array>, OpError> {
    let (gamma, beta) = (optional(a, "gamma")?, optional(a, "beta")?);
    let mut y = a.array("x")?.clone();
    let (_, channels, inner) = around(&y.ty.shape, 1);
    for (index, plane) in y.data.chunks_mut(inner).enumerate() {
        let channel = index % channels;
        let (shift, divisor) = statistics(channel);
        let scale = gamma.map_or(1.0, |gamma| gamma.data[channel]);
        let offset = beta.map_or(0.0, |beta| beta.data[channel]);
        plane.iter_mut().for_each(|x| *x = (*x - shift) / divisor * scale + offset);
    }
    Ok(vec![y])
}

fn instance_norm(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let (gamma, beta, epsilon) = (optional(a, "gamma")?, optional(a, "beta")?, attribute(a, "epsilon"));
    let mut y = a.array("x")?.clone();
    let (_, channels, inner) = around(&y.ty.shape, 1);
    for (index, plane) in y.data.chunks_mut(inner).enumerate() {
        let channel = index % channels;
        let (mean, deviation) = mean_and_deviation(plane, epsilon);
        let scale = gamma.map_or(1.0, |gamma| gamma.data[channel]);
        let offset = beta.map_or(0.0, |beta| beta.data[channel]);
        plane.iter_mut().for_each(|x| *x = (*x - mean) / deviation * scale + offset);
    }
    Ok(vec![y])
}

fn local_response_norm(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let x = a.array("x")?;
    let size = a.int("size").map_or(1, |size| size.clamp(1, i64::from(u32::MAX)) as usize);
    let (alpha, beta, k) = (attribute(a, "alpha"), attribute(a, "beta"), attribute(a, "k"));
    let (_, channels, inner) = around(&x.ty.shape, 1);
    let element = |(index, value): (usize, &f64)| {
        let channel = index / inner % channels;
        let first = channel.saturating_sub(size / 2);
        let last = (channel + (size - 1) / 2).min(channels - 1);
        let squares = (first..=last).map(|other| {
            let neighbour = x.data[index + other * inner - channel * inner];
            neighbour * neighbour
        });
        value / (k + alpha / size as f64 * squares.sum::<f64>()).powf(beta)
    };
    Ok(vec![Array { ty: x.ty.clone(), data: x.data.iter().enumerate().map(element).collect() }])
}
