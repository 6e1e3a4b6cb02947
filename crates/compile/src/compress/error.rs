//! Why a weight cannot be compressed as asked.

use aneforge_mil::WeightError;

/// A compression that is not possible; nothing was changed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CompressError {
    /// A name that is no format.
    #[error(
        "unknown weight format {name:?}; there are int8, int8-affine, palette4 (1, 2, 3, 4, 6 or 8 bits, with -channel or -groupN), \
         int4-channel, int4-blockN, int8-blockN (with -offset), sparse, sparseP, sparseP-palette4 with P from 1 to 99"
    )]
    Name {
        /// What was given.
        name: String,
    },
    /// The format cannot hold this weight.
    #[error("weight {weight:?} {shape:?} cannot be kept as {format}: {rule}")]
    Rule {
        /// SSA name of the weight.
        weight: String,
        /// Its shape.
        shape: Vec<usize>,
        /// The format.
        format: String,
        /// What stands against it and what to do.
        rule: String,
    },
    /// The target would not take weights of the format.
    #[error(
        "{target} takes no weights in {format}: models in memory have fp16 weights alone; choose the target without :in-memory"
    )]
    Target {
        /// The target.
        target: String,
        /// The format.
        format: String,
    },
    /// The weight cannot be read.
    #[error("weight {weight:?}: {source}")]
    Read {
        /// SSA name of the weight.
        weight: String,
        /// Why.
        source: WeightError,
    },
}
