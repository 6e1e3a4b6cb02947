//! Files that are either whole or not there.

use crate::IoError;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// Writes `data` under a temporary name beside `path` and renames it, so that no reader ever sees half a file.
///
/// A link stays a link: the file that it leads to is replaced. What is neither file nor folder, a pipe or a device such as
/// `/dev/null`, is written to as it is, because a rename would put a plain file in its place.
///
/// # Errors
/// [`IoError::File`] with the system's reason; a file at `path` is untouched then.
pub fn write_whole(path: impl AsRef<Path>, data: &[u8]) -> Result<(), IoError> {
    let path = path.as_ref();
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        let mut special = OpenOptions::new().write(true).open(path).map_err(IoError::file("write", path))?;
        return special.write_all(data).map_err(IoError::file("write", path));
    }
    let target = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let folder = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(IoError::file("write", path))?;
    // Written through the bare file: the wrapper's errors name the temporary file, which tells nobody anything.
    file.as_file_mut().write_all(data).map_err(IoError::file("write", path))?;
    set_usual_permissions(file.as_file()).map_err(IoError::file("write", path))?;
    file.persist(&target).map(drop).map_err(|error| IoError::file("write", path)(error.error))
}

/// Temporary files are private to their owner; a result is for whoever may read the folder.
#[cfg(unix)]
fn set_usual_permissions(file: &File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn set_usual_permissions(_file: &File) -> std::io::Result<()> {
    Ok(())
}
