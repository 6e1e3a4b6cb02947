//! What a program can be emitted for: chips, their families and the limits that matter so far.

mod chip;
mod compiler;

pub use chip::{Chip, Family, chips};
pub use compiler::{CompilerTarget, Features, Limits, Tier, compiler_targets};

use chip::CHIPS;
use std::fmt;
use std::str::FromStr;

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
