//! Gradients of MiniLM-L6 with its published weights, on `cpu` and on an emulated engine, against PyTorch's in f64.
#![cfg(feature = "tokenizers")]
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod common;

use aneforge_compile::{CompileOptions, compile_body};
use aneforge_core::autograd::backward_from;
use aneforge_core::{DType, Graph, HostArray, LowerOptions, Target, Tensor, lower_with};
use aneforge_io::ModelFolder;
use aneforge_io::models::bert::BertConfig;
use aneforge_runtime::Program;
use aneforge_testkit::{Random, oracle};
use common::{cosine, folder};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

const BATCH: usize = 2;
const TOKENS: usize = 16;

/// The encoder's weights by name, with their shapes.
fn shapes(config: &BertConfig) -> Vec<(String, Vec<usize>)> {
    let (width, inner) = (config.width, config.inner);
    let mut all = Vec::new();
    let mut pair = |name: String, shape: &[usize]| {
        all.push((format!("{name}.weight"), shape.to_vec()));
        all.push((format!("{name}.bias"), shape[..1].to_vec()));
    };
    pair("embeddings.LayerNorm".to_string(), &[width]);
    for index in 0..config.layers {
        let layer = format!("encoder.layer.{index}");
        for name in ["self.query", "self.key", "self.value", "output.dense"] {
            pair(format!("{layer}.attention.{name}"), &[width, width]);
        }
        pair(format!("{layer}.attention.output.LayerNorm"), &[width]);
        pair(format!("{layer}.intermediate.dense"), &[inner, width]);
        pair(format!("{layer}.output.dense"), &[width, inner]);
        pair(format!("{layer}.output.LayerNorm"), &[width]);
    }
    all
}

/// The encoder on tensors in the order of [`shapes`], from the sum of all embeddings to rows of length 1.
fn encoder(config: &BertConfig, words: &Tensor, weights: &[Tensor]) -> Tensor {
    let (heads, size) = (config.heads as i64, (config.width / config.heads) as i64);
    let (batch, tokens, width) = (BATCH as i64, TOKENS as i64, config.width as i64);
    let mut next = weights.iter();
    let mut two = || (next.next().unwrap(), next.next().unwrap());
    let normed = |x: &Tensor, (gamma, beta): (&Tensor, &Tensor)| x.layer_norm([-1], Some(gamma), Some(beta), config.epsilon);
    let linear = |x: &Tensor, (weight, bias): (&Tensor, &Tensor)| x.matmul_with(weight, false, true).add(bias);
    let split = |x: Tensor| x.reshape(&[batch, tokens, heads, size]).transpose(&[0, 2, 1, 3]);
    let mut x = normed(words, two());
    for _ in 0..config.layers {
        let query = split(linear(&x, two())).muls(1.0 / (size as f64).sqrt());
        let key = split(linear(&x, two()));
        let value = split(linear(&x, two()));
        let mixed = query.matmul_with(&key, false, true).softmax(-1).matmul(&value);
        let joined = mixed.transpose(&[0, 2, 1, 3]).reshape(&[batch, tokens, width]);
        x = normed(&x.add(&linear(&joined, two())), two());
        let grown = linear(&x, two()).gelu("EXACT");
        x = normed(&x.add(&linear(&grown, two())), two());
    }
    x.mean(1, false).l2_norm(-1, 1e-6)
}

/// Gradients with respect to the words and all weights, and the scale they were computed at.
fn ours(config: &BertConfig, device: &str, weights: &[HostArray], words: &HostArray, seed: &[f32]) -> (f32, Vec<Vec<f32>>) {
    let graph = Graph::new();
    let x = graph.input("words", DType::Fp16, words.shape());
    let given = graph.input("seed", DType::Fp16, &[BATCH, config.width]);
    let names = shapes(config);
    let tensors: Vec<Tensor> = names.iter().map(|(name, shape)| graph.input(name, DType::Fp16, shape)).collect();
    let embedding = encoder(config, &x, &tensors);
    let wrt: Vec<Tensor> = std::iter::once(x).chain(tensors).collect();
    let grads = backward_from(&[(embedding, given)], &wrt, &[]);
    let outputs: Vec<(String, Tensor)> =
        grads.into_iter().enumerate().map(|(index, grad)| (format!("gradient{index}"), grad)).collect();
    let target = device.strip_prefix("emulator:").map_or(Target::Generic, |chip| chip.parse().unwrap());
    let body = lower_with(&outputs, LowerOptions { target, keep_unused_inputs: true }).unwrap();
    let compiled = compile_body(body, &CompileOptions { target, ..CompileOptions::default() }).unwrap();
    let place = tempfile::tempdir().unwrap();
    compiled.write(&place.path().join("model")).unwrap();
    let program = Arc::new(Program::open(place.path().join("model")).unwrap());
    let executable = aneforge_runtime::open(device).unwrap().load(&program).unwrap();
    // The trainer's first scale, halved until nothing overflows, as the trainer does.
    let mut factor = 1024.0f32;
    loop {
        let scaled: Vec<f32> = seed.iter().map(|value| value * factor).collect();
        let seed = HostArray::fp16_from_f32([BATCH, config.width], &scaled).unwrap();
        let arrays: Vec<&HostArray> = [words, &seed].into_iter().chain(weights).collect();
        let values: Vec<Vec<f32>> = executable.run(&arrays).unwrap().iter().map(HostArray::to_f32).collect();
        if factor <= 1.0 || values.iter().flatten().all(|value| value.is_finite()) {
            let unscaled = |values: Vec<f32>| values.into_iter().map(|value| value / factor).collect();
            return (factor, values.into_iter().map(unscaled).collect());
        }
        factor *= 0.5;
    }
}

/// PyTorch's gradients in the same order.
fn theirs(model: &Path, config: &BertConfig, words: &HostArray, seed: &[f32]) -> Option<Vec<Vec<f32>>> {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("gradients");
    let names = shapes(config);
    let request = json!({
        "folder": model, "names": names.iter().map(|(name, _)| name).collect::<Vec<_>>(), "path": path,
        "words": words.to_f32(), "shape": words.shape(), "seed": seed,
    });
    oracle("torch_minilm.py", &[], &request.to_string())?;
    let bytes = std::fs::read(path).unwrap();
    let mut all = bytes.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap()));
    let counts = std::iter::once(words.to_f32().len()).chain(names.iter().map(|(_, shape)| shape.iter().product()));
    let parts: Vec<Vec<f32>> = counts.map(|count| all.by_ref().take(count).collect()).collect();
    assert!(all.next().is_none());
    Some(parts)
}

#[test]
fn gradients_of_the_encoder_point_where_those_of_pytorch_do() {
    let Some(path) = folder("ANEFORGE_MINILM") else { return };
    let model = ModelFolder::open(&path).unwrap();
    let config = BertConfig::read(model.config()).unwrap();
    let read = |name: &str, shape: &[usize]| {
        let weight = model.weights().weight(name, shape).unwrap();
        let bytes = model.weights().bytes(name).unwrap();
        assert_eq!(weight.ty().count() * 4, bytes.len(), "{name} is in f32");
        bytes.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect::<Vec<f32>>()
    };
    let names = shapes(&config);
    let weights: Vec<HostArray> =
        names.iter().map(|(name, shape)| HostArray::fp16_from_f32(shape.clone(), &read(name, shape)).unwrap()).collect();
    // Words of a fixed choice, with the embedding of their place.
    let table = read("embeddings.word_embeddings.weight", &[config.vocabulary, config.width]);
    let places = read("embeddings.position_embeddings.weight", &[config.positions, config.width]);
    let mut random = Random::new(17);
    let mut values = Vec::with_capacity(BATCH * TOKENS * config.width);
    for row in 0..BATCH * TOKENS {
        let (word, place) = (1000 + random.below(20000), row % TOKENS);
        values.extend((0..config.width).map(|at| table[word * config.width + at] + places[place * config.width + at]));
    }
    let words = HostArray::fp16_from_f32([BATCH, TOKENS, config.width], &values).unwrap();
    // Multiples of 1/64, which fp16 holds at each scale.
    let seed: Vec<f32> =
        random.values(BATCH * config.width, -1.0, 1.0).into_iter().map(|value| (value * 64.0).round() as f32 / 64.0).collect();
    let Some(theirs) = theirs(&path, &config, &words, &seed) else { return };
    let norm = |values: &[f32]| values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
    let largest = theirs.iter().map(|values| norm(values)).fold(0.0, f64::max);
    let mut faults = Vec::new();
    for (device, all, each) in [("cpu", 0.9999, 0.999), ("emulator:m1", 0.999, 0.99)] {
        let (scale, ours) = ours(&config, device, &weights, &words, &seed);
        let found = cosine(&ours.concat(), &theirs.concat());
        let mut lowest = (1.0, "");
        let named = std::iter::once("words").chain(names.iter().map(|(name, _)| name.as_str()));
        for ((name, ours), theirs) in named.zip(&ours).zip(&theirs).filter(|(_, theirs)| norm(theirs) > 1e-4 * largest) {
            let found = cosine(ours, theirs);
            if found < lowest.0 {
                lowest = (found, name);
            }
        }
        eprintln!("{device} at scale {scale}: {found:.7}, lowest {:.7} of {}", lowest.0, lowest.1);
        let holds = found >= all && lowest.0 >= each;
        if !holds {
            faults.push(format!("{device}: {found}, lowest {} of {}", lowest.0, lowest.1));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
