//! Model files and the models in them.
//!
//! - [`SafeTensors`] maps weights and checks the whole header first; [`Loader`] hands them to a model.
//! - [`NpyArray`] reads and writes numpy's `.npy`.
//! - [`ModelFolder`] is a folder in Hugging Face layout, [`TextTokenizer`] its tokenizer.
//! - [`Images`] reads labelled images from IDX files and the binary files of CIFAR-10.
//!
//! Everything that is written is written whole or not at all ([`write_whole`]).
#![forbid(unsafe_code)]

pub mod bundle;
#[cfg(feature = "safetensors")]
pub mod cache;
#[cfg(feature = "tokenizers")]
mod embed;
mod error;
#[cfg(feature = "safetensors")]
mod hf;
mod images;
#[cfg(feature = "safetensors")]
mod loader;
#[cfg(feature = "safetensors")]
pub mod models;
#[cfg(feature = "npy")]
mod npy;
#[cfg(feature = "safetensors")]
mod safetensors;
#[cfg(feature = "tokenizers")]
mod tokenize;
#[cfg(feature = "tokenizers")]
mod words;
mod write;

#[cfg(feature = "tokenizers")]
pub use embed::{BUCKETS, EmbedError, EmbedOptions, Embedder, Embeddings, MAX_TOKENS};
pub use error::IoError;
#[cfg(feature = "safetensors")]
pub use hf::{Config, ModelFolder};
pub use images::{Idx, Images, unpacked};
#[cfg(feature = "safetensors")]
pub use loader::{Loader, Values};
#[cfg(feature = "npy")]
pub use npy::NpyArray;
#[cfg(feature = "safetensors")]
pub use safetensors::{SafeTensors, TensorInfo};
#[cfg(feature = "tokenizers")]
pub use tokenize::{TextTokenizer, Tokens};
pub use write::write_whole;
