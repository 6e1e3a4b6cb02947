//! Names of the operators of the Python package aneforge 0.4.0 (MIT).

/// The graph operators that its emitter knows, all one hundred, with blanks between them.
pub const GRAPH_OPERATORS: &str = "abs add adds affine atan avg_pool batch_norm bmm bmm_w cast ceil channel_layer_norm clamped_relu clip concat \
    const_array conv conv_transpose cos crop depth_to_space dynamic_conv einsum elu equal erf exp exp2 expand_dims flatten2d floor \
    gelu greater greater_equal group_norm instance_norm inverse l2_norm layer_norm leaky_relu less less_equal linear_activation \
    local_response_norm log logical_not matmul max_pool maximum minimum mul muls not_equal pixel_shuffle pixel_unshuffle pow prelu \
    real_div reduce_l1_norm reduce_log_sum reduce_log_sum_exp reduce_max reduce_mean reduce_min reduce_sum reduce_sum_square relu \
    relu6 reshape resize_bilinear resize_nearest_neighbor reverse rms_norm round rsqrt scaled_tanh select sigmoid sigmoid_hard sign \
    silu sin slice_by_size softmax softplus softsign space_to_depth split sqrt square squeeze stack sub tanh threshold \
    thresholded_relu tile transpose upsample upsample_bilinear";

/// Its nineteen operators on the engine's native layers.
pub const NATIVE_OPERATORS: &str = "sdpa argmax topk sort cross_product cross_correlation cost_volume fps radius_search minmax_norm lrn \
    space_to_channel channel_to_space space_to_batch batch_to_space flatten input_view dynamic_slice scaled_elementwise";
