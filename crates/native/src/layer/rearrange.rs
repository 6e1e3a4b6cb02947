//! Moves between channels, space and batch. FactorX cuts the width, FactorY the height.

use super::build::*;
use super::{Layer, Param, ParamKind};
use aneforge_mil::op::{Arguments, Arithmetic, Case, Constraint, Given, MilOp, OpError, PortSpec, int};
use aneforge_mil::{Array, DType, TensorType};

const PORTS: &[PortSpec] = &[x("x"), ints("FactorX"), ints("FactorY"), int_or("FactorZ", 1)];
const PARAMS: &[Param] = &[param("FactorX", ParamKind::Int), param("FactorY", ParamKind::Int), param("FactorZ", ParamKind::Int)];

const SQUARE: Given = given(&[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0]);
const EIGHT: Given = given(&[1, 8, 1, 1], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
const TWO: Given = int(&[2.0]);
const ONE: Given = int(&[1.0]);

const FLAT: Constraint = rule("C2", "FactorZ is 1: nothing moves along the depth", |a| a.int("FactorZ") == Some(1));
const SINGLE: Constraint = rule("C3", "x is a single image: cut the batch", |a| extents(a, "x")[0] == 1);
const CUTS_SPACE: &str = "FactorX divides the width and FactorY the height";
const CUTS_CHANNELS: &str = "the product of FactorX and FactorY divides the channels";
const STEPS: &str = "FactorX and FactorY are 1, 2, 3, 4 or 8 (arXiv 2606.22283, chapter 26)";
const PRODUCTS: &str = "FactorX and FactorY are products of 2, 3, 4 and 8 (arXiv 2606.22283, chapter 26)";

fn factors(a: &Arguments<'_>) -> [usize; 2] {
    [size(a, "FactorY"), size(a, "FactorX")]
}

fn cuts_space(a: &Arguments<'_>) -> bool {
    let ([down, across], [_, _, height, width]) = (factors(a), extents(a, "x"));
    down > 0 && across > 0 && height % down == 0 && width % across == 0
}

fn cuts(a: &Arguments<'_>, axis: usize) -> bool {
    let [down, across] = factors(a);
    down.checked_mul(across).is_some_and(|block| block > 0 && extents(a, "x")[axis].is_multiple_of(block))
}

fn are_steps(a: &Arguments<'_>) -> bool {
    factors(a).iter().all(|factor| matches!(factor, 1 | 2 | 3 | 4 | 8))
}

fn are_products(a: &Arguments<'_>) -> bool {
    factors(a).iter().all(|&factor| {
        let without = |mut value: usize, prime: usize| {
            while value > 0 && value.is_multiple_of(prime) {
                value /= prime;
            }
            value
        };
        without(without(factor, 2), 3) == 1
    })
}

/// The type of the result: the batch, the channels, and space each times what the factors make of it.
fn made(a: &Arguments<'_>, batch: bool, into_space: bool) -> Result<Vec<TensorType>, OpError> {
    let ([down, across], mut e) = (factors(a).map(|factor| factor.max(1) as i128), extents(a, "x").map(|extent| extent as i128));
    let other = if batch { 0 } else { 1 };
    if into_space {
        (e[other], e[2], e[3]) = (e[other] / (down.saturating_mul(across)), e[2].saturating_mul(down), e[3].saturating_mul(across));
    } else {
        (e[other], e[2], e[3]) = (e[other].saturating_mul(down.saturating_mul(across)), e[2] / down, e[3] / across);
    }
    computed(a, DType::Fp16, e.to_vec())
}

fn regrouped(a: &Arguments<'_>, split: &[usize], order: &[usize], types: Vec<TensorType>) -> Result<Vec<Array>, OpError> {
    let moved = a.array("x")?.clone().reshaped(split).transposed(order);
    of(types, moved.data)
}

const fn moves(
    name: &'static str,
    summary: &'static str,
    infer: fn(&Arguments<'_>) -> Result<Vec<TensorType>, OpError>,
    meaning: fn(&Arguments<'_>) -> Result<Vec<Array>, OpError>,
) -> MilOp {
    MilOp { ports: PORTS, arithmetic: Arithmetic::Copy, tolerance: 0.0, ..unary(name, summary, infer, meaning) }
}

/// Space to channels, places of a block before channels.
pub static SPACE_TO_CHANNEL: Layer = layer(
    MilOp {
        constraints: &[FOUR, FLAT, SINGLE, rule("C4", CUTS_SPACE, cuts_space)],
        cases: &[Case::new(
            "a_square_becomes_channels",
            &[("x", SQUARE), ("FactorX", TWO), ("FactorY", TWO)],
            &[(&[1, 4, 1, 1], &[1.0, 2.0, 3.0, 4.0])],
            BY_HAND,
        )],
        ..moves(
            "SpaceToChannel",
            "Space to channels, channel (i across + j) C + c being place (i, j) of the blocks of channel c.",
            |a| made(a, false, false),
            |a| {
                let ([down, across], [n, c, h, w]) = (factors(a), extents(a, "x"));
                regrouped(a, &[n, c, h / down, down, w / across, across], &[0, 3, 5, 1, 2, 4], made(a, false, false)?)
            },
        )
    },
    PARAMS,
);

/// The inverse.
pub static CHANNEL_TO_SPACE: Layer = layer(
    MilOp {
        constraints: &[FOUR, FLAT, SINGLE, rule("C4", CUTS_CHANNELS, |a| cuts(a, 1))],
        cases: &[Case::new(
            "channels_vary_fastest",
            &[("x", EIGHT), ("FactorX", TWO), ("FactorY", TWO)],
            &[(&[1, 2, 2, 2], &[1.0, 3.0, 5.0, 7.0, 2.0, 4.0, 6.0, 8.0])],
            BY_HAND,
        )],
        ..moves(
            "ChannelToSpace",
            "Channels to space, the inverse of SpaceToChannel.",
            |a| made(a, false, true),
            |a| {
                let ([down, across], [n, c, h, w]) = (factors(a), extents(a, "x"));
                regrouped(a, &[n, down, across, c / (down * across), h, w], &[0, 3, 4, 1, 5, 2], made(a, false, true)?)
            },
        )
    },
    PARAMS,
);

/// Space to batch, places of a block before images.
pub static SPACE_TO_BATCH: Layer = layer(
    MilOp {
        constraints: &[FOUR, FLAT, rule("C3", CUTS_SPACE, cuts_space), rule("C4", PRODUCTS, are_products)],
        cases: &[Case::new(
            "places_become_images",
            &[("x", SQUARE), ("FactorX", TWO), ("FactorY", ONE)],
            &[(&[2, 1, 2, 1], &[1.0, 3.0, 2.0, 4.0])],
            BY_HAND,
        )],
        ..moves(
            "SpaceToBatch",
            "Space to batch, image (i across + j) N + n being place (i, j) of image n.",
            |a| made(a, true, false),
            |a| {
                let ([down, across], [n, c, h, w]) = (factors(a), extents(a, "x"));
                regrouped(a, &[n, c, h / down, down, w / across, across], &[3, 5, 0, 1, 2, 4], made(a, true, false)?)
            },
        )
    },
    PARAMS,
);

/// The inverse.
pub static BATCH_TO_SPACE: Layer = layer(
    MilOp {
        constraints: &[
            FOUR,
            FLAT,
            rule("C3", "the product of FactorX and FactorY divides the batch", |a| cuts(a, 0)),
            rule("C4", PRODUCTS, are_products),
        ],
        cases: &[Case::new(
            "images_become_places",
            &[("x", given(&[2, 1, 2, 1], &[1.0, 3.0, 2.0, 4.0])), ("FactorX", TWO), ("FactorY", ONE)],
            &[(&[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0])],
            BY_HAND,
        )],
        ..moves(
            "BatchToSpace",
            "Batch to space, the inverse of SpaceToBatch.",
            |a| made(a, true, true),
            |a| {
                let ([down, across], [n, c, h, w]) = (factors(a), extents(a, "x"));
                regrouped(a, &[down, across, n / (down * across), c, h, w], &[2, 3, 4, 0, 5, 1], made(a, true, true)?)
            },
        )
    },
    PARAMS,
);

/// Channels to space, channels before places of a block.
pub static PIXEL_SHUFFLE: Layer = layer(
    MilOp {
        constraints: &[FOUR, FLAT, rule("C3", STEPS, are_steps), rule("C4", CUTS_CHANNELS, |a| cuts(a, 1))],
        cases: &[Case::new(
            "places_vary_fastest",
            &[("x", EIGHT), ("FactorX", TWO), ("FactorY", TWO)],
            &[(&[1, 2, 2, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])],
            "torch.nn.functional.pixel_shuffle",
        )],
        ..moves(
            "PixelShuffle",
            "Channels to space in PyTorch's order.",
            |a| made(a, false, true),
            |a| {
                let ([down, across], [n, c, h, w]) = (factors(a), extents(a, "x"));
                regrouped(a, &[n, c / (down * across), down, across, h, w], &[0, 1, 4, 2, 5, 3], made(a, false, true)?)
            },
        )
    },
    PARAMS,
);

/// The inverse.
pub static PIXEL_UNSHUFFLE: Layer = layer(
    MilOp {
        constraints: &[FOUR, FLAT, rule("C3", STEPS, are_steps), rule("C4", CUTS_SPACE, cuts_space)],
        cases: &[Case::new(
            "a_square_becomes_channels",
            &[("x", SQUARE), ("FactorX", TWO), ("FactorY", TWO)],
            &[(&[1, 4, 1, 1], &[1.0, 2.0, 3.0, 4.0])],
            "torch.nn.functional.pixel_unshuffle",
        )],
        ..moves(
            "PixelUnshuffle",
            "Space to channels in PyTorch's order.",
            |a| made(a, false, false),
            |a| {
                let ([down, across], [n, c, h, w]) = (factors(a), extents(a, "x"));
                regrouped(a, &[n, c, h / down, down, w / across, across], &[0, 1, 3, 5, 2, 4], made(a, false, false)?)
            },
        )
    },
    PARAMS,
);
