//! Weight files: Apple's MILBlob storage format, version 2.
//!
//! The layout is public in apple/coremltools (`mlmodel/src/MILBlob/Blob/StorageFormat.hpp`): a header of 64 bytes, then for each
//! blob a descriptor of 64 bytes and its data, both on 64-byte boundaries. The reader also takes files whose writer did not pad,
//! as the package aneforge 0.4 does.

mod error;
mod file;
mod format;
mod pipeline;
mod read;
mod write;

pub use error::BlobError;
pub use file::BlobFileWriter;
pub use read::{BlobFile, BlobIter, BlobView};
pub use write::BlobWriter;
