//! The classes of AppleNeuralEngine that take a program to the engine.
//!
//! Selectors, argument types, order of calls, limits and errors are those that maderix/ANE, its pull requests and issues, dev-erik/ANE,
//! thebasedcapital/ane-infer, Orion (arXiv 2603.06728) and christopherkarani/Espresso report; each oddity names its source.

mod attributes;
mod chaining;
mod client;
mod descriptor;
mod files;
mod info;
mod memory_model;
mod model;
mod program;
mod request;

use crate::objc::ClassSpec;

/// Domain of what the framework reports besides compiling.
const FRAMEWORK: &str = "com.apple.appleneuralengine";

/// Classes, each after the one above it.
pub fn specs() -> impl Iterator<Item = &'static ClassSpec> {
    let files = [descriptor::SPECS, memory_model::SPECS, model::SPECS, client::SPECS];
    files.into_iter().chain([request::SPECS, chaining::SPECS, info::SPECS]).flatten()
}
