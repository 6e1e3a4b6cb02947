//! Images looked at in other places.

use super::*;

const FOUR: &str = "x has four axes [batch, channels, height, width]: reshape it";

/// Whether the output extents are positive and not absurd.
fn extents_positive(s: &Site<'_>, names: [&str; 2]) -> bool {
    names.into_iter().all(|name| (1..1 << 20).contains(&s.int(name)))
}

/// Affine map of places.
pub static AFFINE: GraphOp = GraphOp {
    inputs: &[input("x", FLOATS), input("transform_matrix", FLOATS)],
    attributes: &[int("output_height", Default::Required), int("output_width", Default::Required)],
    constraints: &[
        rule(
            "C1",
            FOUR,
            |s| s.rank("x") == 4,
            Case::refused(
                &[drawn("x", &[4, 4]), drawn("transform_matrix", &[1, 6])],
                &[("output_height", Default::Int(2)), ("output_width", Default::Int(2))],
            ),
        ),
        rule(
            "C2",
            "transform_matrix has shape [batch, 6] or [1, 6] and the element type of x",
            |s| {
                let rows = matches!(*s.shape("transform_matrix"), [rows, 6] if rows == 1 || rows == s.shape("x")[0]);
                rows && s.dtype("transform_matrix") == s.dtype("x")
            },
            Case::refused(
                &[drawn("x", &[1, 1, 4, 4]), drawn("transform_matrix", &[2, 3])],
                &[("output_height", Default::Int(2)), ("output_width", Default::Int(2))],
            ),
        ),
        rule(
            "C3",
            "output_height and output_width are positive",
            |s| extents_positive(s, ["output_height", "output_width"]),
            Case::refused(
                &[drawn("x", &[1, 1, 4, 4]), drawn("transform_matrix", &[1, 6])],
                &[("output_height", Default::Int(2)), ("output_width", Default::Int(0))],
            ),
        ),
    ],
    tolerance: 5e-3,
    vjp: Vjp::None("its places depend on the matrix, so the derivative is a matrix as large as both images; use resize_bilinear"),
    lower: |l, s| {
        l.ops(
            "affine",
            &[
                ("x", s.value("x")?.into()),
                ("transform_matrix", s.value("transform_matrix")?.into()),
                ("output_height", s.int("output_height").into()),
                ("output_width", s.int("output_width").into()),
                ("sampling_mode", "bilinear".into()),
                ("padding_mode", "constant".into()),
                ("padding_value", Arg::Float(s.dtype("x"), 0.0)),
                ("coordinates_mode", "normalized_minus_one_to_one".into()),
                ("align_corners", true.into()),
            ],
        )
    },
    cases: &[
        Case::values(
            "half_a_pixel_to_the_right",
            &[
                given("x", &[1, 1, 1, 3], &[1.0, 2.0, 3.0]),
                given("transform_matrix", &[1, 6], &[1.0, 0.0, 0.5, 0.0, 1.0, 0.0]).fixed(),
            ],
            &[("output_height", Default::Int(1)), ("output_width", Default::Int(3))],
            (&[1, 1, 1, 3], &[1.5, 2.5, 1.5]),
            "by hand",
        ),
        Case::shape(
            "one_matrix_per_image",
            &[drawn("x", &[2, 2, 5, 4]), drawn("transform_matrix", &[2, 6])],
            &[("output_height", Default::Int(3)), ("output_width", Default::Int(6))],
            &[2, 2, 3, 6],
        ),
    ],
    ..direct(
        "affine",
        "x seen through the affine map [a0, a1, a2, b0, b1, b2] from places of the result to places of x, blended from four \
         neighbours, zeros outside; corners lie at -1 and 1.",
    )
};

/// Boxes of images.
pub static CROP_RESIZE: GraphOp = GraphOp {
    inputs: &[input("x", FLOATS), input("boxes", FLOATS), optional("box_indices", INDICES)],
    attributes: &[
        int("target_height", Default::Int(1)),
        int("target_width", Default::Int(1)),
        flag("normalized_coordinates", false),
        float("spatial_scale", 1.0),
        word(
            "box_coordinate_mode",
            &["CORNERS_HEIGHT_FIRST", "CORNERS_WIDTH_FIRST", "CENTER_SIZE_HEIGHT_FIRST", "CENTER_SIZE_WIDTH_FIRST"],
            "CORNERS_HEIGHT_FIRST",
        ),
        word(
            "sampling_mode",
            &["DEFAULT", "STRICT_ALIGN_CORNERS", "ALIGN_CORNERS", "OFFSET_CORNERS", "UNALIGN_CORNERS"],
            "DEFAULT",
        ),
        float("pad_value", 0.0),
    ],
    constraints: &[
        rule("C1", FOUR, |s| s.rank("x") == 4, Case::refused(&[drawn("x", &[4, 4]), drawn("boxes", &[1, 4])], &[])),
        rule(
            "C2",
            "boxes have shape [boxes, 4], and box_indices [boxes]; without indices there are at most as many boxes as images",
            |s| match *s.shape("boxes") {
                [count, 4] if s.has("box_indices") => s.shape("box_indices") == [count],
                [count, 4] => count <= s.shape("x")[0],
                _ => false,
            },
            Case::refused(&[drawn("x", &[1, 1, 4, 4]), drawn("boxes", &[2, 4])], &[]),
        ),
        rule(
            "C3",
            "target_height and target_width are positive",
            |s| extents_positive(s, ["target_height", "target_width"]),
            Case::refused(&[drawn("x", &[1, 1, 4, 4]), drawn("boxes", &[1, 4])], &[("target_height", Default::Int(0))]),
        ),
    ],
    tolerance: 5e-3,
    vjp: Vjp::None("its places depend on the boxes; use slice_by_size and resize_bilinear where the boxes are known"),
    cases: &[Case::values(
        "two_pixels_of_a_row",
        &[given("x", &[1, 1, 1, 4], &[1.0, 2.0, 3.0, 4.0]), given("boxes", &[1, 4], &[0.0, 1.0, 0.0, 2.0]).fixed()],
        &[("target_width", Default::Int(2)), ("sampling_mode", Default::Text("STRICT_ALIGN_CORNERS"))],
        (&[1, 1, 1, 2], &[2.0, 3.0]),
        "by hand",
    )],
    ..direct("crop_resize", "One box of an image of x per row of boxes, resized to the target by blending neighbours.")
};

pub(super) const ALL: &[&GraphOp] = &[&AFFINE, &CROP_RESIZE];
