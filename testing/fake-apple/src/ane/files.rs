//! Files of a model's folder. Without the engine there is none, and everything is there.

#[cfg(feature = "engine")]
mod real {
    use std::path::Path;

    /// Whether a file is there.
    pub fn exists(path: &Path) -> bool {
        path.is_file()
    }

    /// The bytes of a file.
    pub fn read(path: &Path) -> Option<Vec<u8>> {
        std::fs::read(path).ok()
    }

    /// Writes a file under another name and renames it; says whether that went well.
    pub fn write(path: &Path, bytes: &[u8]) -> bool {
        // A name of this thread's own: a call that was given up may be writing the same file.
        let temporary = path.with_extension(format!("tmp-{}-{:?}", std::process::id(), std::thread::current().id()));
        std::fs::write(&temporary, bytes).and_then(|()| std::fs::rename(&temporary, path)).is_ok()
    }

    /// Takes a file away, if it is there.
    pub fn remove(path: &Path) {
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(not(feature = "engine"))]
mod real {
    use std::path::Path;

    /// Everything is there.
    pub fn exists(_path: &Path) -> bool {
        true
    }

    /// Nothing can be read.
    pub fn read(_path: &Path) -> Option<Vec<u8>> {
        None
    }

    /// Nothing is written.
    pub fn write(_path: &Path, _bytes: &[u8]) -> bool {
        true
    }

    /// Nothing is there to take away.
    pub fn remove(_path: &Path) {}
}

pub use real::{exists, read, remove, write};
