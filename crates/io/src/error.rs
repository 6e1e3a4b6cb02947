//! What can be wrong with a file, said with its name and the place in it.

use std::path::{Path, PathBuf};

/// A model or data file could not be used. Every message names the file, and the tensor or field where there is one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IoError {
    /// The file cannot be read or written.
    #[error("cannot {action} {path}")]
    File {
        /// `open`, `read`, `write` or `rename`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
    /// The file is not what its name says, or is cut off or damaged.
    #[error("{path} is not a valid {format} file: {problem}")]
    Format {
        /// The file.
        path: PathBuf,
        /// `safetensors`, `npy`, `JSON`, ...
        format: &'static str,
        /// What was found and what was expected.
        problem: String,
    },
    /// One tensor of a file contradicts the file or its own description.
    #[error("{path}: tensor {tensor:?} {problem}")]
    Tensor {
        /// The file.
        path: PathBuf,
        /// The tensor's name.
        tensor: String,
        /// What was found and what was expected.
        problem: String,
    },
    /// Tensors that the model needs are not in the file.
    #[error("{path} lacks {} tensor(s) that the model needs: {}", missing.len(), missing.join(", "))]
    Missing {
        /// The file.
        path: PathBuf,
        /// All names, in the model's order.
        missing: Vec<String>,
    },
    /// A field of a configuration file has a value that is not supported.
    #[error("{path}: field {field:?} {problem}")]
    Field {
        /// The file.
        path: PathBuf,
        /// The field.
        field: String,
        /// What was found and what is supported.
        problem: String,
    },
    /// The tokenizer could not be read or could not encode a text.
    #[error("{path}: {problem}")]
    Tokenizer {
        /// `tokenizer.json`.
        path: PathBuf,
        /// The tokenizer's own words.
        problem: String,
    },
}

impl IoError {
    /// For `map_err`: the system's reason for not being able to do `action` with `path`.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::File { action, path: path.to_path_buf(), source }
    }

    pub(crate) fn format(path: &Path, format: &'static str, problem: impl Into<String>) -> Self {
        Self::Format { path: path.to_path_buf(), format, problem: problem.into() }
    }

    #[cfg(feature = "safetensors")]
    pub(crate) fn tensor(path: &Path, tensor: &str, problem: impl Into<String>) -> Self {
        Self::Tensor { path: path.to_path_buf(), tensor: tensor.to_string(), problem: problem.into() }
    }

    pub(crate) fn field(path: &Path, field: &str, problem: impl Into<String>) -> Self {
        Self::Field { path: path.to_path_buf(), field: field.to_string(), problem: problem.into() }
    }
}
