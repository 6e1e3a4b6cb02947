//! Convolution and its transpose.

use super::*;

const INPUTS: &[InputSpec] = &[input("x", FLOATS), input("weight", FLOATS), optional("bias", FLOATS)];
/// One entry per spatial axis, two for `pad` (before and after); left out, strides and dilations are 1 and pads 0.
const ATTRIBUTES: &[AttributeSpec] = &[
    ints("strides", Default::Absent),
    ints("pad", Default::Absent),
    ints("dilations", Default::Absent),
    int("groups", Default::Int(1)),
];

const TRANSPOSE_ATTRIBUTES: &[AttributeSpec] = &[
    ints("strides", Default::Absent),
    ints("pad", Default::Absent),
    ints("dilations", Default::Absent),
    int("groups", Default::Int(1)),
    ints("output_padding", Default::Absent),
];

const fn conv_like(name: &'static str, summary: &'static str, lower: LowerRule, vjp: fn(&mut Backward<'_>)) -> GraphOp {
    GraphOp { inputs: INPUTS, attributes: ATTRIBUTES, lower, vjp: Vjp::Rule(vjp), ..direct(name, summary) }
}

/// Entries of a window attribute, `default` for each where it is left out.
pub(super) fn window(s: &Site<'_>, name: &str, count: usize, default: i64) -> Vec<i64> {
    match s.attribute(name) {
        Attribute::Ints(values) => values.to_vec(),
        _ => vec![default; count],
    }
}

/// Whether strides and dilations have a positive entry per spatial axis and pads two that are not negative.
pub(super) fn window_fits(s: &Site<'_>) -> bool {
    let spatial = s.rank("x").saturating_sub(2);
    let limit = 1 << 20;
    let all = |name: &str, count: usize, default, least| {
        let values = window(s, name, count, default);
        values.len() == count && values.iter().all(|&value| (least..=limit).contains(&value))
    };
    all("strides", spatial, 1, 1) && all("dilations", spatial, 1, 1) && all("pad", 2 * spatial, 0, 0)
}

/// Taps of a kernel with its gaps.
fn reach(kernel: usize, dilation: i64) -> i64 {
    (kernel as i64 - 1) * dilation + 1
}

/// Adds a convolution. For a chip, one along a single axis runs as one of a plane: along its width, or along its height where the
/// kernel is wider than the chip takes (ANEForge 0.4.0, MIT, writes such planes only).
fn convolve(l: &mut Lowering, s: &Site<'_>, op: &str, pad: &[i64]) -> Result<ValueId, GraphError> {
    let (x, weight, spatial) = (s.value("x")?, s.value("weight")?, s.rank("x") - 2);
    let (strides, dilations) = (window(s, "strides", spatial, 1), window(s, "dilations", spatial, 1));
    let add = |l: &mut Lowering, x: ValueId, weight: ValueId, strides: Vec<i64>, pad: Vec<i64>, dilations: Vec<i64>| {
        let arguments = [
            ("x", x.into()),
            ("weight", weight.into()),
            ("strides", strides.into()),
            ("pad_type", "custom".into()),
            ("pad", pad.into()),
            ("dilations", dilations.into()),
            ("groups", s.int("groups").into()),
        ];
        l.op(op, &arguments)
    };
    let (Some(chip), 1) = (l.target().chip(), spatial) else { return add(l, x, weight, strides, pad.to_vec(), dilations) };
    let along_height = s.shape("weight")[2] > chip.max_kernel_width;
    let plane = |line: &[usize]| if along_height { vec![line[0], line[1], line[2], 1] } else { vec![line[0], line[1], 1, line[2]] };
    let pair = |along: i64| if along_height { vec![along, 1] } else { vec![1, along] };
    let pad = if along_height { vec![pad[0], pad[1], 0, 0] } else { vec![0, 0, pad[0], pad[1]] };
    let (x, weight) = (l.reshaped(x, &plane(s.shape("x")))?, l.reshaped(weight, &plane(s.shape("weight")))?);
    let y = add(l, x, weight, pair(strides[0]), pad, pair(dilations[0]))?;
    let line: Vec<usize> = l.shape(y).to_vec();
    l.reshaped(y, &[line[0], line[1], line[2] * line[3]])
}

/// Adds the bias as an operation of its own: the in-memory compiler refuses the `bias` argument of `conv` (published by Orion,
/// arXiv 2603.06728), and e5rt fuses the sum.
fn with_bias(l: &mut Lowering, s: &Site<'_>, y: ValueId) -> Result<Vec<ValueId>, GraphError> {
    if !s.has("bias") {
        return Ok(vec![y]);
    }
    let mut shape = vec![1; l.shape(y).len()];
    shape[1] = s.shape("bias")[0];
    let bias = l.reshaped(s.value("bias")?, &shape)?;
    Ok(vec![l.op("add", &[("x", y.into()), ("y", bias.into())])?])
}

fn bias_gradient(b: &mut Backward<'_>) {
    if b.wants("bias") {
        let grad = b.grad();
        let axes: Vec<i64> = (0..grad.rank().unwrap_or(4) as i64).filter(|&axis| axis != 1).collect();
        b.give("bias", grad.reduce_sum(axes, false));
    }
}

/// The window of a use as the builders take it.
fn window_of(s: &Site<'_>) -> Window {
    let spatial = s.rank("x").saturating_sub(2);
    Window {
        strides: window(s, "strides", spatial, 1),
        pad: window(s, "pad", 2 * spatial, 0),
        dilations: window(s, "dilations", spatial, 1),
        groups: s.int("groups"),
        ..Window::default()
    }
}

/// Gradient of the input of a convolution with `weight`, given that of its result: the transposed convolution cut, or filled with
/// zeros where no window reached, to the spatial extents of `shape`.
pub(super) fn spread_back(grad: &Tensor, weight: &Tensor, window: &Window, shape: &[usize]) -> Tensor {
    let (Ok(positions), Ok(kernel)) = (grad.shape(), weight.shape()) else { return grad.clone() };
    let (mut pad, mut fill) = (window.pad.clone(), vec![0; 4]);
    for axis in 0..shape.len() - 2 {
        let covered = (positions[axis + 2] as i64 - 1) * window.strides[axis] + reach(kernel[axis + 2], window.dilations[axis]);
        let behind = covered - window.pad[2 * axis] - shape[axis + 2] as i64;
        pad[2 * axis + 1] = behind.max(0);
        fill.extend([0, (-behind).max(0)]);
    }
    let spread = grad.conv_transpose(weight, None, &Window { pad, ..window.clone() });
    if fill.iter().all(|&count| count == 0) { spread } else { spread.pad(&fill, 0.0) }
}

/// The first elements of each axis, as many as `shape` says.
fn cut_down(x: &Tensor, shape: &[usize]) -> Tensor {
    let size: Vec<i64> = shape.iter().map(|&extent| extent as i64).collect();
    x.slice_by_size(&vec![0; size.len()], &size)
}

/// Gradient of a convolution's weight, of images and lines as matrix products: for each tap, the elements of x that it meets, times
/// the gradient. (As a convolution over the batch its kernel would be as large as the gradient, wider than engines take.)
fn weight_gradient(x: &Tensor, grad: &Tensor, window: &Window, weight_shape: &[usize]) -> Tensor {
    let (Ok(x_shape), Ok(grad_shape)) = (x.shape(), grad.shape()) else { return grad.clone() };
    let Some(kernel @ 1..=2) = weight_shape.len().checked_sub(2) else {
        return weight_gradient_over_the_batch(x, grad, window, weight_shape);
    };
    // The result's extents per spatial axis, the shift of a tap, and where x ends that it meets.
    let (batch, groups) = (x_shape[0] as i64, window.groups.max(1));
    let (channels, out) = (x_shape[1] as i64 / groups, grad_shape[1] as i64 / groups);
    let places: i64 = grad_shape[2..].iter().map(|&extent| extent as i64).product();
    let size = &weight_shape[2..];
    let taps: usize = size.iter().product();
    let mut border = vec![0; 4];
    border.extend_from_slice(&window.pad);
    let padded = if window.pad.iter().all(|&pad| pad == 0) { x.clone() } else { x.pad(&border, 0.0) };
    let mut stride = vec![1, 1];
    stride.extend_from_slice(&window.strides);
    let met: Vec<Tensor> = (0..taps)
        .map(|tap| {
            let at = if kernel == 2 { vec![tap / size[1], tap % size[1]] } else { vec![tap] };
            let (mut begin, mut end) = (vec![0, 0], vec![batch, x_shape[1] as i64]);
            for (axis, &at) in at.iter().enumerate() {
                let shift = at as i64 * window.dilations[axis];
                begin.push(shift);
                end.push(shift + (grad_shape[axis + 2] as i64 - 1) * window.strides[axis] + 1);
            }
            padded.slice_by_index(&begin, &end, &stride)
        })
        .collect();
    // One matrix product per image and group: [out, places] times [taps, in, places] turned.
    let (rows, lead) = if groups == 1 { (vec![batch], 1) } else { (vec![batch, groups], 2) };
    let shaped = |tensor: &Tensor, count: i64| tensor.reshape(&[rows.as_slice(), &[count, places]].concat());
    let met: Vec<Tensor> = met.iter().map(|tensor| shaped(tensor, channels)).collect();
    let products = shaped(grad, out).matmul_with(&crate::concat(&met, lead), false, true);
    let all = products.reduce_sum(0i64, true).reshape(&[groups * out, taps as i64, channels]);
    let shape: Vec<i64> = weight_shape.iter().map(|&extent| extent as i64).collect();
    all.transpose(&[0, 2, 1]).reshape(&shape)
}

/// The same as a convolution over the batch, with stride and dilation exchanged: `x` slides under `grad`.
fn weight_gradient_over_the_batch(x: &Tensor, grad: &Tensor, window: &Window, weight_shape: &[usize]) -> Tensor {
    let groups = window.groups.max(1) as usize;
    let swap: Vec<i64> = [1, 0].into_iter().chain(2..weight_shape.len() as i64).collect();
    let exchanged = Window { strides: window.dilations.clone(), dilations: window.strides.clone(), groups: 1, ..window.clone() };
    let (x_parts, grad_parts) = (x.split(groups, 1), grad.split(groups, 1));
    let mut shape = weight_shape.to_vec();
    shape[0] = weight_shape[1];
    shape[1] = weight_shape[0] / groups;
    let parts: Vec<Tensor> = x_parts
        .iter()
        .zip(&grad_parts)
        .map(|(x, grad)| cut_down(&x.transpose(&swap).conv(&grad.transpose(&swap), None, &exchanged), &shape).transpose(&swap))
        .collect();
    crate::concat(&parts, 0)
}

/// Convolution.
pub static CONV: GraphOp = GraphOp {
    aliases: &[("dynamic_conv", "x.conv(weight, bias, window): the weight may be any tensor")],
    constraints: &[
        rule(
            "C1",
            "x has 3 to 5 axes [batch, channels, spatial...] and weight as many: reshape x",
            |s| s.rank("x") >= 3 && s.rank("weight") == s.rank("x"),
            Case::refused(&[drawn("x", &[3, 8]), drawn("weight", &[4, 3])], &[]),
        ),
        rule(
            "C2",
            "groups divides the channels of x and of the result, and weight has shape [out, in / groups, kernel...]",
            |s| {
                let (groups, x, weight) = (s.size("groups").unwrap_or(0), s.shape("x"), s.shape("weight"));
                groups > 0 && weight[0].is_multiple_of(groups) && weight[1].checked_mul(groups) == Some(x[1])
            },
            Case::refused(&[drawn("x", &[1, 3, 8, 8]), drawn("weight", &[4, 2, 3, 3])], &[]),
        ),
        rule(
            "C3",
            "strides and dilations have one positive integer per spatial axis, pad two that are not negative: [top, bottom, left, right]",
            window_fits,
            Case::refused(&[drawn("x", &[1, 3, 8, 8]), drawn("weight", &[4, 3, 3, 3])], &[("pad", Default::Ints(&[1, 1]))]),
        ),
        rule(
            "C4",
            "the padded input is at least as large as the dilated kernel: add padding",
            |s| {
                let spatial = s.rank("x") - 2;
                let (pad, dilations) = (window(s, "pad", 2 * spatial, 0), window(s, "dilations", spatial, 1));
                (0..spatial).all(|axis| {
                    let room = s.shape("x")[axis + 2] as i64 + pad[2 * axis] + pad[2 * axis + 1];
                    room >= reach(s.shape("weight")[axis + 2], dilations[axis])
                })
            },
            Case::refused(&[drawn("x", &[1, 3, 2, 2]), drawn("weight", &[4, 3, 3, 3])], &[]),
        ),
        rule(
            "C5",
            "bias has shape [out channels]",
            |s| !s.has("bias") || s.shape("bias") == &s.shape("weight")[..1],
            Case::refused(&[drawn("x", &[1, 3, 4, 4]), drawn("weight", &[4, 3, 3, 3]), drawn("bias", &[3])], &[]),
        ),
    ],
    cases: &[
        Case::values(
            "moving_sum_with_bias",
            &[
                given("x", &[1, 1, 1, 4], &[1.0, 2.0, 3.0, 4.0]),
                given("weight", &[1, 1, 1, 2], &[1.0, 10.0]).fixed(),
                given("bias", &[1], &[0.5]),
            ],
            &[],
            (&[1, 1, 1, 3], &[21.5, 32.5, 43.5]),
            "by hand",
        ),
        Case::shape(
            "stride_two_padded",
            &[drawn("x", &[2, 3, 6, 5]), drawn("weight", &[4, 3, 3, 3])],
            &[("strides", Default::Ints(&[2, 2])), ("pad", Default::Ints(&[1, 1, 1, 1]))],
            &[2, 4, 3, 3],
        ),
        Case::shape(
            "one_sided_padding_dilated",
            &[drawn("x", &[1, 2, 5, 6]), drawn("weight", &[3, 2, 2, 3])],
            &[("pad", Default::Ints(&[2, 0, 0, 1])), ("dilations", Default::Ints(&[2, 1]))],
            &[1, 3, 5, 5],
        ),
        Case::shape(
            "depthwise",
            &[drawn("x", &[1, 4, 4, 4]), drawn("weight", &[4, 1, 3, 3])],
            &[("groups", Default::Int(4)), ("pad", Default::Ints(&[1, 1, 1, 1]))],
            &[1, 4, 4, 4],
        ),
        Case::shape(
            "along_one_axis",
            &[drawn("x", &[1, 2, 7]), drawn("weight", &[3, 2, 3])],
            &[("strides", Default::Ints(&[2]))],
            &[1, 3, 3],
        ),
    ],
    ..conv_like(
        "conv",
        "Convolution of x with weight [out, in / groups, kernel...], plus bias.",
        |l, s| {
            let y = convolve(l, s, "conv", &window(s, "pad", 2 * (s.rank("x") - 2), 0))?;
            with_bias(l, s, y)
        },
        |b| {
            let (x, weight, grad) = (b.input("x"), b.input("weight"), b.grad());
            let (window, shape) = (window_of(&b.site()), b.site().shape("x").to_vec());
            if b.wants("x") {
                b.give("x", spread_back(&grad, &weight, &window, &shape));
            }
            if b.wants("weight") {
                let weight_shape = b.site().shape("weight").to_vec();
                b.give("weight", weight_gradient(&x, &grad, &window, &weight_shape));
            }
            bias_gradient(b);
        },
    )
};

/// Transposed convolution.
pub static CONV_TRANSPOSE: GraphOp = GraphOp {
    attributes: TRANSPOSE_ATTRIBUTES,
    constraints: &[
        rule(
            "C1",
            "x has 3 to 5 axes [batch, channels, spatial...] and weight as many: reshape x",
            |s| s.rank("x") >= 3 && s.rank("weight") == s.rank("x"),
            Case::refused(&[drawn("x", &[3, 8]), drawn("weight", &[3, 4])], &[]),
        ),
        rule(
            "C2",
            "weight has shape [in, out / groups, kernel...] and groups divides the channels of x",
            |s| {
                let (groups, x, weight) = (s.size("groups").unwrap_or(0), s.shape("x"), s.shape("weight"));
                groups > 0 && weight[0] == x[1] && x[1].is_multiple_of(groups)
            },
            Case::refused(&[drawn("x", &[1, 3, 4, 4]), drawn("weight", &[4, 3, 3, 3])], &[]),
        ),
        rule(
            "C3",
            "strides and dilations have one positive integer per spatial axis, pad two that are not negative: [top, bottom, left, right]",
            window_fits,
            Case::refused(&[drawn("x", &[1, 3, 4, 4]), drawn("weight", &[3, 2, 2, 2])], &[("strides", Default::Ints(&[0, 1]))]),
        ),
        rule(
            "C4",
            "bias has shape [out channels]",
            |s| {
                !s.has("bias")
                    || (s.rank("bias") == 1 && Some(s.shape("bias")[0]) == s.size("groups").map(|g| g * s.shape("weight")[1]))
            },
            Case::refused(&[drawn("x", &[1, 3, 4, 4]), drawn("weight", &[3, 2, 2, 2]), drawn("bias", &[3])], &[]),
        ),
        rule(
            "C5",
            "output_padding has one integer per spatial axis, not negative and smaller than the stride",
            |s| {
                let spatial = s.rank("x") - 2;
                let (extra, strides) = (window(s, "output_padding", spatial, 0), window(s, "strides", spatial, 1));
                extra.len() == spatial && extra.iter().zip(&strides).all(|(&extra, &stride)| (0..stride).contains(&extra))
            },
            Case::refused(
                &[drawn("x", &[1, 3, 4, 4]), drawn("weight", &[3, 2, 2, 2])],
                &[("output_padding", Default::Ints(&[1, 0]))],
            ),
        ),
    ],
    cases: &[
        Case::values(
            "every_element_stamps_the_kernel",
            &[
                given("x", &[1, 1, 1, 2], &[1.0, 2.0]),
                given("weight", &[1, 1, 1, 2], &[1.0, 3.0]).fixed(),
                given("bias", &[1], &[0.5]),
            ],
            &[],
            (&[1, 1, 1, 3], &[1.5, 5.5, 6.5]),
            "by hand",
        ),
        Case::shape(
            "stride_padding_groups",
            &[drawn("x", &[2, 4, 3, 4]), drawn("weight", &[4, 3, 3, 2])],
            &[("strides", Default::Ints(&[2, 3])), ("pad", Default::Ints(&[1, 1, 0, 0])), ("groups", Default::Int(2))],
            &[2, 6, 5, 11],
        ),
        Case::values(
            "zeros_behind_what_the_kernel_reaches",
            &[given("x", &[1, 1, 2], &[1.0, 2.0]), given("weight", &[1, 1, 2], &[1.0, 3.0]), given("bias", &[1], &[0.5])],
            &[("strides", Default::Ints(&[3])), ("output_padding", Default::Ints(&[2]))],
            (&[1, 1, 7], &[1.5, 3.5, 0.5, 2.5, 6.5, 0.5, 0.5]),
            "by hand",
        ),
        Case::shape(
            "output_padding_takes_back_padding",
            &[drawn("x", &[1, 2, 3, 4]), drawn("weight", &[2, 3, 3, 3])],
            &[
                ("strides", Default::Ints(&[2, 2])),
                ("pad", Default::Ints(&[1, 1, 1, 1])),
                ("output_padding", Default::Ints(&[1, 1])),
            ],
            &[1, 3, 6, 8],
        ),
    ],
    ..conv_like(
        "conv_transpose",
        "Transposed convolution of x with weight [in, out / groups, kernel...], plus bias.",
        |l, s| {
            let spatial = s.rank("x") - 2;
            let mut pad = window(s, "pad", 2 * spatial, 0);
            let mut behind = vec![0; 2 * s.rank("x")];
            // Less is cut off at the end; what the kernel does not reach is zero.
            for (axis, &extra) in window(s, "output_padding", spatial, 0).iter().enumerate() {
                let uncut = extra.min(pad[2 * axis + 1]);
                pad[2 * axis + 1] -= uncut;
                behind[2 * (axis + 2) + 1] = extra - uncut;
            }
            let mut y = convolve(l, s, "conv_transpose", &pad)?;
            if behind.iter().any(|&extra| extra > 0) {
                y = l.op("pad", &[("x", y.into()), ("pad", behind.into()), ("mode", "constant".into())])?;
            }
            with_bias(l, s, y)
        },
        |b| {
            let (x, weight, grad) = (b.input("x"), b.input("weight"), b.grad());
            let (window, weight_shape) = (window_of(&b.site()), b.site().shape("weight").to_vec());
            if b.wants("x") {
                b.give("x", grad.conv(&weight, None, &window));
            }
            if b.wants("weight") {
                // The adjoint pair: x takes the place of the result's gradient, the gradient that of the input.
                b.give("weight", weight_gradient(&grad, &x, &window, &weight_shape));
            }
            bias_gradient(b);
        },
    )
};

pub(super) const ALL: &[&GraphOp] = &[&CONV, &CONV_TRANSPOSE];
