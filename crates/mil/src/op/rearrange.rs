//! Moves between channels, space and batch.

use super::family::{base, integers, rule};
use super::general::computed;
use super::{Arguments, Case, Constraint, Default, FLOATS, MilOp, OpError, PortSpec, given, int, ints, sample, tensor};
use crate::{Array, TensorType};

const BY_HAND: &str = "by hand";
const RANK_4: Constraint = rule("C1", "x has 4 axes [batch, channels, height, width]: reshape x", |a| a.shape("x").len() == 4);
const BLOCK_PORTS: &[PortSpec] = &[tensor("x", FLOATS), integers("block_size", Default::Required)];
const FOUR: super::Given = given(&[1, 4, 1, 1], &[1.0, 2.0, 3.0, 4.0]);
const SQUARE: super::Given = given(&[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0]);
/// Eight channels of a pixel: two features, four places.
const EIGHT: super::Given = given(&[1, 8, 1, 1], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);

/// Moves of values between axes.
const fn moves(
    name: &'static str,
    summary: &'static str,
    infer: fn(&Arguments<'_>) -> Result<Vec<TensorType>, OpError>,
    meaning: fn(&Arguments<'_>) -> Result<Vec<Array>, OpError>,
) -> MilOp {
    MilOp { tolerance: 0.0, ..base(name, summary, infer, meaning) }
}

pub(super) const OPS: &[MilOp] = &[
    MilOp {
        ports: &[tensor("x", FLOATS), integers("upscale_factor", Default::Required)],
        constraints: &[
            RANK_4,
            rule("C2", "the square of upscale_factor divides the channels", |a| divides_channels(a, "upscale_factor")),
        ],
        cases: &[
            Case::new(
                "channels_become_a_square",
                &[("x", FOUR), ("upscale_factor", int(&[2.0]))],
                &[(&[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0])],
                BY_HAND,
            ),
            Case::new(
                "places_vary_fastest",
                &[("x", EIGHT), ("upscale_factor", int(&[2.0]))],
                &[(&[1, 2, 2, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])],
                BY_HAND,
            ),
            Case::oracle("two_images", &[("x", sample(&[2, 9, 2, 3], 1)), ("upscale_factor", int(&[3.0]))]),
        ],
        ..moves(
            "pixel_shuffle",
            "Channels to space, channel c of place (i, j) being c r^2 + i r + j.",
            |a| to_space(a, "upscale_factor"),
            |a| {
                let (x, r) = (a.array("x")?, factor(a, "upscale_factor"));
                let [n, c, h, w] = extents(x);
                regroup(x, &[n, c / (r * r), r, r, h, w], &[0, 1, 4, 2, 5, 3], to_space(a, "upscale_factor")?)
            },
        )
    },
    MilOp {
        opset: "ios16",
        ports: &[tensor("x", FLOATS), integers("downscale_factor", Default::Required)],
        constraints: &[RANK_4, rule("C2", "downscale_factor divides height and width", |a| divides_space(a, "downscale_factor"))],
        cases: &[
            Case::new(
                "a_square_becomes_channels",
                &[("x", SQUARE), ("downscale_factor", super::number(crate::DType::UInt32, &[2.0]))],
                &[(&[1, 4, 1, 1], &[1.0, 2.0, 3.0, 4.0])],
                BY_HAND,
            ),
            Case::oracle(
                "two_images",
                &[("x", sample(&[2, 2, 4, 6], 1)), ("downscale_factor", super::number(crate::DType::UInt32, &[2.0]))],
            ),
        ],
        ..moves(
            "pixel_unshuffle",
            "Space to channels, the inverse of pixel_shuffle.",
            |a| to_depth(a, "downscale_factor"),
            |a| {
                let (x, r) = (a.array("x")?, factor(a, "downscale_factor"));
                let [n, c, h, w] = extents(x);
                regroup(x, &[n, c, h / r, r, w / r, r], &[0, 1, 3, 5, 2, 4], to_depth(a, "downscale_factor")?)
            },
        )
    },
    MilOp {
        ports: BLOCK_PORTS,
        constraints: &[RANK_4, rule("C2", "the square of block_size divides the channels", |a| divides_channels(a, "block_size"))],
        cases: &[
            Case::new(
                "features_vary_fastest",
                &[("x", EIGHT), ("block_size", int(&[2.0]))],
                &[(&[1, 2, 2, 2], &[1.0, 3.0, 5.0, 7.0, 2.0, 4.0, 6.0, 8.0])],
                BY_HAND,
            ),
            Case::oracle("two_images", &[("x", sample(&[2, 8, 2, 3], 1)), ("block_size", int(&[2.0]))]),
        ],
        ..moves(
            "depth_to_space",
            "Channels to space, channel c of place (i, j) being (i r + j) C + c.",
            |a| to_space(a, "block_size"),
            |a| {
                let (x, r) = (a.array("x")?, factor(a, "block_size"));
                let [n, c, h, w] = extents(x);
                regroup(x, &[n, r, r, c / (r * r), h, w], &[0, 3, 4, 1, 5, 2], to_space(a, "block_size")?)
            },
        )
    },
    MilOp {
        ports: BLOCK_PORTS,
        constraints: &[RANK_4, rule("C2", "block_size divides height and width", |a| divides_space(a, "block_size"))],
        cases: &[
            Case::new(
                "features_vary_fastest",
                &[("x", given(&[1, 2, 2, 2], &[1.0, 3.0, 5.0, 7.0, 2.0, 4.0, 6.0, 8.0])), ("block_size", int(&[2.0]))],
                &[(&[1, 8, 1, 1], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])],
                BY_HAND,
            ),
            Case::oracle("two_images", &[("x", sample(&[2, 3, 4, 6], 1)), ("block_size", int(&[2.0]))]),
        ],
        ..moves(
            "space_to_depth",
            "Space to channels, the inverse of depth_to_space.",
            |a| to_depth(a, "block_size"),
            |a| {
                let (x, r) = (a.array("x")?, factor(a, "block_size"));
                let [n, c, h, w] = extents(x);
                regroup(x, &[n, c, h / r, r, w / r, r], &[0, 3, 5, 1, 2, 4], to_depth(a, "block_size")?)
            },
        )
    },
    MilOp {
        ports: &[tensor("x", FLOATS), integers("block_shape", Default::Required), integers("paddings", Default::Required)],
        constraints: &[
            RANK_4,
            rule("C2", "block_shape has two positive integers, paddings four that are not negative", |a| {
                pair_and_four(a, "paddings")
            }),
            rule("C3", "block_shape divides the padded height and width", |a| {
                let (block, padded) = (block(a), moved(a, "paddings", 1));
                (0..2).all(|axis| padded[axis] % block[axis] == 0)
            }),
        ],
        cases: &[Case::new(
            "places_become_images",
            &[("x", SQUARE), ("block_shape", ints(&[2], &[1.0, 2.0])), ("paddings", ints(&[2, 2], &[0.0, 0.0, 2.0, 0.0]))],
            &[(&[2, 1, 2, 2], &[0.0, 1.0, 0.0, 3.0, 0.0, 2.0, 0.0, 4.0])],
            BY_HAND,
        )],
        ..moves("space_to_batch", "Space to batch, places of a block before images, zeros around.", infer_to_batch, space_to_batch)
    },
    MilOp {
        ports: &[tensor("x", FLOATS), integers("block_shape", Default::Required), integers("crops", Default::Required)],
        constraints: &[
            RANK_4,
            rule("C2", "block_shape has two positive integers, crops four that are not negative", |a| pair_and_four(a, "crops")),
            rule("C3", "the product of block_shape divides the batch", |a| {
                let block = block(a);
                a.shape("x").first().is_some_and(|&images| images as i128 % (block[0] * block[1]) == 0)
            }),
        ],
        cases: &[Case::new(
            "images_become_places",
            &[
                ("x", given(&[2, 1, 2, 2], &[0.0, 1.0, 0.0, 3.0, 0.0, 2.0, 0.0, 4.0])),
                ("block_shape", ints(&[2], &[1.0, 2.0])),
                ("crops", ints(&[2, 2], &[0.0, 0.0, 2.0, 0.0])),
            ],
            &[(&[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0])],
            BY_HAND,
        )],
        ..moves("batch_to_space", "Batch to space, the inverse of space_to_batch, then a crop.", infer_to_space, batch_to_space)
    },
];

fn extents(x: &Array) -> [usize; 4] {
    <[usize; 4]>::try_from(x.ty.shape.as_slice()).unwrap_or([1; 4])
}

fn factor(a: &Arguments<'_>, port: &str) -> usize {
    a.int(port).and_then(|factor| usize::try_from(factor).ok()).unwrap_or(0)
}

fn divides_channels(a: &Arguments<'_>, port: &str) -> bool {
    let places = factor(a, port).checked_mul(factor(a, port)).unwrap_or(0);
    places > 0 && a.shape("x").get(1).is_some_and(|channels| channels % places == 0)
}

fn divides_space(a: &Arguments<'_>, port: &str) -> bool {
    let factor = factor(a, port);
    factor > 0 && a.shape("x").iter().skip(2).all(|extent| extent % factor == 0)
}

fn to_space(a: &Arguments<'_>, port: &str) -> Result<Vec<TensorType>, OpError> {
    let x = a.ty("x")?;
    let r = factor(a, port).max(1) as i128;
    let e: Vec<_> = x.shape.iter().map(|&extent| extent as i128).chain([0; 4]).collect();
    computed(a, x.dtype, vec![e[0], e[1] / r.saturating_mul(r), e[2].saturating_mul(r), e[3].saturating_mul(r)])
}

fn to_depth(a: &Arguments<'_>, port: &str) -> Result<Vec<TensorType>, OpError> {
    let x = a.ty("x")?;
    let r = factor(a, port).max(1) as i128;
    let e: Vec<_> = x.shape.iter().map(|&extent| extent as i128).chain([0; 4]).collect();
    computed(a, x.dtype, vec![e[0], e[1].saturating_mul(r.saturating_mul(r)), e[2] / r, e[3] / r])
}

fn regroup(x: &Array, split: &[usize], order: &[usize], types: Vec<TensorType>) -> Result<Vec<Array>, OpError> {
    let moved = x.clone().reshaped(split).transposed(order);
    Ok(types.into_iter().map(|ty| moved.clone().reshaped(ty.shape)).collect())
}

fn block(a: &Arguments<'_>) -> [i128; 2] {
    let block = a.ints("block_shape").unwrap_or_default();
    [0, 1].map(|axis| i128::from(block.get(axis).copied().unwrap_or(1)).max(1))
}

/// Two integers per spatial axis.
fn border(a: &Arguments<'_>, port: &str) -> [[i128; 2]; 2] {
    let border = a.ints(port).unwrap_or_default();
    [0, 2].map(|at| [at, at + 1].map(|index| i128::from(border.get(index).copied().unwrap_or(0))))
}

/// Height and width plus `sign` times the border.
fn moved(a: &Arguments<'_>, port: &str, sign: i128) -> [i128; 2] {
    let border = border(a, port);
    [0, 1].map(|axis| a.shape("x").get(2 + axis).copied().unwrap_or(0) as i128 + sign * (border[axis][0] + border[axis][1]))
}

fn pair_and_four(a: &Arguments<'_>, port: &str) -> bool {
    let list =
        |port, length, least| a.ints(port).is_some_and(|list| list.len() == length && list.iter().all(|&value| value >= least));
    list("block_shape", 2, 1) && list(port, 4, 0)
}

fn infer_to_batch(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let x = a.ty("x")?;
    let (block, padded) = (block(a), moved(a, "paddings", 1));
    let lead = [0, 1].map(|axis| x.shape.get(axis).copied().unwrap_or(0) as i128);
    computed(
        a,
        x.dtype,
        vec![lead[0].saturating_mul(block[0]).saturating_mul(block[1]), lead[1], padded[0] / block[0], padded[1] / block[1]],
    )
}

fn space_to_batch(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let x = a.array("x")?;
    let ([n, c, h, w], [down, across]) = (extents(x), block(a).map(|extent| extent as usize));
    let [height, width] = moved(a, "paddings", 1).map(|extent| extent as usize);
    let [[top, _], [left, _]] = border(a, "paddings").map(|pair| pair.map(|extent| extent as usize));
    let mut padded = vec![0.0; n * c * height * width];
    for (row, values) in x.data.chunks(w).enumerate() {
        let at = (row / h * height + row % h + top) * width + left;
        padded[at..at + w].copy_from_slice(values);
    }
    let padded = Array::new(x.ty.dtype, [n, c, height, width], padded);
    regroup(&padded, &[n, c, height / down, down, width / across, across], &[3, 5, 0, 1, 2, 4], infer_to_batch(a)?)
}

fn infer_to_space(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let x = a.ty("x")?;
    let (block, border) = (block(a), border(a, "crops"));
    let e: Vec<_> = x.shape.iter().map(|&extent| extent as i128).chain([0; 4]).collect();
    let space = [0, 1].map(|axis| e[2 + axis].saturating_mul(block[axis]) - border[axis][0] - border[axis][1]);
    computed(a, x.dtype, vec![e[0] / block[0].saturating_mul(block[1]), e[1], space[0], space[1]])
}

fn batch_to_space(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let x = a.array("x")?;
    let ([n, c, h, w], [down, across]) = (extents(x), block(a).map(|extent| extent as usize));
    let images = n / (down * across);
    let full = x.clone().reshaped([down, across, images, c, h, w]).transposed(&[2, 3, 4, 0, 5, 1]);
    let full = full.reshaped([images, c, h * down, w * across]);
    let [[top, _], [left, _]] = border(a, "crops").map(|pair| pair.map(|extent| extent as usize));
    let ty = infer_to_space(a)?.remove(0);
    let strides = full.strides();
    let offset = top * strides[2] + left;
    Ok(vec![full.strided(offset, &ty.shape, &strides.iter().map(|&step| step as isize).collect::<Vec<_>>())])
}
