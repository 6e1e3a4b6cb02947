//! Rewrites that a program may do without: other forms of the same computation, which a chip may run faster or more exactly.
//!
//! Which of them run is a choice ([`Rewrites`]), so that tuning can compare programs with and without each.

mod attention;
mod channels;
mod choice;
mod heads;
mod layout;
mod norms;
mod operator;
mod pattern;
mod scale;
mod spelled;
mod sum;
mod tiles;

pub use channels::CHANNELS_FIRST;
pub use choice::{Rewrite, Rewrites, UnknownRewrite};
pub use heads::GROUPED_HEADS;
pub use norms::{LENGTH_NORMS, NATIVE_NORMS};
pub use operator::ATTENTION_OPERATOR;
pub use scale::SCALE_FOLDING;
pub use sum::SUM_BY_PRODUCT;
pub use tiles::{QUERY_TILES, usual_tiles};
