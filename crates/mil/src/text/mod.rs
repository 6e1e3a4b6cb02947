//! MIL as text: the printer, the parser, and the two dialects that compilers accept.
//!
//! The dialect is the one that Core ML's compiler writes into `model.mil` and that the packages aneforge 0.4 and the
//! in-memory projects (maderix/ANE and its descendants) hand to the engine's compiler.

mod cursor;
mod dialect;
mod error;
mod literal;
pub(crate) mod number;
mod parse;
mod print;

pub use dialect::Dialect;
pub use error::ParseError;
pub(crate) use error::caret;
pub use parse::parse;
pub use print::print;
