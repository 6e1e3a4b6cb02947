//! Names that other programs have for operators lead to ours.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use aneforge_core::op::{builtin, find, written_here};

/// The graph operators of the Python package aneforge 0.4.0 (MIT) that its emitter knows, all one hundred.
const PACKAGE: &str = "abs add adds affine atan avg_pool batch_norm bmm bmm_w cast ceil channel_layer_norm clamped_relu clip concat \
    const_array conv conv_transpose cos crop depth_to_space dynamic_conv einsum elu equal erf exp exp2 expand_dims flatten2d floor \
    gelu greater greater_equal group_norm instance_norm inverse l2_norm layer_norm leaky_relu less less_equal linear_activation \
    local_response_norm log logical_not matmul max_pool maximum minimum mul muls not_equal pixel_shuffle pixel_unshuffle pow prelu \
    real_div reduce_l1_norm reduce_log_sum reduce_log_sum_exp reduce_max reduce_mean reduce_min reduce_sum reduce_sum_square relu \
    relu6 reshape resize_bilinear resize_nearest_neighbor reverse rms_norm round rsqrt scaled_tanh select sigmoid sigmoid_hard sign \
    silu sin slice_by_size softmax softplus softsign space_to_depth split sqrt square squeeze stack sub tanh threshold \
    thresholded_relu tile transpose upsample upsample_bilinear";

#[test]
fn every_operator_of_the_python_package_is_a_record_or_says_how_it_is_written() {
    let names: Vec<&str> = PACKAGE.split_whitespace().collect();
    assert_eq!(names.len(), 100);
    let unknown: Vec<_> = names.iter().filter(|name| find(name).is_none() && written_here(name).is_none()).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    assert_eq!(find("muls").unwrap().name, "mul");
    assert!(written_here("bmm").unwrap().contains("matmul"));
}

#[test]
fn no_alias_hides_a_record_or_another_alias() {
    let aliases = builtin().iter().flat_map(|op| op.aliases.iter().map(|alias| alias.0));
    let mut all: Vec<&str> = builtin().iter().map(|op| op.name).chain(aliases).collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}
