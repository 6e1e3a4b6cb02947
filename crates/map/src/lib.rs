//! Read-only mapping of a file behind a safe type.
//!
//! The one place where a file's bytes are borrowed without a copy. The mapping is private and read only; a file that another
//! process truncates while it is mapped ends this process with a bus error, as with every mapping, so models are written under a
//! temporary name and renamed.
#![deny(unsafe_code)]

use std::fs::File;
use std::path::{Path, PathBuf};

/// A file mapped into memory.
#[derive(Debug)]
pub struct Mapping {
    path: PathBuf,
    map: Option<memmap2::Mmap>,
}

/// A file could not be mapped.
#[derive(Debug, thiserror::Error)]
#[error("cannot map {path}: {source}")]
pub struct MapError {
    /// The file.
    pub path: PathBuf,
    /// The system's reason.
    pub source: std::io::Error,
}

impl Mapping {
    /// Maps the whole file.
    ///
    /// # Errors
    /// [`MapError`] with the system's reason.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, MapError> {
        let path = path.as_ref().to_path_buf();
        let fail = |source| MapError { path: path.clone(), source };
        let file = File::open(&path).map_err(fail)?;
        let metadata = file.metadata().map_err(fail)?;
        if !metadata.is_file() {
            return Err(fail(std::io::Error::new(std::io::ErrorKind::InvalidInput, "not a regular file")));
        }
        if metadata.len() == 0 {
            return Ok(Self { path, map: None });
        }
        // SAFETY: the mapping is read only and private to this value; no reference outlives it because `bytes` borrows `self`.
        // Truncation by another process is the documented residual risk of the crate.
        #[allow(unsafe_code)]
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(fail)?;
        Ok(Self { path, map: Some(map) })
    }

    /// The file's bytes.
    pub fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
