//! Maps rearranged between space and channels, cut and enlarged.

use super::*;

const fn on_maps(name: &'static str, summary: &'static str, vjp: fn(&mut Backward<'_>)) -> GraphOp {
    GraphOp { tolerance: 0.0, vjp: Vjp::Rule(vjp), ..direct(name, summary) }
}

fn four_axes(s: &Site<'_>) -> bool {
    s.rank("x") == 4
}

/// Whether a factor is positive and its square divides the channels.
fn square_divides_channels(s: &Site<'_>, factor: &str) -> bool {
    s.size(factor)
        .is_some_and(|factor| factor > 0 && factor.checked_mul(factor).is_some_and(|square| s.shape("x")[1].is_multiple_of(square)))
}

/// Whether a factor is positive and divides height and width.
fn divides_extents(s: &Site<'_>, factor: &str) -> bool {
    s.size(factor).is_some_and(|factor| factor > 0 && s.shape("x")[2..].iter().all(|extent| extent.is_multiple_of(factor)))
}

const FOUR: &str = "x has four axes [batch, channels, height, width]: reshape it";
const CHANNELS: &str = "the factor is positive and its square divides the channels";
const EXTENTS: &str = "the factor is positive and divides height and width: crop or pad x";
const FLAT: &[Sample] = &[drawn("x", &[4, 4])];

/// Channels to pixels.
pub static PIXEL_SHUFFLE: GraphOp = GraphOp {
    attributes: &[int("upscale_factor", Default::Required)],
    constraints: &[
        rule("C1", FOUR, four_axes, Case::refused(FLAT, &[("upscale_factor", Default::Int(2))])),
        rule(
            "C2",
            CHANNELS,
            |s| square_divides_channels(s, "upscale_factor"),
            Case::refused(&[drawn("x", &[1, 6, 2, 2])], &[("upscale_factor", Default::Int(2))]),
        ),
    ],
    cases: &[Case::values(
        "four_channels_make_a_block",
        &[given("x", &[1, 4, 1, 1], &[1.0, 2.0, 3.0, 4.0])],
        &[("upscale_factor", Default::Int(2))],
        (&[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0]),
        "by hand",
    )],
    ..on_maps("pixel_shuffle", "Channels spread over pixels, in PyTorch's order.", |b| {
        let grad = b.grad().pixel_unshuffle(b.site().int("upscale_factor"));
        b.give("x", grad);
    })
};
/// Pixels to channels.
pub static PIXEL_UNSHUFFLE: GraphOp = GraphOp {
    attributes: &[int("downscale_factor", Default::Required)],
    constraints: &[
        rule("C1", FOUR, four_axes, Case::refused(FLAT, &[("downscale_factor", Default::Int(2))])),
        rule(
            "C2",
            EXTENTS,
            |s| divides_extents(s, "downscale_factor"),
            Case::refused(&[drawn("x", &[1, 1, 3, 2])], &[("downscale_factor", Default::Int(2))]),
        ),
    ],
    // MIL declares this factor unsigned, unlike that of pixel_shuffle.
    lower: |l, s| {
        let factor = Arg::Int(DType::UInt32, s.int("downscale_factor"));
        l.ops("pixel_unshuffle", &[("x", s.value("x")?.into()), ("downscale_factor", factor)])
    },
    cases: &[Case::shape("undoes_shuffle", &[drawn("x", &[1, 2, 4, 6])], &[("downscale_factor", Default::Int(2))], &[1, 8, 2, 3])],
    ..on_maps("pixel_unshuffle", "Pixels of blocks gathered into channels, in PyTorch's order.", |b| {
        let grad = b.grad().pixel_shuffle(b.site().int("downscale_factor"));
        b.give("x", grad);
    })
};
/// Blocks to depth.
pub static SPACE_TO_DEPTH: GraphOp = GraphOp {
    attributes: &[int("block_size", Default::Int(2))],
    constraints: &[
        rule("C1", FOUR, four_axes, Case::refused(FLAT, &[])),
        rule("C2", EXTENTS, |s| divides_extents(s, "block_size"), Case::refused(&[drawn("x", &[1, 1, 3, 2])], &[])),
    ],
    cases: &[Case::shape("blocks", &[drawn("x", &[1, 2, 4, 6])], &[], &[1, 8, 2, 3])],
    ..on_maps("space_to_depth", "Pixels of blocks gathered into channels, in TensorFlow's order.", |b| {
        let grad = b.grad().depth_to_space(b.site().int("block_size"));
        b.give("x", grad);
    })
};
/// Depth to blocks.
pub static DEPTH_TO_SPACE: GraphOp = GraphOp {
    attributes: &[int("block_size", Default::Int(2))],
    constraints: &[
        rule("C1", FOUR, four_axes, Case::refused(FLAT, &[])),
        rule("C2", CHANNELS, |s| square_divides_channels(s, "block_size"), Case::refused(&[drawn("x", &[1, 6, 2, 2])], &[])),
    ],
    cases: &[Case::shape("blocks", &[drawn("x", &[1, 8, 2, 3])], &[], &[1, 2, 4, 6])],
    ..on_maps("depth_to_space", "Channels spread over pixels, in TensorFlow's order.", |b| {
        let grad = b.grad().space_to_depth(b.site().int("block_size"));
        b.give("x", grad);
    })
};
/// A border cut off.
pub static CROP: GraphOp = GraphOp {
    attributes: &[ints("crop_height", Default::Required), ints("crop_width", Default::Required)],
    constraints: &[
        rule(
            "C1",
            FOUR,
            four_axes,
            Case::refused(FLAT, &[("crop_height", Default::Ints(&[0, 0])), ("crop_width", Default::Ints(&[0, 0]))]),
        ),
        rule(
            "C2",
            "crop_height is [top, bottom] and crop_width [left, right], none negative, and something is left",
            |s| {
                let left = |name: &str, extent: usize| match s.ints(name) {
                    &[before, after] => before >= 0 && after >= 0 && before.saturating_add(after) < extent as i64,
                    _ => false,
                };
                left("crop_height", s.shape("x")[2]) && left("crop_width", s.shape("x")[3])
            },
            Case::refused(
                &[drawn("x", &[1, 1, 2, 2])],
                &[("crop_height", Default::Ints(&[1, 1])), ("crop_width", Default::Ints(&[0, 0]))],
            ),
        ),
    ],
    cases: &[Case::values(
        "top_and_right",
        &[given("x", &[1, 1, 2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])],
        &[("crop_height", Default::Ints(&[1, 0])), ("crop_width", Default::Ints(&[0, 1]))],
        (&[1, 1, 1, 2], &[4.0, 5.0]),
        "by hand",
    )],
    ..on_maps("crop", "x without some rows and columns at its edges.", |b| {
        let s = b.site();
        let mut pads = vec![0; 4];
        pads.extend_from_slice(s.ints("crop_height"));
        pads.extend_from_slice(s.ints("crop_width"));
        let grad = b.grad().pad(&pads, 0.0);
        b.give("x", grad);
    })
};
/// Enlargement.
pub static UPSAMPLE: GraphOp = GraphOp {
    attributes: &[int("scale_factor", Default::Int(2))],
    constraints: &[
        rule("C1", FOUR, four_axes, Case::refused(FLAT, &[])),
        rule(
            "C2",
            "scale_factor is a positive integer below 256",
            |s| (1..256).contains(&s.int("scale_factor")),
            Case::refused(&[drawn("x", &[1, 1, 2, 2])], &[("scale_factor", Default::Int(0))]),
        ),
    ],
    lower: |l, s| {
        let factor = s.int("scale_factor");
        let arguments =
            [("x", s.value("x")?.into()), ("scale_factor_height", factor.into()), ("scale_factor_width", factor.into())];
        l.ops("upsample_nearest_neighbor", &arguments)
    },
    cases: &[Case::values(
        "each_pixel_becomes_a_block",
        &[given("x", &[1, 1, 1, 2], &[1.0, 2.0])],
        &[],
        (&[1, 1, 2, 4], &[1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0]),
        "by hand",
    )],
    ..on_maps("upsample", "Each pixel of x repeated scale_factor times in height and width.", |b| {
        let factor = b.site().int("scale_factor");
        let window = Window::default().kernel(factor).stride(factor);
        let grad = b.grad().avg_pool(&window).scale((factor * factor) as f64);
        b.give("x", grad);
    })
};

pub(super) const ALL: &[&GraphOp] = &[&PIXEL_SHUFFLE, &PIXEL_UNSHUFFLE, &SPACE_TO_DEPTH, &DEPTH_TO_SPACE, &CROP, &UPSAMPLE];
