//! A sentence encoder small enough to write in a test: one layer of width 8, six words.
#![allow(clippy::unwrap_used, dead_code)] // shared by several test programs

use std::path::Path;

pub const WIDTH: usize = 8;
const INNER: usize = 16;
const WORDS: usize = 6;
const POSITIONS: usize = 512;

pub const CONFIG: &str = r#"{
  "model_type": "bert", "hidden_act": "gelu", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
  "intermediate_size": 16, "vocab_size": 6, "max_position_embeddings": 512, "type_vocab_size": 2,
  "layer_norm_eps": 1e-12, "pad_token_id": 0, "position_embedding_type": "absolute"
}"#;

pub const TOKENIZER: &str = r#"{
  "version": "1.0",
  "truncation": {"max_length": 4, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
  "padding": {"strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": null,
              "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"},
  "added_tokens": [], "normalizer": null, "pre_tokenizer": {"type": "WhitespaceSplit"},
  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
               {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]},
                       "[SEP]": {"id": "[SEP]", "ids": [2], "tokens": ["[SEP]"]}}},
  "decoder": null,
  "model": {"type": "WordLevel", "vocab": {"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[UNK]": 3, "a": 4, "b": 5},
            "unk_token": "[UNK]"}
}"#;

/// Names and shapes of all tensors.
pub fn tensors() -> Vec<(String, Vec<usize>)> {
    let mut all: Vec<(String, Vec<usize>)> = Vec::new();
    let mut add = |name: &str, shape: &[usize]| all.push((name.to_string(), shape.to_vec()));
    add("embeddings.word_embeddings.weight", &[WORDS, WIDTH]);
    add("embeddings.position_embeddings.weight", &[POSITIONS, WIDTH]);
    add("embeddings.token_type_embeddings.weight", &[2, WIDTH]);
    let mut norm_and = vec!["embeddings.LayerNorm".to_string()];
    let layer = "encoder.layer.0";
    for part in ["self.query", "self.key", "self.value", "output.dense"] {
        add(&format!("{layer}.attention.{part}.weight"), &[WIDTH, WIDTH]);
        add(&format!("{layer}.attention.{part}.bias"), &[WIDTH]);
    }
    add(&format!("{layer}.intermediate.dense.weight"), &[INNER, WIDTH]);
    add(&format!("{layer}.intermediate.dense.bias"), &[INNER]);
    add(&format!("{layer}.output.dense.weight"), &[WIDTH, INNER]);
    add(&format!("{layer}.output.dense.bias"), &[WIDTH]);
    norm_and.extend([format!("{layer}.attention.output.LayerNorm"), format!("{layer}.output.LayerNorm")]);
    for norm in norm_and {
        add(&format!("{norm}.weight"), &[WIDTH]);
        add(&format!("{norm}.bias"), &[WIDTH]);
    }
    all
}

/// Value `index` of a tensor: smooth, different everywhere; around 1 for the scales of norms, around 0 else.
pub fn value(name: &str, index: usize) -> f32 {
    let seed: u32 = name.bytes().fold(7, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
    let noise = ((f64::from(seed % 1000) + index as f64 * 1.7).sin() * 0.4) as f32;
    if name.ends_with("LayerNorm.weight") { 1.0 + noise } else { noise }
}

/// A safetensors file of these tensors in fp32.
pub fn safetensors(tensors: &[(String, Vec<usize>)]) -> Vec<u8> {
    let (mut entries, mut data) = (Vec::new(), Vec::new());
    for (name, shape) in tensors {
        let begin = data.len();
        for index in 0..shape.iter().product() {
            data.extend(value(name, index).to_le_bytes());
        }
        entries.push(format!(r#""{name}":{{"dtype":"F32","shape":{shape:?},"data_offsets":[{begin},{}]}}"#, data.len()));
    }
    let header = format!("{{{}}}", entries.join(","));
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(&data);
    bytes
}

/// Writes the three files of the model into `folder`.
pub fn write(folder: &Path) {
    std::fs::write(folder.join("config.json"), CONFIG).unwrap();
    std::fs::write(folder.join("tokenizer.json"), TOKENIZER).unwrap();
    std::fs::write(folder.join("model.safetensors"), safetensors(&tensors())).unwrap();
}
