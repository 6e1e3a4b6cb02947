//! What tuning chose, kept from one run to the next.

use crate::lowering::{Bench, TuneOptions};
use crate::trial::Trial;
use crate::{Calibration, TuneError};
use aneforge_compile::{CompileOptions, FileHash};
use aneforge_mil::{Body, Constant, ValueKind};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A folder with a file for each choice.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// A choice on disk.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Chosen {
    /// Name of the way.
    pub(crate) name: String,
    /// What was known when it was chosen.
    pub(crate) trials: Vec<Trial>,
}

impl Store {
    /// Choices in `folder`, which is made when it is needed.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The choice under a key; `None` where there is none that can be read.
    pub(crate) fn read(&self, key: &str) -> Option<Chosen> {
        let bytes = std::fs::read(self.file(key)).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Keeps a choice; its file appears whole or not at all.
    ///
    /// # Errors
    /// [`TuneError::Store`].
    pub(crate) fn write(&self, key: &str, chosen: &Chosen) -> Result<(), TuneError> {
        let file = self.file(key);
        let fail = |source| TuneError::Store { path: file.clone(), source };
        let text = serde_json::to_string_pretty(chosen).map_err(|error| fail(error.into()))?;
        std::fs::create_dir_all(&self.folder).map_err(fail)?;
        let unfinished = self.folder.join(format!("{key}.{}.unfinished", std::process::id()));
        std::fs::write(&unfinished, text).and_then(|()| std::fs::rename(&unfinished, &file)).map_err(fail)
    }

    fn file(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.json"))
    }
}

/// What a choice depends on: the program with its weights, what it is compiled for and how, the samples, the devices with their system, the
/// version of this package.
pub(crate) fn key(
    body: &Body,
    options: &CompileOptions,
    limits: &TuneOptions,
    calibration: &Calibration,
    bench: Bench<'_>,
) -> Result<String, TuneError> {
    let mut hash = FileHash::new();
    let device = |device: &dyn aneforge_runtime::Device| format!("{} {:?}", device.name(), device.os_build());
    let about = format!(
        "aneforge {} {} {} {:?} {limits:?} {} {:?}",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        options.target,
        (options.dialect, options.compress, options.limits, options.rewrites),
        device(bench.judge),
        bench.timer.map(device),
    );
    hash.update(about.as_bytes());
    for value in &body.values {
        hash.update(format!("{} {:?}\n", value.ty, std::mem::discriminant(&value.kind)).as_bytes());
        match &value.kind {
            ValueKind::Constant(Constant::Text(text)) => hash.update(text.as_bytes()),
            ValueKind::Constant(Constant::Values(values)) => {
                values.iter().for_each(|value| hash.update(&value.to_bits().to_le_bytes()));
            }
            ValueKind::Constant(Constant::Weight(weight)) => {
                let read = weight.stream(&mut |bytes| {
                    hash.update(bytes);
                    Ok(())
                });
                read.map_err(|error| TuneError::Weight { value_name: value.name.clone(), problem: error.to_string() })?;
            }
            _ => {}
        }
    }
    for operation in &body.operations {
        hash.update(format!("{} {:?} {:?}\n", operation.op.name, operation.arguments, operation.outputs).as_bytes());
    }
    hash.update(format!("{:?} {:?} {:?}", body.inputs, body.outputs, body.states).as_bytes());
    for array in calibration.samples().iter().flatten() {
        hash.update(array.bytes());
    }
    Ok(hash.to_hex())
}
