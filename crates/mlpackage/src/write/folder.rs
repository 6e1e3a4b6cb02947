//! A package on disk: written whole or not at all.

use super::WriteError;
use crate::manifest;
use aneforge_staging::Staging;
use std::fs;
use std::path::{Path, PathBuf};

/// A temporary folder beside `target`, after a check that what stands there may be replaced.
pub fn staging(target: &Path) -> Result<Staging, WriteError> {
    let staging = Staging::beside(target).map_err(|source| io(target, source))?;
    if target.exists() {
        replaceable(target)?;
    }
    Ok(staging)
}

/// Gives the folder its name.
pub fn place(staging: Staging, target: &Path) -> Result<(), WriteError> {
    staging.place().map_err(|source| io(target, source))
}

/// Only a package may be replaced: losing anything else would be losing what is not ours.
fn replaceable(target: &Path) -> Result<(), WriteError> {
    let names = fs::read_dir(target).map(|entries| entries.flatten().map(|entry| entry.file_name()).collect::<Vec<_>>());
    let is_manifest = || fs::read(target.join(manifest::MANIFEST)).is_ok_and(|text| manifest::model_path(&text).is_ok());
    let is_package = names.is_ok_and(|names| {
        names.is_empty() || (names.iter().all(|name| name == manifest::MANIFEST || name == manifest::DATA) && is_manifest())
    });
    if is_package {
        return Ok(());
    }
    let problem = "exists and is not a package, or holds other files beside one; name another folder";
    Err(io(target, std::io::Error::new(std::io::ErrorKind::AlreadyExists, problem)))
}

/// Makes a folder and those above it.
pub fn create(folder: &Path) -> Result<(), WriteError> {
    fs::create_dir_all(folder).map_err(|source| io(folder, source))
}

/// Writes one file.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    fs::write(path, bytes).map_err(|source| io(path, source))
}

fn io(path: &Path, source: std::io::Error) -> WriteError {
    let path: PathBuf = path.to_path_buf();
    WriteError::Io { path, source }
}
