//! Sorting, gathering, scattering, writing into slices.

use super::{Broken, f32s, t};
use aneforge_mil::DType::Int32;
use aneforge_mil::op::{Given, flag, int, ints, text, values};

const ZERO_ONE: Given = values(Int32, &[2], &[0.0, 1.0]);
const FAR: Given = values(Int32, &[2], &[0.0, 5.0]);
const COORDINATES: Given = values(Int32, &[1, 2], &[1.0, 0.0]);

pub const BROKEN: &[Broken] = &[
    ("argsort", "C1", &[("x", t(&[2])), ("axis", int(&[1.0]))]),
    ("gather_nd", "C1", &[("x", t(&[2, 3])), ("indices", values(Int32, &[3, 1], &[0.0; 3])), ("batch_dims", int(&[1.0]))]),
    ("gather_nd", "C1", &[("x", t(&[2, 3])), ("indices", ZERO_ONE), ("batch_dims", int(&[1.0]))]),
    ("gather_nd", "C2", &[("x", t(&[2])), ("indices", COORDINATES)]),
    ("gather_nd", "C3", &[("x", t(&[2, 3])), ("indices", values(Int32, &[1, 2], &[1.0, 3.0]))]),
    ("scatter", "C1", &[("data", t(&[2, 3])), ("indices", ZERO_ONE), ("updates", t(&[2, 3])), ("axis", int(&[2.0]))]),
    ("scatter", "C2", &[("data", t(&[2, 3])), ("indices", ZERO_ONE), ("updates", t(&[3, 2]))]),
    ("scatter", "C2", &[("data", t(&[2, 3])), ("indices", COORDINATES), ("updates", t(&[1, 2, 3]))]),
    ("scatter", "C3", &[("data", t(&[2, 3])), ("indices", ZERO_ONE), ("updates", f32s(&[2, 3]))]),
    ("scatter", "C4", &[("data", t(&[2, 3])), ("indices", ZERO_ONE), ("updates", t(&[2, 3])), ("mode", text("set"))]),
    ("scatter", "C5", &[("data", t(&[2, 3])), ("indices", FAR), ("updates", t(&[2, 3]))]),
    ("scatter_along_axis", "C1", &[("data", t(&[2])), ("indices", ZERO_ONE), ("updates", t(&[2])), ("axis", int(&[1.0]))]),
    ("scatter_along_axis", "C2", &[("data", t(&[2])), ("indices", ZERO_ONE), ("updates", t(&[3]))]),
    ("scatter_along_axis", "C2", &[("data", t(&[2, 2])), ("indices", COORDINATES), ("updates", t(&[1, 2])), ("axis", int(&[1.0]))]),
    ("scatter_along_axis", "C3", &[("data", t(&[2])), ("indices", ZERO_ONE), ("updates", f32s(&[2]))]),
    ("scatter_along_axis", "C4", &[("data", t(&[2])), ("indices", ZERO_ONE), ("updates", t(&[2])), ("mode", text("set"))]),
    ("scatter_along_axis", "C5", &[("data", t(&[2])), ("indices", FAR), ("updates", t(&[2]))]),
    ("scatter_nd", "C1", &[("data", t(&[2])), ("indices", COORDINATES), ("updates", t(&[1]))]),
    ("scatter_nd", "C2", &[("data", t(&[2, 3])), ("indices", COORDINATES), ("updates", t(&[1, 3]))]),
    ("scatter_nd", "C3", &[("data", t(&[2, 3])), ("indices", COORDINATES), ("updates", f32s(&[1]))]),
    ("scatter_nd", "C4", &[("data", t(&[2, 3])), ("indices", COORDINATES), ("updates", t(&[1])), ("mode", text("set"))]),
    ("scatter_nd", "C5", &[("data", t(&[1, 3])), ("indices", COORDINATES), ("updates", t(&[1]))]),
    (
        "slice_update",
        "C1",
        &[("x", t(&[2, 3])), ("update", t(&[1, 3])), ("begin", ints(&[1], &[0.0])), ("end", ints(&[2], &[1.0, 3.0]))],
    ),
    (
        "slice_update",
        "C2",
        &[
            ("x", t(&[3])),
            ("update", t(&[3])),
            ("begin", ints(&[1], &[0.0])),
            ("end", ints(&[1], &[3.0])),
            ("stride", ints(&[1], &[0.0])),
        ],
    ),
    ("slice_update", "C3", &[("x", t(&[3])), ("update", t(&[1])), ("begin", ints(&[1], &[2.0])), ("end", ints(&[1], &[2.0]))]),
    ("slice_update", "C4", &[("x", t(&[3])), ("update", t(&[1])), ("begin", ints(&[1], &[1.0])), ("end", ints(&[1], &[3.0]))]),
    ("slice_update", "C4", &[("x", t(&[3])), ("update", f32s(&[2])), ("begin", ints(&[1], &[1.0])), ("end", ints(&[1], &[3.0]))]),
    ("topk", "C1", &[("x", t(&[2])), ("axis", int(&[-2.0]))]),
    ("topk", "C2", &[("x", t(&[2])), ("k", int(&[3.0]))]),
    ("topk", "C2", &[("x", t(&[2])), ("k", int(&[0.0]))]),
    ("topk", "C3", &[("x", t(&[2])), ("output_indices_dtype", text("int8"))]),
    ("topk", "C3", &[("x", t(&[2])), ("return_indices", flag(false)), ("output_indices_dtype", text("int32"))]),
];
