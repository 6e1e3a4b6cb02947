//! Random graphs over an operator table, and the whole way of each through the project.
//!
//! A graph is drawn from the records alone ([`generate()`]): the examples of an operator say which shapes go together, the kinds and
//! words of its attributes what to try, and what the builder refuses is dropped and counted. [`check()`] then takes it the whole way:
//! graph text, lowering, passes, MIL text and weight file, devices. A graph that fails is made smaller ([`shrink()`]) and written as
//! a [`Case`] that anyone can run again. [`Campaign`] does this for many seeds.
//!
//! Three kinds of inputs say three different things ([`Mode`]): whole numbers that every device must answer bit for bit, reals
//! that they must answer within what the records' tolerances allow, and values at the edges of fp16, which nothing may panic on.

mod attributes;
mod bound;
mod campaign;
mod case;
mod check;
mod draws;
mod grow;
mod lossless;
mod recipe;
mod shrink;
mod tally;
mod trace;
mod whole;

pub use campaign::{Campaign, Failure, Progress};
pub use case::{Case, CaseError};
pub use check::{Devices, Finding, Subject, check};
pub use grow::{MAX_ELEMENTS, generate};
pub use recipe::{Built, Draw, Flavour, Node, Place, Recipe};
pub use shrink::shrink;
pub use tally::Tally;

/// What the inputs of a graph are, and so what is asked of its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Whole numbers such that every intermediate value is a whole number that fp16 holds: results are equal bit for bit.
    Whole,
    /// Reals: results lie within the records' tolerances, carried through the graph.
    Real,
    /// Infinities, NaN, subnormal and largest numbers: nothing panics and nothing is refused.
    Edge,
}

impl Mode {
    /// The word for it in a case file.
    pub fn word(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Real => "real",
            Self::Edge => "edge",
        }
    }

    /// The mode of that word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Whole, Self::Real, Self::Edge].into_iter().find(|mode| mode.word() == word)
    }
}
