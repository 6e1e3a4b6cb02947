//! The engine's own layers through net.plist: records, writer, strict reader.
#![forbid(unsafe_code)]

pub mod layer;
pub mod net;

pub use layer::{Channels, Layer, Param, ParamKind, layers};
pub use net::NetError;
