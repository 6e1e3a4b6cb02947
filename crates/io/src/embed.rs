//! Sentences to vectors: tokenizer, word table, one program per length.

use crate::cache::{BundleCache, cache_folder, file_identity};
use crate::models::ModelError;
use crate::models::bert::{self, BertConfig};
use crate::words::WordTable;
use crate::{IoError, ModelFolder, TextTokenizer};
use aneforge_compile::{CompileError, CompileOptions, compile};
use aneforge_core::{DType, HostArray, Target};
use aneforge_mil::Dialect;
use aneforge_runtime::{Device, DeviceError, Executable, Program};
use half::f16;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lengths that programs exist for. A text runs in the shortest that holds it, so that its answer depends on nothing but itself.
pub const BUCKETS: [usize; 6] = [16, 32, 64, 128, 256, 512];

/// Most tokens of a text that are read.
pub const MAX_TOKENS: usize = 512;

/// Choices for an [`Embedder`].
#[derive(Clone, Debug)]
pub struct EmbedOptions {
    /// What programs are compiled for; `None` is the chip of an emulator, else `generic`.
    pub target: Option<Target>,
    /// Texts per program: those of one length run together, and a rest fills its program up with empty texts. The answers do not
    /// depend on it.
    pub batch: usize,
    /// Where compiled programs are kept; `None` is `bundles` in [`cache_folder`].
    pub cache: Option<PathBuf>,
}

impl Default for EmbedOptions {
    fn default() -> Self {
        Self { target: None, batch: 1, cache: None }
    }
}

/// Why texts could not be embedded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// The folder's model could not be built.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The program could not be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The device could not load or execute it.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// An input could not be made.
    #[error(transparent)]
    Host(aneforge_core::HostError),
    /// The tokenizer and the model do not belong together.
    #[error("{path} gives token {token}, but the model's word table has {rows} rows: do the two belong together?")]
    Token {
        /// The tokenizer file.
        path: PathBuf,
        /// The token.
        token: u32,
        /// Rows of the table.
        rows: usize,
    },
    /// A batch of no texts.
    #[error("the batch size is 0; it must be at least 1")]
    Batch,
}

impl From<IoError> for EmbedError {
    fn from(error: IoError) -> Self {
        Self::Model(error.into())
    }
}

/// A sentence encoder in a folder of Hugging Face layout, ready to run on one device. Safe to share between threads.
pub struct Embedder {
    folder: ModelFolder,
    config: BertConfig,
    tokenizer: TextTokenizer,
    words: WordTable,
    device: Arc<dyn Device>,
    options: CompileOptions,
    batch: usize,
    cache: BundleCache,
    loaded: Mutex<HashMap<usize, Arc<dyn Executable>>>,
}

/// The answer to [`Embedder::embed`].
#[derive(Clone, Debug, Default)]
pub struct Embeddings {
    /// One row of length 1 per text, in the order of the texts.
    pub rows: Vec<Vec<f32>>,
    /// Tokens of each text as they were run, special tokens included.
    pub tokens: Vec<usize>,
    /// Positions of texts that were cut at the limit.
    pub truncated: Vec<usize>,
    /// The device that ran them all.
    pub device: String,
    /// Time to compile and load programs that were not loaded yet.
    pub preparation: Duration,
    /// Time for everything else: tokens, look-ups, execution.
    pub execution: Duration,
}

impl Embeddings {
    /// Milliseconds of execution per text; 0 without texts.
    pub fn milliseconds_per_text(&self) -> f64 {
        if self.rows.is_empty() { 0.0 } else { self.execution.as_secs_f64() * 1e3 / self.rows.len() as f64 }
    }
}

/// A text on its way: where it stood, its tokens.
struct Entry {
    position: usize,
    ids: Vec<u32>,
}

impl Embedder {
    /// Opens a folder: checks its configuration and weights by building the shortest program's graph, compiles nothing yet.
    ///
    /// # Errors
    /// [`EmbedError::Model`] that names the file and field or lists the missing tensors.
    pub fn open(folder: impl AsRef<Path>, device: Arc<dyn Device>, options: EmbedOptions) -> Result<Self, EmbedError> {
        if options.batch == 0 {
            return Err(EmbedError::Batch);
        }
        let folder = ModelFolder::open(folder)?;
        let config = BertConfig::read(folder.config())?;
        let tokenizer = TextTokenizer::open(folder.tokenizer_path(), MAX_TOKENS.min(config.positions))?;
        let words = WordTable::new(folder.weights(), bert::word_table_name(&folder), config.vocabulary, config.width)?;
        let target = options.target.unwrap_or_else(|| device_target(device.name()));
        let embedder = Self {
            tokenizer,
            words,
            device,
            options: CompileOptions { target, dialect: Dialect::Modern, ..CompileOptions::default() },
            batch: options.batch,
            cache: BundleCache::new(options.cache.unwrap_or_else(|| cache_folder().join("bundles"))),
            loaded: Mutex::default(),
            folder,
            config,
        };
        bert::build(&embedder.folder, &embedder.config, 1, embedder.bucket(1))?;
        Ok(embedder)
    }

    /// Extents of the model.
    pub fn config(&self) -> &BertConfig {
        &self.config
    }

    /// Embeds texts. The empty text has an embedding; texts beyond the limit are cut and reported.
    ///
    /// A text's answer does not depend on what else is given.
    ///
    /// # Errors
    /// [`EmbedError`]: what compiling, loading or executing reports.
    pub fn embed<T: AsRef<str>>(&self, texts: &[T]) -> Result<Embeddings, EmbedError> {
        let start = Instant::now();
        let mut answer = Embeddings {
            rows: vec![Vec::new(); texts.len()],
            tokens: Vec::with_capacity(texts.len()),
            device: self.device.name().to_string(),
            ..Embeddings::default()
        };
        let mut groups: BTreeMap<usize, Vec<Entry>> = BTreeMap::new();
        for (position, text) in texts.iter().enumerate() {
            let tokens = self.tokenizer.encode(text.as_ref())?;
            self.check_tokens(&tokens.ids)?;
            answer.tokens.push(tokens.ids.len());
            if tokens.truncated {
                answer.truncated.push(position);
            }
            groups.entry(self.bucket(tokens.ids.len())).or_default().push(Entry { position, ids: tokens.ids });
        }
        for (length, entries) in groups {
            let before = Instant::now();
            let executable = self.executable(length)?;
            answer.preparation += before.elapsed();
            for batch in entries.chunks(self.batch) {
                self.run(executable.as_ref(), length, batch, &mut answer.rows)?;
            }
        }
        answer.execution = start.elapsed().saturating_sub(answer.preparation);
        Ok(answer)
    }

    /// The bundle of the program for texts of up to `tokens` tokens, compiled if it is not in the cache.
    ///
    /// # Errors
    /// What building and compiling report.
    pub fn bundle(&self, tokens: usize) -> Result<PathBuf, EmbedError> {
        let model = bert::build(&self.folder, &self.config, self.batch, self.bucket(tokens))?;
        let compiled = compile(&model.named_outputs(), &self.options)?;
        let weights = self.folder.weights().path();
        let identity = file_identity(weights).map_err(IoError::file("read", weights))?;
        Ok(self.cache.get_or_write(&compiled, &identity)?)
    }

    /// The shortest program length that holds `tokens` tokens.
    fn bucket(&self, tokens: usize) -> usize {
        let limit = self.tokenizer.limit();
        BUCKETS.into_iter().find(|&bucket| bucket >= tokens).unwrap_or(limit).min(limit)
    }

    fn executable(&self, length: usize) -> Result<Arc<dyn Executable>, EmbedError> {
        // Held while compiling, so that two threads never compile the same program.
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(executable) = loaded.get(&length) {
            return Ok(Arc::clone(executable));
        }
        let program = Arc::new(Program::open(&self.bundle(length)?)?);
        let executable = self.device.load(&program)?;
        loaded.insert(length, Arc::clone(&executable));
        Ok(executable)
    }

    fn check_tokens(&self, ids: &[u32]) -> Result<(), EmbedError> {
        let rows = self.config.vocabulary;
        match ids.iter().find(|&&id| id as usize >= rows) {
            Some(&token) => Err(EmbedError::Token { path: self.folder.tokenizer_path(), token, rows }),
            None => Ok(()),
        }
    }

    /// What the program for texts of up to `tokens` tokens receives for each text: its words and its mask. Longer texts are left out,
    /// since another program would run them.
    ///
    /// # Errors
    /// What the tokenizer reports.
    pub fn samples<T: AsRef<str>>(&self, texts: &[T], tokens: usize) -> Result<Vec<Vec<HostArray>>, EmbedError> {
        let (length, width) = (self.bucket(tokens), self.config.width);
        let mut samples = Vec::with_capacity(texts.len());
        for (position, text) in texts.iter().enumerate() {
            let ids = self.tokenizer.encode(text.as_ref())?.ids;
            self.check_tokens(&ids)?;
            if ids.len() <= length {
                let (words, mask) = self.received(length, &[Entry { position, ids }]);
                let array = |shape: &[usize], bytes| HostArray::from_bytes(DType::Fp16, shape, bytes);
                let words = array(&[self.batch, length, width], words).map_err(EmbedError::Host)?;
                samples.push(vec![words, array(&[self.batch, 1, 1, length], mask).map_err(EmbedError::Host)?]);
            }
        }
        Ok(samples)
    }

    /// The inputs for texts that run together.
    fn received(&self, length: usize, entries: &[Entry]) -> (Vec<u8>, Vec<u8>) {
        let mut words = Vec::with_capacity(self.batch * length * self.config.width * 2);
        let mut mask = Vec::with_capacity(self.batch * length * 2);
        for slot in 0..self.batch {
            // A slot without a text holds one padding token, so that its mean exists; nobody reads the answer.
            let ids = entries.get(slot).map_or(&[][..], |entry| &entry.ids);
            let real = ids.len().max(1);
            for place in 0..length {
                self.words.append(ids.get(place).copied().unwrap_or(self.config.padding) as usize, &mut words);
                mask.extend(if place < real { f16::ONE } else { f16::ZERO }.to_le_bytes());
            }
        }
        (words, mask)
    }

    fn run(&self, executable: &dyn Executable, length: usize, entries: &[Entry], rows: &mut [Vec<f32>]) -> Result<(), EmbedError> {
        let width = self.config.width;
        let (words, mask) = self.received(length, entries);
        let mut output = vec![0; self.batch * width * 2];
        executable.execute(&[&words, &mask], &mut [&mut output])?;
        for (entry, row) in entries.iter().zip(output.chunks_exact(width * 2)) {
            rows[entry.position] = row.chunks_exact(2).map(|b| f16::from_le_bytes([b[0], b[1]]).to_f32()).collect();
        }
        Ok(())
    }
}

/// An emulator runs programs made for its chip; every other device runs plain ones.
fn device_target(device: &str) -> Target {
    device.strip_prefix("emulator:").and_then(|chip| chip.parse().ok()).unwrap_or(Target::Generic)
}
