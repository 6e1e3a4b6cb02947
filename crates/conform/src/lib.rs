//! conform
