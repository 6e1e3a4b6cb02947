//! Whole training runs: a task's model and data, settings from a file, a log, checkpoints, accuracy on the test images.
//!
//! A [`Run`] is made from a [`Config`] and a [`DataSet`]. Its step is one program with all state on the device; between steps it
//! writes the log, saves, and asks its [`Watch`] whether to go on. A run that is killed and resumed ends as one that was not.
//!
//! ```no_run
//! use aneforge_train::{Config, DataSet, Run, Task};
//!
//! # fn main() -> Result<(), aneforge_train::TrainError> {
//! let config = Config { device: "cpu".to_string(), epochs: 1, ..Config::new(Task::FashionMlp) };
//! let data = DataSet::open(config.task.source(), config.data.as_deref())?;
//! let summary = Run::new(&config, data)?.go(&mut ())?;
//! assert!(summary.epochs[0].accuracy > 0.8);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod checkpoints;
mod config;
mod data;
mod error;
mod fetch;
mod log;
mod run;
mod task;

pub use config::{Config, LossScaling, Rule, Timetable};
pub use data::{DataSet, Part, Source};
pub use error::TrainError;
pub use log::{EpochLine, Line, StepLine};
pub use run::{Run, Start, Summary, Watch};
pub use task::{Net, Task};
