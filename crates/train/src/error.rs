//! Why a run cannot be started or cannot go on.

use aneforge_io::IoError;
use aneforge_nn::{CheckpointError, NnError};
use aneforge_runtime::DeviceError;
use std::path::PathBuf;

/// Why a run cannot be started or cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The settings cannot be read.
    #[error("{place}: {problem}")]
    Settings {
        /// The file, or the text's origin.
        place: String,
        /// What is wrong, with the key.
        problem: String,
    },
    /// One setting makes no sense.
    #[error("setting {key:?} is {got}; {rule}")]
    Setting {
        /// Its key.
        key: &'static str,
        /// What was given.
        got: String,
        /// What is allowed.
        rule: String,
    },
    /// There are no images.
    #[error("no images of {name}: {problem}")]
    NoData {
        /// The data set.
        name: &'static str,
        /// Why, and what to put where.
        problem: String,
    },
    /// Images that do not belong to the task.
    #[error("the images of {name} in {folder} do not fit: {problem}")]
    Data {
        /// The data set.
        name: &'static str,
        /// Where they are.
        folder: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A file of a data set or of a model.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The device cannot be opened.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The model cannot be built, or a step failed.
    #[error(transparent)]
    Training(#[from] NnError),
    /// A checkpoint cannot be written or read. A checkpoint that was there before stays as it is.
    #[error("{source}{}", remark(.last.as_deref()))]
    Checkpoint {
        /// The reason.
        source: CheckpointError,
        /// The last good checkpoint.
        last: Option<PathBuf>,
    },
    /// The log or the folder of checkpoints cannot be used.
    #[error("cannot {action} {path}: {source}")]
    File {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file of another run is in the way.
    #[error("{path} is there already: resume that run, or name another place")]
    InTheWay {
        /// The file.
        path: PathBuf,
    },
    /// Training has left the numbers.
    #[error("training stopped: {source}{}", remark(.last.as_deref()))]
    Stopped {
        /// What happened.
        source: Box<dyn std::error::Error + Send + Sync>,
        /// The last good checkpoint.
        last: Option<PathBuf>,
    },
}

fn remark(last: Option<&std::path::Path>) -> String {
    last.map_or_else(
        || "; there is no checkpoint to return to".to_string(),
        |path| format!("; the last good checkpoint is {}", path.display()),
    )
}

impl TrainError {
    pub(crate) fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }
}
