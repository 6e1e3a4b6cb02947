//! Files that are either whole or not there.

use crate::IoError;
use std::io::Write;
use std::path::Path;

/// Writes `data` under a temporary name beside `path` and renames it, so that no reader ever sees half a file.
///
/// # Errors
/// [`IoError::File`] with the system's reason; `path` is untouched then.
pub fn write_whole(path: impl AsRef<Path>, data: &[u8]) -> Result<(), IoError> {
    let path = path.as_ref();
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(IoError::file("write", path))?;
    file.write_all(data).map_err(IoError::file("write", path))?;
    set_usual_permissions(file.as_file()).map_err(IoError::file("write", path))?;
    file.persist(path).map(drop).map_err(|error| IoError::file("write", path)(error.error))
}

/// Temporary files are private to their owner; a result is for whoever may read the folder.
#[cfg(unix)]
fn set_usual_permissions(file: &std::fs::File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn set_usual_permissions(_file: &std::fs::File) -> std::io::Result<()> {
    Ok(())
}
