//! Each labelled rule of each operator is broken by a use that nothing else is wrong with.

mod op_broken;
mod op_support;

use aneforge_mil::DType::{Bool, Fp16, Fp32, Int8, Int32, UInt1, UInt2, UInt4};
use aneforge_mil::op::{Arguments, GENERAL, Given, OpError, build, builtin, flag, float, int, ints, number, text, values};
use op_broken::{Broken, f32s, t};
use std::collections::BTreeSet;

const PAIRS: &[&str] = &[
    "add",
    "sub",
    "mul",
    "real_div",
    "floor_div",
    "mod",
    "maximum",
    "minimum",
    "pow",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "equal",
    "not_equal",
];
const REDUCTIONS: &[&str] = &[
    "reduce_sum",
    "reduce_mean",
    "reduce_max",
    "reduce_min",
    "reduce_prod",
    "reduce_l1_norm",
    "reduce_l2_norm",
    "reduce_sum_square",
    "reduce_log_sum",
    "reduce_log_sum_exp",
    "squeeze",
    "reverse",
];
const POOLS: &[&str] = &["max_pool", "avg_pool", "l2_pool"];

const ONE_ONE: Given = ints(&[2], &[1.0, 1.0]);
const TWO_TWO: Given = ints(&[2], &[2.0, 2.0]);
const VALID: Given = text("valid");
const CUSTOM: Given = text("custom");
const MAP: Given = t(&[1, 2, 4, 4]);

/// What breaks the rules that pools share.
const POOL: &[(&str, &[(&str, Given)])] = &[
    ("C1", &[("x", t(&[4, 4])), ("kernel_sizes", ints(&[0], &[])), ("pad_type", VALID)]),
    ("C2", &[("x", MAP), ("kernel_sizes", ints(&[1], &[2.0])), ("pad_type", VALID)]),
    ("C2", &[("x", MAP), ("kernel_sizes", TWO_TWO), ("strides", ints(&[2], &[0.0, 1.0])), ("pad_type", VALID)]),
    ("C2", &[("x", MAP), ("kernel_sizes", TWO_TWO), ("pad", ints(&[4], &[-1.0, 0.0, 0.0, 0.0])), ("pad_type", CUSTOM)]),
    ("C3", &[("x", MAP), ("kernel_sizes", TWO_TWO), ("pad_type", text("full"))]),
    ("C4", &[("x", MAP), ("kernel_sizes", ints(&[2], &[5.0, 2.0])), ("pad_type", VALID)]),
    ("C5", &[("x", MAP), ("kernel_sizes", TWO_TWO), ("pad", ints(&[4], &[2.0, 0.0, 0.0, 0.0])), ("pad_type", CUSTOM)]),
    (
        "C6",
        &[
            ("x", MAP),
            ("kernel_sizes", TWO_TWO),
            ("pad", ints(&[4], &[1.0, 0.0, 0.0, 0.0])),
            ("pad_type", CUSTOM),
            ("ceil_mode", flag(true)),
        ],
    ),
    ("C6", &[("x", MAP), ("kernel_sizes", TWO_TWO), ("pad_type", text("same")), ("ceil_mode", flag(true))]),
    ("C6", &[("x", t(&[1, 1, 2, 2, 2])), ("kernel_sizes", ints(&[3], &[1.0; 3])), ("pad_type", VALID), ("ceil_mode", flag(true))]),
];

const BROKEN: &[Broken] = &[
    ("batch_norm", "C1", &[("x", t(&[2, 3])), ("mean", t(&[3])), ("variance", t(&[3]))]),
    ("batch_norm", "C2", &[("x", MAP), ("mean", t(&[4])), ("variance", t(&[2]))]),
    ("batch_norm", "C2", &[("x", MAP), ("mean", t(&[2])), ("variance", t(&[2])), ("gamma", t(&[1, 2]))]),
    ("batch_to_space", "C1", &[("x", t(&[4, 4])), ("block_shape", TWO_TWO), ("crops", ints(&[2, 2], &[0.0; 4]))]),
    ("batch_to_space", "C2", &[("x", t(&[4, 1, 2, 2])), ("block_shape", ints(&[1], &[2.0])), ("crops", ints(&[2, 2], &[0.0; 4]))]),
    ("batch_to_space", "C3", &[("x", t(&[3, 1, 2, 2])), ("block_shape", TWO_TWO), ("crops", ints(&[2, 2], &[0.0; 4]))]),
    ("cast", "C1", &[("x", t(&[2])), ("dtype", text("int64"))]),
    ("clip", "C1", &[("x", t(&[2])), ("alpha", float(&[1.0])), ("beta", float(&[0.0]))]),
    ("concat", "C1", &[("values", t(&[2])), ("values", f32s(&[2])), ("axis", int(&[0.0]))]),
    ("concat", "C2", &[("values", t(&[2])), ("axis", int(&[1.0]))]),
    ("concat", "C3", &[("values", t(&[2, 2])), ("values", t(&[3, 2])), ("axis", int(&[1.0]))]),
    ("concat", "C3", &[("values", t(&[2, 2])), ("values", t(&[2, 3])), ("axis", int(&[1.0])), ("interleave", flag(true))]),
    (
        "constexpr_affine_dequantize",
        "C1",
        &[
            ("quantized_data", values(Int8, &[2], &[1.0; 2])),
            ("zero_point", values(Int8, &[], &[0.0])),
            ("scale", t(&[])),
            ("axis", int(&[1.0])),
        ],
    ),
    (
        "constexpr_affine_dequantize",
        "C2",
        &[
            ("quantized_data", values(Int8, &[2], &[1.0; 2])),
            ("zero_point", values(Int8, &[], &[0.0])),
            ("scale", t(&[3])),
            ("axis", int(&[0.0])),
        ],
    ),
    (
        "constexpr_affine_dequantize",
        "C3",
        &[
            ("quantized_data", values(Int8, &[2], &[1.0; 2])),
            ("zero_point", values(aneforge_mil::DType::UInt8, &[], &[0.0])),
            ("scale", t(&[2])),
            ("axis", int(&[0.0])),
        ],
    ),
    ("constexpr_blockwise_shift_scale", "C1", &[("data", values(Int8, &[2, 2], &[1.0; 4])), ("scale", t(&[2]))]),
    ("constexpr_blockwise_shift_scale", "C2", &[("data", values(Int8, &[1, 4], &[1.0; 4])), ("scale", t(&[1, 3]))]),
    (
        "constexpr_blockwise_shift_scale",
        "C3",
        &[("data", values(Int8, &[1, 4], &[1.0; 4])), ("scale", t(&[1, 2])), ("offset", values(Int8, &[1, 4], &[0.0; 4]))],
    ),
    (
        "constexpr_blockwise_shift_scale",
        "C4",
        &[("data", values(Int8, &[1, 4], &[1.0; 4])), ("scale", t(&[1, 2])), ("offset", values(UInt4, &[1, 2], &[0.0; 2]))],
    ),
    ("constexpr_lut_to_dense", "C1", &[("indices", values(UInt1, &[2], &[0.0, 1.0])), ("lut", t(&[2]))]),
    ("constexpr_lut_to_dense", "C2", &[("indices", values(UInt1, &[2], &[0.0, 1.0])), ("lut", t(&[3, 2, 1]))]),
    ("constexpr_lut_to_dense", "C3", &[("indices", values(UInt2, &[2], &[0.0, 1.0])), ("lut", t(&[1, 2, 1]))]),
    ("constexpr_lut_to_dense", "C4", &[("indices", values(UInt1, &[2], &[0.0, 1.0])), ("lut", t(&[1, 2, 2]))]),
    (
        "constexpr_lut_to_dense",
        "C4",
        &[("indices", values(UInt1, &[2], &[0.0, 1.0])), ("lut", t(&[1, 2, 2])), ("vector_axis", int(&[1.0]))],
    ),
    ("constexpr_sparse_to_dense", "C1", &[("nonzero_data", t(&[1, 1])), ("mask", values(UInt1, &[2], &[0.0, 1.0]))]),
    ("constexpr_sparse_to_dense", "C2", &[("nonzero_data", t(&[2])), ("mask", values(UInt1, &[2], &[0.0, 1.0]))]),
    ("conv", "C1", &[("x", t(&[2, 3])), ("weight", t(&[2, 3]))]),
    ("conv", "C1", &[("x", MAP), ("weight", t(&[2, 2, 3]))]),
    ("conv", "C2", &[("x", MAP), ("weight", f32s(&[2, 2, 1, 1]))]),
    ("conv", "C3", &[("x", MAP), ("weight", t(&[2, 3, 1, 1]))]),
    ("conv", "C3", &[("x", t(&[1, 8, 2, 2])), ("weight", t(&[4, 2, 1, 1])), ("groups", int(&[3.0]))]),
    ("conv", "C3", &[("x", MAP), ("weight", t(&[2, 2, 1, 1])), ("groups", int(&[0.0]))]),
    ("conv", "C4", &[("x", MAP), ("weight", t(&[3, 2, 1, 1])), ("bias", t(&[2]))]),
    ("conv", "C5", &[("x", MAP), ("weight", t(&[3, 2, 1, 1])), ("strides", ints(&[1], &[1.0]))]),
    ("conv", "C5", &[("x", MAP), ("weight", t(&[3, 2, 1, 1])), ("dilations", ints(&[2], &[0.0, 1.0]))]),
    ("conv", "C5", &[("x", MAP), ("weight", t(&[3, 2, 1, 1])), ("pad", ints(&[2], &[0.0, 1.0])), ("pad_type", CUSTOM)]),
    ("conv", "C6", &[("x", MAP), ("weight", t(&[3, 2, 1, 1])), ("pad_type", text("SAME"))]),
    ("conv", "C7", &[("x", MAP), ("weight", t(&[3, 2, 5, 1]))]),
    ("conv", "C7", &[("x", MAP), ("weight", t(&[3, 2, 1, 3])), ("dilations", ints(&[2], &[1.0, 2.0]))]),
    ("conv_transpose", "C1", &[("x", t(&[2, 3])), ("weight", t(&[3, 2]))]),
    ("conv_transpose", "C2", &[("x", MAP), ("weight", f32s(&[2, 2, 1, 1]))]),
    ("conv_transpose", "C3", &[("x", MAP), ("weight", t(&[3, 2, 1, 1]))]),
    ("conv_transpose", "C3", &[("x", MAP), ("weight", t(&[2, 2, 1, 1])), ("groups", int(&[3.0]))]),
    ("conv_transpose", "C4", &[("x", MAP), ("weight", t(&[2, 3, 1, 1])), ("bias", t(&[2]))]),
    ("conv_transpose", "C5", &[("x", MAP), ("weight", t(&[2, 3, 1, 1])), ("strides", ints(&[2], &[1.0, -2.0]))]),
    ("conv_transpose", "C6", &[("x", MAP), ("weight", t(&[2, 3, 1, 1])), ("pad_type", text("explicit"))]),
    ("conv_transpose", "C7", &[("x", MAP), ("weight", t(&[2, 3, 1, 1])), ("output_shape", ints(&[4], &[1.0, 2.0, 4.0, 4.0]))]),
    ("crop", "C1", &[("x", t(&[4, 4])), ("crop_height", ONE_ONE), ("crop_width", ONE_ONE)]),
    ("crop", "C2", &[("x", MAP), ("crop_height", ints(&[2], &[-1.0, 0.0])), ("crop_width", ONE_ONE)]),
    ("crop", "C3", &[("x", MAP), ("crop_height", TWO_TWO), ("crop_width", ONE_ONE)]),
    ("cumsum", "C1", &[("x", t(&[4])), ("axis", int(&[1.0]))]),
    ("depth_to_space", "C1", &[("x", t(&[4, 4])), ("block_size", int(&[2.0]))]),
    ("depth_to_space", "C2", &[("x", MAP), ("block_size", int(&[2.0]))]),
    ("dequantize", "C1", &[("input", values(Int8, &[2], &[1.0; 2])), ("scale", t(&[2]))]),
    ("einsum", "C1", &[("values", t(&[2, 2])), ("values", t(&[2, 2])), ("equation", text("nchw,nwhu->nchu"))]),
    ("einsum", "C1", &[("values", t(&[2, 2])), ("equation", text("ab->ba"))]),
    ("einsum", "C2", &[("values", t(&[2, 3])), ("values", t(&[2, 3])), ("equation", text("ab,bc->ac"))]),
    ("einsum", "C2", &[("values", t(&[2, 3])), ("values", t(&[3, 2])), ("equation", text("ab,bc->ad"))]),
    ("expand_dims", "C1", &[("x", t(&[2])), ("axes", ints(&[1], &[2.0]))]),
    ("expand_dims", "C1", &[("x", t(&[2])), ("axes", ints(&[2], &[0.0, -3.0]))]),
    ("flatten2d", "C1", &[("x", t(&[2, 2])), ("axis", int(&[3.0]))]),
    ("gather", "C1", &[("x", t(&[2])), ("indices", int(&[0.0])), ("axis", int(&[1.0]))]),
    ("gather", "C1", &[("x", t(&[])), ("indices", int(&[0.0]))]),
    ("gather", "C2", &[("x", t(&[2, 2])), ("indices", ints(&[1], &[0.0])), ("axis", int(&[1.0])), ("batch_dims", int(&[1.0]))]),
    ("gather", "C3", &[("x", t(&[2])), ("indices", ints(&[2], &[0.0, 2.0]))]),
    ("gather_along_axis", "C1", &[("x", t(&[2])), ("indices", ints(&[1], &[0.0])), ("axis", int(&[-2.0]))]),
    ("gather_along_axis", "C2", &[("x", t(&[2, 2])), ("indices", ints(&[2, 1], &[0.0, 0.0]))]),
    ("gather_along_axis", "C3", &[("x", t(&[2])), ("indices", ints(&[1], &[-3.0]))]),
    ("gelu", "C1", &[("x", t(&[2])), ("mode", text("FAST"))]),
    ("instance_norm", "C1", &[("x", t(&[2, 3]))]),
    ("instance_norm", "C2", &[("x", MAP), ("gamma", t(&[4]))]),
    ("l2_norm", "C1", &[("x", t(&[2, 3]))]),
    ("layer_norm", "C1", &[("x", t(&[2, 3])), ("axes", ints(&[1], &[2.0]))]),
    ("layer_norm", "C2", &[("x", t(&[2, 3])), ("axes", ints(&[1], &[1.0])), ("gamma", t(&[2]))]),
    ("linear", "C1", &[("x", t(&[1, 1, 1, 1, 2])), ("weight", t(&[3, 2]))]),
    ("linear", "C2", &[("x", t(&[1, 2])), ("weight", f32s(&[3, 2]))]),
    ("linear", "C3", &[("x", t(&[1, 2])), ("weight", t(&[2, 3]))]),
    ("linear", "C4", &[("x", t(&[1, 2])), ("weight", t(&[3, 2])), ("bias", t(&[1, 3]))]),
    ("local_response_norm", "C1", &[("x", t(&[2, 3])), ("size", int(&[3.0]))]),
    ("local_response_norm", "C2", &[("x", MAP), ("size", int(&[0.0]))]),
    ("matmul", "C1", &[("x", t(&[2, 2])), ("y", f32s(&[2, 2]))]),
    ("matmul", "C2", &[("x", t(&[2, 2])), ("y", t(&[]))]),
    ("matmul", "C3", &[("x", t(&[2, 3])), ("y", t(&[2, 3]))]),
    ("matmul", "C3", &[("x", t(&[2, 3])), ("y", t(&[3, 2])), ("transpose_y", flag(true))]),
    ("matmul", "C4", &[("x", t(&[2, 2, 3])), ("y", t(&[3, 3, 2]))]),
    ("pad", "C1", &[("x", t(&[2])), ("pad", ints(&[4], &[0.0; 4]))]),
    ("pad", "C1", &[("x", t(&[2])), ("pad", ints(&[2], &[-1.0, 0.0]))]),
    ("pad", "C2", &[("x", t(&[2])), ("pad", ONE_ONE), ("mode", text("wrap"))]),
    ("pad", "C3", &[("x", t(&[2])), ("pad", TWO_TWO), ("mode", text("reflect"))]),
    ("pixel_shuffle", "C1", &[("x", t(&[4, 1, 1])), ("upscale_factor", int(&[2.0]))]),
    ("pixel_shuffle", "C2", &[("x", MAP), ("upscale_factor", int(&[2.0]))]),
    ("pixel_unshuffle", "C1", &[("x", t(&[4, 2, 2])), ("downscale_factor", int(&[2.0]))]),
    ("pixel_unshuffle", "C2", &[("x", MAP), ("downscale_factor", int(&[3.0]))]),
    ("prelu", "C1", &[("x", t(&[2, 3])), ("alpha", t(&[3]))]),
    ("prelu", "C2", &[("x", MAP), ("alpha", t(&[4]))]),
    ("quantize", "C1", &[("input", t(&[2])), ("scale", t(&[])), ("output_dtype", text("int4"))]),
    ("quantize", "C2", &[("input", t(&[2])), ("scale", t(&[3])), ("axis", int(&[0.0])), ("output_dtype", text("int8"))]),
    ("reduce_argmax", "C1", &[("x", t(&[2])), ("axis", int(&[1.0]))]),
    ("reduce_argmax", "C2", &[("x", t(&[2])), ("output_dtype", text("fp16"))]),
    ("reduce_argmin", "C1", &[("x", t(&[2])), ("axis", int(&[1.0]))]),
    ("reduce_argmin", "C2", &[("x", t(&[2])), ("output_dtype", text("fp16"))]),
    ("reshape", "C1", &[("x", t(&[2, 2])), ("shape", ints(&[2], &[-1.0, -1.0]))]),
    ("reshape", "C1", &[("x", t(&[2, 2])), ("shape", ints(&[3], &[0.0, 2.0, 1.0]))]),
    ("reshape", "C2", &[("x", t(&[2, 2])), ("shape", ints(&[2], &[3.0, -1.0]))]),
    ("reshape", "C2", &[("x", t(&[2, 2])), ("shape", ints(&[1], &[5.0]))]),
    ("resize_bilinear", "C1", &[("x", t(&[2, 2]))]),
    ("resize_bilinear", "C2", &[("x", MAP), ("target_size_height", int(&[0.0]))]),
    ("resize_bilinear", "C3", &[("x", MAP), ("sampling_mode", text("CORNERS"))]),
    (
        "resize_nearest_neighbor",
        "C1",
        &[("x", t(&[2, 2])), ("target_size_height", int(&[2.0])), ("target_size_width", int(&[2.0]))],
    ),
    ("resize_nearest_neighbor", "C2", &[("x", MAP), ("target_size_height", int(&[2.0])), ("target_size_width", int(&[-2.0]))]),
    ("scaled_dot_product_attention", "C1", &[("query", t(&[2, 2])), ("key", t(&[2, 2])), ("value", t(&[2, 2]))]),
    ("scaled_dot_product_attention", "C2", &[("query", t(&[1, 2, 2])), ("key", t(&[1, 2, 2])), ("value", f32s(&[1, 2, 2]))]),
    ("scaled_dot_product_attention", "C3", &[("query", t(&[2, 2, 2])), ("key", t(&[1, 2, 2])), ("value", t(&[1, 2, 2]))]),
    ("scaled_dot_product_attention", "C4", &[("query", t(&[1, 2, 3])), ("key", t(&[1, 2, 2])), ("value", t(&[1, 2, 2]))]),
    ("scaled_dot_product_attention", "C5", &[("query", t(&[1, 2, 2])), ("key", t(&[1, 2, 2])), ("value", t(&[1, 3, 2]))]),
    (
        "scaled_dot_product_attention",
        "C6",
        &[("query", t(&[1, 2, 2])), ("key", t(&[1, 3, 2])), ("value", t(&[1, 3, 2])), ("attn_mask", t(&[3, 3]))],
    ),
    ("select", "C1", &[("cond", values(Bool, &[1], &[1.0])), ("a", t(&[2])), ("b", f32s(&[2]))]),
    ("select", "C2", &[("cond", values(Bool, &[2], &[1.0; 2])), ("a", t(&[])), ("b", t(&[1]))]),
    ("select", "C2", &[("cond", values(Bool, &[3], &[1.0; 3])), ("a", t(&[2])), ("b", t(&[2]))]),
    ("slice_by_index", "C1", &[("x", t(&[2, 2])), ("begin", ints(&[1], &[0.0])), ("end", ONE_ONE)]),
    (
        "slice_by_index",
        "C2",
        &[("x", t(&[2])), ("begin", ints(&[1], &[0.0])), ("end", ints(&[1], &[1.0])), ("stride", ints(&[1], &[0.0]))],
    ),
    ("slice_by_index", "C3", &[("x", t(&[2])), ("begin", ints(&[1], &[1.0])), ("end", ints(&[1], &[1.0]))]),
    ("slice_by_size", "C1", &[("x", t(&[2, 2])), ("begin", ints(&[1], &[0.0])), ("size", ONE_ONE)]),
    ("slice_by_size", "C2", &[("x", t(&[2, 2])), ("begin", ONE_ONE), ("size", TWO_TWO)]),
    ("squeeze", "C2", &[("x", t(&[1, 2])), ("axes", ints(&[1], &[1.0]))]),
    ("softmax", "C1", &[("x", t(&[2, 2])), ("axis", int(&[2.0]))]),
    ("softplus_parametric", "C1", &[("x", t(&[2, 3])), ("alpha", t(&[3])), ("beta", t(&[3]))]),
    ("softplus_parametric", "C2", &[("x", MAP), ("alpha", t(&[2])), ("beta", t(&[3]))]),
    ("space_to_batch", "C1", &[("x", t(&[4, 4])), ("block_shape", TWO_TWO), ("paddings", ints(&[2, 2], &[0.0; 4]))]),
    ("space_to_batch", "C2", &[("x", MAP), ("block_shape", TWO_TWO), ("paddings", TWO_TWO)]),
    ("space_to_batch", "C3", &[("x", MAP), ("block_shape", TWO_TWO), ("paddings", ints(&[2, 2], &[1.0, 0.0, 0.0, 0.0]))]),
    ("space_to_depth", "C1", &[("x", t(&[4, 4])), ("block_size", int(&[2.0]))]),
    ("space_to_depth", "C2", &[("x", MAP), ("block_size", int(&[3.0]))]),
    ("split", "C1", &[("x", t(&[4])), ("num_splits", int(&[2.0])), ("axis", int(&[1.0]))]),
    ("split", "C2", &[("x", t(&[4])), ("num_splits", int(&[3.0])), ("axis", int(&[0.0]))]),
    ("split", "C2", &[("x", t(&[4])), ("split_sizes", ints(&[2], &[1.0, 2.0])), ("axis", int(&[0.0]))]),
    ("split", "C2", &[("x", t(&[4])), ("axis", int(&[0.0]))]),
    ("stack", "C1", &[("values", t(&[2])), ("values", f32s(&[2])), ("axis", int(&[0.0]))]),
    ("stack", "C2", &[("values", t(&[2])), ("axis", int(&[2.0]))]),
    ("stack", "C3", &[("values", t(&[2])), ("values", t(&[3])), ("axis", int(&[0.0]))]),
    ("tile", "C1", &[("x", t(&[2, 2])), ("reps", ints(&[1], &[2.0]))]),
    ("tile", "C1", &[("x", t(&[2])), ("reps", ints(&[1], &[0.0]))]),
    ("transpose", "C1", &[("x", t(&[2, 2])), ("perm", ints(&[2], &[0.0, 0.0]))]),
    ("transpose", "C1", &[("x", t(&[2, 2])), ("perm", ints(&[1], &[0.0]))]),
    ("upsample_bilinear", "C1", &[("x", t(&[2, 2]))]),
    ("upsample_bilinear", "C2", &[("x", MAP), ("scale_factor_width", number(Fp32, &[0.125]))]),
    ("upsample_bilinear", "C3", &[("x", MAP), ("align_corners", flag(true)), ("half_pixel_centers", flag(true))]),
    ("upsample_nearest_neighbor", "C1", &[("x", t(&[2, 2]))]),
    ("upsample_nearest_neighbor", "C2", &[("x", MAP), ("scale_factor_height", int(&[-1.0]))]),
];

/// One rule of a family: its label and what breaks it.
type Shared = (&'static str, &'static [(&'static str, Given)]);

const PAIR: &[Shared] = &[("C1", &[("x", t(&[2])), ("y", f32s(&[2]))]), ("C2", &[("x", t(&[2])), ("y", t(&[3]))])];
const LOGICAL: &[Shared] = &[("C1", &[("x", values(Bool, &[2], &[0.0, 1.0])), ("y", values(Bool, &[3], &[0.0, 1.0, 1.0]))])];
const REDUCTION: &[Shared] =
    &[("C1", &[("x", t(&[2, 3])), ("axes", ints(&[1], &[2.0]))]), ("C1", &[("x", t(&[2, 3])), ("axes", ints(&[2], &[1.0, -1.0]))])];

/// The table above and what whole families share.
fn all() -> Vec<Broken> {
    let logical: &[_] = &["logical_and", "logical_or", "logical_xor"];
    let families = [(PAIRS, PAIR), (logical, LOGICAL), (REDUCTIONS, REDUCTION), (POOLS, POOL)];
    let shared = families.into_iter().flat_map(|(names, rules)| {
        names.iter().flat_map(move |name| rules.iter().map(move |(label, given)| (*name, *label, *given)))
    });
    BROKEN.iter().copied().chain(shared).chain(op_broken::families()).collect()
}

#[test]
fn every_negative_case_breaks_the_rule_it_is_named_after() {
    for (name, label, given) in all() {
        let op = builtin().get(name).unwrap_or_else(|| panic!("no operator {name}"));
        let ports = build(op, given);
        match Arguments::checked(op, &ports) {
            Err(OpError::Constraint { label: got, .. }) => assert_eq!(got, label, "{name}: {given:?}"),
            Err(other) => panic!("{name} {label}: another error came first: {other}"),
            Ok(_) => panic!("{name} {label}: nothing is wrong with {given:?}"),
        }
    }
}

#[test]
fn every_rule_has_a_negative_case() {
    let covered: BTreeSet<_> = all().iter().map(|row| (row.0, row.1)).collect();
    for op in builtin().all() {
        for constraint in op.constraints {
            let row = (op.name, constraint.label);
            assert!(covered.contains(&row), "{} {} has no negative case: {}", row.0, row.1, constraint.rule);
        }
    }
}

#[test]
fn errors_name_operator_label_rule_and_shapes() {
    let op = builtin().get("matmul").unwrap();
    let ports = build(op, &[("x", t(&[2, 3])), ("y", t(&[2, 3]))]);
    let message = Arguments::checked(op, &ports).unwrap_err().to_string();
    for part in ["matmul", "C3", "same extent", "[2, 3]", "fp16"] {
        assert!(message.contains(part), "{part} is missing: {message}");
    }
}

#[test]
fn six_axes_empty_axes_and_wrong_ports_are_refused_everywhere() {
    let op = builtin().get("relu").unwrap();
    let label = |given: &[(&str, Given)]| match Arguments::checked(op, &build(op, given)).map(|_| ()).unwrap_err() {
        OpError::Constraint { label, .. } => label,
        other => panic!("{other}"),
    };
    assert_eq!(label(&[("x", t(&[1, 1, 1, 1, 1, 1]))]), "G1");
    assert_eq!(label(&[("x", t(&[0, 8]))]), "G2");
    assert_eq!(GENERAL.len(), 3);
    let missing = Arguments::checked(op, &build(op, &[])).map(|_| ()).unwrap_err();
    assert!(matches!(missing, OpError::Missing { port: "x", .. }), "{missing}");
    let wrong = Arguments::checked(op, &build(op, &[("x", values(Int32, &[1], &[1.0]))])).map(|_| ()).unwrap_err();
    assert!(wrong.to_string().contains("takes fp16, fp32"), "{wrong}");
    let expand = builtin().get("expand_dims").unwrap();
    let ports = build(expand, &[("x", values(Fp16, &[1; 5], &[1.0])), ("axes", ints(&[1], &[0.0]))]);
    let arguments = Arguments::checked(expand, &ports).unwrap();
    assert!(matches!((expand.infer)(&arguments), Err(OpError::Constraint { label: "G1", .. })));
}
