//! A model folder in Hugging Face layout: `config.json`, `model.safetensors`, `tokenizer.json`.

use crate::{IoError, SafeTensors};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// A folder whose configuration is read and whose weights are mapped.
#[derive(Clone, Debug)]
pub struct ModelFolder {
    path: PathBuf,
    config: Config,
    weights: SafeTensors,
}

/// The fields of a `config.json`.
#[derive(Clone, Debug)]
pub struct Config {
    path: PathBuf,
    fields: Map<String, Value>,
}

impl ModelFolder {
    /// Reads `config.json` and maps `model.safetensors`.
    ///
    /// # Errors
    /// [`IoError`] that names the file and what is wrong with it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, IoError> {
        let path = path.as_ref().to_path_buf();
        let config = Config::open(path.join("config.json"))?;
        let weights = SafeTensors::open(path.join("model.safetensors"))?;
        Ok(Self { path, config, weights })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Its weights.
    pub fn weights(&self) -> &SafeTensors {
        &self.weights
    }

    /// Where its tokenizer is.
    pub fn tokenizer_path(&self) -> PathBuf {
        self.path.join("tokenizer.json")
    }
}

impl Config {
    /// Reads a JSON object.
    ///
    /// # Errors
    /// [`IoError::File`], or [`IoError::Format`] with line and column.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, IoError> {
        let path = path.as_ref().to_path_buf();
        let bytes = std::fs::read(&path).map_err(IoError::file("read", &path))?;
        let fields = serde_json::from_slice(&bytes).map_err(|error| IoError::format(&path, "JSON", error.to_string()))?;
        Ok(Self { path, fields })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A field, or `None` where it is absent or null.
    ///
    /// # Errors
    /// [`IoError::Field`] where it is of another type.
    pub fn optional<T: DeserializeOwned>(&self, field: &str) -> Result<Option<T>, IoError> {
        match self.fields.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => serde_json::from_value(value.clone())
                .map(Some)
                .map_err(|error| IoError::field(&self.path, field, format!("is {value}: {error}"))),
        }
    }

    /// A field that must be there.
    ///
    /// # Errors
    /// [`IoError::Field`] where it is absent or of another type.
    pub fn required<T: DeserializeOwned>(&self, field: &str) -> Result<T, IoError> {
        self.optional(field)?.ok_or_else(|| IoError::field(&self.path, field, "is missing"))
    }

    /// An extent: an integer from 1 to `limit`.
    ///
    /// # Errors
    /// [`IoError::Field`] where it is absent or not such a number.
    pub fn extent(&self, field: &str, limit: usize) -> Result<usize, IoError> {
        let value: usize = self.required(field)?;
        if (1..=limit).contains(&value) {
            return Ok(value);
        }
        Err(IoError::field(&self.path, field, format!("is {value}, expected 1 to {limit}")))
    }

    /// Checks that a text field, where it is present, is one of `supported`.
    ///
    /// # Errors
    /// [`IoError::Field`] where it is something else.
    pub fn check_text(&self, field: &str, supported: &[&str]) -> Result<(), IoError> {
        match self.optional::<String>(field)? {
            Some(value) if !supported.contains(&value.as_str()) => {
                let problem = format!("is {value:?}; supported: {}", supported.join(", "));
                Err(IoError::field(&self.path, field, problem))
            }
            _ => Ok(()),
        }
    }
}
