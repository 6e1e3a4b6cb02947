//! What is known of the engine, by whom, and what devices make of it.
//!
//! [`claims`] holds what public sources state of every operator and chip family, one statement a row, and merges them without losing a
//! disagreement. [`suite`] runs every operator record on a device and compares with its definition and with the claims; [`report`] is
//! what comes of it, as data and as a page. [`catalogue`] puts tables, lowerings and claims together for listings and the reference.
//! [`generate`] draws random graphs from the records and compares devices on them.
//!
//! [`mod@generate`] draws random graphs over an operator table and compares all devices on them.
//!
//! [`fingerprint`] recomputes published figures: the ANEForge paper (arXiv 2606.17090) and package 0.4.0 print, for seeded workloads,
//! the relative error of the engine's answer against a wide reference. Such a figure is a fingerprint of the engine's arithmetic: the
//! same inputs are drawn ([`random`]), the same reference ([`mod@reference`]) and the emulated engine's answer are computed, and both
//! are set beside the published value.

#![forbid(unsafe_code)]

pub mod case;
pub mod catalogue;
pub mod claims;
pub mod emulated;
pub mod engine;
mod files;
pub mod fingerprint;
pub mod generate;
pub mod numerics;
pub mod published;
pub mod random;
pub mod reference;
pub mod report;
pub mod suite;
pub mod workload;
