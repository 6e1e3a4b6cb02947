//! Files that appear whole or not at all.

use std::io::Write;
use std::path::Path;

/// Writes a file under a temporary name beside it and renames it.
///
/// # Errors
/// What the system reports; the file is then as it was.
pub fn write_atomically(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
