//! The folder of a run's checkpoints: files by step, of which the last two are kept.

use crate::TrainError;
use std::fs;
use std::path::{Path, PathBuf};

/// How many are kept: the newest, and one to return to.
const KEPT: usize = 2;
const PREFIX: &str = "step-";
const SUFFIX: &str = ".safetensors";

/// The folder.
#[derive(Clone, Debug)]
pub(crate) struct Checkpoints {
    folder: PathBuf,
}

impl Checkpoints {
    /// The folder, made where it is not there.
    pub(crate) fn new(folder: &Path) -> Result<Self, TrainError> {
        fs::create_dir_all(folder).map_err(TrainError::file("make", folder))?;
        Ok(Self { folder: folder.to_path_buf() })
    }

    /// The file of a step. The number is padded, so that names sort by it.
    pub(crate) fn path(&self, step: u64) -> PathBuf {
        self.folder.join(format!("{PREFIX}{step:08}{SUFFIX}"))
    }

    /// All of them with their steps, oldest first.
    pub(crate) fn all(&self) -> Result<Vec<(u64, PathBuf)>, TrainError> {
        let entries = fs::read_dir(&self.folder).map_err(TrainError::file("list", &self.folder))?;
        let step = |path: &PathBuf| path.file_name()?.to_str()?.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse::<u64>().ok();
        let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
        let mut all: Vec<(u64, PathBuf)> = paths.filter_map(|path| step(&path).map(|step| (step, path))).collect();
        all.sort();
        Ok(all)
    }

    /// The newest one.
    pub(crate) fn newest(&self) -> Result<Option<PathBuf>, TrainError> {
        Ok(self.all()?.pop().map(|(_, path)| path))
    }

    /// Removes all but the last ones.
    pub(crate) fn prune(&self) -> Result<(), TrainError> {
        let all = self.all()?;
        for (_, path) in &all[..all.len().saturating_sub(KEPT)] {
            fs::remove_file(path).map_err(TrainError::file("remove", path))?;
        }
        Ok(())
    }
}
