//! The Objective-C runtime: objects that are counted, classes that are found by name, messages that are looked up by selector.
//!
//! Only what a client sees is as on a Mac: the functions, the first word of an object, type encodings, what a message does. Ids
//! come from outside as plain addresses; like the real runtime this one trusts that they are addresses of objects, and unlike it
//! it keeps freed objects for a while and records their use.

mod block;
mod class;
mod encode;
mod exports;
mod object;
mod pool;
mod send;

pub use block::{_Block_copy, _Block_release, Block, KeptBlock, call_completion, call_deallocator, call_number, invoke_with};
pub(crate) use class::method;
pub use class::{Class, ClassSpec, Imp, Method, RuntimeMethod, Sel, class};
pub use encode::{BlockRef, ClassRef, Encode, ErrorOut, SurfaceRef};
pub use exports::*;
pub use object::{Id, Object, Strong};
pub use pool::autorelease;
pub use send::objc_msgSend;
