//! The engine itself, through Apple's frameworks, in this process.
//!
//! [`Ane::open`] finds the frameworks, [`crate::Device::load`] compiles a program for the chip where its bundle was not, and keeps it in
//! a cache that processes share. Programs run through e5rt, networks of native layers through the in-memory classes.
//!
//! Nothing here was tried on a Mac by this project: the order of calls, limits and failures are those that public sources report, and the
//! tests run against a stand-in that behaves as those sources say.

mod binding;
mod cache;
mod core;
mod device;
mod e5rt;
mod error;
mod executable;
mod fault;
mod folder;
mod foreign;
mod kernel;
mod layout;
mod memory;
mod model;
mod options;
mod packed;
mod patience;
mod policy;
mod prepare;
mod resident_state;
mod shared;
mod stats;
mod symbols;

/// Where Apple's frameworks come from.
pub use aneforge_sys::Source;
pub use device::{Ane, Usage};
pub use error::{AneError, Refusal, Step};
pub use foreign::compile_for;
pub(crate) use options::named as options;
pub use options::{AneOptions, AneRoute, CachePlace};
pub use packed::Packing;
pub use policy::{Cause, KNOWN_FAILURES, cause};
pub use stats::{AneStats, EngineReport};
