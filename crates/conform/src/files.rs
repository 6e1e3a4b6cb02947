//! Programs as the files that a compiler reads, where no pass is to touch them.

use aneforge_mil::{BlobFileWriter, Body, EmitOptions, emit, print};
use std::path::Path;

/// Writes a body as it stands: `model.mil` and `weights.bin`.
pub(crate) fn write(body: &Body, folder: &Path) -> Result<(), String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    std::fs::create_dir_all(folder).map_err(|error| text(&error))?;
    let mut weights = BlobFileWriter::create(folder.join("weights.bin")).map_err(|error| text(&error))?;
    let blobs = weights.blobs().map_err(|error| text(&error))?;
    let program = emit(body, &EmitOptions::default(), blobs).map_err(|error| text(&error))?;
    weights.finish().map_err(|error| text(&error))?;
    std::fs::write(folder.join("model.mil"), print(&program)).map_err(|error| text(&error))
}
