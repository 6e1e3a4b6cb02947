//! Normalisations of channels.

use super::normalization::{SMALLEST_FP16, affine, same_types, standardised, standardised_gradient, through_affine, wide};
use super::*;

const AFFINE: &[InputSpec] = &[input("x", FLOATS), optional("gamma", FLOATS), optional("beta", FLOATS)];
const CHANNELS_RULE: &str = "x has at least three axes, channels on axis 1: reshape it";

/// Batch normalisation with given statistics.
pub static BATCH_NORM: GraphOp = GraphOp {
    inputs: &[
        input("x", FLOATS),
        weight("mean", FLOATS),
        weight("variance", FLOATS),
        optional_weight("gamma", FLOATS),
        optional_weight("beta", FLOATS),
    ],
    attributes: &[float("epsilon", 1e-5)],
    constraints: &[
        rule(
            "C1",
            CHANNELS_RULE,
            |s| s.rank("x") >= 3,
            Case::refused(
                &[drawn("x", &[2, 3]), drawn("mean", &[3]).fixed(), given("variance", &[3], &[1.0, 1.0, 1.0]).fixed()],
                &[],
            ),
        ),
        rule(
            "C2",
            "mean, variance, gamma and beta have shape [channels]",
            per_channel,
            Case::refused(
                &[drawn("x", &[1, 2, 3]), drawn("mean", &[3]).fixed(), given("variance", &[2], &[1.0, 1.0]).fixed()],
                &[],
            ),
        ),
        rule(
            "C3",
            "x and the statistics have the same element type",
            same_types,
            Case::refused(
                &[
                    drawn("x", &[1, 2, 3]).of(DType::Fp32),
                    drawn("mean", &[2]).fixed(),
                    given("variance", &[2], &[1.0, 1.0]).fixed(),
                ],
                &[],
            ),
        ),
    ],
    lower: |l, s| {
        let mut arguments = direct_arguments(s);
        // An epsilon that fp16 rounds to 0 would make a channel of variance 0 infinite.
        if let Some(entry) = arguments.iter_mut().find(|entry| entry.0 == "epsilon") {
            entry.1 = Arg::Float(s.dtype("x"), s.float("epsilon").unwrap_or(0.0).max(SMALLEST_FP16));
        }
        l.ops("batch_norm", &arguments)
    },
    cases: &[Case::values(
        "given_statistics",
        &[
            given("x", &[1, 2, 2], &[1.0, 3.0, 10.0, 14.0]),
            given("mean", &[2], &[1.0, 10.0]).fixed(),
            given("variance", &[2], &[4.0, 0.25]).fixed(),
            given("gamma", &[2], &[1.0, 2.0]).fixed(),
            given("beta", &[2], &[0.0, 1.0]).fixed(),
        ],
        &[("epsilon", Default::Float(0.0))],
        (&[1, 2, 2], &[0.0, 1.0, 1.0, 17.0]),
        "by hand, epsilon below the last digit shown",
    )],
    vjp: Vjp::Rule(|b| {
        let s = b.site();
        let epsilon = s.float("epsilon").unwrap_or(0.0).max(SMALLEST_FP16);
        let shape: Vec<i64> = (0..s.rank("x")).map(|axis| if axis == 1 { -1 } else { 1 }).collect();
        let narrow: Vec<usize> = (0..s.rank("x")).map(|axis| if axis == 1 { s.shape("x")[1] } else { 1 }).collect();
        let rate = b.input("variance").rsqrt(epsilon).reshape(&shape);
        let (x, mean) = (b.input("x"), b.input("mean").reshape(&shape));
        let inner = through_affine(b, || x.sub(&mean).mul(&rate), &narrow).mul(&rate);
        if b.wants("mean") || b.wants("variance") {
            let reason = "batch_norm treats its statistics as constants; compute them with reduce_mean to train through them";
            let failed = b.graph().failed(GraphError::NotDifferentiable { op: "batch_norm", reason: reason.to_string() });
            b.give(if b.wants("mean") { "mean" } else { "variance" }, failed);
        }
        b.give("x", inner);
    }),
    ..direct("batch_norm", "x minus mean, divided by the root of variance plus epsilon, times gamma plus beta, per channel.")
};

/// Instance normalisation.
pub static INSTANCE_NORM: GraphOp = GraphOp {
    inputs: AFFINE,
    attributes: &[float("epsilon", 1e-5)],
    constraints: &[
        rule("C1", CHANNELS_RULE, |s| s.rank("x") >= 3, Case::refused(&[drawn("x", &[2, 3])], &[])),
        rule(
            "C2",
            "gamma and beta have shape [channels]",
            per_channel,
            Case::refused(&[drawn("x", &[1, 2, 3]), drawn("gamma", &[3])], &[]),
        ),
    ],
    // Over the spatial axes of each channel, which is a layer normalisation there.
    lower: |l, s| {
        let axes: Vec<i64> = (2..s.rank("x") as i64).collect();
        let y = standardised(l, s.value("x")?, &axes, s.float("epsilon").unwrap_or(0.0), &[])?;
        let mut shape = vec![1; s.rank("x")];
        shape[1] = s.shape("x")[1];
        Ok(vec![affine(l, s, y, &shape)?])
    },
    cases: &[
        Case::values(
            "each_channel_for_itself",
            &[
                given("x", &[1, 2, 2], &[1.0, 3.0, 10.0, 30.0]),
                given("gamma", &[2], &[1.0, 2.0]).fixed(),
                given("beta", &[2], &[0.0, 1.0]).fixed(),
            ],
            &[("epsilon", Default::Float(0.0))],
            (&[1, 2, 2], &[-1.0, 1.0, -1.0, 3.0]),
            "by hand",
        ),
        Case::shape("on_a_map", &[drawn("x", &[2, 3, 4, 5]), drawn("gamma", &[3])], &[], &[2, 3, 4, 5]),
    ],
    vjp: Vjp::Rule(|b| {
        let s = b.site();
        let axes: Vec<i64> = (2..s.rank("x") as i64).collect();
        let mut shape = vec![1; s.rank("x")];
        shape[1] = s.shape("x")[1];
        let (epsilon, x) = (s.float("epsilon").unwrap_or(0.0), b.input("x"));
        let inner = through_affine(b, || x.layer_norm(&axes, None, None, epsilon), &shape);
        if b.wants("x") {
            b.give("x", standardised_gradient(&x, &inner, &axes, epsilon));
        }
    }),
    ..direct("instance_norm", "Each channel minus its mean, divided by its standard deviation, times gamma plus beta.")
};

/// Group normalisation.
pub static GROUP_NORM: GraphOp = GraphOp {
    inputs: AFFINE,
    attributes: &[int("num_groups", Default::Required), float("epsilon", 1e-5)],
    constraints: &[
        rule("C1", CHANNELS_RULE, |s| s.rank("x") >= 3, Case::refused(&[drawn("x", &[2, 4])], &[("num_groups", Default::Int(2))])),
        rule(
            "C2",
            "num_groups divides the channels",
            |s| s.size("num_groups").is_some_and(|groups| groups > 0 && s.shape("x")[1].is_multiple_of(groups)),
            Case::refused(&[drawn("x", &[1, 4, 2])], &[("num_groups", Default::Int(3))]),
        ),
        rule(
            "C3",
            "gamma and beta have shape [channels]",
            per_channel,
            Case::refused(&[drawn("x", &[1, 4, 2]), drawn("beta", &[2])], &[("num_groups", Default::Int(2))]),
        ),
    ],
    lower: |l, s| {
        let (x, shape) = (s.value("x")?, s.shape("x").to_vec());
        let grouped = grouped_shape(&shape, s.int("num_groups"));
        let rows = l.op("reshape", &[("x", x.into()), ("shape", grouped.into())])?;
        let y = standardised(l, rows, &[2, 3], s.float("epsilon").unwrap_or(0.0), &[])?;
        let y = l.op("reshape", &[("x", y.into()), ("shape", shape.as_slice().into())])?;
        let mut narrow = vec![1; shape.len()];
        narrow[1] = shape[1];
        Ok(vec![affine(l, s, y, &narrow)?])
    },
    cases: &[
        Case::values(
            "two_groups",
            &[
                given("x", &[1, 4, 1], &[1.0, 3.0, 10.0, 30.0]),
                given("gamma", &[4], &[1.0, 1.0, 2.0, 2.0]).fixed(),
                given("beta", &[4], &[0.0, 0.0, 1.0, 1.0]).fixed(),
            ],
            &[("num_groups", Default::Int(2)), ("epsilon", Default::Float(0.0))],
            (&[1, 4, 1], &[-1.0, 1.0, -1.0, 3.0]),
            "by hand",
        ),
        Case::shape(
            "batch_of_maps",
            &[drawn("x", &[2, 4, 3, 3]), drawn("gamma", &[4])],
            &[("num_groups", Default::Int(2))],
            &[2, 4, 3, 3],
        ),
    ],
    vjp: Vjp::Rule(|b| {
        let s = b.site();
        let (shape, groups, epsilon) = (s.shape("x").to_vec(), s.int("num_groups"), s.float("epsilon").unwrap_or(0.0));
        let (grouped, x) = (grouped_shape(&shape, groups), b.input("x"));
        let mut narrow = vec![1; shape.len()];
        narrow[1] = shape[1];
        let inner = through_affine(b, || x.group_norm(groups, None, None, epsilon), &narrow);
        if b.wants("x") {
            let grad = standardised_gradient(&x.reshape(&grouped), &inner.reshape(&grouped), &[2, 3], epsilon);
            b.give("x", grad.reshape(&wide(&shape)));
        }
    }),
    ..direct("group_norm", "Each group of channels minus its mean, divided by its standard deviation, times gamma plus beta.")
};

/// `[batch, groups, channels per group, elements per channel]`: no axis longer than it must be.
fn grouped_shape(shape: &[usize], groups: i64) -> Vec<i64> {
    let elements: usize = shape[2..].iter().product();
    vec![shape[0] as i64, groups, shape[1] as i64 / groups, elements as i64]
}

/// Local response normalisation.
pub static LOCAL_RESPONSE_NORM: GraphOp = GraphOp {
    attributes: &[int("size", Default::Int(5)), float("alpha", 1e-4), float("beta", 0.75), float("k", 1.0)],
    constraints: &[
        rule("C1", CHANNELS_RULE, |s| s.rank("x") >= 3, Case::refused(&[drawn("x", &[2, 4])], &[])),
        rule(
            "C2",
            "size is at least 1",
            |s| s.int("size") >= 1,
            Case::refused(&[drawn("x", &[1, 4, 2])], &[("size", Default::Int(0))]),
        ),
    ],
    cases: &[Case::shape("on_a_map", &[drawn("x", &[1, 6, 2, 2])], &[("alpha", Default::Float(0.5))], &[1, 6, 2, 2])],
    vjp: Vjp::Rule(|b| {
        let s = b.site();
        let (shape, size) = (s.shape("x").to_vec(), s.size("size").unwrap_or(1));
        let [alpha, beta, k] = ["alpha", "beta", "k"].map(|name| s.float(name).unwrap_or(0.0));
        let (channels, share) = (shape[1], alpha / size as f64);
        // Which channels count for each channel: size / 2 before it and the rest behind it.
        let counts = |at: usize| {
            let (own, other) = (at / channels, at % channels);
            f64::from(u8::from(other + size / 2 >= own && other <= own + (size - 1) / 2))
        };
        let band: Vec<f64> = (0..channels * channels).map(counts).collect();
        let band = b.graph().values(s.dtype("x"), &[channels, channels], &band);
        let planes = [shape[0] as i64, channels as i64, -1];
        let (x, grad) = (b.input("x").reshape(&planes), b.grad().reshape(&planes));
        let sum = band.matmul(&x.square()).scale(share).adds(k);
        let scaled = grad.mul(&sum.pow(&sum.constant_like(-beta)));
        let spread = band.matmul_with(&scaled.mul(&x).real_div(&sum), true, false);
        let grad = scaled.sub(&x.mul(&spread).scale(2.0 * beta * share));
        b.give("x", grad.reshape(&wide(&shape)));
    }),
    ..direct(
        "local_response_norm",
        "x divided by (k + alpha / size times the sum of squares of neighbouring channels) to the power of beta.",
    )
};

fn per_channel(s: &Site<'_>) -> bool {
    let channels = s.shape("x").get(1..2).unwrap_or(&[]);
    s.op.inputs.iter().skip(1).all(|input| !s.has(input.name) || s.shape(input.name) == channels)
}

pub(super) const ALL: &[&GraphOp] = &[&BATCH_NORM, &INSTANCE_NORM, &GROUP_NORM, &LOCAL_RESPONSE_NORM];
