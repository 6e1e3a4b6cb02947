//! Which rewrites run.

use aneforge_core::Target;
use std::num::NonZeroUsize;
use std::str::FromStr;

/// A rewrite that a program may do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rewrite {
    /// Products with keys and values that several heads share, without repeating them.
    GroupedHeads,
    /// Attention over its queries in tiles.
    QueryTiles,
    /// Attention as one operator.
    AttentionOperator,
    /// Layer and instance norms that are spelled out as operators.
    NativeNorms,
    /// Root mean square norms by their length.
    LengthNorms,
    /// Scales and offsets per channel in the layer before them.
    ScaleFolding,
    /// Long sums as products with ones.
    SumByProduct,
    /// Dense layers as convolutions, with channels first between them.
    ChannelsFirst,
}

impl Rewrite {
    /// All of them, in the order in which tuning tries them.
    pub const ALL: &[Self] = &[
        Self::GroupedHeads,
        Self::QueryTiles,
        Self::AttentionOperator,
        Self::NativeNorms,
        Self::LengthNorms,
        Self::ScaleFolding,
        Self::SumByProduct,
        Self::ChannelsFirst,
    ];

    /// The name of its pass.
    pub fn name(self) -> &'static str {
        match self {
            Self::GroupedHeads => super::GROUPED_HEADS.name,
            Self::QueryTiles => super::QUERY_TILES.name,
            Self::AttentionOperator => super::ATTENTION_OPERATOR.name,
            Self::NativeNorms => super::NATIVE_NORMS.name,
            Self::LengthNorms => super::LENGTH_NORMS.name,
            Self::ScaleFolding => super::SCALE_FOLDING.name,
            Self::SumByProduct => super::SUM_BY_PRODUCT.name,
            Self::ChannelsFirst => super::CHANNELS_FIRST.name,
        }
    }

    /// The rewrite that a pass is, if it is one.
    pub fn find(pass: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|rewrite| rewrite.name() == pass)
    }

    /// Whether it runs where nobody chose. A generic program keeps its operators; on a chip those run that move less and round no
    /// more.
    pub fn by_default(self, target: &Target) -> bool {
        target.chip().is_some() && matches!(self, Self::GroupedHeads | Self::QueryTiles | Self::NativeNorms | Self::ScaleFolding)
    }

    fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// Which rewrites run: what was chosen, and elsewhere what the target's programs do by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rewrites {
    on: u16,
    off: u16,
    attention_tiles: Option<NonZeroUsize>,
}

impl Rewrites {
    /// The same with one rewrite chosen or refused.
    #[must_use]
    pub fn with(self, rewrite: Rewrite, runs: bool) -> Self {
        let bit = rewrite.bit();
        match runs {
            true => Self { on: self.on | bit, off: self.off & !bit, ..self },
            false => Self { on: self.on & !bit, off: self.off | bit, ..self },
        }
    }

    /// The same with the queries of every attention in that many tiles; 0 for as many as [`usual_tiles`](super::usual_tiles) says.
    #[must_use]
    pub fn with_tiles(self, count: usize) -> Self {
        Self { attention_tiles: NonZeroUsize::new(count), ..self }
    }

    /// Tiles that attention over so many queries is cut into.
    pub fn tiles(&self, queries: usize) -> usize {
        self.attention_tiles.map_or_else(|| super::usual_tiles(queries), NonZeroUsize::get).min(queries.max(1))
    }

    /// No rewrite runs.
    pub fn none() -> Self {
        Rewrite::ALL.iter().fold(Self::default(), |rewrites, &rewrite| rewrites.with(rewrite, false))
    }

    /// Whether a rewrite runs in programs for a target.
    pub fn runs(&self, rewrite: Rewrite, target: &Target) -> bool {
        let bit = rewrite.bit();
        self.on & bit != 0 || (self.off & bit == 0 && rewrite.by_default(target))
    }
}

/// No rewrite has that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no rewrite {name:?}; name one of {known}")]
pub struct UnknownRewrite {
    /// What was given.
    pub name: String,
    /// What there is.
    pub known: String,
}

impl FromStr for Rewrite {
    type Err = UnknownRewrite;

    fn from_str(name: &str) -> Result<Self, UnknownRewrite> {
        Self::find(name).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|rewrite| rewrite.name()).collect();
            UnknownRewrite { name: name.to_string(), known: known.join(", ") }
        })
    }
}
