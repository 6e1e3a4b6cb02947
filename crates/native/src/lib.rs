//! The engine's own layers through net.plist: records, writer, strict reader.
#![forbid(unsafe_code)]
