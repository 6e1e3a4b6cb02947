//! Moves between channels, space and batch.

use super::*;
use aneforge_native::layer;

const FOUR: &str = "x has four axes [batch, channels, height, width]: reshape it";
const SINGLE: &str = "x is a single image: cut the batch";
const CUTS_SPACE: &str = "block_height and block_width are positive and divide height and width: pad or crop x";
const STEPS: &str = "block_height and block_width are products of 2, 3, 4 and 8";
const BLOCK: &[AttributeSpec] = &[int("block_height", Default::Int(2)), int("block_width", Default::Int(2))];
const FLAT: &[Sample] = &[drawn("x", &[4, 4])];
const SQUARE: Sample = given("x", &[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0]);

fn block(s: &Site<'_>) -> [usize; 2] {
    ["block_height", "block_width"].map(|name| s.size(name).unwrap_or(0))
}

fn cuts_space(s: &Site<'_>) -> bool {
    block(s).iter().zip(&s.shape("x")[2..]).all(|(&factor, extent)| factor > 0 && extent.is_multiple_of(factor))
}

fn cuts(s: &Site<'_>, axis: usize) -> bool {
    let [height, width] = block(s);
    height.checked_mul(width).is_some_and(|area| area > 0 && s.shape("x")[axis].is_multiple_of(area))
}

fn are_steps(s: &Site<'_>) -> bool {
    block(s).iter().all(|&factor| {
        let without = |mut value: usize, prime: usize| {
            while value > 1 && value.is_multiple_of(prime) {
                value /= prime;
            }
            value
        };
        without(without(factor, 2), 3) == 1
    })
}

fn moved(l: &mut Lowering, s: &Site<'_>, layer: &'static Layer) -> Result<Vec<ValueId>, GraphError> {
    let [height, width] = block(s);
    let arguments =
        [("x", s.value("x")?.into()), ("FactorX", int_arg(width)), ("FactorY", int_arg(height)), ("FactorZ", int_arg(1))];
    Ok(vec![super::layer(l, layer, &arguments)?])
}

const fn moves(name: &'static str, summary: &'static str, lower: LowerRule, vjp: fn(&mut Backward<'_>)) -> GraphOp {
    GraphOp { attributes: BLOCK, tolerance: 0.0, vjp: Vjp::Rule(vjp), ..native(name, summary, lower) }
}

/// The gradient of a move is the move back.
fn back(b: &mut Backward<'_>, undo: fn(&Tensor, i64, i64) -> Tensor) {
    let (height, width) = (b.site().int("block_height"), b.site().int("block_width"));
    let grad = undo(&b.grad(), height, width);
    b.give("x", grad);
}

/// Space to channels.
pub static SPACE_TO_CHANNEL: GraphOp = GraphOp {
    constraints: &[
        rule("C1", FOUR, |s| s.rank("x") == 4, Case::refused(FLAT, &[])),
        rule("C2", SINGLE, |s| s.shape("x")[0] == 1, Case::refused(&[drawn("x", &[2, 1, 2, 2])], &[])),
        rule("C3", CUTS_SPACE, cuts_space, Case::refused(&[drawn("x", &[1, 1, 3, 2])], &[])),
    ],
    cases: &[
        Case::values("a_square_becomes_channels", &[SQUARE], &[], (&[1, 4, 1, 1], &[1.0, 2.0, 3.0, 4.0]), "by hand"),
        Case::shape("blocks", &[drawn("x", &[1, 2, 4, 6])], &[("block_width", Default::Int(3))], &[1, 12, 2, 2]),
    ],
    ..moves(
        "space_to_channel",
        "Pixels of blocks gathered into channels, places of a block before channels.",
        |l, s| moved(l, s, &layer::SPACE_TO_CHANNEL),
        |b| back(b, Tensor::channel_to_space),
    )
};

/// Channels to space.
pub static CHANNEL_TO_SPACE: GraphOp = GraphOp {
    constraints: &[
        rule("C1", FOUR, |s| s.rank("x") == 4, Case::refused(FLAT, &[])),
        rule("C2", SINGLE, |s| s.shape("x")[0] == 1, Case::refused(&[drawn("x", &[2, 4, 1, 1])], &[])),
        rule(
            "C3",
            "block_height and block_width are positive, and their product divides the channels",
            |s| cuts(s, 1),
            Case::refused(&[drawn("x", &[1, 6, 2, 2])], &[]),
        ),
    ],
    cases: &[Case::values(
        "channels_vary_fastest",
        &[given("x", &[1, 8, 1, 1], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])],
        &[],
        (&[1, 2, 2, 2], &[1.0, 3.0, 5.0, 7.0, 2.0, 4.0, 6.0, 8.0]),
        "by hand",
    )],
    ..moves(
        "channel_to_space",
        "Channels spread over pixels, the inverse of space_to_channel.",
        |l, s| moved(l, s, &layer::CHANNEL_TO_SPACE),
        |b| back(b, Tensor::space_to_channel),
    )
};

/// Space to batch.
pub static SPACE_TO_BATCH: GraphOp = GraphOp {
    constraints: &[
        rule("C1", FOUR, |s| s.rank("x") == 4, Case::refused(FLAT, &[])),
        rule("C2", CUTS_SPACE, cuts_space, Case::refused(&[drawn("x", &[1, 1, 3, 2])], &[])),
        rule("C3", STEPS, are_steps, Case::refused(&[drawn("x", &[1, 1, 2, 5])], &[("block_width", Default::Int(5))])),
    ],
    cases: &[
        Case::values(
            "places_become_images",
            &[SQUARE],
            &[("block_height", Default::Int(1))],
            (&[2, 1, 2, 1], &[1.0, 3.0, 2.0, 4.0]),
            "by hand",
        ),
        Case::shape("two_images", &[drawn("x", &[2, 3, 4, 6])], &[], &[8, 3, 2, 3]),
    ],
    ..moves(
        "space_to_batch",
        "Pixels of blocks gathered into images, places of a block before images.",
        |l, s| moved(l, s, &layer::SPACE_TO_BATCH),
        |b| back(b, Tensor::batch_to_space),
    )
};

/// Batch to space.
pub static BATCH_TO_SPACE: GraphOp = GraphOp {
    constraints: &[
        rule("C1", FOUR, |s| s.rank("x") == 4, Case::refused(FLAT, &[])),
        rule(
            "C2",
            "block_height and block_width are positive, and their product divides the batch",
            |s| cuts(s, 0),
            Case::refused(&[drawn("x", &[3, 1, 2, 2])], &[]),
        ),
        rule(
            "C3",
            STEPS,
            are_steps,
            Case::refused(&[drawn("x", &[5, 1, 2, 2])], &[("block_height", Default::Int(1)), ("block_width", Default::Int(5))]),
        ),
    ],
    cases: &[Case::values(
        "images_become_places",
        &[given("x", &[2, 1, 2, 1], &[1.0, 3.0, 2.0, 4.0])],
        &[("block_height", Default::Int(1))],
        (&[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0]),
        "by hand",
    )],
    ..moves(
        "batch_to_space",
        "Images spread over pixels, the inverse of space_to_batch.",
        |l, s| moved(l, s, &layer::BATCH_TO_SPACE),
        |b| back(b, Tensor::space_to_batch),
    )
};
