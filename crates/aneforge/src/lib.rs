//! aneforge
