//! Sparse compressed weights, and shapes from elsewhere.

use super::{Broken, f32s, t};
use aneforge_mil::DType::{Int8, Int32, UInt1, UInt2};
use aneforge_mil::op::{Given, flag, int, text, values};

const BITS: Given = values(UInt1, &[2], &[1.0, 0.0]);
const ONE: Given = values(UInt1, &[1], &[1.0]);
const DATA: Given = values(Int8, &[1], &[5.0]);
const ZERO: Given = int(&[0.0]);

pub const BROKEN: &[Broken] = &[
    ("constexpr_cast", "C1", &[("source_val", t(&[2])), ("output_dtype", text("fp16"))]),
    (
        "constexpr_lut_to_sparse",
        "C1",
        &[("indices_mask", BITS), ("indices_nonzero_data", values(UInt1, &[2], &[1.0, 1.0])), ("lut", t(&[1, 2, 1]))],
    ),
    ("constexpr_lut_to_sparse", "C2", &[("indices_mask", BITS), ("indices_nonzero_data", ONE), ("lut", t(&[1, 1, 2, 1]))]),
    ("constexpr_lut_to_sparse", "C2", &[("indices_mask", BITS), ("indices_nonzero_data", ONE), ("lut", t(&[3, 2, 1]))]),
    (
        "constexpr_lut_to_sparse",
        "C3",
        &[("indices_mask", BITS), ("indices_nonzero_data", values(UInt2, &[1], &[1.0])), ("lut", t(&[1, 2, 1]))],
    ),
    ("constexpr_lut_to_sparse", "C4", &[("indices_mask", BITS), ("indices_nonzero_data", ONE), ("lut", t(&[1, 2, 2]))]),
    (
        "constexpr_lut_to_sparse",
        "C4",
        &[("indices_mask", BITS), ("indices_nonzero_data", ONE), ("lut", t(&[1, 2, 2])), ("vector_axis", int(&[1.0]))],
    ),
    (
        "constexpr_sparse_blockwise_shift_scale",
        "C1",
        &[("data_mask", BITS), ("nonzero_data", values(Int8, &[1, 1], &[5.0])), ("scale", t(&[1]))],
    ),
    ("constexpr_sparse_blockwise_shift_scale", "C2", &[("data_mask", BITS), ("nonzero_data", DATA), ("scale", t(&[1, 1]))]),
    ("constexpr_sparse_blockwise_shift_scale", "C2", &[("data_mask", BITS), ("nonzero_data", DATA), ("scale", t(&[3]))]),
    (
        "constexpr_sparse_blockwise_shift_scale",
        "C3",
        &[("data_mask", BITS), ("nonzero_data", DATA), ("scale", t(&[1])), ("offset", values(Int8, &[2], &[1.0, 1.0]))],
    ),
    (
        "constexpr_sparse_blockwise_shift_scale",
        "C4",
        &[
            ("data_mask", BITS),
            ("nonzero_data", DATA),
            ("scale", t(&[1])),
            ("offset", values(aneforge_mil::DType::UInt8, &[1], &[1.0])),
        ],
    ),
    (
        "reshape_like",
        "C1",
        &[("x", t(&[6])), ("ref_tensors", t(&[6])), ("begins", ZERO), ("begins", ZERO), ("ends", ZERO), ("end_masks", flag(true))],
    ),
    (
        "reshape_like",
        "C1",
        &[
            ("x", t(&[6])),
            ("ref_tensors", t(&[6])),
            ("begins", values(Int32, &[1], &[0.0])),
            ("ends", ZERO),
            ("end_masks", flag(true)),
        ],
    ),
    (
        "reshape_like",
        "C2",
        &[("x", t(&[6])), ("ref_tensors", t(&[2, 3])), ("begins", ZERO), ("ends", int(&[1.0])), ("end_masks", flag(false))],
    ),
    ("reverse_sequence", "C1", &[("x", t(&[2, 3])), ("lengths", values(Int32, &[2], &[1.0, 1.0]))]),
    ("reverse_sequence", "C2", &[("x", t(&[2, 3])), ("lengths", values(Int32, &[2], &[1.0, 1.0])), ("batch_axis", int(&[1.0]))]),
    ("reverse_sequence", "C3", &[("x", t(&[2, 3])), ("lengths", values(Int32, &[2], &[4.0, 1.0])), ("seq_axis", int(&[1.0]))]),
    ("sliding_windows", "C1", &[("x", f32s(&[3])), ("axis", int(&[1.0])), ("size", int(&[1.0]))]),
    ("sliding_windows", "C2", &[("x", t(&[3])), ("axis", ZERO), ("size", int(&[4.0]))]),
    ("sliding_windows", "C2", &[("x", t(&[3])), ("axis", ZERO), ("size", int(&[1.0])), ("stride", ZERO)]),
];
