//! Compiled bundles kept on disk from one run to the next.

use aneforge_compile::{CompileError, CompileOptions, Compiled};
use aneforge_mil::{Body, Constant, ValueKind};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Environment variable that names the folder for everything this project keeps between runs.
pub const CACHE_VARIABLE: &str = "ANEFORGE_CACHE_DIR";

/// The folder for everything this project keeps between runs: `ANEFORGE_CACHE_DIR`, else the user's cache folder of this system.
pub fn cache_folder() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set(CACHE_VARIABLE).unwrap_or_else(|| {
        let base = if cfg!(target_os = "macos") {
            set("HOME").map(|home| home.join("Library/Caches"))
        } else {
            set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))
        };
        base.unwrap_or_else(std::env::temp_dir).join("aneforge")
    })
}

/// What identifies a weight file without reading it: path, size, time of change.
///
/// # Errors
/// The system's reason for not telling.
pub fn file_identity(path: &Path) -> std::io::Result<String> {
    let metadata = std::fs::metadata(path)?;
    let changed = metadata.modified()?.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    Ok(format!("{} {} {changed}", path.canonicalize()?.display(), metadata.len()))
}

/// A folder of bundles, each under a key of everything that its contents depend on.
#[derive(Clone, Debug)]
pub struct BundleCache {
    folder: PathBuf,
}

impl BundleCache {
    /// A cache in `folder`, which is made when it is needed.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Where the bundles lie.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The bundle of a program whose weights come from the files that `identity` identifies; written if it is not there yet.
    ///
    /// # Errors
    /// What writing the bundle reports.
    pub fn get_or_write(&self, compiled: &Compiled, identity: &str) -> Result<PathBuf, CompileError> {
        let folder = self.folder.join(key(&compiled.body, compiled.options(), identity));
        // A bundle appears under its name only when it is whole.
        if !folder.join(aneforge_compile::bundle::MANIFEST).is_file() {
            compiled.write(&folder)?;
        }
        Ok(folder)
    }
}

fn key(body: &Body, options: &CompileOptions, identity: &str) -> String {
    let mut text = format!("aneforge {} {} {:?} {identity}", env!("CARGO_PKG_VERSION"), options.target, options.dialect);
    describe(body, &mut text);
    let hash = blake3::hash(text.as_bytes()).to_hex();
    hash.as_str()[..24].to_string()
}

/// Weights of up to this many bytes go into the key with their contents.
const SMALL_WEIGHT: usize = 1 << 16;

/// The program; of its larger weights only where in their file they stand, the file being the caller's `identity`.
fn describe(body: &Body, text: &mut String) {
    for value in &body.values {
        // Writing to a String cannot fail.
        let _ = match &value.kind {
            ValueKind::Constant(Constant::Text(word)) => writeln!(text, "{} {} {word:?}", value.name, value.ty),
            ValueKind::Constant(Constant::Values(values)) => writeln!(text, "{} {} {values:?}", value.name, value.ty),
            ValueKind::Constant(Constant::Weight(weight)) => {
                let small = weight.direct_bytes().filter(|bytes| bytes.len() <= SMALL_WEIGHT).map(blake3::hash);
                writeln!(text, "{} {} {} {small:?}", value.name, value.ty, weight.identity().1)
            }
            _ => writeln!(text, "{} {}", value.name, value.ty),
        };
    }
    for operation in &body.operations {
        let _ = writeln!(text, "{} {:?} {:?}", operation.op.name, operation.arguments, operation.outputs);
    }
    let _ = writeln!(text, "{:?} {:?} {:?}", body.inputs, body.outputs, body.states);
}
