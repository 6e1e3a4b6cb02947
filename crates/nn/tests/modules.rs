//! Outputs, gradients and statistics of modules and losses equal PyTorch's, in f64.
#![allow(clippy::unwrap_used)]

use aneforge_core::{Array, DType, Graph, Target, Tensor, Window, backward, evaluate, lower};
use aneforge_nn::{
    Attention, AttentionOptions, BatchNorm, Conv2d, Embedding, GroupNorm, LayerNorm, Linear, Mlp, NnError, Parameter, Parameters,
    Pass, RmsNorm, RopeStyle, Scope, SwiGlu, loss,
};
use aneforge_testkit::{Random, oracle};
use serde_json::{Value, json};

type Forward = Box<dyn Fn(&Pass, &[Tensor]) -> Tensor>;

struct Case {
    module: &'static str,
    options: Value,
    parameters: Parameters,
    forward: Forward,
    training: bool,
    inputs: Vec<(DType, Vec<usize>)>,
}

/// A case of a module that takes one fp16 tensor; its parameters are drawn anew, so that none is 0 or 1.
fn case<M: 'static>(
    module: &'static str,
    options: Value,
    shape: &[usize],
    build: impl Fn(&mut Scope<'_>) -> Result<M, NnError>,
    apply: impl Fn(&M, &Pass, &Tensor) -> Tensor + 'static,
) -> Case {
    let mut parameters = Parameters::new(1);
    let model = build(&mut parameters.root()).unwrap();
    let mut random = Random::new(11);
    let names: Vec<(String, usize)> = parameters.entries().iter().map(|e| (e.name().to_string(), e.values().len())).collect();
    for (name, count) in names {
        let low = if name == "running_var" { 0.5 } else { -1.0 };
        let values: Vec<f32> = random.values(count, low, 1.0).into_iter().map(|value| value as f32).collect();
        parameters.set(&name, &values).unwrap();
    }
    let forward: Forward = Box::new(move |pass, inputs| apply(&model, pass, &inputs[0]));
    Case { module, options, parameters, forward, training: false, inputs: vec![(DType::Fp16, shape.to_vec())] }
}

fn heads(key_heads: usize, causal: bool, rope: Option<(f64, RopeStyle)>) -> AttentionOptions {
    AttentionOptions { key_heads, causal, rope, bias: causal, ..AttentionOptions::new(4) }
}

fn cases() -> Vec<Case> {
    let attend = |options: Value, chosen: AttentionOptions| {
        case("attention", options, &[2, 5, 16], move |s| Attention::new(s, 16, chosen), |m, p, x| m.apply(p, x, None))
    };
    let normed = |training: bool| {
        let made = case("batch_norm", json!({"training": training}), &[3, 4, 2, 5], |s| BatchNorm::new(s, 4), BatchNorm::apply);
        Case { training, ..made }
    };
    let padded = Window::default().stride(2).padding(1).groups(2);
    let mut cases = vec![
        case("linear", json!({}), &[3, 5], |s| Linear::new(s, 5, 4, true), Linear::apply),
        case(
            "conv",
            json!({"stride": 2, "padding": 1, "groups": 2}),
            &[2, 4, 6, 5],
            move |s| Conv2d::new(s, (4, 6), 3, &padded, true),
            Conv2d::apply,
        ),
        normed(true),
        normed(false),
        case("layer_norm", json!({}), &[3, 7], |s| LayerNorm::new(s, 7), LayerNorm::apply),
        case("rms_norm", json!({}), &[3, 7], |s| RmsNorm::new(s, 7), RmsNorm::apply),
        case("group_norm", json!({"groups": 2}), &[2, 6, 3, 2], |s| GroupNorm::new(s, 2, 6), GroupNorm::apply),
        attend(json!({"heads": 4, "key_heads": 4, "causal": false}), heads(4, false, None)),
        attend(
            json!({"heads": 4, "key_heads": 2, "causal": true, "base": 100.0, "style": "halves"}),
            heads(2, true, Some((100.0, RopeStyle::Halves))),
        ),
        attend(
            json!({"heads": 4, "key_heads": 2, "causal": false, "base": 100.0, "style": "pairs"}),
            heads(2, false, Some((100.0, RopeStyle::Pairs))),
        ),
        case("mlp", json!({}), &[3, 4], |s| Mlp::new(s, 4, 6), Mlp::apply),
        case("swiglu", json!({}), &[3, 4], |s| SwiGlu::new(s, 4, 6), SwiGlu::apply),
    ];
    let mut table = case("embedding", json!({}), &[2, 3], |s| Embedding::new(s, 7, 4, 1.0), Embedding::apply);
    table.inputs[0].0 = DType::Int32;
    cases.push(table);
    for smoothing in [0.0, 0.125] {
        let labels = [2.0, 0.0, 4.0];
        for dtype in [DType::Fp16, DType::Int32] {
            cases.push(case(
                "cross_entropy",
                json!({"labels": [2, 0, 4], "smoothing": smoothing}),
                &[3, 5],
                |_| Ok(()),
                move |(), pass, x| loss::cross_entropy(x, &pass.graph().values(dtype, &[3], &labels), smoothing),
            ));
        }
    }
    for (name, f) in [("mse", loss::mse as fn(&Tensor, &Tensor) -> Tensor), ("bce", loss::bce_with_logits)] {
        let mut made = case(name, json!({}), &[3, 5], |_| Ok(()), |(), _, x| x.clone());
        made.inputs.push((DType::Fp16, vec![3, 5]));
        made.forward = Box::new(move |_, inputs| f(&inputs[0], &inputs[1]));
        cases.push(made);
    }
    cases
}

struct Ours {
    output: Vec<f64>,
    gradients: Vec<(String, Vec<f64>)>,
    statistics: Vec<(Parameter, Vec<f64>)>,
    request: Value,
}

fn ours(case: &Case, seed: u64) -> Ours {
    let graph = Graph::new();
    let mut random = Random::new(seed);
    let mut arrays = Vec::new();
    let tensors: Vec<Tensor> = case
        .parameters
        .entries()
        .iter()
        .map(|entry| {
            arrays.push(Array::new(DType::Fp16, entry.shape(), entry.values().iter().map(|&v| f64::from(v)).collect()));
            graph.input(entry.name(), DType::Fp16, entry.shape())
        })
        .collect();
    let mut given = Vec::new();
    for (index, (dtype, shape)) in case.inputs.iter().enumerate() {
        let count = shape.iter().product();
        let values = match dtype {
            DType::Int32 => (0..count).map(|_| random.below(7) as f64).collect(),
            _ if index > 0 => random.values(count, 0.0, 1.0),
            _ => random.values(count, -2.0, 2.0),
        };
        arrays.push(Array::new(*dtype, shape.as_slice(), values));
        given.push(graph.input(&format!("input{index}"), *dtype, shape));
    }
    let pass = Pass::new(&graph, tensors.clone(), case.training);
    let output = (case.forward)(&pass, &given);
    let shape = output.shape().unwrap_or_else(|error| panic!("{}: {error}", case.module)).to_vec();
    let seed_values = random.values(shape.iter().product(), -1.0, 1.0);
    let seed = graph.input("seed", DType::Fp16, &shape);
    arrays.push(Array::new(DType::Fp16, shape.as_slice(), seed_values.clone()));
    let mut wrt: Vec<(String, Tensor)> = Vec::new();
    for (entry, tensor) in case.parameters.entries().iter().zip(&tensors).filter(|(entry, _)| entry.is_trainable()) {
        wrt.push((entry.name().to_string(), tensor.clone()));
    }
    if case.inputs[0].0 == DType::Fp16 {
        wrt.push(("input".to_string(), given[0].clone()));
    }
    let axes: Vec<i64> = (0..shape.len() as i64).collect();
    let root = output.mul(&seed).reduce_sum(axes, true);
    let only: Vec<Tensor> = wrt.iter().map(|(_, tensor)| tensor.clone()).collect();
    let mut outputs = vec![("output".to_string(), output)];
    outputs.extend(wrt.iter().zip(backward(&root, &only)).map(|((name, _), grad)| (format!("d {name}"), grad)));
    let updates = pass.updates();
    outputs.extend(updates.iter().enumerate().map(|(index, (_, tensor))| (format!("statistic {index}"), tensor.clone())));
    let body = lower(&outputs, Target::Generic).unwrap_or_else(|error| panic!("{}: {error}", case.module));
    let mut results = evaluate(&body, &arrays).unwrap().into_iter().map(|array| array.data);
    let array = |array: &Array| json!({"shape": array.ty.shape, "values": array.data});
    let named = case.parameters.entries().iter().zip(&arrays).map(|(entry, values)| (entry.name().to_string(), array(values)));
    let inputs = &arrays[tensors.len()..arrays.len() - 1];
    let request = json!({
        "module": case.module, "options": case.options,
        "parameters": named.collect::<serde_json::Map<_, _>>(),
        "inputs": inputs.iter().map(array).collect::<Vec<_>>(),
        "seed": if shape == [1] { json!({"shape": [], "values": seed_values[0]}) } else { json!({"shape": shape, "values": seed_values}) },
    });
    Ours {
        output: results.next().unwrap(),
        gradients: wrt.into_iter().map(|(name, _)| (name, results.next().unwrap())).collect(),
        statistics: updates.into_iter().map(|(parameter, _)| (parameter, results.next().unwrap())).collect(),
        request,
    }
}

/// Constants of the graph are fp16: tables of sines and factors such as `1 / sqrt(width)` are off by up to 2^-12, and scores add up
/// several of them.
fn assert_close(what: &str, ours: &[f64], theirs: &Value) {
    let theirs: Vec<f64> = theirs.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
    assert_eq!(ours.len(), theirs.len(), "{what}");
    let size = theirs.iter().fold(1e-3f64, |top, value| top.max(value.abs()));
    for (index, (a, b)) in ours.iter().zip(&theirs).enumerate() {
        assert!((a - b).abs() <= 4e-3 * size, "{what}[{index}]: {a} for {b}");
    }
}

#[test]
fn modules_and_losses_agree_with_pytorch_in_value_and_gradient() {
    let cases = cases();
    let ours: Vec<Ours> = cases.iter().enumerate().map(|(seed, case)| ours(case, seed as u64)).collect();
    let requests: Vec<&Value> = ours.iter().map(|ours| &ours.request).collect();
    let Some(answer) = oracle("torch_modules.py", &[], &json!(requests).to_string()) else { return };
    let answers: Vec<Value> = serde_json::from_str(&answer).unwrap();
    for ((case, ours), theirs) in cases.iter().zip(&ours).zip(&answers) {
        let name = format!("{} {}", case.module, case.options);
        assert_close(&format!("{name}: output"), &ours.output, &theirs["output"]);
        for (parameter, gradient) in &ours.gradients {
            let theirs = if parameter == "input" { &theirs["input_gradient"] } else { &theirs["gradients"][parameter] };
            assert_close(&format!("{name}: gradient of {parameter}"), gradient, theirs);
        }
        assert_eq!(ours.statistics.len(), if case.training { 2 } else { 0 }, "{name}");
        for (values, statistic) in ours.statistics.iter().zip(["running_mean", "running_var"]) {
            assert_close(&format!("{name}: {statistic}"), &values.1, &theirs["statistics"][statistic]);
        }
    }
}

#[test]
fn wrong_sizes_of_modules_are_refused_with_the_rule() {
    let mut parameters = Parameters::new(0);
    let mut root = parameters.root();
    let odd = AttentionOptions { rope: Some((10000.0, RopeStyle::Halves)), ..AttentionOptions::new(4) };
    let errors = [
        Attention::new(&mut root, 10, AttentionOptions::new(4)).err(),
        Attention::new(&mut root, 12, AttentionOptions { key_heads: 3, ..AttentionOptions::new(4) }).err(),
        Attention::new(&mut root, 12, odd).err(),
        GroupNorm::new(&mut root, 3, 4).err(),
        Conv2d::new(&mut root, (4, 6), 3, &Window::default().groups(4), true).err(),
    ];
    for error in errors {
        assert!(matches!(error, Some(NnError::Setting { .. })), "{error:?}");
    }
    assert!(parameters.entries().is_empty(), "a refused module adds nothing");
}

#[test]
fn accuracy_counts_rows_and_shares_ties() {
    let graph = Graph::new();
    let logits = graph.values(DType::Fp16, &[4, 3], &[1.0, 2.0, 0.0, 3.0, 0.0, 0.0, 5.0, 5.0, 0.0, 0.0, 0.0, 1.0]);
    let labels = graph.values(DType::Int32, &[4], &[1.0, 1.0, 0.0, 2.0]);
    let body = lower(&[("y".to_string(), loss::accuracy(&logits, &labels))], Target::Generic).unwrap();
    assert_eq!(evaluate(&body, &[]).unwrap()[0].data, [(1.0 + 0.0 + 0.5 + 1.0) / 4.0]);
}
