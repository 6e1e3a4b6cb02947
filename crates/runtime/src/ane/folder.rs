//! The folder that the in-memory class reads a program from. Its name is made of the program's hashes and it stands in a folder that all
//! processes of a user share: whoever uses one holds a lock that others share, and the last one removes it.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, Error, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a removal by another process is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A program's folder while it is used.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    lock: File,
}

impl Folder {
    /// Makes the folder, or joins those who use it, in this process or in others.
    ///
    /// # Errors
    /// The system's, and [`ErrorKind::TimedOut`] where another process keeps the folder to itself.
    pub(crate) fn at(path: PathBuf) -> io::Result<Self> {
        let lock = shared(&lock_of(&path))?;
        fs::create_dir_all(&path)?;
        Ok(Self { path, lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn lock_of(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".aneforge-lock");
    PathBuf::from(name)
}

/// The lock file, locked together with others.
fn shared(path: &Path) -> io::Result<File> {
    let start = Instant::now();
    loop {
        let lock = File::options().create(true).truncate(false).write(true).open(path)?;
        match lock.try_lock_shared() {
            // Who removed the folder removed the file too: what was locked has to be what others will find.
            Ok(()) if fs::metadata(path).is_ok_and(|found| is_same(&found, &lock)) => return Ok(lock),
            Ok(()) => {}
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if start.elapsed() > PATIENCE => {
                return Err(Error::new(ErrorKind::TimedOut, format!("{} is locked by another process", path.display())));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

fn is_same(found: &fs::Metadata, lock: &File) -> bool {
    lock.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (found.dev(), found.ino()))
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Alone: nobody else has it, and who comes now waits until it is gone. In vain where others have it; the last of them removes it.
        if self.lock.try_lock().is_ok() {
            let _ = fs::remove_dir_all(&self.path);
            let _ = fs::remove_file(lock_of(&self.path));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_with_the_last_model_that_uses_it() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("hash");
        let (first, second) = (Folder::at(path.clone()).unwrap(), Folder::at(path.clone()).unwrap());
        drop(first);
        assert!(path.exists(), "the other one reads it");
        drop(second);
        assert_eq!(fs::read_dir(here.path()).unwrap().count(), 0);
    }

    /// A lock belongs to the file as it was opened, so one of this process stands for another process's.
    #[test]
    fn a_folder_that_another_process_uses_stays() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("hash");
        let own = Folder::at(path.clone()).unwrap();
        let other = File::open(lock_of(&path)).unwrap();
        other.lock_shared().unwrap();
        drop(own);
        assert!(path.exists());
        drop(other);
        drop(Folder::at(path.clone()).unwrap());
        assert_eq!(fs::read_dir(here.path()).unwrap().count(), 0);
    }

    #[test]
    fn whoever_has_a_folder_has_it_until_the_end_whoever_else_comes_and_goes() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("hash");
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..300 {
                        let folder = Folder::at(path.clone()).unwrap();
                        let file = folder.path().join(thread.to_string());
                        fs::write(&file, "x").unwrap();
                        std::thread::yield_now();
                        assert!(file.exists());
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(here.path()).unwrap().count(), 0);
    }
}
