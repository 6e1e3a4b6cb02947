//! Programs in segments: MIL programs and networks of native layers that run one after the other.

mod execute;
mod layout;
mod open;
mod stitch;

pub(crate) use execute::load;
pub(crate) use layout::Layout;
pub(crate) use open::open;

use crate::Program;
use aneforge_compile::{Link, SegmentKind};
use std::sync::Arc;

/// The segments of a program, checked against each other.
#[derive(Clone, Debug)]
pub(crate) struct Segments {
    pub(crate) parts: Vec<Part>,
    /// One for each output of the program, in its order.
    pub(crate) outputs: Vec<Link>,
}

/// One segment.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) kind: SegmentKind,
    pub(crate) program: Arc<Program>,
    /// One for each input of the segment, in its order.
    pub(crate) inputs: Vec<Link>,
}
