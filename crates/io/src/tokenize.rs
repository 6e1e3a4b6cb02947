//! Text to token ids through a `tokenizer.json`.

use crate::IoError;
use std::path::{Path, PathBuf};
use tokenizers::{Tokenizer, TruncationParams};

/// A tokenizer whose own truncation and padding are overridden: texts are cut at the model's limit and never padded.
#[derive(Clone, Debug)]
pub struct TextTokenizer {
    path: PathBuf,
    tokenizer: Tokenizer,
    limit: usize,
}

/// The tokens of one text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// Token ids, special tokens included; never more than the limit.
    pub ids: Vec<u32>,
    /// 1 for every token, as a padded batch would carry it before its padding's zeros.
    pub mask: Vec<u32>,
    /// Whether the text was cut.
    pub truncated: bool,
}

impl TextTokenizer {
    /// Reads `tokenizer.json` and sets the limit in tokens, special tokens included.
    ///
    /// # Errors
    /// [`IoError::File`] where the file cannot be read, [`IoError::Tokenizer`] where it is not understood or the limit leaves no
    /// room beside the special tokens.
    pub fn open(path: impl AsRef<Path>, limit: usize) -> Result<Self, IoError> {
        let path = path.as_ref().to_path_buf();
        let bytes = std::fs::read(&path).map_err(IoError::file("read", &path))?;
        let fail = |error: tokenizers::Error| IoError::Tokenizer { path: path.clone(), problem: error.to_string() };
        let mut tokenizer = Tokenizer::from_bytes(&bytes).map_err(fail)?;
        tokenizer.with_padding(None);
        let truncation = TruncationParams { max_length: limit, ..TruncationParams::default() };
        tokenizer.with_truncation(Some(truncation)).map_err(fail)?;
        Ok(Self { path, tokenizer, limit })
    }

    /// Most tokens that [`Self::encode`] returns.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The tokens of one text with the special tokens around them; the empty text has those alone.
    ///
    /// # Errors
    /// [`IoError::Tokenizer`] in the tokenizer's own words.
    pub fn encode(&self, text: &str) -> Result<Tokens, IoError> {
        let encoding = self
            .tokenizer
            .encode(text, true)
            .map_err(|error| IoError::Tokenizer { path: self.path.clone(), problem: error.to_string() })?;
        let ids = encoding.get_ids().to_vec();
        Ok(Tokens { mask: vec![1; ids.len()], truncated: !encoding.get_overflowing().is_empty(), ids })
    }
}
