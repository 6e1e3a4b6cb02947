//! A package on disk: written whole or not at all.

use super::WriteError;
use crate::manifest;
use std::fs;
use std::path::{Path, PathBuf};

/// A temporary folder beside the place that it will take.
pub struct Staging(tempfile::TempDir);

impl Staging {
    /// A new folder where `target` will be, after a check that what stands there may be replaced.
    pub fn beside(target: &Path) -> Result<Self, WriteError> {
        if target.exists() {
            replaceable(target)?;
        }
        let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        create(parent)?;
        let folder = tempfile::Builder::new().prefix(".aneforge-").tempdir_in(parent);
        Ok(Self(folder.map_err(|source| io(parent, source))?))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Gives the folder its name. What stood there is moved aside first, so that no moment shows a mixture.
    pub fn place(self, target: &Path) -> Result<(), WriteError> {
        // A link stays a link: the folder that it leads to is replaced.
        let target = target.canonicalize().unwrap_or_else(|_| target.to_path_buf());
        let old = target.exists().then(|| self.path().with_extension("old"));
        if let Some(old) = &old {
            fs::rename(&target, old).map_err(|source| io(&target, source))?;
        }
        let placed = fs::rename(self.path(), &target);
        if let Some(old) = &old {
            // Best effort: the first error is the one to report.
            let _ = if placed.is_ok() { fs::remove_dir_all(old) } else { fs::rename(old, &target) };
        }
        placed.map_err(|source| io(&target, source))
    }
}

/// Only a package may be replaced: losing anything else would be losing what is not ours.
fn replaceable(target: &Path) -> Result<(), WriteError> {
    let names = fs::read_dir(target).map(|entries| entries.flatten().map(|entry| entry.file_name()).collect::<Vec<_>>());
    let is_package = names.is_ok_and(|names| {
        names.iter().all(|name| name == manifest::MANIFEST || name == manifest::DATA)
            && (names.is_empty() || names.iter().any(|name| name == manifest::MANIFEST))
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
