//! Writing weight files as a stream, or planning them.

use super::BlobError;
use super::format::{ALIGNMENT, Descriptor, RECORD, SENTINEL, code, header};
use crate::{TensorType, Weight, WeightError};
use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;

/// A blob with its place in a file that is written later.
pub(super) struct Planned {
    /// Constant of the program; empty where the caller named none.
    pub name: String,
    /// Where the descriptor goes.
    pub offset: u64,
    pub descriptor: Descriptor,
    pub weight: Weight,
}

/// A whole weight file before it is written: every offset follows from the sizes.
pub(super) struct Plan {
    pub path: PathBuf,
    /// Bytes of the file.
    pub length: u64,
    pub count: u32,
    pub blobs: Vec<Planned>,
}

/// Writes blobs one after the other; holds one chunk of one weight at a time. The number of blobs is patched into the header by
/// [`BlobWriter::finish`]. The writer that a [`BlobFileWriter`](super::BlobFileWriter) lends only gives out offsets; the file is
/// written when it is finished.
pub struct BlobWriter<W: Write + Seek> {
    sink: W,
    path: PathBuf,
    position: u64,
    count: u32,
    poisoned: bool,
    /// Blobs for later, where nothing is written at once.
    planned: Option<Vec<Planned>>,
}

impl<W: Write + Seek> BlobWriter<W> {
    /// Starts a file at the sink's current position, which counts as byte 0 and should be the start of the file.
    ///
    /// # Errors
    /// [`BlobError::Io`].
    pub fn new(sink: W) -> Result<Self, BlobError> {
        let mut writer = Self::planning(sink, PathBuf::from("weight data"));
        writer.planned = None;
        writer.sink.write_all(&header(0)).map_err(|source| writer.io("write", source))?;
        Ok(writer)
    }

    /// Plans the file at `path`, which `sink` writes later.
    pub(super) fn planning(sink: W, path: PathBuf) -> Self {
        Self { sink, path, position: RECORD as u64, count: 0, poisoned: false, planned: Some(Vec::new()) }
    }

    /// The sink, untouched, and what is to be written to it.
    pub(super) fn into_plan(self) -> (W, Plan) {
        let Self { sink, path, position, count, planned, .. } = self;
        (sink, Plan { path, length: position, count, blobs: planned.unwrap_or_default() })
    }

    /// Blobs added so far.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Bytes up to the end of the last blob.
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
        let (offset, descriptor) = self.place(ty)?;
        let (expected, found) = (descriptor.size, bytes.len() as u64);
        if found != expected {
            return Err(BlobError::Size { path: self.path.clone(), offset, declared: ty.to_string(), expected, found });
        }
        let weight = match self.planned {
            Some(_) => Weight::from_bytes(ty.clone(), bytes.to_vec()).map_err(|source| weight_error(ty, source))?,
            None => return self.write_now(ty, offset, descriptor, |sink| sink(bytes)),
        };
        self.plan(Planned { name: String::new(), offset, descriptor, weight })
    }

    /// Appends a weight, read and converted chunk by chunk, and gives the offset that programs name.
    ///
    /// # Errors
    /// [`BlobError::Unstorable`]; [`BlobError::Weight`] where the weight cannot be read; [`BlobError::Io`]. After either of the
    /// last two the file is incomplete and every further call fails. A planned file tells them when it is finished.
    pub fn add_weight(&mut self, weight: &Weight) -> Result<u64, BlobError> {
        self.add_constant("", weight)
    }

    /// As [`Self::add_weight`], for a constant whose name a later error should tell.
    ///
    /// # Errors
    /// As [`Self::add_weight`].
    pub fn add_constant(&mut self, name: &str, weight: &Weight) -> Result<u64, BlobError> {
        let (offset, descriptor) = self.place(weight.ty())?;
        match self.planned {
            Some(_) => self.plan(Planned { name: name.to_string(), offset, descriptor, weight: weight.clone() }),
            None => self.write_now(weight.ty(), offset, descriptor, |sink| weight.stream(sink)),
        }
    }

    /// Offset and descriptor of the next blob.
    fn place(&self, ty: &TensorType) -> Result<(u64, Descriptor), BlobError> {
        if self.poisoned {
            return Err(BlobError::Poisoned);
        }
        let code = code(ty.dtype).ok_or(BlobError::Unstorable { dtype: ty.dtype })?;
        let bits = ty.checked_count().and_then(|count| ty.dtype.bits().checked_mul(count));
        let size = bits.map_or(u64::MAX, |bits| bits.div_ceil(8) as u64);
        let padding_bits = bits.map_or(0, |bits| (8 - bits as u64 % 8) % 8);
        let offset = self.position.next_multiple_of(ALIGNMENT);
        Ok((offset, Descriptor { sentinel: SENTINEL, code, size, data: offset + RECORD as u64, padding_bits }))
    }

    fn plan(&mut self, planned: Planned) -> Result<u64, BlobError> {
        let (offset, Descriptor { size, data, .. }) = (planned.offset, planned.descriptor);
        let end = data.checked_add(size).ok_or_else(|| BlobError::Size {
            path: self.path.clone(),
            offset,
            declared: planned.weight.ty().to_string(),
            expected: size,
            found: 0,
        })?;
        self.position = end;
        self.count += 1;
        self.planned.get_or_insert_default().push(planned);
        Ok(offset)
    }

    fn write_now(
        &mut self,
        ty: &TensorType,
        offset: u64,
        descriptor: Descriptor,
        stream: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<(), WeightError>) -> Result<(), WeightError>,
    ) -> Result<u64, BlobError> {
        self.poisoned = true;
        let padding = offset - self.position;
        self.put(&[0; ALIGNMENT as usize][..padding as usize])?;
        self.put(&descriptor.to_bytes())?;
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
        streamed.map_err(|source| weight_error(ty, source))?;
        let expected = descriptor.size;
        if found != expected {
            return Err(BlobError::Size { path: self.path.clone(), offset, declared: ty.to_string(), expected, found });
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
        match sealed {
            Ok(()) => Ok(self.sink),
            Err(source) => Err(self.io("write", source)),
        }
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), BlobError> {
        self.sink.write_all(bytes).map_err(|source| self.io("write", source))?;
        self.position += bytes.len() as u64;
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

pub(super) fn weight_error(ty: &TensorType, source: WeightError) -> BlobError {
    BlobError::Weight { ty: ty.to_string(), source }
}
