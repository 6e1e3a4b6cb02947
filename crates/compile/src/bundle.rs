//! A compiled program on disk: a folder with the text, the weight file and a manifest, written whole or not at all.

use crate::manifest::{FileEntry, FileHash, Manifest, SCHEMA, ports};
use crate::{CompileError, CompileOptions};
use aneforge_mil::{BlobError, BlobFileWriter, Body, EmitError, EmitOptions};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Name of the program text in a bundle.
pub const TEXT: &str = "model.mil";
/// Name of the weight file in a bundle.
pub const WEIGHTS: &str = "weights.bin";
/// Name of the manifest in a bundle.
pub const MANIFEST: &str = "manifest.json";

/// Writes a body as a bundle at `folder`, which must not exist or be a bundle itself, which is then replaced.
///
/// # Errors
/// [`CompileError::Emit`] and [`CompileError::Write`]; the folder is then as it was.
pub fn write(body: &Body, options: &CompileOptions, folder: &Path) -> Result<Manifest, CompileError> {
    if folder.exists() && !is_replaceable(folder) {
        let taken = std::io::Error::new(std::io::ErrorKind::AlreadyExists, "exists and is not a bundle; name another folder");
        return Err(CompileError::write(folder, taken));
    }
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(parent).map_err(|source| CompileError::write(parent, source))?;
    let staging =
        tempfile::Builder::new().prefix(".aneforge-").tempdir_in(parent).map_err(|source| CompileError::write(parent, source))?;
    let manifest = fill(body, options, staging.path())?;
    place(staging, folder)?;
    Ok(manifest)
}

/// Writes the three files into an existing folder.
///
/// # Errors
/// As [`write`].
fn fill(body: &Body, options: &CompileOptions, folder: &Path) -> Result<Manifest, CompileError> {
    let mut weights = BlobFileWriter::create(folder.join(WEIGHTS)).map_err(blob)?;
    let emit_options = EmitOptions { dialect: options.dialect, ..EmitOptions::default() };
    let program = aneforge_mil::emit(body, &emit_options, weights.blobs().map_err(blob)?)?;
    let text = aneforge_mil::print(&program);
    write_file(&folder.join(TEXT), text.as_bytes())?;
    let (mut text_hash, mut weights_hash) = (FileHash::new(), FileHash::new());
    text_hash.update(text.as_bytes());
    let weights_bytes = weights.finish_observed(&mut |bytes| weights_hash.update(bytes)).map_err(blob)?;
    let entry = |name: &str, bytes, hash: FileHash| FileEntry { name: name.to_string(), bytes, xxh3: hash.to_hex() };
    let (inputs, outputs) = ports(&program);
    let manifest = Manifest {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_string(),
        target: options.target.to_string(),
        dialect: format!("program({}.{})/{}", program.version.0, program.version.1, options.dialect.opset()),
        inputs,
        outputs,
        state: Vec::new(),
        compression: "none".to_string(),
        files: vec![entry(TEXT, text.len() as u64, text_hash), entry(WEIGHTS, weights_bytes, weights_hash)],
    };
    let text = serde_json::to_string_pretty(&manifest).map_err(|error| CompileError::internal(error.to_string()))?;
    write_file(&folder.join(MANIFEST), text.as_bytes())?;
    Ok(manifest)
}

fn is_replaceable(folder: &Path) -> bool {
    let empty = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
    empty || folder.join(MANIFEST).is_file()
}

/// Gives the finished folder its name. What stood there is moved aside first, so that no moment shows a mixture.
fn place(staging: tempfile::TempDir, folder: &Path) -> Result<(), CompileError> {
    let fail = |source| CompileError::write(folder, source);
    let staged: PathBuf = staging.path().to_path_buf();
    let old = folder.exists().then(|| staged.with_extension("old"));
    if let Some(old) = &old {
        fs::rename(folder, old).map_err(fail)?;
    }
    if let Err(source) = fs::rename(&staged, folder) {
        if let Some(old) = &old {
            // Best effort: the first error is the one to report.
            let _ = fs::rename(old, folder);
        }
        return Err(fail(source));
    }
    // The folder has its final name: nothing is left for the temporary one to remove.
    let _ = staging.keep();
    if let Some(old) = &old {
        let _ = fs::remove_dir_all(old);
    }
    Ok(())
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), CompileError> {
    let mut file = fs::File::create(path).map_err(|source| CompileError::write(path, source))?;
    file.write_all(bytes).map_err(|source| CompileError::write(path, source))
}

fn blob(error: BlobError) -> CompileError {
    CompileError::Emit(match error {
        BlobError::Constant { name, source } => EmitError::Blob { name, source: *source },
        source => EmitError::Blob { name: WEIGHTS.to_string(), source },
    })
}
