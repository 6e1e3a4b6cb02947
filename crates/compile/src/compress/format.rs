//! The formats in which a weight can be kept, their names and what they cost.

use super::CompressError;
use aneforge_core::{Family, Route, Target};
use std::fmt;
use std::str::FromStr;

/// How one weight is kept. The text form is the name on the command line.
///
/// | name | what is kept | operator |
/// |---|---|---|
/// | `int8`, `int8-affine` | int8 per element, a scale (and zero point) per output channel | `constexpr_affine_dequantize` |
/// | `palette4`, `palette4-channel`, `palette4-group16` | indices into a table of 2^bits fp16 entries: one table, one per output channel, one per 16 of them; 1, 2, 3, 4, 6 or 8 bits | `constexpr_lut_to_dense` |
/// | `int4-channel`, `int4-block32`, `int8-block32`, with `-offset` | int4 or int8 per element, a scale (and offset) per block of input channels | `constexpr_blockwise_shift_scale` |
/// | `sparse`, `sparse50` | a bit per element and the elements that are not zero; with a number, that percentage of smallest magnitudes is made zero first | `constexpr_sparse_to_dense` |
/// | `sparse50-palette4` | both: indices of the elements that are not zero | `constexpr_lut_to_sparse`, then `constexpr_sparse_to_dense` |
///
/// `int4` and `blockwise` are read as `palette4` and `int8-block32`, the names of the PyPI package aneforge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// A scale per output channel; with a zero point per channel unless symmetric.
    Int8 {
        /// No zero point: the range is as wide on both sides.
        symmetric: bool,
    },
    /// Tables of fp16 entries.
    Palette {
        /// Bits of an index: 1, 2, 3, 4, 6 or 8.
        bits: u8,
        /// Which elements share a table.
        tables: Tables,
    },
    /// Scales per block.
    Blockwise {
        /// Bits of an element: 4 or 8.
        bits: u8,
        /// Input channels that share a scale; all of them where absent.
        block_size: Option<usize>,
        /// Unsigned elements with an offset per block, for ranges that are not symmetric.
        offset: bool,
    },
    /// A bitmask and what is not zero.
    Sparse {
        /// Percentage of elements that are made zero, smallest magnitudes first; absent: those that are zero already.
        sparsity: Option<u8>,
    },
    /// A bitmask and indices of what is not zero.
    SparsePalette {
        /// As in [`Format::Sparse`].
        sparsity: Option<u8>,
        /// Bits of an index.
        bits: u8,
    },
}

/// Which elements of a weight share a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tables {
    /// All.
    Tensor,
    /// This many output channels.
    Group(usize),
}

/// What a target does with a format, as far as anybody reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Streaming {
    /// Read in its compressed form while the engine computes.
    Streams,
    /// Accepted and expanded to fp16 in memory before it runs: it saves space on disk alone.
    Folds,
    /// Nobody reports it.
    Unknown,
    /// The target has no such weights.
    Refused,
}

impl Format {
    /// What `target` does with weights of this format. Generic programs run on devices of our own, which keep what they are given.
    ///
    /// Tables of 4 bits and bitmasks stream on every engine from A13 on, int8 from A14, blocks from A15 (ANE guide,
    /// arXiv 2606.22283, chapters 3 and 26); several tables per weight, zero points and other widths are not reported.
    pub fn streaming(self, target: &Target) -> Streaming {
        let Target::Chip { chip, route } = target else { return Streaming::Streams };
        if *route == Route::InMemory {
            return Streaming::Refused;
        }
        let from = |family: Family| if chip.family >= family { Streaming::Streams } else { Streaming::Folds };
        match self {
            Self::Int8 { symmetric: true } => from(Family::A14),
            Self::Palette { bits: 4, tables: Tables::Tensor } | Self::Sparse { .. } => Streaming::Streams,
            Self::Blockwise { bits: 8, offset: false, .. } => from(Family::A15),
            Self::Int8 { .. } | Self::Palette { .. } | Self::Blockwise { .. } | Self::SparsePalette { .. } => Streaming::Unknown,
        }
    }

    /// Every kind of format, one of each, for tables and tests.
    pub fn examples() -> Vec<Self> {
        let names = [
            "int8",
            "int8-affine",
            "palette1",
            "palette2",
            "palette3",
            "palette4",
            "palette6",
            "palette8",
            "palette4-channel",
            "palette4-group16",
            "int4-channel",
            "int4-block32",
            "int4-block32-offset",
            "int8-channel",
            "int8-block32",
            "int8-block32-offset",
            "sparse",
            "sparse50",
            "sparse50-palette4",
        ];
        names.iter().filter_map(|name| name.parse().ok()).collect()
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sparse = |f: &mut fmt::Formatter<'_>, sparsity: Option<u8>| match sparsity {
            Some(percent) => write!(f, "sparse{percent}"),
            None => f.write_str("sparse"),
        };
        match *self {
            Self::Int8 { symmetric } => f.write_str(if symmetric { "int8" } else { "int8-affine" }),
            Self::Palette { bits, tables } => match tables {
                Tables::Tensor => write!(f, "palette{bits}"),
                Tables::Group(1) => write!(f, "palette{bits}-channel"),
                Tables::Group(size) => write!(f, "palette{bits}-group{size}"),
            },
            Self::Blockwise { bits, block_size, offset } => {
                match block_size {
                    Some(size) => write!(f, "int{bits}-block{size}")?,
                    None => write!(f, "int{bits}-channel")?,
                }
                f.write_str(if offset { "-offset" } else { "" })
            }
            Self::Sparse { sparsity } => sparse(f, sparsity),
            Self::SparsePalette { sparsity, bits } => {
                sparse(f, sparsity)?;
                write!(f, "-palette{bits}")
            }
        }
    }
}

impl FromStr for Format {
    type Err = CompressError;

    fn from_str(name: &str) -> Result<Self, CompressError> {
        parse(name).ok_or_else(|| CompressError::Name { name: name.to_string() })
    }
}

fn parse(name: &str) -> Option<Format> {
    match name {
        "int8" => return Some(Format::Int8 { symmetric: true }),
        "int8-affine" => return Some(Format::Int8 { symmetric: false }),
        "int4" => return parse("palette4"),
        "blockwise" => return parse("int8-block32"),
        _ => {}
    }
    if let Some(rest) = name.strip_prefix("palette") {
        let (bits, tables) = rest.split_once('-').map_or((rest, None), |(bits, tables)| (bits, Some(tables)));
        let tables = match tables {
            None => Tables::Tensor,
            Some("channel") => Tables::Group(1),
            Some(group) => Tables::Group(number(group.strip_prefix("group")?)?),
        };
        return Some(Format::Palette { bits: table_bits(bits)?, tables });
    }
    if let Some(rest) = name.strip_prefix("sparse") {
        let (sparsity, palette) = rest.split_once("-palette").map_or((rest, None), |(sparsity, bits)| (sparsity, Some(bits)));
        let sparsity =
            if sparsity.is_empty() { None } else { Some(sparsity.parse().ok().filter(|percent| (1..100).contains(percent))?) };
        return Some(match palette {
            Some(bits) => Format::SparsePalette { sparsity, bits: table_bits(bits)? },
            None => Format::Sparse { sparsity },
        });
    }
    let (name, offset) = name.strip_suffix("-offset").map_or((name, false), |name| (name, true));
    let (bits, blocks) = name.strip_prefix("int")?.split_once('-')?;
    let bits = match bits {
        "4" => 4,
        "8" => 8,
        _ => return None,
    };
    let block_size = if blocks == "channel" { None } else { Some(number(blocks.strip_prefix("block")?)?) };
    Some(Format::Blockwise { bits, block_size, offset })
}

fn table_bits(text: &str) -> Option<u8> {
    text.parse().ok().filter(|bits| [1, 2, 3, 4, 6, 8].contains(bits))
}

fn number(text: &str) -> Option<usize> {
    text.parse().ok().filter(|&size| size > 0 && size <= 1 << 20)
}
