//! What the tests of several crates share: where the oracles and fixtures are, how results are compared, and a generator of
//! numbers for tests that change bytes at random.
// Only tests use this crate: a wrong setting must stop them, and what was not run must be said.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::print_stderr)]
#![forbid(unsafe_code)]

mod compare;
mod environment;
pub mod fake;
pub mod images;
pub mod package;
mod random;

pub use compare::{Difference, difference};
pub use environment::{fixtures, minilm, oracle, python, upstream_python};
pub use random::Random;
