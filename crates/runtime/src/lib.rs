//! runtime

#[allow(unsafe_code)]
pub mod kernel;
