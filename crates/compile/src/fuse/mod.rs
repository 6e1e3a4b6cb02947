//! Rewrites that a program may do without: other forms of the same computation, which a chip may run faster or more exactly.
//!
//! Which of them run is a choice ([`Rewrites`]), so that tuning can compare programs with and without each.

mod attention;
mod choice;
mod heads;
mod operator;
mod pattern;
mod tiles;

pub use choice::{Rewrite, Rewrites, UnknownRewrite};
pub use heads::GROUPED_HEADS;
pub use operator::ATTENTION_OPERATOR;
pub use tiles::{QUERY_TILES, usual_tiles};
