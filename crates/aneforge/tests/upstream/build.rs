//! A described graph, built with our own operators.

use crate::case::Case;
use aneforge::{DType, Graph, Tensor, Window, concat, einsum, stack};
use serde_json::Value;
use std::collections::HashMap;

fn integers(value: &Value) -> Vec<i64> {
    value.as_array().unwrap().iter().map(|entry| entry.as_i64().unwrap()).collect()
}

/// The described graph, built with our own operators.
pub fn build(case: &Case) -> Tensor {
    let graph = Graph::new();
    let mut values: HashMap<&str, Tensor> = HashMap::new();
    for (name, input) in case.description["inputs"].as_object().unwrap() {
        let shape: Vec<usize> = integers(&input["shape"]).iter().map(|&extent| extent as usize).collect();
        values.insert(name, graph.input(name, case.input_type(name), &shape));
    }
    for node in case.description["nodes"].as_array().unwrap() {
        let id = node["id"].as_str().unwrap();
        let inputs: Vec<Tensor> =
            node["inputs"].as_array().unwrap().iter().map(|name| values[name.as_str().unwrap()].clone()).collect();
        let constant = |name: &str| {
            node["constants"].get(name)?;
            let array = case.array(&format!("{id}.{name}"));
            Some(graph.values(DType::Fp16, array.shape(), &array.data))
        };
        let result = apply(node["op"].as_str().unwrap(), &inputs, &constant, &node["attributes"]);
        values.insert(id, result.check().unwrap_or_else(|error| panic!("{}: {error}", case.name)).clone());
    }
    values[case.description["output"].as_str().unwrap()].clone()
}

/// Stride, padding, dilation and groups, each where it is given.
fn window(attributes: &Value) -> Window {
    let int = |name: &str, default: i64| attributes.get(name).map_or(default, |value| value.as_i64().unwrap());
    let window = Window::default().stride(int("stride", 1)).dilation(int("dilation", 1)).groups(int("groups", 1));
    match &attributes["pad"] {
        Value::Array(_) => window.padding_per_side(&integers(&attributes["pad"])),
        pad => window.padding(pad.as_i64().unwrap()),
    }
}

fn apply(op: &str, inputs: &[Tensor], constant: &dyn Fn(&str) -> Option<Tensor>, attributes: &Value) -> Tensor {
    let x = &inputs[0];
    let y = || inputs.get(1).cloned().or_else(|| constant("y")).unwrap();
    let int = |name: &str| attributes[name].as_i64().unwrap();
    let ints = |name: &str| integers(&attributes[name]);
    let float = |name: &str| attributes[name].as_f64().unwrap();
    let flag = |name: &str| attributes[name].as_bool().unwrap();
    let weight = || inputs.get(1).cloned().or_else(|| constant("weight")).unwrap();
    match op {
        "relu" => x.relu(),
        "tanh" => x.tanh(),
        "sigmoid" => x.sigmoid(),
        "gelu" => x.gelu("EXACT"),
        "exp" => x.exp(),
        "erf" => x.erf(),
        "square" => x.square(),
        "sqrt" => x.sqrt(),
        "rsqrt" => x.rsqrt(float("eps")),
        "softplus" => x.softplus(),
        "round" => x.round(),
        "floor" => x.floor(),
        "add" => x + &y(),
        "sub" => x - &y(),
        "mul" => x * &y(),
        "real_div" => x / &y(),
        "maximum" => x.maximum(&y()),
        "minimum" => x.minimum(&y()),
        "greater" => x.greater(&y()),
        "select" => x.select(&inputs[1], &inputs[2]),
        "muls" => x.muls(float("scalar")),
        "adds" => x.adds(float("scalar")),
        "matmul" | "bmm_w" => x.matmul(&weight()),
        "bmm" => x.matmul(&y()),
        "linear" => x.linear(&weight(), constant("bias").as_ref()),
        "conv" | "dynamic_conv" => x.conv(&weight(), constant("bias").as_ref(), &window(attributes)),
        "conv_transpose" => x.conv_transpose(&weight(), constant("bias").as_ref(), &window(attributes)),
        "einsum" => einsum(attributes["equation"].as_str().unwrap(), &[x.clone(), constant("b").unwrap()]),
        "max_pool" => x.max_pool(&window(attributes).kernel(int("k"))),
        "avg_pool" => x.avg_pool(&window(attributes).kernel(int("k"))),
        "reduce_mean" => x.mean(ints("axes"), true),
        "reduce_sum" => x.sum(ints("axes"), true),
        "softmax" => x.softmax(int("axis")),
        "batch_norm" => {
            let [mean, variance, gamma, beta] = ["mean", "var", "gamma", "beta"].map(constant);
            x.batch_norm(&mean.unwrap(), &variance.unwrap(), gamma.as_ref(), beta.as_ref(), float("eps"))
        }
        "layer_norm" => x.layer_norm(-1, constant("gamma").as_ref(), constant("beta").as_ref(), float("eps")),
        "l2_norm" => x.l2_norm(int("axis"), float("eps")),
        "reshape" => x.reshape(&ints("shape")),
        "transpose" => x.transpose(&ints("perm")),
        "concat" => concat(inputs, int("axis")),
        "slice_by_size" => x.slice_by_size(&ints("begin"), &ints("size")),
        "expand_dims" => x.expand_dims(ints("axes")),
        "squeeze" => x.squeeze(ints("axes")),
        "split" => x.split(int("num_splits") as usize, int("axis"))[int("part") as usize].clone(),
        "abs" => x.abs(),
        "ceil" => x.ceil(),
        "sign" => x.sign(),
        "silu" => x.silu(),
        "softsign" => x.softsign(),
        "atan" => x.atan(),
        "exp2" => x.exp2(),
        "sin" => x.sin(),
        "cos" => x.cos(),
        "relu6" => x.relu6(),
        "logical_not" => x.logical_not(),
        "pow" => x.pow(&y()),
        "less" => x.less(&y()),
        "less_equal" => x.less_equal(&y()),
        "equal" => x.equal(&y()),
        "not_equal" => x.not_equal(&y()),
        "greater_equal" => x.greater_equal(&y()),
        "elu" => x.elu(float("alpha")),
        "leaky_relu" => x.leaky_relu(float("alpha")),
        "threshold" => x.threshold(float("alpha")),
        "thresholded_relu" => x.thresholded_relu(float("alpha")),
        "scaled_tanh" => x.scaled_tanh(float("alpha"), float("beta")),
        "clamped_relu" => x.clamped_relu(float("alpha"), float("beta")),
        "sigmoid_hard" => x.sigmoid_hard(float("alpha"), float("beta")),
        "linear_activation" => x.linear_activation(float("alpha"), float("beta")),
        "log" => x.log(float("eps")),
        "inverse" => x.inverse(float("eps")),
        "reduce_max" => x.reduce_max(ints("axes"), true),
        "reduce_min" => x.reduce_min(ints("axes"), true),
        "reduce_l1_norm" => x.reduce_l1_norm(ints("axes"), true),
        "reduce_sum_square" => x.reduce_sum_square(ints("axes"), true),
        "reduce_log_sum" => x.reduce_log_sum(ints("axes"), true),
        "reduce_log_sum_exp" => x.reduce_log_sum_exp(ints("axes"), true),
        "clip" => x.clip(float("lo"), float("hi")),
        "prelu" => x.prelu(&constant("alpha").unwrap()),
        "rms_norm" => x.rms_norm(-1, constant("gamma").as_ref(), float("eps")),
        "channel_layer_norm" => x.layer_norm(1, constant("gamma").as_ref(), constant("beta").as_ref(), float("eps")),
        "group_norm" => x.group_norm(int("num_groups"), constant("gamma").as_ref(), constant("beta").as_ref(), float("eps")),
        "instance_norm" => x.instance_norm(constant("gamma").as_ref(), constant("beta").as_ref(), float("eps")),
        "local_response_norm" => x.local_response_norm(int("size"), float("alpha"), float("beta"), float("k")),
        "upsample" => x.upsample(int("scale")),
        "upsample_bilinear" => x.upsample_bilinear(float("scale"), float("scale"), flag("align_corners")),
        "resize_nearest_neighbor" => x.resize_nearest_neighbor(int("target_h"), int("target_w")),
        "resize_bilinear" => {
            let mode = if flag("align_corners") { "ALIGN_CORNERS" } else { "DEFAULT" };
            x.resize_bilinear(int("target_h"), int("target_w"), mode)
        }
        "affine" => x.affine(&constant("transform").unwrap(), int("output_h"), int("output_w")),
        "crop" => x.crop(int("top"), int("bottom"), int("left"), int("right")),
        "pixel_shuffle" => x.pixel_shuffle(int("r")),
        "pixel_unshuffle" => x.pixel_unshuffle(int("r")),
        "space_to_depth" => x.space_to_depth(int("block_size")),
        "depth_to_space" => x.depth_to_space(int("block_size")),
        "flatten2d" => x.flatten2d(int("axis")),
        "tile" => x.tile(&ints("reps")),
        "reverse" => x.reverse(ints("axes")),
        "stack" => stack(inputs, int("axis")),
        "image_input" => x.cast(DType::Fp16).muls(float("scale")).adds(float("bias")),
        "mha" => {
            let parts: Vec<Tensor> = ["Wq", "bq", "Wk", "bk", "Wv", "bv", "Wo", "bo"].map(|name| constant(name).unwrap()).to_vec();
            let pair = |index: usize| (&parts[2 * index], Some(&parts[2 * index + 1]));
            let heads = int("n_heads") as usize;
            let weights = aneforge::core::Heads { query: pair(0), key: pair(1), value: pair(2), output: pair(3), heads };
            aneforge::mha(x, x, &weights, constant("mask").as_ref())
        }
        other => panic!("no builder for {other}"),
    }
}
