//! The daemon and the engine: compiles folders, loads programs, executes them one at a time.
//!
//! A program is read with the MIL parser or the reader of net.plist, refused by the rules of `rules/rules.toml` and by the operator
//! table's word on what a chip family has, and executed by the emulator of the chip that the settings name. Nothing of the code
//! that writes programs is used.

#[cfg(feature = "engine")]
mod compile;
mod daemon;
#[cfg(feature = "engine")]
mod execute;
pub mod failure;
#[cfg(not(feature = "engine"))]
mod identity;
#[cfg(feature = "engine")]
mod ports;
#[cfg(all(test, feature = "engine"))]
mod tests;

#[cfg(feature = "engine")]
pub use compile::{Compiled, cached, cached_file, compile, compile_file};
pub use daemon::{OwnTime, loaded_programs};
#[cfg(feature = "engine")]
pub use execute::{Loaded, load, load_function};
#[cfg(not(feature = "engine"))]
pub use identity::{Compiled, Loaded, cached, cached_file, compile, compile_file, load, load_function};
