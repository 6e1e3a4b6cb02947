//! Why a choice cannot be made.

/// A choice that could not be made; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// A compilation step failed.
    #[error(transparent)]
    Compile(#[from] aneforge_compile::CompileError),
    /// A weight cannot be compressed.
    #[error(transparent)]
    Compress(#[from] aneforge_compile::compress::CompressError),
    /// The device that measures failed.
    #[error(transparent)]
    Device(#[from] aneforge_runtime::DeviceError),
    /// A host array could not be made.
    #[error(transparent)]
    Host(#[from] aneforge_core::HostError),
    /// Samples that do not fit the program.
    #[error("calibration: {problem}")]
    Calibration {
        /// What is wrong and what to do.
        problem: String,
    },
    /// No cost can be told.
    #[error("the cost model cannot be used: {problem}")]
    Cost {
        /// What is wrong with its coefficients.
        problem: String,
    },
    /// There is no place for temporary files.
    #[error("cannot make a temporary folder: {source}")]
    Folder {
        /// The system's reason.
        source: std::io::Error,
    },
    /// A choice could not be kept.
    #[error("cannot keep the choice in {path}: {source}; name another folder or tune without keeping")]
    Store {
        /// The file.
        path: std::path::PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A weight could not be read.
    #[error("weight {value_name:?} cannot be read: {problem}")]
    Weight {
        /// The weight.
        value_name: String,
        /// What is wrong.
        problem: String,
    },
    /// No way to compile the program could be run.
    #[error("no way to compile the program could be run; run it as it is to see why")]
    Empty,
    /// The uncompressed program gives something that is no number.
    #[error(
        "{value_name:?} of the uncompressed program holds {value} on calibration sample {sample}; mend the model or the samples first"
    )]
    NotFinite {
        /// The output, or what a layer receives.
        value_name: String,
        /// The sample, from 0.
        sample: usize,
        /// What it holds.
        value: f32,
    },
}
