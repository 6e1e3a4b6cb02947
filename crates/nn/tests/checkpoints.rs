//! A resumed run equals the uninterrupted one bit for bit; a checkpoint that is not good is refused and the one before stays.
#![allow(clippy::unwrap_used)]

mod common;

use aneforge_nn::{CheckpointError, Optimizer, Parameters, Progress, Recipe, ResidentTrainer, Sampler, StepReport};
use common::{Data, Net, run, sampler, trainer};
use serde_json::json;
use std::fs;
use std::path::Path;

struct Run {
    parameters: Parameters,
    trainer: ResidentTrainer,
    sampler: Sampler,
    data: Data,
}

fn recipe() -> Recipe {
    Recipe { average: Some(0.99), clip: Some(1.0), ..Recipe::new(Optimizer::adam(), 0.01) }
}

impl Run {
    fn new(recipe: &Recipe) -> Self {
        let mut parameters = Parameters::new(9);
        let net = Net::new(&mut parameters).unwrap();
        parameters.freeze("conv1").unwrap();
        let trainer = trainer("cpu", &parameters, &net, recipe);
        Self { parameters, trainer, sampler: sampler(), data: Data::new() }
    }

    fn go(&mut self, calls: usize) -> Vec<StepReport> {
        run(&mut self.trainer, &self.data, &mut self.sampler, calls)
    }

    fn save(&mut self, path: &Path) -> Result<(), CheckpointError> {
        let progress = Progress { sampler: Some(self.sampler.clone()), config: json!({"name": "small"}) };
        self.trainer.save(path, &self.parameters, &progress)
    }

    fn resume(&mut self, path: &Path) -> Result<(), CheckpointError> {
        let progress = self.trainer.resume(path)?;
        assert_eq!(progress.config, json!({"name": "small"}));
        self.sampler = progress.sampler.unwrap();
        Ok(())
    }

    fn state(&mut self) -> Vec<(String, Vec<u8>)> {
        let names: Vec<String> = self.trainer.slot_names().map(str::to_string).collect();
        names.into_iter().map(|name| (name.clone(), self.trainer.slot(&name).unwrap().into_bytes())).collect()
    }
}

#[test]
fn a_resumed_run_equals_the_uninterrupted_one_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.safetensors");
    let mut whole = Run::new(&recipe());
    let mut first = Run::new(&recipe());
    let log = whole.go(25);
    let mut pieces = Vec::new();
    // Stops at places inside and at the end of an epoch of eight batches.
    for calls in [3, 5, 9] {
        pieces.extend(first.go(calls));
        first.save(&path).unwrap();
        // What runs on after the checkpoint is lost, as in a run that is killed.
        first.go(2);
        first = Run::new(&recipe());
        first.resume(&path).unwrap();
    }
    pieces.extend(first.go(8));
    assert_eq!(log, pieces);
    assert_eq!(whole.state(), first.state());
    assert_eq!(whole.sampler, first.sampler);
}

#[test]
fn foreign_damaged_and_unfitting_files_are_refused_and_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.safetensors");
    let mut run = Run::new(&recipe());
    run.go(2);
    run.save(&path).unwrap();
    run.go(1);
    let (bytes, state) = (fs::read(&path).unwrap(), run.state());
    let mut attempt = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let error = run.trainer.resume(&path).unwrap_err();
        assert!(error.to_string().contains("run.safetensors"), "{error}");
        assert_eq!((run.state() == state, run.trainer.steps()), (true, 3), "a refused checkpoint changes nothing");
        error
    };
    assert!(matches!(attempt(b""), CheckpointError::Foreign { .. }));
    assert!(matches!(attempt(b"no checkpoint at all, but long enough"), CheckpointError::Foreign { .. }));
    assert!(matches!(attempt(&bytes[..bytes.len() - 1]), CheckpointError::Foreign { .. }), "cut");
    let mut flipped = bytes.clone();
    let last = flipped.len() - 1;
    flipped[last] ^= 1;
    assert!(matches!(attempt(&flipped), CheckpointError::Damaged { .. }), "a changed bit of a weight");
    let text = String::from_utf8_lossy(&bytes).find("small").unwrap();
    let mut renamed = bytes.clone();
    renamed[text] = b'S';
    assert!(matches!(attempt(&renamed), CheckpointError::Damaged { .. }), "a changed letter of the state");
    let plain: Vec<(&str, safetensors::tensor::TensorView<'_>)> = Vec::new();
    let plain = safetensors::serialize(plain, None).unwrap();
    assert!(matches!(attempt(&plain), CheckpointError::Foreign { .. }), "weights of another program");

    fs::write(&path, &bytes).unwrap();
    let mut other = Run::new(&Recipe { clip: None, ..recipe() });
    assert!(matches!(other.trainer.resume(&path), Err(CheckpointError::Mismatch { .. })));
    let missing = run.trainer.resume(&folder.path().join("nothing"));
    assert!(matches!(missing, Err(CheckpointError::File { action: "read", .. })));
    run.resume(&path).unwrap();
    assert_eq!(run.trainer.steps(), 2);
}

#[cfg(unix)]
#[test]
fn a_write_that_fails_leaves_the_checkpoint_before_it() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::new(&recipe());
    run.go(1);
    let gone = run.save(&folder.path().join("missing/run.safetensors"));
    assert!(matches!(gone, Err(CheckpointError::File { action: "write", .. })));
    // A link leads to the file that is replaced, and nothing else stays in its folder.
    let (real, link) = (folder.path().join("real.safetensors"), folder.path().join("link.safetensors"));
    fs::write(&real, b"old").unwrap();
    symlink(&real, &link).unwrap();
    run.save(&link).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    run.resume(&real).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}
