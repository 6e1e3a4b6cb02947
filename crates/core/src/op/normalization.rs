//! Normalisations. Each is lowered so that no intermediate leaves fp16's range for inputs inside it, and so that an epsilon
//! too small for fp16 still has its effect.

use super::*;

/// Below this, fp16 holds a number with an error above 3 % or not at all; the smallest positive fp16 is 2^-24.
const COARSE_EPSILON: f64 = 1.0 / (1u64 << 20) as f64;
pub(super) const SMALLEST_FP16: f64 = 1.0 / (1u64 << 24) as f64;

const AFFINE: &[InputSpec] = &[input("x", FLOATS), optional("gamma", FLOATS), optional("beta", FLOATS)];

/// `(x - mean) / sqrt(variance + epsilon)` over `axes` by MIL's `layer_norm`, whose sums of squares the engine keeps wider than
/// fp16, so deviations of any size are safe.
///
/// MIL wants epsilon in the element type of x, where 1e-12 (BERT's) would be 0 and a constant row 0 times infinity. A small epsilon
/// is therefore applied in two steps with its root each: with v the variance, the first leaves v / (v + r), and both together
/// divide by sqrt(v (1 + r) + r^2), which is sqrt(v + epsilon) for r^2 = epsilon up to a relative r / 2.
pub(super) fn standardised(
    l: &mut Lowering,
    x: ValueId,
    axes: &[i64],
    epsilon: f64,
    affine: &[(&'static str, ValueId)],
) -> Result<ValueId, GraphError> {
    let dtype = l.ty(x).dtype;
    let steps = if dtype == DType::Fp16 && epsilon < COARSE_EPSILON {
        let root = epsilon.sqrt().max(SMALLEST_FP16);
        vec![root, root]
    } else {
        vec![epsilon]
    };
    let mut y = x;
    for (index, &epsilon) in steps.iter().enumerate() {
        let mut arguments: Vec<(&str, Arg)> = vec![("x", y.into()), ("axes", axes.into()), ("epsilon", Arg::Float(dtype, epsilon))];
        if index + 1 == steps.len() {
            arguments.extend(affine.iter().map(|&(port, value)| (port, value.into())));
        }
        y = l.op("layer_norm", &arguments)?;
    }
    Ok(y)
}

/// Multiplies by gamma and adds beta, both brought to `shape`, where they are given.
pub(super) fn affine(l: &mut Lowering, s: &Site<'_>, mut y: ValueId, shape: &[usize]) -> Result<ValueId, GraphError> {
    for (input, op) in [("gamma", "mul"), ("beta", "add")] {
        if s.has(input) {
            let value = l.reshaped(s.value(input)?, shape)?;
            y = l.op(op, &[("x", y.into()), ("y", value.into())])?;
        }
    }
    Ok(y)
}

/// The gradient of `(x - mean) / sqrt(variance + epsilon)`, given that of the result.
pub(super) fn standardised_gradient(x: &Tensor, grad: &Tensor, axes: &[i64], epsilon: f64) -> Tensor {
    let centred = x.sub(&x.reduce_mean(axes, true));
    let rate = centred.square().reduce_mean(axes, true).rsqrt(epsilon.max(SMALLEST_FP16));
    let y = centred.mul(&rate);
    let along = grad.mul(&y).reduce_mean(axes, true);
    grad.sub(&grad.reduce_mean(axes, true)).sub(&y.mul(&along)).mul(&rate)
}

/// Extents of x at the normalised axes and 1 elsewhere.
fn affine_shape(s: &Site<'_>, axes: &[usize]) -> Vec<usize> {
    s.shape("x").iter().enumerate().map(|(axis, &extent)| if axes.contains(&axis) { extent } else { 1 }).collect()
}

pub(super) fn wide(shape: &[usize]) -> Vec<i64> {
    shape.iter().map(|&extent| extent as i64).collect()
}

/// Hands back the gradients of gamma and beta (summed to their shapes) and returns that of the normalised x.
pub(super) fn through_affine(b: &mut Backward<'_>, normalised: impl FnOnce() -> Tensor, shape: &[usize]) -> Tensor {
    let grad = b.grad();
    let own = |b: &Backward<'_>, input: &str| wide(b.site().shape(input));
    if b.wants("beta") {
        let sum = crate::autograd::sum_to(&grad, shape).reshape(&own(b, "beta"));
        b.give("beta", sum);
    }
    if b.wants("gamma") {
        let sum = crate::autograd::sum_to(&grad.mul(&normalised()), shape).reshape(&own(b, "gamma"));
        b.give("gamma", sum);
    }
    if b.all("gamma").is_empty() { grad } else { grad.mul(&b.input("gamma").reshape(&wide(shape))) }
}

fn affine_fits(s: &Site<'_>, wanted: &[usize]) -> bool {
    ["gamma", "beta"].into_iter().all(|input| !s.has(input) || s.shape(input) == wanted)
}

pub(super) fn same_types(s: &Site<'_>) -> bool {
    s.op.inputs.iter().all(|input| !s.has(input.name) || s.dtype(input.name) == s.dtype("x"))
}

/// Layer normalisation.
pub static LAYER_NORM: GraphOp = GraphOp {
    aliases: &[("channel_layer_norm", "x.layer_norm(1, gamma, beta, epsilon): any axes can be normalised")],
    inputs: AFFINE,
    attributes: &[ints("axes", Default::Ints(&[-1])), float("epsilon", 1e-5)],
    constraints: &[
        rule(
            "C1",
            "axes are distinct axes of x, at least one",
            |s| s.axes("axes", s.rank("x")).is_some_and(|axes| !axes.is_empty()),
            Case::refused(&[drawn("x", &[2, 3])], &[("axes", Default::Ints(&[2]))]),
        ),
        rule(
            "C2",
            "gamma and beta have the extents of x at axes, in the order of the axes of x",
            |s| {
                let mut axes = s.axes("axes", s.rank("x")).unwrap_or_default();
                axes.sort_unstable();
                affine_fits(s, &axes.iter().map(|&axis| s.shape("x")[axis]).collect::<Vec<_>>())
            },
            Case::refused(&[drawn("x", &[2, 3]), drawn("gamma", &[2])], &[]),
        ),
        rule(
            "C3",
            "epsilon is not negative, and x, gamma and beta have the same element type",
            |s| s.float("epsilon").is_some_and(|epsilon| epsilon >= 0.0) && same_types(s),
            Case::refused(&[drawn("x", &[2, 3])], &[("epsilon", Default::Float(-1.0))]),
        ),
    ],
    lower: |l, s| {
        let x = s.value("x")?;
        let mut axes = s.axes("axes", s.rank("x")).unwrap_or_default();
        axes.sort_unstable();
        let epsilon = s.float("epsilon").unwrap_or(0.0);
        let inputs: Vec<(&'static str, ValueId)> =
            ["gamma", "beta"].into_iter().filter_map(|input| s.values_at(input).first().map(|&value| (input, value))).collect();
        // MIL takes gamma and beta as constants; computed ones are applied afterwards.
        if inputs.iter().all(|&(_, value)| l.is_constant(value)) {
            return Ok(vec![standardised(l, x, &to_i64(&axes), epsilon, &inputs)?]);
        }
        let y = standardised(l, x, &to_i64(&axes), epsilon, &[])?;
        Ok(vec![affine(l, s, y, &affine_shape(s, &axes))?])
    },
    cases: &[
        Case::values(
            "two_values_become_plus_and_minus_one",
            &[
                given("x", &[2, 2], &[1.0, 3.0, -10.0, 10.0]),
                given("gamma", &[2], &[2.0, 1.0]).fixed(),
                given("beta", &[2], &[0.5, 0.0]).fixed(),
            ],
            &[("epsilon", Default::Float(0.0))],
            (&[2, 2], &[-1.5, 1.0, -1.5, 1.0]),
            "by hand",
        ),
        Case::shape("computed_affine", &[drawn("x", &[3, 4]), drawn("gamma", &[4]), drawn("beta", &[4])], &[], &[3, 4]),
        Case::shape(
            "over_channels",
            &[drawn("x", &[2, 4, 1, 3]), drawn("gamma", &[4]).fixed()],
            &[("axes", Default::Ints(&[1]))],
            &[2, 4, 1, 3],
        ),
        Case::shape("tiny_epsilon", &[drawn("x", &[3, 4])], &[("epsilon", Default::Float(1e-12))], &[3, 4]),
    ],
    vjp: Vjp::Rule(|b| {
        let s = b.site();
        let mut axes = s.axes("axes", s.rank("x")).unwrap_or_default();
        axes.sort_unstable();
        let (epsilon, shape, x) = (s.float("epsilon").unwrap_or(0.0), affine_shape(&s, &axes), b.input("x"));
        let axes = to_i64(&axes);
        let inner = through_affine(b, || x.layer_norm(&axes, None, None, epsilon), &shape);
        if b.wants("x") {
            b.give("x", standardised_gradient(&x, &inner, &axes, epsilon));
        }
    }),
    ..direct("layer_norm", "x minus its mean over axes, divided by its standard deviation there, times gamma plus beta.")
};

fn to_i64(axes: &[usize]) -> Vec<i64> {
    axes.iter().map(|&axis| axis as i64).collect()
}

/// Root mean square normalisation.
pub static RMS_NORM: GraphOp = GraphOp {
    inputs: &[input("x", FLOATS), optional("gamma", FLOATS)],
    attributes: &[int("axis", Default::Int(-1)), float("epsilon", 1e-5)],
    constraints: &[
        rule(
            "C1",
            "axis is an axis of x",
            |s| s.axis("axis", s.rank("x")).is_some(),
            Case::refused(&[drawn("x", &[2, 3])], &[("axis", Default::Int(-3))]),
        ),
        rule(
            "C2",
            "gamma has shape [extent of x at axis]",
            |s| affine_fits(s, &s.axis("axis", s.rank("x")).map(|axis| vec![s.shape("x")[axis]]).unwrap_or_default()),
            Case::refused(&[drawn("x", &[2, 3]), drawn("gamma", &[2])], &[]),
        ),
    ],
    lower: lower_rms_norm,
    cases: &[
        Case::values(
            "divides_by_the_root_mean_square",
            &[given("x", &[1, 2], &[1.0, 7.0]), given("gamma", &[2], &[5.0, 10.0]).fixed()],
            &[("epsilon", Default::Float(0.0))],
            (&[1, 2], &[1.0, 14.0]),
            "by hand: sqrt((1 + 49) / 2) = 5",
        ),
        Case::shape(
            "over_a_middle_axis",
            &[drawn("x", &[2, 3, 4]), drawn("gamma", &[3])],
            &[("axis", Default::Int(1))],
            &[2, 3, 4],
        ),
    ],
    vjp: Vjp::Rule(|b| {
        let s = b.site();
        let axis = s.axis("axis", s.rank("x")).unwrap_or(0);
        let (epsilon, shape, x) = (s.float("epsilon").unwrap_or(0.0), affine_shape(&s, &[axis]), b.input("x"));
        let axis = axis as i64;
        let inner = through_affine(b, || x.rms_norm(axis, None, epsilon), &shape);
        if b.wants("x") {
            let rate = x.square().reduce_mean(axis, true).rsqrt(epsilon.max(SMALLEST_FP16));
            let y = x.mul(&rate);
            let along = inner.mul(&y).reduce_mean(axis, true);
            b.give("x", inner.sub(&y.mul(&along)).mul(&rate));
        }
    }),
    ..direct("rms_norm", "x divided by the root of its mean square plus epsilon along axis, times gamma.")
};

/// With r the root mean square (the length of x / sqrt(n), so that no square is ever stored) and s the root of epsilon, the divisor
/// sqrt(r^2 + s^2) is M sqrt(1 + (m / M)^2) for M and m the larger and smaller of the two: nothing overflows, nothing vanishes.
fn lower_rms_norm(l: &mut Lowering, s: &Site<'_>) -> Result<Vec<ValueId>, GraphError> {
    let (x, dtype) = (s.value("x")?, s.dtype("x"));
    let axis = s.axis("axis", s.rank("x")).unwrap_or(0);
    let count = s.shape("x")[axis] as f64;
    let root = s.float("epsilon").unwrap_or(0.0).sqrt().max(SMALLEST_FP16);
    let number = |value: f64| Arg::Float(dtype, value);
    let scaled = l.op("mul", &[("x", x.into()), ("y", number(count.sqrt().recip()))])?;
    let length = l.op("reduce_l2_norm", &[("x", scaled.into()), ("axes", vec![axis as i64].into()), ("keep_dims", true.into())])?;
    let larger = l.op("maximum", &[("x", length.into()), ("y", number(root))])?;
    let smaller = l.op("minimum", &[("x", length.into()), ("y", number(root))])?;
    let ratio = l.op("real_div", &[("x", smaller.into()), ("y", larger.into())])?;
    let square = l.op("mul", &[("x", ratio.into()), ("y", ratio.into())])?;
    let sum = l.op("add", &[("x", square.into()), ("y", number(1.0))])?;
    let stretch = l.op("sqrt", &[("x", sum.into())])?;
    let divisor = l.op("mul", &[("x", larger.into()), ("y", stretch.into())])?;
    let y = l.op("real_div", &[("x", x.into()), ("y", divisor.into())])?;
    Ok(vec![affine(l, s, y, &affine_shape(s, &[axis]))?])
}

/// Euclidean normalisation.
pub static L2_NORM: GraphOp = GraphOp {
    attributes: &[int("axis", Default::Int(-1)), float("epsilon", 1e-12)],
    constraints: &[rule(
        "C1",
        "axis is an axis of x",
        |s| s.axis("axis", s.rank("x")).is_some(),
        Case::refused(&[drawn("x", &[2, 3])], &[("axis", Default::Int(2))]),
    )],
    lower: |l, s| {
        let (x, dtype) = (s.value("x")?, s.dtype("x"));
        let axis = s.axis("axis", s.rank("x")).unwrap_or(0) as i64;
        // No vector but zero is shorter than the smallest fp16, so that floor keeps 0 / 0 away and changes nothing else.
        let floor = s.float("epsilon").unwrap_or(0.0).sqrt().max(SMALLEST_FP16);
        let length = l.op("reduce_l2_norm", &[("x", x.into()), ("axes", vec![axis].into()), ("keep_dims", true.into())])?;
        let length = l.op("maximum", &[("x", length.into()), ("y", Arg::Float(dtype, floor))])?;
        Ok(vec![l.op("real_div", &[("x", x.into()), ("y", length.into())])?])
    },
    cases: &[
        Case::values(
            "three_four_five",
            &[given("x", &[2, 2], &[3.0, 4.0, -8.0, 6.0])],
            &[],
            (&[2, 2], &[0.6, 0.8, -0.8, 0.6]),
            "by hand",
        ),
        Case::shape("over_rows", &[drawn("x", &[3, 4])], &[("axis", Default::Int(0))], &[3, 4]),
        Case::values(
            "shorter_than_the_floor",
            &[given("x", &[2, 2], &[3.0, 4.0, 12.0, 16.0])],
            &[("epsilon", Default::Float(100.0))],
            (&[2, 2], &[0.3, 0.4, 0.6, 0.8]),
            "by hand",
        ),
    ],
    vjp: Vjp::Rule(|b| {
        let (x, y, grad, axis) = (b.input("x"), b.output(), b.grad(), b.site().int("axis"));
        let floor = b.site().float("epsilon").unwrap_or(0.0).sqrt().max(SMALLEST_FP16);
        let length = x.reduce_l2_norm(axis, true);
        // What is shorter than the floor is divided by a constant.
        let turns = length.greater_equal(&length.constant_like(floor));
        let length = length.threshold(floor);
        let along = turns.select(&grad.mul(&y).reduce_sum(axis, true), &y.constant_like(0.0));
        b.give("x", grad.sub(&y.mul(&along)).real_div(&length));
    }),
    ..direct("l2_norm", "x divided by its Euclidean length along axis, or by the root of epsilon where that is larger.")
};

pub(super) const ALL: &[&GraphOp] = &[&LAYER_NORM, &RMS_NORM, &L2_NORM];
