//! Reading weight files through a mapping.

use super::BlobError;
use super::format::{ALIGNMENT, Descriptor, RECORD, SENTINEL, VERSION, dtype, word};
use crate::{DType, TensorType, Weight};
use aneforge_map::Mapping;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A weight file, mapped; nothing of it is copied.
#[derive(Clone, Debug)]
pub struct BlobFile {
    mapping: Arc<Mapping>,
    count: u32,
}

/// One blob in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobView<'a> {
    /// Element type.
    pub dtype: DType,
    /// The data, packed little-endian elements.
    pub bytes: &'a [u8],
    /// Offset of the descriptor, as programs name it.
    pub offset: u64,
    /// Offset of the data.
    pub data_offset: u64,
    /// Unused bits at the end of the data, 0 unless elements are narrower than a byte.
    pub padding_bits: u64,
}

impl BlobFile {
    /// Maps a file and checks its header.
    ///
    /// # Errors
    /// [`BlobError::Map`], [`BlobError::Truncated`], [`BlobError::Version`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, BlobError> {
        Self::from_mapping(Arc::new(Mapping::open(path)?))
    }

    /// The same for a file that is mapped already.
    ///
    /// # Errors
    /// [`BlobError::Truncated`], [`BlobError::Version`].
    pub fn from_mapping(mapping: Arc<Mapping>) -> Result<Self, BlobError> {
        let bytes = mapping.bytes();
        let path = || mapping.path().to_path_buf();
        let (Some(count), Some(version), true) = (word(bytes, 0), word(bytes, 4), bytes.len() >= RECORD) else {
            let length = bytes.len() as u64;
            return Err(BlobError::Truncated { path: path(), offset: 0, what: "header", needed: RECORD as u64, length });
        };
        if version != VERSION {
            return Err(BlobError::Version { path: path(), found: version });
        }
        Ok(Self { mapping, count })
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        self.mapping.path()
    }

    /// Number of blobs according to the header.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The mapping behind the file.
    pub fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    /// The blob whose descriptor stands at `offset`, which need not be aligned.
    ///
    /// # Errors
    /// [`BlobError`] where no whole blob stands there.
    pub fn blob_at(&self, offset: u64) -> Result<BlobView<'_>, BlobError> {
        let bytes = self.mapping.bytes();
        let length = bytes.len() as u64;
        let truncated = |offset, what, needed| BlobError::Truncated { path: self.path_buf(), offset, what, needed, length };
        let contradiction = |problem| BlobError::Descriptor { path: self.path_buf(), offset, problem };
        let descriptor = usize::try_from(offset)
            .ok()
            .and_then(|at| bytes.get(at..))
            .and_then(Descriptor::from_bytes)
            .ok_or_else(|| truncated(offset, "blob descriptor", RECORD as u64))?;
        if descriptor.sentinel != SENTINEL {
            return Err(BlobError::Sentinel { path: self.path_buf(), offset, found: descriptor.sentinel });
        }
        let code = descriptor.code;
        let dtype = dtype(code).ok_or_else(|| BlobError::DTypeCode { path: self.path_buf(), offset, code })?;
        let Descriptor { size, data, padding_bits, .. } = descriptor;
        // Every known writer puts the data behind its descriptor, at once or at the next boundary. Anything else is a damaged offset,
        // which would otherwise give other numbers without a word.
        let behind = offset.saturating_add(RECORD as u64);
        if data != behind && behind.checked_next_multiple_of(ALIGNMENT) != Some(data) {
            return Err(contradiction(format!("the data would start at byte {data}, not behind the descriptor at byte {behind}")));
        }
        // Elements of whole bytes have no padding: writers from before there was this field leave anything there.
        let padding_bits = if dtype.bits().is_multiple_of(8) { 0 } else { padding_bits };
        if padding_bits >= 8 || (padding_bits != 0 && size == 0) {
            return Err(contradiction(format!("{padding_bits} padding bits cannot be in {size} bytes of {dtype}")));
        }
        if dtype.bits() >= 8 && !size.is_multiple_of(dtype.bits() as u64 / 8) {
            return Err(contradiction(format!("{size} bytes are no whole number of {dtype} elements")));
        }
        let data_bytes = data
            .checked_add(size)
            .filter(|&end| end <= length)
            .and_then(|end| bytes.get(usize::try_from(data).ok()?..usize::try_from(end).ok()?))
            .ok_or_else(|| truncated(data, "blob data", size))?;
        Ok(BlobView { dtype, bytes: data_bytes, offset, data_offset: data, padding_bits })
    }

    /// The blob at `offset` as a weight of type `ty`, mapped and not copied.
    ///
    /// # Errors
    /// As [`Self::blob_at`]; [`BlobError::DType`] and [`BlobError::Size`] where the blob is not what `ty` declares.
    pub fn weight(&self, offset: u64, ty: &TensorType) -> Result<Weight, BlobError> {
        let view = self.blob_at(offset)?;
        if view.dtype != ty.dtype {
            let declared = ty.to_string();
            return Err(BlobError::DType { path: self.path_buf(), offset, declared, stored: view.dtype });
        }
        let expected = ty.checked_count().and_then(|count| ty.dtype.bits().checked_mul(count)).map(|bits| bits.div_ceil(8) as u64);
        let found = view.bytes.len() as u64;
        if expected != Some(found) {
            let expected = expected.unwrap_or(u64::MAX);
            return Err(BlobError::Size { path: self.path_buf(), offset, declared: ty.to_string(), expected, found });
        }
        Weight::from_mapping(ty.clone(), ty.dtype, Arc::clone(&self.mapping), view.data_offset as usize)
            .map_err(|source| BlobError::Weight { ty: ty.to_string(), source })
    }

    /// All blobs in file order. Ends after the first error.
    pub fn iter(&self) -> BlobIter<'_> {
        BlobIter { file: self, next: RECORD as u64, found: 0, done: false }
    }

    fn path_buf(&self) -> PathBuf {
        self.path().to_path_buf()
    }

    fn has_sentinel(&self, offset: u64) -> bool {
        usize::try_from(offset).ok().and_then(|at| word(self.mapping.bytes(), at)) == Some(SENTINEL)
    }
}

impl<'a> IntoIterator for &'a BlobFile {
    type Item = Result<BlobView<'a>, BlobError>;
    type IntoIter = BlobIter<'a>;

    fn into_iter(self) -> BlobIter<'a> {
        self.iter()
    }
}

/// Walks the blobs of a file, padded to 64 bytes or not.
#[derive(Debug)]
pub struct BlobIter<'a> {
    file: &'a BlobFile,
    next: u64,
    found: u32,
    done: bool,
}

impl<'a> Iterator for BlobIter<'a> {
    type Item = Result<BlobView<'a>, BlobError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done || self.found == self.file.count {
            return None;
        }
        let padded = self.next.checked_next_multiple_of(ALIGNMENT).unwrap_or(self.next);
        let offset = if self.file.has_sentinel(self.next) { self.next } else { padded };
        if offset >= self.file.mapping.bytes().len() as u64 {
            self.done = true;
            let (expected, found) = (self.file.count, self.found);
            return Some(Err(BlobError::Count { path: self.file.path_buf(), expected, found }));
        }
        let item = self.file.blob_at(offset);
        match &item {
            Ok(view) => {
                self.next = view.data_offset + view.bytes.len() as u64;
                self.found += 1;
            }
            Err(_) => self.done = true,
        }
        Some(item)
    }
}
