//! Files that appear whole or not at all.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

/// Writes a file under a temporary name beside it and renames it. What is neither file nor folder, a pipe or a device such as
/// `/dev/stdout`, is written to as it is, because a rename would put a plain file in its place.
///
/// # Errors
/// What the system reports; a file is then as it was.
pub fn write_atomically(path: &Path, text: &str) -> std::io::Result<()> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes());
    }
    let target = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    // Temporary files are private to their owner by themselves; a report is as open as any other file that the user makes.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder)?;
    // Through the bare file: the wrapper's errors name the temporary one.
    file.as_file_mut().write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(&target).map(drop).map_err(|error| error.error)
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
