//! Passes that remove what needs no computing.

mod dead;
mod duplicate;
mod fold;
mod identity;

pub use dead::DEAD;
pub use duplicate::DUPLICATE;
pub use fold::FOLD;
pub use identity::IDENTITY;
