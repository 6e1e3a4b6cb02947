//! A block of Llama's form between an embedding and its transpose.

use aneforge_core::Tensor;
use aneforge_nn::{Attention, AttentionOptions, Embedding, NnError, Parameters, Pass, RmsNorm, RopeStyle, SwiGlu};

/// The block.
pub struct Llama {
    words: Embedding,
    first: RmsNorm,
    attention: Attention,
    second: RmsNorm,
    dense: SwiGlu,
    last: RmsNorm,
}

impl Llama {
    /// A model of `words` words and a width of `width`, whose parameters in the block have names that begin with `block`.
    pub fn new(parameters: &mut Parameters, block: &str, words: usize, width: usize) -> Result<Self, NnError> {
        let mut root = parameters.root();
        let rope = Some((10000.0, RopeStyle::Halves));
        let options = AttentionOptions { key_heads: 2, causal: true, rope, ..AttentionOptions::new(4) };
        Ok(Self {
            words: Embedding::new(&mut root.scope("words"), words, width, 0.25)?,
            first: RmsNorm::new(&mut root.scope(format!("{block}norm1")), width)?,
            attention: Attention::new(&mut root.scope(format!("{block}attention")), width, options)?,
            second: RmsNorm::new(&mut root.scope(format!("{block}norm2")), width)?,
            dense: SwiGlu::new(&mut root.scope(format!("{block}dense")), width, 2 * width)?,
            last: RmsNorm::new(&mut root.scope("norm"), width)?,
        })
    }

    /// Logits `[batch, length, words]` of words `[batch, length]`.
    pub fn logits(&self, pass: &Pass, words: &Tensor) -> Tensor {
        let x = self.words.apply(pass, words);
        let x = x.add(&self.attention.apply(pass, &self.first.apply(pass, &x), None));
        let x = x.add(&self.dense.apply(pass, &self.second.apply(pass, &x)));
        self.words.logits(pass, &self.last.apply(pass, &x))
    }
}
