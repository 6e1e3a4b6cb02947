//! Chips by the names people know, and what is known of their engines.

use super::compiler::{CompilerTarget, compiler_targets};
use std::fmt;

/// Generation of the engine, by the A-series number Apple's compiler uses for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs)]
pub enum Family {
    A13,
    A14,
    A15,
    A16,
    A17,
    A18,
}

/// A chip with an engine and what is known of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Chip {
    /// Name on the command line: `m1`, `m1pro`, ...
    pub name: &'static str,
    /// Product name.
    pub product: &'static str,
    /// Engine generation.
    pub family: Family,
    /// Target name of Apple's compiler, for example `h13`.
    pub compiler_target: &'static str,
    /// Neural engine units.
    pub engine_units: u32,
    /// Bandwidth of the SoC's memory in GB/s, as Apple's technical specifications give it; the largest variant of a name.
    pub memory_bandwidth: u32,
    /// Largest extent of any axis but the channels of a rank-4 tensor.
    pub max_extent: usize,
    /// Largest extent of the channel axis of a rank-4 tensor.
    pub max_channels: usize,
    /// Widest fp16 convolution kernel; the height is limited far later.
    pub max_kernel_width: usize,
    /// Sine and cosine have a native form.
    pub sine: bool,
    /// A slice that starts inside the last axis turns magnitudes above 4094 into infinity.
    pub width_slice_hazard: bool,
    /// 3x3 stride-1 convolutions run in the Winograd form.
    pub winograd: bool,
    /// Who says so.
    pub source: &'static str,
}

const GUIDE: &str = "ANE guide, arXiv 2606.22283, chapters 12 and 34, appendix A";
const GUIDE_AND_PROJECTION: &str =
    "ANE guide, arXiv 2606.22283, chapters 12 and 34, appendix A; limits of this chip decoded from the compiler, not measured";

/// Every chip, oldest first.
pub fn chips() -> &'static [Chip] {
    &CHIPS
}

const fn chip(name: &'static str, product: &'static str, family: Family, target: &'static str, units: u32, memory: u32) -> Chip {
    let old_limits = matches!(family, Family::A13 | Family::A14 | Family::A15);
    let hazard = matches!(family, Family::A13 | Family::A14);
    Chip {
        name,
        product,
        family,
        compiler_target: target,
        engine_units: units,
        memory_bandwidth: memory,
        max_extent: if old_limits { 16384 } else { 65536 },
        max_channels: 65536,
        // Chapter 12 of the guide says 15 from A16 on, its appendix 16 from A14 on; the lower value is legal under both.
        max_kernel_width: if old_limits { 13 } else { 15 },
        sine: !hazard,
        width_slice_hazard: hazard,
        winograd: matches!(family, Family::A17 | Family::A18),
        source: if matches!(family, Family::A15 | Family::A18) { GUIDE_AND_PROJECTION } else { GUIDE },
    }
}

pub(super) static CHIPS: [Chip; 16] = [
    chip("m1", "M1", Family::A13, "h13", 4, 68),
    chip("m1pro", "M1 Pro", Family::A13, "h13g", 8, 200),
    chip("m1max", "M1 Max", Family::A13, "h13g", 8, 400),
    chip("m1ultra", "M1 Ultra", Family::A13, "h13g", 8, 800),
    chip("m2", "M2", Family::A14, "h14", 4, 100),
    chip("m2pro", "M2 Pro", Family::A14, "h14g", 8, 200),
    chip("m2max", "M2 Max", Family::A14, "h14g", 8, 400),
    chip("m3", "M3", Family::A15, "h15", 4, 100),
    chip("m3pro", "M3 Pro", Family::A15, "h15g", 8, 150),
    chip("m3max", "M3 Max", Family::A15, "h15g", 8, 400),
    chip("m4", "M4", Family::A16, "h16", 4, 120),
    chip("m4pro", "M4 Pro", Family::A16, "h16g", 8, 273),
    chip("m4max", "M4 Max", Family::A16, "h16g", 8, 546),
    chip("m5", "M5", Family::A17, "h17", 4, 154),
    chip("m5pro", "M5 Pro", Family::A17, "h17s", 16, 307),
    chip("m6", "M6", Family::A18, "h18", 4, 154),
];

/// Targets of the compiler that no product is known to have. Their memory is that of the nearest die of their size: a guess, which only
/// estimates of time use.
pub(super) static UNSOLD: [Chip; 10] = [
    unsold("t1", "A13 reference", Family::A13, 4, 68),
    unsold("h14c", "A14, 32 units", Family::A14, 32, 800),
    unsold("h15c", "A15, 32 units", Family::A15, 32, 800),
    unsold("m11", "small embedded", Family::A15, 1, 34),
    unsold("h16s", "A16, 16 units", Family::A16, 16, 273),
    unsold("h16c", "A16, 32 units", Family::A16, 32, 546),
    unsold("h17a", "A17 variant", Family::A17, 4, 154),
    unsold("h17g", "A17, 8 units", Family::A17, 8, 307),
    unsold("h17c", "A17, 32 units", Family::A17, 32, 614),
    unsold("h17d", "A17, 64 units", Family::A17, 64, 1228),
];

const fn unsold(target: &'static str, product: &'static str, family: Family, units: u32, memory: u32) -> Chip {
    Chip { source: GUIDE_AND_PROJECTION, ..chip(target, product, family, target, units, memory) }
}

impl Family {
    /// The A-series number, as the MIL operator table counts families.
    pub fn number(self) -> u8 {
        match self {
            Self::A13 => 13,
            Self::A14 => 14,
            Self::A15 => 15,
            Self::A16 => 16,
            Self::A17 => 17,
            Self::A18 => 18,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "A{}", self.number())
    }
}

impl Chip {
    /// The chip of that name, upper or lower case, with or without a space (`M1 Pro`); a target of Apple's compiler (`h16s`) stands for
    /// the first chip that has it.
    pub fn find(name: &str) -> Option<&'static Chip> {
        let wanted: String = name.chars().filter(|c| !matches!(c, ' ' | '-' | '_')).collect::<String>().to_lowercase();
        let named = CHIPS.iter().find(|chip| chip.name == wanted);
        named.or_else(|| compiler_targets().iter().find(|target| target.name == wanted).and_then(CompilerTarget::chip))
    }
}
