//! The log of a run: a line of JSON for each step and each epoch.

use crate::TrainError;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// What the log says of one step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepLine {
    /// Steps made when the line was written: 1 for the first.
    pub step: u64,
    /// The epoch, from 1.
    pub epoch: u64,
    /// The loss before the update; none where it was no number.
    pub loss: Option<f32>,
    /// Whether the update was made; false where gradients were not numbers.
    pub kept: bool,
    /// The learning rate.
    pub rate: f64,
    /// Images per second of this call, host and device together.
    pub images_per_second: f64,
    /// Milliseconds of the device for this step.
    pub device_milliseconds: f64,
}

/// What the log says of one epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochLine {
    /// Steps made by then.
    pub step: u64,
    /// The epoch, from 1.
    pub epoch: u64,
    /// Mean loss of the epoch's steps.
    pub loss: f64,
    /// The share of all test images whose class the model names.
    pub accuracy: f64,
    /// Number of test images.
    pub test_images: usize,
    /// Steps of the epoch that were skipped.
    pub skipped: u64,
    /// Milliseconds for the test images.
    pub test_milliseconds: f64,
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Line {
    /// The first one: what is run.
    Start {
        /// Version of the lines' layout.
        schema: u32,
        /// The settings.
        config: serde_json::Value,
    },
    /// One step.
    Step(StepLine),
    /// One epoch.
    Epoch(EpochLine),
}

impl Line {
    /// Version of the layout.
    pub const SCHEMA: u32 = 1;

    /// Steps made when it was written.
    pub fn step(&self) -> u64 {
        match self {
            Self::Start { .. } => 0,
            Self::Step(line) => line.step,
            Self::Epoch(line) => line.step,
        }
    }
}

/// The file.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    file: File,
}

impl Log {
    /// A new log that starts with that line.
    pub(crate) fn create(path: &Path, start: &Line) -> Result<Self, TrainError> {
        let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => TrainError::InTheWay { path: path.to_path_buf() },
            _ => TrainError::file("write", path)(error),
        })?;
        let mut log = Self { path: path.to_path_buf(), file };
        log.write(start)?;
        Ok(log)
    }

    /// Goes on with a log behind step `step`: what was written for later steps, which are made again, is cut.
    pub(crate) fn resume(path: &Path, step: u64, start: &Line) -> Result<Self, TrainError> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Self::create(path, start),
            Err(error) => return Err(TrainError::file("read", path)(error)),
        };
        let mut kept = String::with_capacity(text.len());
        // A killed run may leave half a line at the end: it is one of a later step.
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            match serde_json::from_str::<Line>(line) {
                Ok(parsed) if parsed.step() <= step => kept.push_str(line),
                Ok(_) => {}
                Err(error) => {
                    let foreign = std::io::Error::new(std::io::ErrorKind::InvalidData, format!("a line is no log's: {error}"));
                    return Err(TrainError::file("resume the log", path)(foreign));
                }
            }
        }
        if kept.is_empty() {
            std::fs::remove_file(path).map_err(TrainError::file("replace", path))?;
            return Self::create(path, start);
        }
        if kept != text {
            aneforge_io::write_whole(path, kept.as_bytes())?;
        }
        let file = OpenOptions::new().append(true).open(path).map_err(TrainError::file("write", path))?;
        Ok(Self { path: path.to_path_buf(), file })
    }

    /// Adds a line, in one piece.
    pub(crate) fn write(&mut self, line: &Line) -> Result<(), TrainError> {
        let fail = TrainError::file("write", &self.path);
        match serde_json::to_string(line) {
            Ok(text) => self.file.write_all(format!("{text}\n").as_bytes()).map_err(fail),
            Err(error) => Err(fail(error.into())),
        }
    }

    /// Puts all lines on the disk, before a checkpoint that counts on them.
    pub(crate) fn flush(&mut self) -> Result<(), TrainError> {
        self.file.sync_data().map_err(TrainError::file("write", &self.path))
    }
}
