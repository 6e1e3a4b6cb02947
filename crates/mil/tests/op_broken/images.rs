//! Images looked at in other places.

use super::{Broken, t};
use aneforge_mil::DType::{Int32, UInt16};
use aneforge_mil::op::{Given, flag, float, int, ints, text, values};

const IMAGE: Given = t(&[2, 1, 4, 4]);
const MATRIX: Given = t(&[1, 6]);
const AT: Given = t(&[2, 3, 3, 2]);
const BOX: Given = t(&[1, 4]);
const TWO: Given = int(&[2.0]);
const BILINEAR: Given = text("bilinear");
const CONSTANT: Given = text("constant");
const ZERO: Given = float(&[0.0]);
const SIGNED: Given = text("normalized_minus_one_to_one");
const YES: Given = flag(true);

/// An affine transform.
macro_rules! affine {
    ($label:literal, $x:expr, $matrix:expr, $height:expr, $padding:expr, $align:expr) => {
        (
            "affine",
            $label,
            &[
                ("x", $x),
                ("transform_matrix", $matrix),
                ("output_height", $height),
                ("output_width", TWO),
                ("sampling_mode", BILINEAR),
                ("padding_mode", CONSTANT),
                ("padding_value", $padding),
                ("coordinates_mode", SIGNED),
                ("align_corners", $align),
            ],
        )
    };
}

/// A resampling.
macro_rules! resample {
    ($label:literal, $x:expr, $at:expr, $sampling:expr, $padding:expr, $coordinates:expr) => {
        (
            "resample",
            $label,
            &[
                ("x", $x),
                ("coordinates", $at),
                ("sampling_mode", $sampling),
                ("padding_mode", $padding),
                ("padding_value", ZERO),
                ("coordinates_mode", $coordinates),
                ("align_corners", YES),
            ],
        )
    };
}

pub const BROKEN: &[Broken] = &[
    affine!("C1", t(&[2, 4, 4]), MATRIX, TWO, ZERO, YES),
    affine!("C2", IMAGE, t(&[3, 6]), TWO, ZERO, YES),
    affine!("C2", IMAGE, t(&[1, 2, 3]), TWO, ZERO, YES),
    affine!("C3", IMAGE, MATRIX, int(&[0.0]), ZERO, YES),
    affine!("C4", IMAGE, MATRIX, TWO, float(&[1.0]), YES),
    affine!("C4", IMAGE, MATRIX, TWO, ZERO, flag(false)),
    resample!("C1", t(&[2, 4, 4]), AT, BILINEAR, CONSTANT, SIGNED),
    resample!("C2", IMAGE, t(&[1, 3, 3, 2]), BILINEAR, CONSTANT, SIGNED),
    resample!("C2", IMAGE, t(&[2, 3, 3, 3]), BILINEAR, CONSTANT, SIGNED),
    resample!("C3", IMAGE, AT, text("cubic"), CONSTANT, SIGNED),
    resample!("C4", IMAGE, AT, BILINEAR, text("wrap"), SIGNED),
    resample!("C5", IMAGE, AT, BILINEAR, CONSTANT, text("normalized")),
    ("crop_resize", "C1", &[("x", t(&[2, 4, 4])), ("boxes", BOX)]),
    ("crop_resize", "C2", &[("x", IMAGE), ("boxes", t(&[1, 5]))]),
    ("crop_resize", "C2", &[("x", IMAGE), ("boxes", values(UInt16, &[1, 4], &[0.0; 4])), ("normalized_coordinates", YES)]),
    ("crop_resize", "C3", &[("x", IMAGE), ("boxes", t(&[3, 4]))]),
    ("crop_resize", "C3", &[("x", IMAGE), ("boxes", BOX), ("box_indices", values(Int32, &[1], &[2.0]))]),
    ("crop_resize", "C3", &[("x", IMAGE), ("boxes", BOX), ("box_indices", values(Int32, &[2], &[0.0, 1.0]))]),
    ("crop_resize", "C4", &[("x", IMAGE), ("boxes", BOX), ("target_width", int(&[0.0]))]),
    ("crop_resize", "C5", &[("x", IMAGE), ("boxes", BOX), ("box_coordinate_mode", text("CORNERS"))]),
    ("crop_resize", "C6", &[("x", IMAGE), ("boxes", BOX), ("sampling_mode", text("CORNERS"))]),
    ("resize", "C1", &[("x", t(&[2])), ("shape", ints(&[2], &[2.0, 2.0])), ("resized_dims", int(&[1.0]))]),
    ("resize", "C1", &[("x", t(&[2])), ("shape", ints(&[1], &[-2.0])), ("resized_dims", int(&[1.0]))]),
    ("resize", "C2", &[("x", t(&[2, 2])), ("shape", ints(&[1], &[2.0])), ("resized_dims", int(&[2.0]))]),
    ("resize", "C2", &[("x", t(&[2, 2, 2])), ("shape", ints(&[3], &[2.0; 3])), ("resized_dims", int(&[3.0]))]),
    (
        "resize",
        "C3",
        &[("x", t(&[2])), ("shape", ints(&[1], &[2.0])), ("resized_dims", int(&[1.0])), ("interpolation_mode", text("CUBIC"))],
    ),
    (
        "resize",
        "C4",
        &[("x", t(&[2])), ("shape", ints(&[1], &[2.0])), ("resized_dims", int(&[1.0])), ("sampling_mode", text("CORNERS"))],
    ),
];
