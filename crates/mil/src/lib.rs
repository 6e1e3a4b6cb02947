//! mil
