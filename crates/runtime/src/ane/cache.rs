//! Compiled programs between processes: a folder for each, under a key of everything that the result depends on.

use super::error::AneError;
use aneforge_staging::Staging;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a process waits for another one that compiles the same program. Compilations of minutes are reported (ANE guide, arXiv
/// 2606.22283, chapter 12).
const PATIENCE: Duration = Duration::from_secs(300);
/// Name of the file that says what a folder holds.
const ENTRY: &str = "entry.json";

/// What a compiled program depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Key {
    /// Hash of the program's text and weights.
    pub(crate) program: String,
    /// Chip.
    pub(crate) chip: String,
    /// Build of the operating system.
    pub(crate) os_build: String,
    /// Route.
    pub(crate) route: String,
    /// Version of this library.
    pub(crate) version: String,
}

impl Key {
    /// Name of the folder.
    fn folder(&self) -> String {
        let mut hash = aneforge_compile::FileHash::new();
        for part in [&self.program, &self.chip, &self.os_build, &self.route, &self.version] {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        hash.to_hex()
    }
}

/// The cache in a folder.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    root: PathBuf,
}

/// A program's place, held against other processes.
#[derive(Debug)]
pub(crate) struct Place {
    folder: PathBuf,
    key: Key,
    _lock: File,
}

fn fail(path: &Path, problem: impl std::fmt::Display) -> AneError {
    AneError::Cache { path: path.display().to_string(), problem: problem.to_string() }
}

impl Cache {
    pub(crate) fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Its folder.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Takes a program's place; other processes and threads that want it wait.
    pub(crate) fn take(&self, key: &Key, program: &str) -> Result<Place, AneError> {
        let folder = self.root.join(key.folder());
        fs::create_dir_all(&self.root).map_err(|error| fail(&self.root, error))?;
        let path = folder.with_extension("lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&path).map_err(|error| fail(&path, error))?;
        let start = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(fail(&path, error)),
                Err(TryLockError::WouldBlock) if start.elapsed() > PATIENCE => {
                    return Err(AneError::Locked { program: program.to_string(), waited: start.elapsed() });
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
        Ok(Place { folder, key: key.clone(), _lock: lock })
    }
}

impl Place {
    /// The folder of the program, where an earlier compilation filled it for the same key.
    pub(crate) fn filled(&self) -> Option<&Path> {
        let entry: Key = serde_json::from_slice(&fs::read(self.folder.join(ENTRY)).ok()?).ok()?;
        // Equal hashes of unequal keys would hand over a foreign program.
        (entry == self.key).then_some(self.folder.as_path())
    }

    /// Fills the folder anew: what `work` writes appears whole or not at all.
    pub(crate) fn fill<T>(&self, work: impl FnOnce(&Path) -> Result<T, AneError>) -> Result<(&Path, T), AneError> {
        let staging = Staging::beside(&self.folder).map_err(|error| fail(&self.folder, error))?;
        let made = work(staging.path())?;
        let entry = serde_json::to_vec_pretty(&self.key).map_err(|error| fail(&self.folder, error))?;
        fs::write(staging.path().join(ENTRY), entry).map_err(|error| fail(&self.folder, error))?;
        staging.place().map_err(|error| fail(&self.folder, error))?;
        Ok((&self.folder, made))
    }

    /// Where the program will be.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn key(program: &str) -> Key {
        let text = |text: &str| text.to_string();
        Key { program: text(program), chip: text("m1"), os_build: text("25D125"), route: text("e5rt"), version: text("0.1.0") }
    }

    #[test]
    fn what_was_filled_is_found_again_under_the_same_key_alone() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::at(root.path().join("new"));
        let place = cache.take(&key("a"), "a").unwrap();
        assert_eq!(place.filled(), None);
        place.fill(|folder| fs::write(folder.join("x"), "1").map_err(|error| fail(folder, error))).unwrap();
        drop(place);
        let place = cache.take(&key("a"), "a").unwrap();
        assert_eq!(fs::read(place.filled().unwrap().join("x")).unwrap(), b"1");
        let others = [
            Key { program: "b".to_string(), ..key("a") },
            Key { chip: "m5".to_string(), ..key("a") },
            Key { os_build: "25E1".to_string(), ..key("a") },
            Key { route: "in-memory".to_string(), ..key("a") },
            Key { version: "0.2.0".to_string(), ..key("a") },
            Key { program: "am1".to_string(), chip: String::new(), ..key("a") },
        ];
        for other in others {
            assert_eq!(cache.take(&other, "b").unwrap().filled(), None, "{other:?}");
        }
    }

    #[test]
    fn a_failed_filling_leaves_what_was_there() {
        let root = tempfile::tempdir().unwrap();
        let place = Cache::at(root.path()).take(&key("a"), "a").unwrap();
        let failed = place.fill(|_| Err::<(), _>(AneError::System("no".to_string())));
        assert!(failed.is_err() && place.filled().is_none());
        place.fill(|_| Ok(())).unwrap();
        assert!(place.fill(|_| Err::<(), _>(AneError::System("no".to_string()))).is_err());
        assert!(place.filled().is_some());
        // Nothing but the entry and its lock is left beside.
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 2);
    }

    #[test]
    fn one_program_is_filled_by_one_thread_at_a_time() {
        let root = tempfile::tempdir().unwrap();
        let filled = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let place = Cache::at(root.path()).take(&key("a"), "a").unwrap();
                    if place.filled().is_none() {
                        filled.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        place.fill(|_| Ok(())).unwrap();
                    }
                });
            }
        });
        assert_eq!(filled.into_inner(), 1);
    }
}
