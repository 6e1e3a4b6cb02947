//! Rules of working with an engine that other processes use too, each on its own and tested without one.

mod back_off;
mod budget;
mod known;
mod residents;
mod retry;

pub(crate) use back_off::BackOff;
pub(crate) use budget::CompileBudget;
pub use known::{Cause, KNOWN_FAILURES, cause};
pub(crate) use residents::{Resident, ResidentError, Residents};
pub(crate) use retry::retry_once;
