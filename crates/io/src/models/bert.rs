//! BERT-like sentence encoders, MiniLM among them: post-norm transformer layers, mean pooling, unit length.
//!
//! The table of word embeddings stays on the host: the engine has no gather that every chip runs, and a lookup moves a few
//! hundred rows. The program takes the looked-up rows and a mask, and does everything else: position and segment embeddings,
//! the layers, pooling and normalisation.

use super::layers;
use super::{Model, ModelError};
use crate::{Config, IoError, Loader, ModelFolder};
use aneforge_core::{DType, Graph, Tensor};
use aneforge_mil::Weight;

/// Score added to keys that are padding. Far below every real score, so that the softmax gives exactly 0, and far inside fp16's
/// range, so that adding a score to it stays finite.
const MASKED: f64 = -10_000.0;

/// Least square of a pooled vector's length; real ones are far longer.
const LEAST_SQUARE: f64 = 1e-6;

/// Name of the program's first input: word embeddings, fp16 `[batch, tokens, width]`.
pub const WORDS: &str = "words";
/// Name of the program's second input: 1 for tokens, 0 for padding, fp16 `[batch, 1, 1, tokens]`.
pub const MASK: &str = "mask";
/// Name of the program's output: fp16 `[batch, width]`, rows of length 1.
pub const EMBEDDING: &str = "embedding";

/// The extents of a BERT model, read from its `config.json`.
#[derive(Clone, Debug, PartialEq)]
pub struct BertConfig {
    /// Features per token, `hidden_size`.
    pub width: usize,
    /// Layers, `num_hidden_layers`.
    pub layers: usize,
    /// Attention heads, `num_attention_heads`.
    pub heads: usize,
    /// Features inside the feed-forward part, `intermediate_size`.
    pub inner: usize,
    /// Rows of the word table, `vocab_size`.
    pub vocabulary: usize,
    /// Rows of the position table, `max_position_embeddings`: the most tokens a text can have.
    pub positions: usize,
    /// Rows of the segment table, `type_vocab_size`.
    pub segments: usize,
    /// `layer_norm_eps`.
    pub epsilon: f64,
    /// Token that fills a text up, `pad_token_id`.
    pub padding: u32,
}

impl BertConfig {
    /// Reads and checks the fields that the graph depends on.
    ///
    /// # Errors
    /// [`IoError::Field`] with the field, its value and what is supported.
    pub fn read(config: &Config) -> Result<Self, IoError> {
        config.check_text("model_type", &["bert"])?;
        config.check_text("hidden_act", &["gelu"])?;
        config.check_text("position_embedding_type", &["absolute"])?;
        let read = Self {
            width: config.extent("hidden_size", 1 << 14)?,
            layers: config.extent("num_hidden_layers", 1 << 10)?,
            heads: config.extent("num_attention_heads", 1 << 10)?,
            inner: config.extent("intermediate_size", 1 << 16)?,
            vocabulary: config.extent("vocab_size", 1 << 24)?,
            positions: config.extent("max_position_embeddings", 1 << 14)?,
            segments: config.extent("type_vocab_size", 1 << 10)?,
            epsilon: config.optional("layer_norm_eps")?.unwrap_or(1e-12),
            padding: config.optional("pad_token_id")?.unwrap_or(0),
        };
        if !read.width.is_multiple_of(read.heads) {
            let problem = format!("is {}, which does not divide hidden_size {}", read.heads, read.width);
            return Err(IoError::field(config.path(), "num_attention_heads", problem));
        }
        if !(read.epsilon > 0.0 && read.epsilon < 1.0) {
            return Err(IoError::field(config.path(), "layer_norm_eps", format!("is {}, expected 0 to 1", read.epsilon)));
        }
        if read.padding as usize >= read.vocabulary {
            let problem = format!("is {}, but vocab_size is {}", read.padding, read.vocabulary);
            return Err(IoError::field(config.path(), "pad_token_id", problem));
        }
        Ok(read)
    }
}

/// Name of the model's table of word embeddings, `[vocabulary, width]`.
pub fn word_table_name(folder: &ModelFolder) -> String {
    format!("{}embeddings.word_embeddings.weight", prefix(folder))
}

/// The encoder for `batch` texts of `tokens` tokens each.
///
/// # Errors
/// [`ModelError`] where tensors are missing or wrong; `tokens` must not exceed the position table.
pub fn build(folder: &ModelFolder, config: &BertConfig, batch: usize, tokens: usize) -> Result<Model, ModelError> {
    let graph = Graph::new();
    let mut loader = Loader::with_prefix(folder.weights(), prefix(folder));
    let words = graph.input(WORDS, DType::Fp16, &[batch, tokens, config.width]);
    let mask = graph.input(MASK, DType::Fp16, &[batch, 1, 1, tokens]);
    let places = graph.weight(places(&mut loader, config, tokens)?);
    let mut x = layers::layer_norm(&mut loader, &(&words + &places), "embeddings.LayerNorm", config.width, config.epsilon)?;
    // 1 becomes 0 and 0 becomes MASKED, both exactly.
    let bias = (&mask - 1.0) * -MASKED;
    for index in 0..config.layers {
        x = layer(&mut loader, &x, &bias, config, &format!("encoder.layer.{index}"))?;
    }
    let embedding = pool(&x, &mask, batch, tokens, config.width);
    loader.finish()?;
    let description = format!("bert, {} layers of width {}, {batch} x {tokens} tokens", config.layers, config.width);
    Model::new(description, vec![(EMBEDDING, embedding)])
}

/// Sentence-transformers write the bare model, others put it under `bert.`.
fn prefix(folder: &ModelFolder) -> &'static str {
    if folder.weights().info("bert.embeddings.LayerNorm.weight").is_some() { "bert." } else { "" }
}

/// Position embeddings of the first `tokens` places plus the embedding of segment 0, which is that of every token of a text.
fn places(loader: &mut Loader<'_>, config: &BertConfig, tokens: usize) -> Result<Weight, IoError> {
    let width = config.width;
    let parts: [(&str, &[usize]); 2] = [
        ("embeddings.position_embeddings.weight", &[config.positions, width]),
        ("embeddings.token_type_embeddings.weight", &[config.segments, width]),
    ];
    let count = tokens * width;
    loader.computed(&[1, tokens, width], &parts, move |tables, sink| {
        (0..count).try_for_each(|index| sink(tables[0].get(index) + tables[1].get(index % width)))
    })
}

/// Attention and feed-forward part, each added to its input and normalised after.
fn layer(loader: &mut Loader<'_>, x: &Tensor, bias: &Tensor, config: &BertConfig, name: &str) -> Result<Tensor, ModelError> {
    let (width, inner, epsilon) = (config.width, config.inner, config.epsilon);
    let query = layers::linear(loader, x, &format!("{name}.attention.self.query"), width, width)?;
    let key = layers::linear(loader, x, &format!("{name}.attention.self.key"), width, width)?;
    let value = layers::linear(loader, x, &format!("{name}.attention.self.value"), width, width)?;
    let mixed = layers::attention(config.heads, [&query, &key, &value], Some(bias))?;
    let attended = layers::linear(loader, &mixed, &format!("{name}.attention.output.dense"), width, width)?;
    let x = layers::layer_norm(loader, &(x + &attended), &format!("{name}.attention.output.LayerNorm"), width, epsilon)?;
    let grown = layers::linear(loader, &x, &format!("{name}.intermediate.dense"), width, inner)?.gelu("EXACT");
    let shrunk = layers::linear(loader, &grown, &format!("{name}.output.dense"), inner, width)?;
    Ok(layers::layer_norm(loader, &(&x + &shrunk), &format!("{name}.output.LayerNorm"), width, epsilon)?)
}

/// The mean over real tokens, scaled to length 1.
///
/// Summing first and dividing after keeps the products exact on an engine that rounds each to a multiple of 2^-16; the sum stays
/// below its ceiling of 2^15 while token features average below 64. Dividing by the bucket's length in place of the text's
/// changes the vector's length alone, which normalising sets anyway.
fn pool(x: &Tensor, mask: &Tensor, batch: usize, tokens: usize, width: usize) -> Tensor {
    let row = mask.reshape(&[batch as i64, 1, tokens as i64]);
    let mean = row.matmul(x) * (1.0 / tokens as f64);
    mean.reshape(&[batch as i64, width as i64]).l2_norm(-1, LEAST_SQUARE)
}
