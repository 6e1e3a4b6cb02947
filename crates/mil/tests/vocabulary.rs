//! The table against the vocabulary that the ANE guide (arXiv 2606.22283, appendix A) lists, operator by operator.
#![allow(clippy::unwrap_used)]

use aneforge_mil::op::{Standing, builtin, declared, listed};
use aneforge_mil::{NoBlobs, parse, resolve};
use std::collections::{BTreeMap, BTreeSet};

/// Standing on the M1, M2, M3, and the M4 and later; operators.
const GUIDE: &[(&str, &str)] = &[
    (
        "NNNN",
        "conv conv_transpose linear linear_activation matmul ne_matmul einsum ne_conv avg_pool max_pool l2_pool ne_pool pe_pool \
         pe_elementwise scaled_dot_product_attention batch_norm layer_norm instance_norm l2_norm local_response_norm abs add sub mul \
         real_div floor_div pow square sqrt rsqrt inverse maximum minimum cumsum equal not_equal greater greater_equal less \
         less_equal logical_not select relu relu6 leaky_relu prelu clamped_relu thresholded_relu threshold clip elu sigmoid \
         sigmoid_hard tanh scaled_tanh gelu silu softmax softplus softplus_parametric softsign erf exp exp2 log sign ceil floor round \
         reduce_sum reduce_mean reduce_max reduce_min reduce_sum_square reduce_l1_norm reduce_l2_norm reduce_log_sum \
         reduce_log_sum_exp reduce_argmax reshape reshape_like expand_dims squeeze flatten2d transpose concat split stack pad \
         slice_by_size slice_update reverse tile gather gather_along_axis depth_to_space space_to_depth pixel_shuffle \
         pixel_unshuffle space_to_batch batch_to_space identity fill fill_like crop cast quantize dequantize \
         constexpr_lut_to_dense constexpr_sparse_to_dense read_state write_state atan",
    ),
    (
        "BBNN",
        "reduce_argmin global_argmax global_argmin constexpr_blockwise_shift_scale constexpr_sparse_blockwise_shift_scale random_uniform",
    ),
    ("BNNN", "gather_nd resize resize_bilinear resize_nearest_neighbor upsample_bilinear upsample_nearest_neighbor"),
    ("GNNN", "crop_resize resample affine topk argsort"),
    ("GGNN", "sin cos"),
    (
        "BBBB",
        "pe_goc ne_bypass slice_by_index range_1d pixel_buffer_to_tensor tensor_to_pixel_buffer gamma degamma const \
         constexpr_affine_dequantize constexpr_lut_to_sparse tensor_buffer_to_tensor tensor_to_tensor_buffer circular_buffer_to_tensor \
         tensor_to_circular_buffer cond while_loop call cross_product cost_volume matrix_decomposition non_maximum_suppression",
    ),
    (
        "XXXX",
        "mod logical_and logical_or logical_xor reduce_prod reverse_sequence scatter scatter_along_axis scatter_nd band_part non_zero \
         one_hot shape sliding_windows constexpr_cast gru lstm rnn tan asin acos atanh asinh acosh sinh cosh random_bernoulli \
         random_categorical random_normal list_gather list_length list_read list_scatter list_write make_list",
    ),
];

fn guide() -> BTreeMap<&'static str, &'static str> {
    GUIDE.iter().flat_map(|(letters, names)| names.split_whitespace().map(move |name| (name, *letters))).collect()
}

#[test]
fn every_operator_of_the_engine_has_a_record_or_a_reason() {
    let names: BTreeSet<_> = guide().into_keys().collect();
    assert_eq!(names.len(), GUIDE.iter().map(|row| row.1.split_whitespace().count()).sum::<usize>(), "a name stands twice");
    let ours: BTreeSet<_> = declared().map(|op| op.name).chain(listed().iter().map(|row| row.name)).collect();
    assert_eq!(ours, names);
}

#[test]
fn no_operator_is_both_a_record_and_a_name_and_the_list_is_in_order() {
    assert!(listed().windows(2).all(|two| two[0].name < two[1].name));
    for row in listed() {
        assert!(builtin().get(row.name).is_none(), "{}", row.name);
        assert!(row.summary.ends_with('.') && row.reason.len() > 20 && !row.support.source.is_empty(), "{}", row.name);
    }
}

#[test]
fn support_is_what_the_guide_says_on_every_family() {
    let told = guide();
    let records = declared().map(|op| (op.name, op.support)).chain(listed().iter().map(|row| (row.name, row.support)));
    for (name, support) in records {
        let letters: String = support.families.iter().map(|standing| standing.letter()).collect();
        assert_eq!(letters, told[name], "{name}");
        let first = support.families.iter().position(|&standing| standing == Standing::Native);
        assert_eq!(support.native_from(), first.map(|index| 13 + index as u8), "{name}");
    }
}

#[test]
fn limits_that_the_guide_names_stand_at_their_operators() {
    for (name, limit) in
        [("avg_pool", "29"), ("tile", "2, 3, 4 and 8"), ("prelu", "three axes"), ("pad", "reflecting"), ("cast", "int32")]
    {
        assert!(builtin().get(name).unwrap().support.limits.contains(limit), "{name}");
    }
}

#[test]
fn a_program_that_uses_a_name_without_a_record_is_told_why() {
    for row in listed().iter().filter(|row| !matches!(row.name, "const" | "read_state" | "write_state")) {
        let text = format!(
            "program(1.3)\n{{\n    func main<ios18>(tensor<fp16, [2]> x) {{\n        tensor<fp16, [2]> y = {}(x = x);\n    }} -> (y);\n}}\n",
            row.name
        );
        let told = resolve(&parse(&text).unwrap(), "main", builtin(), &NoBlobs).unwrap_err().to_string();
        assert!(told.contains(row.reason) && told.contains("line 4"), "{told}");
    }
}
