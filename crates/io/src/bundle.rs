//! Whether a bundle on disk is what was written.

use crate::IoError;
use aneforge_compile::bundle::{MANIFEST, SEGMENTS, TEXT};
use aneforge_compile::{FileHash, Manifest, SCHEMA};
use aneforge_map::Mapping;
use aneforge_native::net::NET;
use std::path::{Path, PathBuf};

/// What [`check`] found.
#[derive(Clone, Debug)]
pub struct CheckedBundle {
    /// The manifest, where there is one: a folder with a program from elsewhere has none and is not checked.
    pub manifest: Option<Manifest>,
    /// Whether the program's text is another than the one that was written. That is allowed: reading it says what is wrong with it.
    pub is_text_edited: bool,
}

/// Reads a bundle's manifest and holds its files against it. Weights carry no redundancy of their own: a flipped bit in them would
/// only give other answers, so the hash is what tells.
///
/// # Errors
/// [`IoError::File`], or [`IoError::Format`] with the file, the size or hash found and the one expected.
pub fn check(folder: impl AsRef<Path>) -> Result<CheckedBundle, IoError> {
    let folder = folder.as_ref();
    let path = folder.join(MANIFEST);
    if !path.exists() {
        return Ok(CheckedBundle { manifest: None, is_text_edited: false });
    }
    let manifest = read_manifest(&path)?;
    let mut is_text_edited = false;
    for entry in &manifest.files {
        let problem = compare(&folder.join(&entry.name), entry.bytes, &entry.xxh3)?;
        match problem {
            Some(_) if is_text(&entry.name) => is_text_edited = true,
            Some((path, problem)) => return Err(IoError::Format { path, format: "bundle", problem }),
            None => {}
        }
    }
    Ok(CheckedBundle { manifest: Some(manifest), is_text_edited })
}

fn read_manifest(path: &Path) -> Result<Manifest, IoError> {
    let bytes = std::fs::read(path).map_err(IoError::file("read", path))?;
    let manifest: Manifest =
        serde_json::from_slice(&bytes).map_err(|error| IoError::format(path, "manifest", error.to_string()))?;
    if manifest.schema != SCHEMA {
        return Err(IoError::field(path, "schema", format!("is {}, this version reads {SCHEMA}", manifest.schema)));
    }
    // The names become paths: nothing outside of the folder is read.
    let stray = manifest.files.iter().find(|entry| !lies_inside(&entry.name));
    match stray {
        Some(entry) => {
            let problem = format!("names {:?}, expected names without folders but those of segments", entry.name);
            Err(IoError::field(path, "files", problem))
        }
        None => Ok(manifest),
    }
}

/// Whether a name is that of a program people may edit: a text or a network.
fn is_text(name: &str) -> bool {
    name.rsplit('/').next().is_some_and(|file| file == TEXT || file == NET)
}

/// Whether a name is that of a file in the bundle's folder or in that of one of its segments.
fn lies_inside(name: &str) -> bool {
    let plain = |name: &str| Path::new(name).file_name() == Some(name.as_ref());
    match name.split('/').collect::<Vec<_>>()[..] {
        [file] => plain(file),
        [SEGMENTS, index, file] => index.parse::<usize>().is_ok() && plain(file),
        _ => false,
    }
}

/// The file and what is wrong with it, if anything.
fn compare(path: &Path, bytes: u64, hash: &str) -> Result<Option<(PathBuf, String)>, IoError> {
    let held = std::fs::metadata(path).map_err(IoError::file("open", path))?.len();
    if held != bytes {
        return Ok(Some((path.to_path_buf(), format!("it has {held} bytes, the manifest says {bytes}: is it cut off?"))));
    }
    let mut hasher = FileHash::new();
    let file = Mapping::open(path).map_err(|error| IoError::File { action: "read", path: error.path, source: error.source })?;
    hasher.update(file.bytes());
    let found = hasher.to_hex();
    let problem = format!("its contents have the hash {found}, the manifest says {hash}: they were changed after compiling");
    Ok((found != hash).then(|| (path.to_path_buf(), problem)))
}
