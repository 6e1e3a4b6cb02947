//! Checkpoints: everything that a run needs to go on as if it had never stopped, in one safetensors file.

use crate::{Parameters, Recipe, ResidentTrainer, Sampler};
use aneforge_core::{DType, HostArray};
use safetensors::tensor::{Dtype, SafeTensorError, TensorView};
use safetensors::{SafeTensors, serialize};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// What the metadata of our files says.
const FORMAT: &str = "aneforge-nn checkpoint 1";
const FORMAT_KEY: &str = "format";
const STATE_KEY: &str = "state";
const DIGEST_KEY: &str = "digest";

/// Why a checkpoint cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The system refuses.
    #[error("cannot {action} checkpoint {path}: {source}")]
    File {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Not a checkpoint of ours.
    #[error("{path} is no checkpoint: {problem}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A checkpoint whose bytes are not those that were written.
    #[error("checkpoint {path} is damaged: its contents do not match their digest; return to an earlier one")]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// A checkpoint of another model or recipe.
    #[error("checkpoint {path} does not fit: {problem}")]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// What differs.
        problem: String,
    },
    /// The state is no checkpoint to return to.
    #[error("checkpoint {path} is not written: state {state:?} holds {value} at element {index}")]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// The state.
        state: String,
        /// Place of the value.
        index: usize,
        /// The value.
        value: f32,
    },
    /// The trainer's state cannot be read or written.
    #[error(transparent)]
    Trainer(#[from] crate::NnError),
}

/// What a run keeps beside the trainer's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Where the run is in its data.
    pub sampler: Option<Sampler>,
    /// The run's own settings, kept as they are.
    pub config: serde_json::Value,
}

#[derive(Serialize, Deserialize)]
struct State {
    steps: u64,
    recipe: Recipe,
    progress: Progress,
}

impl ResidentTrainer {
    /// Writes weights, moments, loss scale, step, recipe and `progress` under a temporary name and renames, so that at every moment
    /// `path` is the old checkpoint or the new one. States are fp16 tensors under their names; frozen parameters are fp32.
    ///
    /// # Errors
    /// [`CheckpointError::File`], for example on a full disk, and [`CheckpointError::NotFinite`] where the state holds what is no
    /// number: a checkpoint at `path` is then as it was.
    pub fn save(&mut self, path: &Path, parameters: &Parameters, progress: &Progress) -> Result<(), CheckpointError> {
        let names: Vec<String> = self.slot_names().map(str::to_string).collect();
        let mut arrays =
            names.into_iter().map(|name| self.slot(&name).map(|array| (name, array))).collect::<Result<Vec<_>, _>>()?;
        for (state, array) in &arrays {
            let values = array.to_f32();
            if let Some(index) = values.iter().position(|value| !value.is_finite()) {
                let (path, state, value) = (path.to_path_buf(), state.clone(), values[index]);
                return Err(CheckpointError::NotFinite { path, state, index, value });
            }
        }
        for entry in parameters.entries().iter().filter(|entry| !entry.is_trainable() && !entry.is_statistic()) {
            let array = HostArray::from_f32(entry.shape(), entry.values()).map_err(crate::NnError::from)?;
            arrays.push((entry.name().to_string(), array));
        }
        let foreign = |problem: String| CheckpointError::Foreign { path: path.to_path_buf(), problem };
        let state = State { steps: self.steps(), recipe: self.recipe().clone(), progress: progress.clone() };
        let state = serde_json::to_string(&state).map_err(|error| foreign(error.to_string()))?;
        let views = arrays.iter().map(|(name, array)| {
            let dtype = if array.dtype() == DType::Fp32 { Dtype::F32 } else { Dtype::F16 };
            TensorView::new(dtype, array.shape().to_vec(), array.bytes()).map(|view| (name.as_str(), view))
        });
        let mut views = views.collect::<Result<Vec<_>, SafeTensorError>>().map_err(|error| foreign(error.to_string()))?;
        views.sort_by_key(|(name, _)| *name);
        let digest = digest(&state, views.iter().map(|(name, view)| (*name, view)));
        let metadata = [(FORMAT_KEY, FORMAT.to_string()), (STATE_KEY, state), (DIGEST_KEY, digest)];
        let metadata: HashMap<String, String> = metadata.into_iter().map(|(key, value)| (key.to_string(), value)).collect();
        let bytes = serialize(views, Some(metadata)).map_err(|error| foreign(error.to_string()))?;
        write_whole(path, &bytes)
    }

    /// What the run kept beside the trainer's state, without putting that on a device.
    ///
    /// # Errors
    /// As [`Self::resume`].
    pub fn progress(path: &Path) -> Result<Progress, CheckpointError> {
        let bytes = fs::read(path).map_err(file("read", path))?;
        Ok(open(path, &bytes)?.0.progress)
    }

    /// Puts a checkpoint's state on the device and gives what the run kept beside it. The trainer is left as it was where the
    /// checkpoint cannot be read or does not fit.
    ///
    /// # Errors
    /// [`CheckpointError`], which names the file and what is wrong with it.
    pub fn resume(&mut self, path: &Path) -> Result<Progress, CheckpointError> {
        let bytes = fs::read(path).map_err(file("read", path))?;
        let (state, tensors) = open(path, &bytes)?;
        let mismatch = |problem: String| CheckpointError::Mismatch { path: path.to_path_buf(), problem };
        if state.recipe != *self.recipe() {
            return Err(mismatch(format!("it was trained by {:?}, this trainer follows {:?}", state.recipe, self.recipe())));
        }
        let names: Vec<String> = self.slot_names().map(str::to_string).collect();
        let mut arrays = Vec::with_capacity(names.len());
        for name in &names {
            let Some((_, view)) = tensors.iter().find(|(known, _)| known == name) else {
                return Err(mismatch(format!("it has no state {name:?}: it belongs to another model")));
            };
            let wanted = self.slot(name)?;
            if view.dtype() != Dtype::F16 || view.shape() != wanted.shape() {
                let problem = format!("{name:?} is {} {:?} there and fp16 {:?} here", view.dtype(), view.shape(), wanted.shape());
                return Err(mismatch(problem));
            }
            arrays.push(HostArray::from_bytes(DType::Fp16, view.shape(), view.data().to_vec()).map_err(crate::NnError::from)?);
        }
        for (name, array) in names.iter().zip(&arrays) {
            self.set_slot(name, array)?;
        }
        self.set_steps(state.steps);
        Ok(state.progress)
    }
}

/// Checks a file's form, format and digest.
fn open<'a>(path: &Path, bytes: &'a [u8]) -> Result<(State, Vec<(String, TensorView<'a>)>), CheckpointError> {
    let foreign = |problem: String| CheckpointError::Foreign { path: path.to_path_buf(), problem };
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| foreign(format!("it is no safetensors file: {error}")))?;
    let entries = header.metadata().clone().unwrap_or_default();
    if entries.get(FORMAT_KEY).map(String::as_str) != Some(FORMAT) {
        let found = entries.get(FORMAT_KEY).map_or("none".to_string(), |format| format!("{format:?}"));
        return Err(foreign(format!("its format is {found}, not {FORMAT:?}; load weights of other programs by name instead")));
    }
    let file = SafeTensors::deserialize(bytes).map_err(|error| foreign(error.to_string()))?;
    let mut tensors = file.tensors();
    tensors.sort_by(|(a, _), (b, _)| a.cmp(b));
    let state = entries.get(STATE_KEY).cloned().unwrap_or_default();
    let found = digest(&state, tensors.iter().map(|(name, view)| (name.as_str(), view)));
    if entries.get(DIGEST_KEY) != Some(&found) {
        return Err(CheckpointError::Damaged { path: path.to_path_buf() });
    }
    let state = serde_json::from_str(&state).map_err(|error| foreign(format!("its state cannot be read: {error}")))?;
    Ok((state, tensors))
}

/// A digest of the state's text and of every tensor's name, type, shape and bytes.
fn digest<'a>(state: &str, tensors: impl Iterator<Item = (&'a str, &'a TensorView<'a>)>) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut part = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    part(state.as_bytes());
    for (name, view) in tensors {
        part(name.as_bytes());
        part(format!("{:?} {:?}", view.dtype(), view.shape()).as_bytes());
        part(view.data());
    }
    hasher.finalize().to_hex().to_string()
}

fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), CheckpointError> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let folder = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut staged = tempfile::NamedTempFile::new_in(folder).map_err(file("write", path))?;
    // Written through the bare file: the wrapper's errors name the temporary one.
    staged.as_file_mut().write_all(bytes).map_err(file("write", path))?;
    // On the disk before the old one goes: a machine that stops in between must not leave an empty file under the name.
    staged.as_file().sync_all().map_err(file("write", path))?;
    staged.persist(&target).map(drop).map_err(|error| file("write", path)(error.error))
}

fn file(action: &'static str, path: &Path) -> impl Fn(std::io::Error) -> CheckpointError {
    let path = path.to_path_buf();
    move |source| CheckpointError::File { action, path: path.clone(), source }
}
