//! One module per command, each with its options and its `run`.

pub mod check;
pub mod chips;
pub mod compile;
pub mod conform;
pub mod devices;
pub mod doctor;
pub mod embed;
pub mod estimate;
pub mod fingerprint;
pub mod inspect;
pub mod ops;
pub mod run;
pub mod train;
pub mod tune;
