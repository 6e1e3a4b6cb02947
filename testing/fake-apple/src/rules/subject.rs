//! What rules look at.

use aneforge_mil::{Body, Program};

/// A program as text says it, a function with its names resolved, or the surfaces of an evaluation.
pub enum Subject<'a> {
    /// The parsed text.
    Text(&'a Program),
    /// A function, of text or of a network.
    Body(&'a Body),
    /// Bytes of the surfaces.
    Surfaces {
        /// Of the inputs, as declared.
        inputs: &'a [usize],
        /// Of the outputs, as declared.
        outputs: &'a [usize],
        /// Smallest that is evaluated.
        least: usize,
    },
}
