//! The targets of Apple's engine compiler: 28 names, each with the tables that its `GetParams` fills. All of it is from the ANE guide
//! (arXiv 2606.22283), chapters 12 and 34 and appendix A, which read the tables of a compiler; what was also measured on a chip says so
//! with the chip.

use super::chip::{CHIPS, Chip, Family, UNSOLD};
use std::fmt;

/// Targets that share limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// A11 and A12 and what came beside them.
    Legacy,
    /// A13 and M1.
    A13,
    /// A14 and M2.
    A14,
    /// A15 and M3.
    A15,
    /// A16 and M4, and what came after.
    A16,
    /// A small engine of its own limits.
    Embedded,
    /// Checks of the compiler itself; no silicon.
    Reference,
}

/// A target of the compiler.
#[derive(Debug, PartialEq, Eq)]
pub struct CompilerTarget {
    /// Name, as the compiler takes it.
    pub name: &'static str,
    /// What silicon it stands for.
    pub silicon: &'static str,
    /// Whose limits it has.
    pub tier: Tier,
    /// Engine units, the most that a die of that name has. Not the number of cores that Apple prints.
    pub units: u32,
    /// What it can do beyond its limits.
    pub features: Features,
}

/// What a target has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Features {
    /// Takes programs in MIL: the compiler says "MIL is only supported for H13+" to the others.
    pub mil: bool,
    /// Samples pictures in hardware: crop and resize, resample, affine, gather.
    pub texture: bool,
    /// Sine and cosine.
    pub sine: bool,
    /// Dropout and random numbers.
    pub dropout: bool,
    /// Formats of pictures that it reads by itself.
    pub image_formats: u32,
    /// Eight-bit floats (E4M3) as inputs of products.
    pub fp8: bool,
}

/// Numeric limits of a tier; zero where something is not supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Limits {
    /// Largest width and height of a tensor.
    pub max_extent: u32,
    /// Largest depth.
    pub max_depth: u32,
    /// Most channels.
    pub max_channels: u32,
    /// Largest batch.
    pub max_batch: u32,
    /// Widest kernel of a convolution in fp16, and in other formats.
    pub max_kernel_width: [u32; 2],
    /// Highest kernel.
    pub max_kernel_height: u32,
    /// Deepest kernel; no device runs kernels deeper than one.
    pub max_kernel_depth: u32,
    /// Largest width and height that a transpose takes in one piece.
    pub max_transpose: u32,
    /// Bytes of an operand above which it is tiled and streamed.
    pub working_set_bytes: u32,
    /// Bytes of weights that a layer may hold on the engine.
    pub kernel_memory_bytes: u32,
    /// Extent from which a reduction becomes a transpose and a reduction.
    pub reduction_by_transpose: u32,
    /// A slice that starts inside the last axis turns magnitudes above this into infinity; 0 where it does not.
    pub width_slice_ceiling: u32,
    /// Who says so.
    pub source: &'static str,
}

const SOURCE: &str = "ANE guide, arXiv 2606.22283, chapters 12, 24 and 34, appendix A";

const fn target(name: &'static str, silicon: &'static str, tier: Tier, units: u32, formats: u32) -> CompilerTarget {
    let is_late = matches!(tier, Tier::A15 | Tier::A16 | Tier::Embedded);
    let features = Features {
        mil: !matches!(tier, Tier::Legacy | Tier::Reference),
        texture: is_late || matches!(tier, Tier::A14),
        sine: is_late,
        dropout: is_late,
        image_formats: formats,
        fp8: false,
    };
    CompilerTarget { name, silicon, tier, units, features }
}

const fn with_fp8(target: CompilerTarget) -> CompilerTarget {
    CompilerTarget { features: Features { fp8: true, ..target.features }, ..target }
}

/// Every target, in the order of the guide.
static TARGETS: [CompilerTarget; 28] = [
    target("h11", "A11", Tier::Legacy, 4, 0),
    target("h12", "A12", Tier::Legacy, 4, 0),
    target("m9", "small engine before A13", Tier::Legacy, 1, 0),
    target("t0", "reference before A13", Tier::Legacy, 4, 0),
    target("h13", "A13, M1", Tier::A13, 4, 3),
    target("h13g", "M1 Pro, Max, Ultra", Tier::A13, 8, 3),
    target("t1", "A13 reference", Tier::A13, 4, 3),
    target("h14", "A14, M2", Tier::A14, 4, 13),
    target("h14g", "M2 Pro, Max", Tier::A14, 8, 13),
    target("h14c", "A14, 32 units", Tier::A14, 32, 13),
    target("h15", "A15, M3", Tier::A15, 4, 16),
    target("h15g", "M3 Pro, Max", Tier::A15, 8, 16),
    target("h15c", "A15, 32 units", Tier::A15, 32, 16),
    target("h16", "A16, M4", Tier::A16, 4, 14),
    target("h16g", "M4 Pro, Max", Tier::A16, 8, 14),
    target("h16s", "A16, 16 units", Tier::A16, 16, 14),
    target("h16c", "A16, 32 units", Tier::A16, 32, 14),
    target("h17", "A17, M5", Tier::A16, 4, 14),
    target("h17a", "A17 variant", Tier::A16, 4, 14),
    target("h17g", "A17, 8 units", Tier::A16, 8, 14),
    target("h17s", "M5 Pro", Tier::A16, 16, 14),
    target("h17c", "A17, 32 units", Tier::A16, 32, 14),
    target("h17d", "A17, 64 units", Tier::A16, 64, 14),
    with_fp8(target("h18", "A18, M6", Tier::A16, 4, 14)),
    target("m11", "small embedded engine", Tier::Embedded, 1, 16),
    target("u1", "reference of the compiler's checks", Tier::Reference, 4, 0),
    target("u2", "reference of the compiler's checks", Tier::Reference, 4, 0),
    target("u3", "reference of the compiler's checks", Tier::Reference, 4, 0),
];

/// Every target of the compiler, in the order of the guide.
pub fn compiler_targets() -> &'static [CompilerTarget] {
    &TARGETS
}

impl CompilerTarget {
    /// The target of that name.
    pub fn find(name: &str) -> Option<&'static Self> {
        TARGETS.iter().find(|target| target.name.eq_ignore_ascii_case(name))
    }

    /// A chip that has the target: the first product, or the entry of a die that is not sold; `None` where no program in MIL reaches it.
    pub fn chip(&self) -> Option<&'static Chip> {
        CHIPS.iter().chain(&UNSOLD).find(|chip| chip.compiler_target == self.name)
    }

    /// The products that have it.
    pub fn products(&self) -> impl Iterator<Item = &'static Chip> + '_ {
        CHIPS.iter().filter(|chip| chip.compiler_target == self.name)
    }

    /// The engine's generation; `None` where no program in MIL reaches it.
    pub fn family(&self) -> Option<Family> {
        self.chip().map(|chip| chip.family)
    }

    /// Its limits.
    pub fn limits(&self) -> Limits {
        let is_new = matches!(self.tier, Tier::A14 | Tier::A15 | Tier::A16 | Tier::Embedded);
        let extent = match self.tier {
            Tier::A16 => 65536,
            Tier::Reference => 65535,
            _ => 16384,
        };
        let has_mil = self.features.mil;
        Limits {
            max_extent: extent,
            max_depth: if has_mil { extent } else { 1 },
            max_channels: 65536,
            max_batch: if has_mil { 65536 } else { 4096 },
            max_kernel_width: match self.tier {
                Tier::Embedded => [15, 15],
                Tier::Reference => [1023, 1023],
                _ if is_new => [16, 32],
                _ => [13, 29],
            },
            max_kernel_height: if is_new { 32 } else { 29 },
            max_kernel_depth: if has_mil { 16 } else { 1 },
            max_transpose: if has_mil { extent } else { 0 },
            working_set_bytes: if self.name == "m9" { 1 << 20 } else { 2 << 20 },
            kernel_memory_bytes: 64 << 10,
            reduction_by_transpose: match self.tier {
                Tier::Legacy | Tier::Reference => 0,
                Tier::A13 | Tier::A14 => 192,
                _ => 384,
            },
            width_slice_ceiling: if matches!(self.tier, Tier::A13 | Tier::A14) { 4094 } else { 0 },
            source: SOURCE,
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Legacy => "before A13",
            Self::A13 => "A13",
            Self::A14 => "A14",
            Self::A15 => "A15",
            Self::A16 => "A16",
            Self::Embedded => "embedded",
            Self::Reference => "reference",
        })
    }
}
