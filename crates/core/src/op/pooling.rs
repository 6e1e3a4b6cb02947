//! Pools.

use super::convolution::{spread_back, window, window_fits};
use super::*;

const ATTRIBUTES: &[AttributeSpec] = &[
    ints("kernel_sizes", Default::Required),
    ints("strides", Default::Absent),
    ints("pad", Default::Absent),
    flag("ceil_mode", false),
];
const AVERAGE_ATTRIBUTES: &[AttributeSpec] = &[
    ints("kernel_sizes", Default::Required),
    ints("strides", Default::Absent),
    ints("pad", Default::Absent),
    flag("ceil_mode", false),
    flag("exclude_padding_from_average", false),
];

const RULES: &[Constraint] = &[
    rule(
        "C1",
        "x has 3 to 5 axes [batch, channels, spatial...] and kernel_sizes one positive integer per spatial axis",
        |s| {
            s.rank("x") >= 3
                && s.ints("kernel_sizes").len() == s.rank("x") - 2
                && s.ints("kernel_sizes").iter().all(|&size| size > 0)
        },
        Case::refused(&[drawn("x", &[1, 1, 4, 4])], &[("kernel_sizes", Default::Ints(&[2]))]),
    ),
    rule(
        "C2",
        "strides have one positive integer per spatial axis, pad two that are not negative: [top, bottom, left, right]",
        window_fits,
        Case::refused(
            &[drawn("x", &[1, 1, 4, 4])],
            &[("kernel_sizes", Default::Ints(&[2, 2])), ("strides", Default::Ints(&[0, 2]))],
        ),
    ),
    rule(
        "C3",
        "the window fits into the padded input and is larger than the padding: shrink one of them",
        |s| {
            let pad = window(s, "pad", 2 * (s.rank("x") - 2), 0);
            s.ints("kernel_sizes").iter().enumerate().all(|(axis, &size)| {
                let (before, after) = (pad[2 * axis], pad[2 * axis + 1]);
                before.max(after) < size && s.shape("x")[axis + 2] as i64 + before + after >= size
            })
        },
        Case::refused(&[drawn("x", &[1, 1, 4, 4])], &[("kernel_sizes", Default::Ints(&[5, 2]))]),
    ),
];

fn lower_pool(l: &mut Lowering, s: &Site<'_>) -> Result<Vec<ValueId>, GraphError> {
    let kernel = s.ints("kernel_sizes");
    let strides = if s.ints("strides").is_empty() { kernel } else { s.ints("strides") };
    let mut arguments: Vec<(&str, Arg)> = vec![
        ("x", s.value("x")?.into()),
        ("kernel_sizes", kernel.into()),
        ("strides", strides.into()),
        ("pad_type", "custom".into()),
        ("pad", window(s, "pad", 2 * kernel.len(), 0).into()),
        ("ceil_mode", s.flag("ceil_mode").into()),
    ];
    if s.op.name == "avg_pool" {
        arguments.push(("exclude_padding_from_average", s.flag("exclude_padding_from_average").into()));
    }
    l.ops(s.op.name, &arguments)
}

const fn pool(name: &'static str, summary: &'static str, vjp: fn(&mut Backward<'_>)) -> GraphOp {
    GraphOp { attributes: ATTRIBUTES, constraints: RULES, lower: lower_pool, vjp: Vjp::Rule(vjp), ..direct(name, summary) }
}

fn refuse(b: &Backward<'_>, reason: &str) -> Tensor {
    b.graph().failed(GraphError::NotDifferentiable { op: b.site().op.name, reason: reason.to_string() })
}

/// Largest value.
pub static MAX_POOL: GraphOp = GraphOp {
    tolerance: 0.0,
    cases: &[
        Case::values(
            "two_by_two",
            &[given("x", &[1, 1, 2, 4], &[1.0, 5.0, 2.0, 0.0, 3.0, -1.0, 4.0, 8.0])],
            &[("kernel_sizes", Default::Ints(&[2, 2]))],
            (&[1, 1, 1, 2], &[5.0, 8.0]),
            "by hand",
        ),
        Case::shape("tiles", &[drawn("x", &[2, 3, 4, 6])], &[("kernel_sizes", Default::Ints(&[2, 3]))], &[2, 3, 2, 2]),
    ],
    ..pool("max_pool", "The largest value under a sliding window.", |b| {
        let grad = max_pool_gradient(b);
        b.give("x", grad);
    })
};

/// Windows that tile the input: each is an axis pair of a reshaped x, and tied maxima share the gradient evenly.
fn max_pool_gradient(b: &Backward<'_>) -> Tensor {
    let s = b.site();
    let (shape, kernel) = (s.shape("x"), s.ints("kernel_sizes"));
    let (&[batch, channels, height, width], &[tall, wide]) = (shape, kernel) else {
        return refuse(b, "max_pool has a derivative for x with four axes only");
    };
    let (height, width) = (height as i64, width as i64);
    let tiles = (s.ints("strides").is_empty() || s.ints("strides") == kernel) && height % tall == 0 && width % wide == 0;
    if !tiles || s.ints("pad").iter().any(|&pad| pad != 0) {
        return refuse(b, "max_pool has a derivative where its windows tile x; set strides to kernel_sizes and no padding");
    }
    let planes = (batch * channels) as i64;
    let tiled = b.input("x").reshape(&[planes, height / tall, tall, width / wide, wide]);
    let per_window = [planes, height / tall, 1, width / wide, 1];
    let hit = tiled.equal(&b.output().reshape(&per_window));
    let zero = tiled.constant_like(0.0);
    let ties = hit.select(&tiled.constant_like(1.0), &zero).reduce_sum([2, 4], true);
    let share = b.grad().reshape(&per_window).real_div(&ties);
    let all: Vec<i64> = shape.iter().map(|&extent| extent as i64).collect();
    hit.select(&share, &zero).reshape(&all)
}

/// Mean.
pub static AVG_POOL: GraphOp = GraphOp {
    attributes: AVERAGE_ATTRIBUTES,
    cases: &[
        Case::values(
            "two_by_two",
            &[given("x", &[1, 1, 2, 4], &[1.0, 5.0, 2.0, 0.0, 3.0, -1.0, 4.0, 8.0])],
            &[("kernel_sizes", Default::Ints(&[2, 2]))],
            (&[1, 1, 1, 2], &[2.0, 3.5]),
            "by hand",
        ),
        Case::shape(
            "overlapping_padded",
            &[drawn("x", &[2, 3, 5, 4])],
            &[("kernel_sizes", Default::Ints(&[3, 3])), ("strides", Default::Ints(&[2, 1])), ("pad", Default::Ints(&[1, 1, 1, 1]))],
            &[2, 3, 3, 4],
        ),
    ],
    ..pool("avg_pool", "The mean under a sliding window.", |b| {
        let grad = avg_pool_gradient(b);
        b.give("x", grad);
    })
};

/// Each mean spreads its gradient evenly: a transposed depthwise convolution with a constant kernel.
fn avg_pool_gradient(b: &Backward<'_>) -> Tensor {
    let s = b.site();
    let (shape, kernel) = (s.shape("x").to_vec(), s.ints("kernel_sizes"));
    let padded = s.ints("pad").iter().any(|&pad| pad != 0);
    if s.flag("ceil_mode") || (padded && s.flag("exclude_padding_from_average")) {
        return refuse(
            b,
            "avg_pool has a derivative where all windows hold as many elements; drop ceil_mode or the exclusion of padding",
        );
    }
    let spread = Window {
        strides: if s.ints("strides").is_empty() { kernel.to_vec() } else { s.ints("strides").to_vec() },
        pad: window(&s, "pad", 2 * kernel.len(), 0),
        dilations: vec![1; kernel.len()],
        groups: shape[1] as i64,
        ..Window::default()
    };
    let mut weight = vec![shape[1], 1];
    weight.extend(kernel.iter().map(|&size| size as usize));
    let taps: i64 = kernel.iter().product();
    let weight = b.graph().full(&weight, 1.0 / taps as f64);
    spread_back(&b.grad(), &weight, &spread, &shape)
}

pub(super) const ALL: &[&GraphOp] = &[&MAX_POOL, &AVG_POOL];
