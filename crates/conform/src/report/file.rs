//! Files that appear whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{Error, ErrorKind, Result, Write};
use std::path::{Path, PathBuf};

/// A file that gets its name when all of it is written. Nothing is left where it is dropped before.
#[derive(Debug)]
pub struct Pending(Place);

#[derive(Debug)]
enum Place {
    /// A file under a temporary name, and the name that it gets.
    File(tempfile::NamedTempFile, PathBuf),
    /// What is neither file nor folder, a pipe or a device such as `/dev/stdout`: a rename would put a plain file in its place.
    Special(File),
}

impl Pending {
    /// Begins a file, before the work of which it will tell: what cannot be written is known then. A link stays a link.
    ///
    /// # Errors
    /// What the system reports.
    pub fn at(path: &Path) -> Result<Self> {
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(ErrorKind::IsADirectory.into()),
            Ok(found) if !found.is_file() => return Ok(Self(Place::Special(OpenOptions::new().write(true).open(path)?))),
            _ => {}
        }
        let target = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        // Temporary files are private to their owner by themselves; a report is as open as any other file that the user makes.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        // The library's error names the temporary file, which tells nobody anything.
        let file = builder.tempfile_in(folder).map_err(|error| Error::from(error.kind()))?;
        Ok(Self(Place::File(file, target)))
    }

    /// Writes the text and gives the file its name.
    ///
    /// # Errors
    /// What the system reports; what stood there is then as it was.
    pub fn finish(self, text: &str) -> Result<()> {
        match self.0 {
            Place::Special(mut file) => file.write_all(text.as_bytes()),
            Place::File(mut file, target) => {
                file.as_file_mut().write_all(text.as_bytes())?;
                file.as_file().sync_all()?;
                file.persist(&target).map(drop).map_err(|error| error.error)
            }
        }
    }
}

/// Writes a file under a temporary name beside it and renames it.
///
/// # Errors
/// As [`Pending::at`] and [`Pending::finish`].
pub fn write_atomically(path: &Path, text: &str) -> Result<()> {
    Pending::at(path)?.finish(text)
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::write_atomically;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_has_the_permissions_of_any_other_and_a_link_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
        std::fs::write(folder.path().join("any"), "").unwrap();
        write_atomically(&folder.path().join("ours"), "text").unwrap();
        assert_eq!(mode("ours"), mode("any"));
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("ours", &link).unwrap();
        write_atomically(&link, "other").unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(folder.path().join("ours")).unwrap(), "other");
        assert!(write_atomically(folder.path(), "text").is_err());
        assert!(write_atomically(&folder.path().join("none/file"), "text").is_err());
        write_atomically("/dev/null".as_ref(), "text").unwrap();
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "nothing is left");
    }
}
