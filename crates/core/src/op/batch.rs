//! Places of blocks traded for the batch, in MIL's form with padding and cropping.

use super::*;

const FOUR: &str = "x has four axes [batch, channels, height, width]: reshape it";
const NONE: Default = Default::Ints(&[0, 0, 0, 0]);

/// Whether an attribute has four entries that are not negative, and block_shape two that are positive.
fn well_formed(s: &Site<'_>, borders: &str) -> bool {
    let limit = 1 << 20;
    s.ints("block_shape").len() == 2
        && s.ints("block_shape").iter().all(|size| (1..limit).contains(size))
        && s.ints(borders).len() == 4
        && s.ints(borders).iter().all(|size| (0..limit).contains(size))
}

fn lower_blocks(l: &mut Lowering, s: &Site<'_>, op: &str, borders: &'static str) -> Result<Vec<ValueId>, GraphError> {
    let values: Vec<f64> = s.ints(borders).iter().map(|&value| value as f64).collect();
    let table = l.constant(borders, TensorType::new(DType::Int32, [2, 2]), &values)?;
    l.ops(op, &[("x", s.value("x")?.into()), ("block_shape", s.ints("block_shape").into()), (borders, table.into())])
}

/// Space to batch.
pub static SPACE_TO_BATCH_PADDED: GraphOp = GraphOp {
    attributes: &[ints("block_shape", Default::Required), ints("paddings", NONE)],
    constraints: &[
        rule("C1", FOUR, |s| s.rank("x") == 4, Case::refused(&[drawn("x", &[4, 4])], &[("block_shape", Default::Ints(&[2, 2]))])),
        rule(
            "C2",
            "block_shape has two positive integers and paddings four that are not negative: [top, bottom, left, right]",
            |s| well_formed(s, "paddings"),
            Case::refused(&[drawn("x", &[1, 1, 2, 2])], &[("block_shape", Default::Ints(&[0, 2]))]),
        ),
        rule(
            "C3",
            "block_shape divides height and width with their paddings",
            |s| {
                let padded =
                    |axis: usize| s.shape("x")[axis + 2] as i64 + s.ints("paddings")[2 * axis] + s.ints("paddings")[2 * axis + 1];
                (0..2).all(|axis| padded(axis) % s.ints("block_shape")[axis] == 0)
            },
            Case::refused(&[drawn("x", &[1, 1, 3, 2])], &[("block_shape", Default::Ints(&[2, 2]))]),
        ),
    ],
    tolerance: 0.0,
    lower: |l, s| lower_blocks(l, s, "space_to_batch", "paddings"),
    cases: &[Case::values(
        "places_become_images",
        &[given("x", &[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0])],
        &[("block_shape", Default::Ints(&[1, 2])), ("paddings", Default::Ints(&[0, 0, 2, 0]))],
        (&[2, 1, 2, 2], &[0.0, 1.0, 0.0, 3.0, 0.0, 2.0, 0.0, 4.0]),
        "by hand",
    )],
    vjp: Vjp::Rule(|b| {
        let s = b.site();
        let grad = b.grad().batch_to_space_cropped(s.ints("block_shape"), s.ints("paddings"));
        b.give("x", grad);
    }),
    ..direct(
        "space_to_batch_padded",
        "Height and width padded with zeros, then cut into blocks whose places become images of the batch.",
    )
};

/// Batch to space.
pub static BATCH_TO_SPACE_CROPPED: GraphOp = GraphOp {
    attributes: &[ints("block_shape", Default::Required), ints("crops", NONE)],
    constraints: &[
        rule("C1", FOUR, |s| s.rank("x") == 4, Case::refused(&[drawn("x", &[4, 4])], &[("block_shape", Default::Ints(&[2, 2]))])),
        rule(
            "C2",
            "block_shape has two positive integers and crops four that are not negative: [top, bottom, left, right]",
            |s| well_formed(s, "crops"),
            Case::refused(&[drawn("x", &[4, 1, 2, 2])], &[("block_shape", Default::Ints(&[2]))]),
        ),
        rule(
            "C3",
            "the product of block_shape divides the batch, and something is left after the crops",
            |s| {
                let (block, crops) = (s.ints("block_shape"), s.ints("crops"));
                let left = |axis: usize| s.shape("x")[axis + 2] as i64 * block[axis] - crops[2 * axis] - crops[2 * axis + 1];
                s.shape("x")[0] as i64 % (block[0] * block[1]) == 0 && left(0) > 0 && left(1) > 0
            },
            Case::refused(&[drawn("x", &[3, 1, 2, 2])], &[("block_shape", Default::Ints(&[2, 1]))]),
        ),
    ],
    tolerance: 0.0,
    lower: |l, s| lower_blocks(l, s, "batch_to_space", "crops"),
    cases: &[Case::values(
        "images_become_places",
        &[given("x", &[2, 1, 2, 2], &[0.0, 1.0, 0.0, 3.0, 0.0, 2.0, 0.0, 4.0])],
        &[("block_shape", Default::Ints(&[1, 2])), ("crops", Default::Ints(&[0, 0, 2, 0]))],
        (&[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0]),
        "by hand",
    )],
    vjp: Vjp::Rule(|b| {
        let s = b.site();
        let grad = b.grad().space_to_batch_padded(s.ints("block_shape"), s.ints("crops"));
        b.give("x", grad);
    }),
    ..direct("batch_to_space_cropped", "Images of the batch put back as the places of blocks, then cropped.")
};

pub(super) const ALL: &[&GraphOp] = &[&SPACE_TO_BATCH_PADDED, &BATCH_TO_SPACE_CROPPED];
