//! From a compiled graph to a program that devices load, without naming a folder.

use aneforge_compile::{CompileError, Compiled};
use aneforge_runtime::{DeviceError, Program};
use std::sync::Arc;

/// Why a compiled graph did not become a program.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It could not be written.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// What was written could not be read back.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// There is no place for temporary files.
    #[error("cannot make a temporary folder: {0}")]
    Folder(#[from] std::io::Error),
}

/// Turns what [`compile`](crate::compile()) gives into a [`Program`].
pub trait IntoProgram {
    /// Writes the bundle into a temporary folder and reads it back, so that what runs is the text and the weight file and nothing
    /// else. The folder is gone afterwards; the program keeps its weights mapped.
    ///
    /// # Errors
    /// [`ProgramError`].
    fn into_program(self) -> Result<Arc<Program>, ProgramError>;
}

impl IntoProgram for Compiled {
    fn into_program(self) -> Result<Arc<Program>, ProgramError> {
        let folder = tempfile::Builder::new().prefix("aneforge-").tempdir()?;
        let bundle = folder.path().join("bundle");
        self.write(&bundle)?;
        Ok(Arc::new(Program::open(&bundle)?))
    }
}
