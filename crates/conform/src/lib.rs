//! Published engine figures, recomputed.
//!
//! The ANEForge paper (arXiv 2606.17090) and package 0.4.0 print, for seeded workloads, the relative
//! error of the engine's answer against a wide reference. Such a figure is a fingerprint of the
//! engine's arithmetic: this crate draws the same inputs ([`random`]), computes the same reference
//! ([`mod@reference`]) and the emulated engine's answer, and sets both beside the published value.

#![forbid(unsafe_code)]

pub mod case;
pub mod claims;
pub mod emulated;
pub mod fingerprint;
pub mod generate;
pub mod published;
pub mod random;
pub mod reference;
pub mod report;
pub mod workload;
