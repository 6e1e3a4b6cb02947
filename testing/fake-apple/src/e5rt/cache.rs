//! The folder of compiled bundles: one below the system's build and the program's hash, as the ANE guide (arXiv 2606.22283) lays out.

use super::{Refusal, VALUE, misuse};
use crate::settings;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Whether programs and bundles are files. Without the engine only the calling convention is tested: nothing is looked for, and
/// everything is there.
pub(super) const READS: bool = cfg!(feature = "engine");

/// File that holds the hash of the program.
const HASH: &str = "model.anehash";
/// File that holds where the program lies; Apple's bundle holds the program itself.
const PLACE: &str = "source";
/// Folder below the location that a caller names.
const FOLDER: &str = "com.apple.e5rt.e5bundlecache";

/// Bundles that this process compiled: what the daemon holds for it. Another process cannot load them (PyPI package aneforge 0.4.0).
static OWN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A bundle's place.
#[derive(Debug)]
pub(super) struct Bundle {
    pub(super) folder: PathBuf,
    hash: String,
}

impl Bundle {
    /// The place of a program's bundle. Text, weights, chip and compile options decide, as does the system's build.
    pub(super) fn of(location: &Path, file: &Path, custom: Option<&str>) -> Result<Self, Refusal> {
        let settings = settings::current();
        let hash = hash(file, &[&settings.chip, custom.unwrap_or_default()])
            .map_err(|error| misuse(VALUE, format!("{}: {error}", file.display())))?;
        Ok(Self { folder: location.join(FOLDER).join(&settings.os_build).join(&hash), hash })
    }

    /// Whether it is there.
    pub(super) fn exists(&self) -> bool {
        std::fs::read_to_string(self.folder.join(HASH)).is_ok_and(|hash| hash == self.hash)
    }

    /// Writes it. The hash comes last, so that a bundle is whole or not there.
    pub(super) fn write(&self, file: &Path) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        let file = file.canonicalize()?;
        std::fs::write(self.folder.join(PLACE), file.to_string_lossy().as_bytes())?;
        let staged = self.folder.join(format!("{HASH}.{}", std::process::id()));
        std::fs::write(&staged, &self.hash)?;
        std::fs::rename(&staged, self.folder.join(HASH))
    }

    /// Remembers that this process may load it.
    pub(super) fn own(&self) {
        OWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(self.folder.clone());
    }
}

/// The program behind a bundle, and whether this process compiled it.
pub(super) fn open(folder: &Path) -> Option<(PathBuf, bool)> {
    if !READS {
        return Some((folder.to_path_buf(), true));
    }
    let file = std::fs::read_to_string(folder.join(PLACE)).ok().filter(|_| folder.join(HASH).is_file())?;
    let own = OWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner).contains(folder);
    Some((PathBuf::from(file), own))
}

/// Hash of a text, the weight files that it names, and some words.
fn hash(file: &Path, words: &[&str]) -> std::io::Result<String> {
    let text = std::fs::read_to_string(file)?;
    let mut hasher = blake3::Hasher::new();
    let mut add = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    words.iter().for_each(|word| add(word.as_bytes()));
    add(text.as_bytes());
    let names: BTreeSet<&str> = text.split("\"@model_path/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let folder = file.parent().unwrap_or(Path::new("."));
    for name in names {
        add(name.as_bytes());
        // A missing file is the compiler's to report.
        add(&std::fs::read(folder.join(name)).unwrap_or_default());
    }
    Ok(hasher.finalize().to_hex().to_string())
}
