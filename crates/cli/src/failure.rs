//! Why a command ends without success, and with which exit code.

use aneforge::io::IoError;
use aneforge::io::models::ModelError;
use aneforge::nn::NnError;
use aneforge::train::TrainError;
use aneforge::{CompileError, DeviceError};
use std::error::Error;
use std::fmt;

/// The end of a command that did not do what it was asked for.
#[derive(Debug)]
pub enum Failure {
    /// Something was compared and found wanting.
    Check(String),
    /// Wrong usage or bad input.
    Input(String),
    /// This machine cannot do it.
    NotHere(String),
    /// A signal asked for the end, and the work so far is kept.
    Interrupted,
    /// The reader of the output went away: a quiet end.
    Pipe,
}

impl Failure {
    /// The exit code that scripts see.
    pub fn code(&self) -> u8 {
        match self {
            Self::Pipe => 0,
            Self::Check(_) => 1,
            Self::Input(_) => 2,
            Self::NotHere(_) => 3,
            // What a shell reports for a command that Ctrl-C ended.
            Self::Interrupted => 130,
        }
    }

    /// Bad input, told by an error and its causes in one line.
    pub fn input(error: &dyn Error) -> Self {
        Self::Input(chain(error))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Check(text) | Self::Input(text) | Self::NotHere(text) => f.write_str(text),
            Self::Interrupted => f.write_str("ended by a signal"),
            Self::Pipe => f.write_str("the reader of the output went away"),
        }
    }
}

/// An error and its causes, outermost first; a cause that the message before it already repeats is left out.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        source = cause.source();
    }
    text
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Self {
        if error.is_not_here() { Self::NotHere(chain(&error)) } else { Self::input(&error) }
    }
}

impl From<CompileError> for Failure {
    fn from(error: CompileError) -> Self {
        Self::input(&error)
    }
}

impl From<IoError> for Failure {
    fn from(error: IoError) -> Self {
        Self::input(&error)
    }
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Self::input(&error)
    }
}

impl From<aneforge::io::EmbedError> for Failure {
    fn from(error: aneforge::io::EmbedError) -> Self {
        match error {
            aneforge::io::EmbedError::Device(error) => error.into(),
            other => Self::input(&other),
        }
    }
}

impl From<TrainError> for Failure {
    fn from(error: TrainError) -> Self {
        match error {
            TrainError::Device(error) => error.into(),
            TrainError::Training(NnError::Device(error)) => error.into(),
            stopped @ TrainError::Stopped { .. } => Self::Check(chain(&stopped)),
            other => Self::input(&other),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            Self::Pipe
        } else {
            Self::Input(format!("cannot write the output: {error}"))
        }
    }
}
