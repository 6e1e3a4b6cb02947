//! Weight files that appear whole or not at all.

use super::write::BlobWriter;
use super::{BlobError, pipeline};
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes a weight file under a temporary name beside its own and renames it when it is whole. Blobs get their offsets when they
/// are added; all are converted and written in one go by [`BlobFileWriter::finish`]. Dropped before that, it removes what it made.
#[derive(Debug)]
pub struct BlobFileWriter {
    writer: Option<BlobWriter<File>>,
    temporary: PathBuf,
    target: PathBuf,
}

impl BlobFileWriter {
    /// Starts the file that will be `path`.
    ///
    /// # Errors
    /// [`BlobError::Io`].
    pub fn create(path: impl AsRef<Path>) -> Result<Self, BlobError> {
        static UNIQUE: AtomicU64 = AtomicU64::new(0);
        let target = path.as_ref().to_path_buf();
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let unique = UNIQUE.fetch_add(1, Ordering::Relaxed);
        let temporary = target.with_file_name(format!(".{name}.{}.{unique}.partial", std::process::id()));
        let fail = |source| BlobError::Io { action: "create", path: target.clone(), source };
        let file = OpenOptions::new().write(true).create_new(true).open(&temporary).map_err(fail)?;
        let writer = Some(BlobWriter::planning(file, target.clone()));
        Ok(Self { writer, temporary, target })
    }

    /// The writer of the file's blobs. What it is given is read by [`Self::finish`].
    ///
    /// # Errors
    /// [`BlobError::Poisoned`] after an earlier error.
    pub fn blobs(&mut self) -> Result<&mut BlobWriter<File>, BlobError> {
        self.writer.as_mut().ok_or(BlobError::Poisoned)
    }

    /// Writes the file and gives it its name; returns its size in bytes.
    ///
    /// # Errors
    /// [`BlobError::Constant`] and [`BlobError::Weight`] where a weight cannot be read or does not fit its type;
    /// [`BlobError::Io`]. Nothing is left at either name then, except what stood at the final name before.
    pub fn finish(self) -> Result<u64, BlobError> {
        self.finish_observed(&mut |_| ())
    }

    /// As [`Self::finish`]; `observer` sees every byte of the file in order, for example to hash it without reading it again.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub fn finish_observed(mut self, observer: &mut (dyn FnMut(&[u8]) + Send)) -> Result<u64, BlobError> {
        let (file, plan) = self.writer.take().ok_or(BlobError::Poisoned)?.into_plan();
        pipeline::write(&file, &plan, observer)?;
        drop(file);
        let fail = |source| BlobError::Io { action: "rename into place", path: self.target.clone(), source };
        std::fs::rename(&self.temporary, &self.target).map_err(fail)?;
        self.temporary = PathBuf::new();
        Ok(plan.length)
    }
}

impl Drop for BlobFileWriter {
    fn drop(&mut self) {
        self.writer = None;
        if !self.temporary.as_os_str().is_empty() {
            // A second failure has nobody left to be told.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}
