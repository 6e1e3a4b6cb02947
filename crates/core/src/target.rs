//! What a program can be emitted for: chips, their families and the limits that matter so far.

use std::fmt;
use std::str::FromStr;

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

/// The way a program reaches the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Route {
    /// The e5rt runtime, which compiles a folder with MIL text and weights.
    E5rt,
    /// Models in memory: MIL text and a dictionary of weights handed to the engine's own compiler (maderix/ANE; Orion, arXiv
    /// 2603.06728). It takes fewer operators than e5rt.
    InMemory,
}

/// What a program is lowered and emitted for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// Plain MIL without workarounds.
    #[default]
    Generic,
    /// A chip through a route, with the workarounds that both need.
    Chip {
        /// The chip.
        chip: &'static Chip,
        /// The route.
        route: Route,
    },
}

/// A name that is no target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown target {name:?}; known targets: {known}")]
pub struct TargetError {
    /// What was given.
    pub name: String,
    /// What there is.
    pub known: String,
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

static CHIPS: [Chip; 16] = [
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
    /// The chip of that name, upper or lower case, with or without a space (`M1 Pro`).
    pub fn find(name: &str) -> Option<&'static Chip> {
        let wanted: String = name.chars().filter(|c| !matches!(c, ' ' | '-' | '_')).collect::<String>().to_lowercase();
        CHIPS.iter().find(|chip| chip.name == wanted)
    }
}

/// Names of the routes, as they follow a chip's name.
const E5RT: &str = "e5rt";
const IN_MEMORY: &str = "in-memory";

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::E5rt => E5RT,
            Self::InMemory => IN_MEMORY,
        })
    }
}

impl Target {
    /// A chip through e5rt.
    pub fn e5rt(chip: &'static Chip) -> Self {
        Self::Chip { chip, route: Route::E5rt }
    }

    /// A chip through models in memory.
    pub fn in_memory(chip: &'static Chip) -> Self {
        Self::Chip { chip, route: Route::InMemory }
    }

    /// The route to the chip, if there is one.
    pub fn route(&self) -> Option<Route> {
        match self {
            Self::Generic => None,
            Self::Chip { route, .. } => Some(*route),
        }
    }

    /// The chip, if there is one.
    pub fn chip(&self) -> Option<&'static Chip> {
        match self {
            Self::Generic => None,
            Self::Chip { chip, .. } => Some(chip),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Generic => f.write_str("generic"),
            // The first route came without a name, and bundles on disk say so.
            Self::Chip { chip, route: Route::E5rt } => f.write_str(chip.name),
            Self::Chip { chip, route } => write!(f, "{}:{route}", chip.name),
        }
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(name: &str) -> Result<Self, TargetError> {
        if name.eq_ignore_ascii_case("generic") {
            return Ok(Self::Generic);
        }
        let (chip, route) = name.split_once(':').unwrap_or((name, E5RT));
        let route = [Route::E5rt, Route::InMemory].into_iter().find(|known| known.to_string().eq_ignore_ascii_case(route));
        let found = Chip::find(chip).zip(route).map(|(chip, route)| Self::Chip { chip, route });
        found.ok_or_else(|| {
            let names: Vec<_> = std::iter::once("generic").chain(CHIPS.iter().map(|chip| chip.name)).collect();
            TargetError {
                name: name.to_string(),
                known: format!("{}; a chip followed by :{IN_MEMORY} takes that route", names.join(", ")),
            }
        })
    }
}
