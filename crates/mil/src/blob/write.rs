//! Writing weight files as a stream.

use super::BlobError;
use super::format::{ALIGNMENT, Descriptor, RECORD, SENTINEL, code, header};
use crate::{TensorType, Weight, WeightError};
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Sees every byte behind the file header in file order, for example to hash the file while it is written.
pub type Observer = Box<dyn FnMut(&[u8]) + Send>;

/// Writes blobs one after the other; holds one chunk of one weight at a time. The number of blobs is patched into the header by
/// [`BlobWriter::finish`].
pub struct BlobWriter<W: Write + Seek> {
    sink: W,
    path: PathBuf,
    position: u64,
    count: u32,
    poisoned: bool,
    observer: Option<Observer>,
}

impl<W: Write + Seek> BlobWriter<W> {
    /// Starts a file at the sink's current position, which counts as byte 0 and should be the start of the file.
    ///
    /// # Errors
    /// [`BlobError::Io`].
    pub fn new(sink: W) -> Result<Self, BlobError> {
        Self::with_path(sink, PathBuf::from("weight data"))
    }

    fn with_path(sink: W, path: PathBuf) -> Result<Self, BlobError> {
        let mut writer = Self { sink, path, position: 0, count: 0, poisoned: false, observer: None };
        writer.sink.write_all(&header(0)).map_err(|source| writer.io("write", source))?;
        writer.position = RECORD as u64;
        Ok(writer)
    }

    /// Shows every byte behind the 64-byte header to `observer`, in file order.
    pub fn observe(&mut self, observer: Observer) {
        self.observer = Some(observer);
    }

    /// Blobs written so far.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Bytes written so far.
    pub fn len(&self) -> u64 {
        self.position
    }

    /// True while there is no blob.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Appends packed little-endian elements and gives the offset that programs name.
    ///
    /// # Errors
    /// [`BlobError::Unstorable`]; [`BlobError::Size`] where `bytes` does not fill `ty`; [`BlobError::Io`].
    pub fn add_bytes(&mut self, ty: &TensorType, bytes: &[u8]) -> Result<u64, BlobError> {
        self.add(ty, |sink| sink(bytes))
    }

    /// Appends a weight, read and converted chunk by chunk, and gives the offset that programs name.
    ///
    /// # Errors
    /// [`BlobError::Unstorable`]; [`BlobError::Weight`] where the weight cannot be read; [`BlobError::Io`]. After either of the
    /// last two the file is incomplete and every further call fails.
    pub fn add_weight(&mut self, weight: &Weight) -> Result<u64, BlobError> {
        self.add(weight.ty(), |sink| weight.stream(sink))
    }

    fn add(
        &mut self,
        ty: &TensorType,
        stream: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<(), WeightError>) -> Result<(), WeightError>,
    ) -> Result<u64, BlobError> {
        if self.poisoned {
            return Err(BlobError::Poisoned);
        }
        let code = code(ty.dtype).ok_or(BlobError::Unstorable { dtype: ty.dtype })?;
        let bits = ty.checked_count().and_then(|count| ty.dtype.bits().checked_mul(count));
        let size = bits.map_or(u64::MAX, |bits| bits.div_ceil(8) as u64);
        let padding_bits = bits.map_or(0, |bits| (8 - bits as u64 % 8) % 8);
        self.poisoned = true;
        let padding = self.position.next_multiple_of(ALIGNMENT) - self.position;
        self.put(&[0; ALIGNMENT as usize][..padding as usize])?;
        let offset = self.position;
        let data = offset + RECORD as u64;
        self.put(&Descriptor { sentinel: SENTINEL, code, size, data, padding_bits }.to_bytes())?;
        let mut failure = None;
        let mut found = 0u64;
        let streamed = stream(&mut |chunk| {
            found += chunk.len() as u64;
            self.put(chunk).map_err(|error| {
                let message = error.to_string();
                failure = Some(error);
                WeightError::Other(message)
            })
        });
        if let Some(error) = failure {
            return Err(error);
        }
        streamed.map_err(|source| BlobError::Weight { ty: ty.to_string(), source })?;
        if found != size {
            return Err(BlobError::Size { path: self.path.clone(), offset, declared: ty.to_string(), expected: size, found });
        }
        self.count += 1;
        self.poisoned = false;
        Ok(offset)
    }

    /// Writes the count into the header, flushes, and gives the sink back.
    ///
    /// # Errors
    /// [`BlobError::Io`]; [`BlobError::Poisoned`] after an earlier error.
    pub fn finish(mut self) -> Result<W, BlobError> {
        self.seal()?;
        Ok(self.sink)
    }

    fn seal(&mut self) -> Result<(), BlobError> {
        if self.poisoned {
            return Err(BlobError::Poisoned);
        }
        let back = i64::try_from(self.position).unwrap_or(i64::MAX);
        let sealed = self
            .sink
            .seek(SeekFrom::Current(-back))
            .and_then(|_| self.sink.write_all(&self.count.to_le_bytes()))
            .and_then(|()| self.sink.seek(SeekFrom::Current(back - 4)))
            .and_then(|_| self.sink.flush());
        sealed.map_err(|source| self.io("write", source))
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), BlobError> {
        self.sink.write_all(bytes).map_err(|source| self.io("write", source))?;
        self.position += bytes.len() as u64;
        if let Some(observer) = &mut self.observer {
            observer(bytes);
        }
        Ok(())
    }

    fn io(&self, action: &'static str, source: std::io::Error) -> BlobError {
        BlobError::Io { action, path: self.path.clone(), source }
    }
}

impl<W: Write + Seek> std::fmt::Debug for BlobWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BlobWriter({} blobs, {} bytes, {})", self.count, self.position, self.path.display())
    }
}

/// Writes a weight file under a temporary name beside its own and renames it when it is whole. Dropped before
/// [`BlobFileWriter::finish`], it removes what it wrote.
#[derive(Debug)]
pub struct BlobFileWriter {
    writer: Option<BlobWriter<BufWriter<File>>>,
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
        // From here on the temporary file is removed whatever happens.
        let mut created = Self { writer: None, temporary, target: target.clone() };
        created.writer = Some(BlobWriter::with_path(BufWriter::with_capacity(1 << 16, file), target)?);
        Ok(created)
    }

    /// The writer of the file's blobs.
    ///
    /// # Errors
    /// [`BlobError::Poisoned`] where creating it failed.
    pub fn blobs(&mut self) -> Result<&mut BlobWriter<BufWriter<File>>, BlobError> {
        self.writer.as_mut().ok_or(BlobError::Poisoned)
    }

    /// Completes the file and gives it its name; returns its size in bytes.
    ///
    /// # Errors
    /// [`BlobError::Io`]; [`BlobError::Poisoned`] after an earlier error. Nothing is left at either name then, except what
    /// stood at the final name before.
    pub fn finish(mut self) -> Result<u64, BlobError> {
        let mut writer = self.writer.take().ok_or(BlobError::Poisoned)?;
        writer.seal()?;
        let length = writer.len();
        drop(writer);
        let fail = |source| BlobError::Io { action: "rename into place", path: self.target.clone(), source };
        std::fs::rename(&self.temporary, &self.target).map_err(fail)?;
        self.temporary = PathBuf::new();
        Ok(length)
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
