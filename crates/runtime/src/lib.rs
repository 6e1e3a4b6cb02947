//! Devices that execute a MIL program: `null`, `reference`, `cpu`, `emulator:<chip>`, and `ane`, the engine itself.
//!
//! Every device loads the same parsed program ([`Program`]), never a graph: what runs here is what a compiler of Apple's would read.
//! [`open`] gives a [`Device`] by name, [`Device::load`] an [`Executable`], [`Executable::execute`] runs it on bytes.
#![forbid(unsafe_code)]

pub mod ane;
mod bound;
mod buffer;
mod cpu;
mod device;
mod element;
pub mod emulator;
mod error;
mod null;
pub mod numerics;
mod plan;
pub mod power;
mod program;
mod reference;
mod registry;
mod report;
mod run;
mod segment;
mod state;
mod submit;

use aneforge_kernel as kernel;

pub use bound::Bound;
pub use buffer::Buffer;
pub use cpu::Cpu;
pub use device::{Device, Executable, Port};
pub use error::DeviceError;
pub use null::Null;
pub use program::Program;
pub use reference::Reference;
pub use registry::{DeviceInfo, devices, open};
pub use report::{Label, Report, Rule, SegmentReport, StepReport};
pub use state::States;
pub use submit::{Completion, submit};
