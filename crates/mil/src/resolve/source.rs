//! Where the weight files of a program are.

use crate::{BlobError, BlobFile};
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Finds the weight file that a program names.
pub trait BlobSource {
    /// The file behind a path as the text writes it, `@model_path/weights.bin`.
    ///
    /// # Errors
    /// [`SourceError`] where there is no such file or it is none.
    fn file(&self, path: &str) -> Result<BlobFile, SourceError>;
}

/// No weight file behind a path.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The path leads out of the program's folder.
    #[error("weight path {path:?} leaves the program's folder; it must be @model_path/ and a relative path without \"..\"")]
    Outside {
        /// The path.
        path: String,
    },
    /// The file cannot be opened.
    #[error("weight file {path:?}: {source}")]
    Open {
        /// The path as written.
        path: String,
        /// Why.
        source: Box<BlobError>,
    },
    /// The program came without weight files.
    #[error("the program names the weight file {path:?} but came without any")]
    None {
        /// The path.
        path: String,
    },
}

/// The folder that a program lies in: `@model_path`. Files are mapped when they are first named and kept.
#[derive(Debug)]
pub struct BlobFolder {
    folder: PathBuf,
    open: Mutex<HashMap<String, BlobFile>>,
}

impl BlobFolder {
    /// The weight files below `folder`; nothing is opened yet.
    pub fn new(folder: impl AsRef<Path>) -> Self {
        Self { folder: folder.as_ref().to_path_buf(), open: Mutex::default() }
    }

    /// The file's place on disk.
    fn locate(&self, path: &str) -> Result<PathBuf, SourceError> {
        let outside = || SourceError::Outside { path: path.to_string() };
        let relative = Path::new(path.strip_prefix("@model_path/").ok_or_else(outside)?);
        let plain = relative.components().all(|component| matches!(component, Component::Normal(_)));
        // A backslash or a colon means something else on other systems; no compiler writes one.
        if !plain || relative.as_os_str().is_empty() || path.contains(['\\', ':', '\0']) {
            return Err(outside());
        }
        let file = self.folder.join(relative);
        // Links may lead out as well. What cannot be followed fails to open in a moment, with the system's reason.
        match (self.folder.canonicalize(), file.canonicalize()) {
            (Ok(folder), Ok(real)) if !real.starts_with(&folder) => Err(outside()),
            _ => Ok(file),
        }
    }
}

impl BlobSource for BlobFolder {
    fn file(&self, path: &str) -> Result<BlobFile, SourceError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = open.get(path) {
            return Ok(file.clone());
        }
        let file = BlobFile::open(self.locate(path)?)
            .map_err(|source| SourceError::Open { path: path.to_string(), source: Box::new(source) })?;
        open.insert(path.to_string(), file.clone());
        Ok(file)
    }
}

/// For programs without weights: every path is an error.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoBlobs;

impl BlobSource for NoBlobs {
    fn file(&self, path: &str) -> Result<BlobFile, SourceError> {
        Err(SourceError::None { path: path.to_string() })
    }
}
