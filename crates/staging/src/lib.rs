//! Folders on disk that are written whole or not at all.
//!
//! A folder is filled under a temporary name beside its place and renamed when it is complete. A list of those under way lets a
//! program that a signal ends leave nothing behind.
#![forbid(unsafe_code)]

use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::{env, fs};

/// Folders under way. Who holds the lock keeps every one of them from getting its name.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes what unfinished folders of this process have put on disk and keeps them from getting their names: for a program that
/// a signal is about to end. The process must end after this; everything later that is staged waits for ever.
pub fn discard_unfinished() {
    let folders = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
    for folder in folders.iter() {
        // A file may be added just now, which makes removing fail: a few tries catch up with it.
        let _ = (0..10).any(|_| fs::remove_dir_all(folder).is_ok() || !folder.exists());
    }
    std::mem::forget(folders);
}

/// A temporary folder that [`discard_unfinished`] knows, removed when dropped.
#[derive(Debug)]
pub struct Staging {
    folder: tempfile::TempDir,
    target: PathBuf,
}

impl Staging {
    /// A new folder beside `target`, whose parents are made. A link stays a link: the folder that it leads to is the target.
    ///
    /// # Errors
    /// The system's, and [`ErrorKind::AlreadyExists`] where `target` is the current folder or holds it.
    pub fn beside(target: &Path) -> Result<Self> {
        let target = if target.exists() { target.canonicalize()? } else { target.to_path_buf() };
        if target.is_dir() && env::current_dir().is_ok_and(|current| current.starts_with(&target)) {
            let problem = "is the current folder or holds it, and replacing it would pull it away; name another folder";
            return Err(Error::new(ErrorKind::AlreadyExists, problem));
        }
        let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        fs::create_dir_all(parent)?;
        // Made under the lock, so that a signal finds it on the list or not at all.
        let mut folders = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
        let mut builder = tempfile::Builder::new();
        // Temporary folders are private to their owner by themselves; what gets a name is as open as any other folder of the user.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
        let folder = builder.prefix(".aneforge-").tempdir_in(parent)?;
        folders.push(folder.path().to_path_buf());
        drop(folders);
        Ok(Self { folder, target })
    }

    /// Where it is for now.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Gives the folder its name. What stood there is moved aside first, so that no moment shows a mixture, and then removed:
    /// whether it may be lost is for the caller to say.
    ///
    /// # Errors
    /// The system's; what stood there is then as it was.
    pub fn place(self) -> Result<()> {
        let (staged, target) = (self.path(), &self.target);
        let old = target.exists().then(|| staged.with_extension("old"));
        // Held to the end: a signal must not come between moving aside and removing.
        let unfinished = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(old) = &old {
            fs::rename(target, old)?;
        }
        let placed = fs::rename(staged, target);
        if let Some(old) = &old {
            // Best effort: the first error is the one to report.
            let _ = if placed.is_ok() { fs::remove_dir_all(old) } else { fs::rename(old, target) };
        }
        // Dropping `self` takes the lock, and finds nothing to remove where the folder has its final name now.
        drop(unfinished);
        placed
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).retain(|folder| folder != self.folder.path());
    }
}
