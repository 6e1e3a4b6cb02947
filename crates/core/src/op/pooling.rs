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
        Case::shape(
            "overlapping_padded_unevenly",
            &[drawn("x", &[1, 2, 6, 5])],
            &[("kernel_sizes", Default::Ints(&[3, 2])), ("strides", Default::Ints(&[2, 1])), ("pad", Default::Ints(&[1, 0, 0, 1]))],
            &[1, 2, 3, 5],
        ),
        Case::shape(
            "last_window_over_the_edge",
            &[drawn("x", &[1, 1, 5, 6])],
            &[("kernel_sizes", Default::Ints(&[2, 2])), ("ceil_mode", Default::Flag(true))],
            &[1, 1, 3, 3],
        ),
        Case::shape(
            "gaps_between_windows",
            &[drawn("x", &[1, 2, 8])],
            &[("kernel_sizes", Default::Ints(&[2])), ("strides", Default::Ints(&[3]))],
            &[1, 2, 3],
        ),
    ],
    ..pool("max_pool", "The largest value under a sliding window.", |b| {
        let grad = max_pool_gradient(b);
        b.give("x", grad);
    })
};

/// For each tap of the window, the elements of x under it are compared with the largest ones; tied elements share the gradient
/// evenly. Padding counts as the lowest number, which no window shows unless it sees nothing else.
fn max_pool_gradient(b: &Backward<'_>) -> Tensor {
    let s = b.site();
    let (shape, kernel, strides) = (s.shape("x").to_vec(), s.ints("kernel_sizes").to_vec(), strides(&s));
    let pad = window(&s, "pad", 2 * kernel.len(), 0);
    let y = b.output();
    let Ok(positions) = y.shape() else { return y };
    if let Some(grad) = tiled_max_pool_gradient(b, &kernel, &strides, &pad) {
        return grad;
    }
    // How far the windows reach; what lies behind the last one is seen by none.
    let (mut border, mut reach) = (vec![0; 4], vec![shape[0], shape[1]]);
    for (axis, &size) in kernel.iter().enumerate() {
        let end = (positions[axis + 2] as i64 - 1) * strides[axis] + size;
        let behind = (end - pad[2 * axis] - shape[axis + 2] as i64).max(0);
        border.extend([pad[2 * axis], behind]);
        reach.push((pad[2 * axis] + shape[axis + 2] as i64 + behind) as usize);
    }
    let padded = b.input("x").pad(&border, -65504.0);
    let mut stride = vec![1, 1];
    stride.extend_from_slice(&strides);
    let taps: Vec<(Vec<i64>, Vec<i64>)> = taps(&kernel)
        .map(|tap| {
            let (mut begin, mut end) = (vec![0, 0], vec![shape[0] as i64, shape[1] as i64]);
            for (axis, &at) in tap.iter().enumerate() {
                begin.push(at);
                end.push(at + (positions[axis + 2] as i64 - 1) * strides[axis] + 1);
            }
            (begin, end)
        })
        .collect();
    let (one, zero) = (y.constant_like(1.0), y.constant_like(0.0));
    let hits: Vec<Tensor> = taps.iter().map(|(begin, end)| padded.slice_by_index(begin, end, &stride).equal(&y)).collect();
    let count = |hit: &Tensor| hit.select(&one, &zero);
    let Some(ties) = hits.iter().map(count).reduce(|sum, hit| sum.add(&hit)) else { return y };
    let share = b.grad().real_div(&ties);
    let spread =
        |(hit, (begin, end)): (&Tensor, &(Vec<i64>, Vec<i64>))| hit.select(&share, &zero).slice_spread(&reach, begin, end, &stride);
    let Some(grad) = hits.iter().zip(&taps).map(spread).reduce(|sum, part| sum.add(&part)) else { return y };
    let begin: Vec<i64> = border.iter().step_by(2).copied().collect();
    grad.slice_by_size(&begin, &shape.iter().map(|&extent| extent as i64).collect::<Vec<_>>())
}

/// [`max_pool_gradient`] of windows over images that lie side by side and cover all of x: each window becomes two axes of its own,
/// so that nothing is cut out or spread, and the largest axis is at most batch times channels.
fn tiled_max_pool_gradient(b: &Backward<'_>, kernel: &[i64], strides: &[i64], pad: &[i64]) -> Option<Tensor> {
    let (y, s) = (b.output(), b.site());
    let (&[batch, channels, height, width], &[rows, columns]) = (s.shape("x"), kernel) else { return None };
    let tiles = strides == kernel
        && pad.iter().all(|&pad| pad == 0)
        && [(height, rows), (width, columns)].iter().all(|&(extent, size)| (extent as i64) % size == 0);
    if !tiles {
        return None;
    }
    let images = (batch * channels) as i64;
    let (down, across) = (height as i64 / rows, width as i64 / columns);
    let windows = b.input("x").reshape(&[images, down, rows, across, columns]);
    let one_each = |tensor: &Tensor| tensor.reshape(&[images, down, 1, across, 1]);
    let (one, zero) = (y.constant_like(1.0), y.constant_like(0.0));
    let hit = windows.equal(&one_each(&y));
    let ties = hit.select(&one, &zero).reduce_sum([2i64, 4], true);
    let grad = hit.select(&one_each(&b.grad()).real_div(&ties), &zero);
    Some(grad.reshape(&[batch as i64, channels as i64, height as i64, width as i64]))
}

/// All places under a window, row by row.
fn taps(kernel: &[i64]) -> impl Iterator<Item = Vec<i64>> + use<'_> {
    (0..kernel.iter().product::<i64>()).map(move |mut index| {
        let mut tap = vec![0; kernel.len()];
        for (at, &size) in tap.iter_mut().zip(kernel).rev() {
            (*at, index) = (index % size, index / size);
        }
        tap
    })
}

fn strides(s: &Site<'_>) -> Vec<i64> {
    if s.ints("strides").is_empty() { s.ints("kernel_sizes").to_vec() } else { s.ints("strides").to_vec() }
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
        Case::shape(
            "padding_left_out",
            &[drawn("x", &[1, 2, 5, 4])],
            &[
                ("kernel_sizes", Default::Ints(&[3, 2])),
                ("strides", Default::Ints(&[2, 2])),
                ("pad", Default::Ints(&[1, 1, 0, 1])),
                ("exclude_padding_from_average", Default::Flag(true)),
            ],
            &[1, 2, 3, 2],
        ),
        Case::shape(
            "last_window_over_the_edge",
            &[drawn("x", &[1, 1, 5, 6])],
            &[("kernel_sizes", Default::Ints(&[3, 4])), ("strides", Default::Ints(&[2, 4])), ("ceil_mode", Default::Flag(true))],
            &[1, 1, 2, 2],
        ),
    ],
    ..pool("avg_pool", "The mean under a sliding window.", |b| {
        let grad = avg_pool_gradient(b);
        b.give("x", grad);
    })
};

/// Each mean spreads its gradient evenly over the elements that it counts.
fn avg_pool_gradient(b: &Backward<'_>) -> Tensor {
    let s = b.site();
    let (kernel, strides, grad) = (s.ints("kernel_sizes"), strides(&s), b.grad());
    let pad = window(&s, "pad", 2 * kernel.len(), 0);
    let Ok(positions) = grad.shape() else { return grad };
    let exclude = s.flag("exclude_padding_from_average");
    // How many elements the window at a position of an axis counts: those of x, or those of padded x.
    let counted = |axis: usize, position: usize| {
        let (start, before) = (position as i64 * strides[axis], pad[2 * axis]);
        let end = before + s.shape("x")[axis + 2] as i64;
        if exclude {
            (start + kernel[axis]).min(end) - start.max(before)
        } else {
            (start + kernel[axis]).min(end + pad[2 * axis + 1]) - start
        }
    };
    let mut rates = vec![1.0];
    let mut shape = vec![1, 1];
    for (axis, &extent) in positions[2..].iter().enumerate() {
        shape.push(extent);
        rates = rates.iter().flat_map(|rate| (0..extent).map(move |at| rate / counted(axis, at) as f64)).collect();
    }
    let even = rates.iter().all(|rate| *rate == rates[0]);
    let rates = if even { grad.constant_like(rates[0]) } else { b.graph().values(s.dtype("x"), &shape, &rates) };
    spread_evenly(b, &grad.mul(&rates))
}

/// Each element of a tensor like the result, added to every element of x under its window.
fn spread_evenly(b: &Backward<'_>, part: &Tensor) -> Tensor {
    let s = b.site();
    let (shape, kernel) = (s.shape("x").to_vec(), s.ints("kernel_sizes"));
    let spread = Window {
        strides: strides(&s),
        pad: window(&s, "pad", 2 * kernel.len(), 0),
        dilations: vec![1; kernel.len()],
        groups: shape[1] as i64,
        ..Window::default()
    };
    let mut weight = vec![shape[1], 1];
    weight.extend(kernel.iter().map(|&size| size as usize));
    let ones = b.graph().values(s.dtype("x"), &weight, &vec![1.0; weight.iter().product()]);
    spread_back(part, &ones, &spread, &shape)
}

/// Euclidean length.
pub static L2_POOL: GraphOp = GraphOp {
    cases: &[
        Case::values(
            "pairs",
            &[given("x", &[1, 1, 1, 4], &[3.0, 4.0, 5.0, 12.0])],
            &[("kernel_sizes", Default::Ints(&[1, 2]))],
            (&[1, 1, 1, 2], &[5.0, 13.0]),
            "by hand",
        ),
        Case::shape(
            "overlapping",
            &[drawn("x", &[1, 2, 5, 4])],
            &[("kernel_sizes", Default::Ints(&[3, 2])), ("strides", Default::Ints(&[2, 1]))],
            &[1, 2, 2, 3],
        ),
    ],
    ..pool("l2_pool", "The root of the sum of squares under a sliding window.", |b| {
        // Windows of zeros have length 0 and, by convention, gradient 0.
        let share = b.grad().real_div(&b.output().threshold(2f64.powi(-14)));
        let grad = b.input("x").mul(&spread_evenly(b, &share));
        b.give("x", grad);
    })
};

pub(super) const ALL: &[&GraphOp] = &[&MAX_POOL, &AVG_POOL, &L2_POOL];
