//! How the engine is opened and used.

use crate::DeviceError;
use aneforge_sys::Source;
use std::path::PathBuf;
use std::time::Duration;

/// Variable of the environment that names the library behind the device `fake`.
const FAKE: &str = "ANEFORGE_FAKE_APPLE";

/// The way programs reach the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AneRoute {
    /// e5rt for MIL programs, the in-memory route for networks of native layers.
    #[default]
    Default,
    /// The e5rt runtime of Espresso; native layers in memory, since it takes none.
    E5rt,
    /// `_ANEInMemoryModel`, which counts against about 119 compilations per process.
    InMemory,
    /// `_ANEModel` and `_ANEClient`, which don't count.
    Client,
}

impl AneRoute {
    /// The route behind the colon of a device's name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "e5rt" => Some(Self::E5rt),
            "in-memory" => Some(Self::InMemory),
            "client" => Some(Self::Client),
            _ => None,
        }
    }

    /// The part of a device's name behind the colon.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Default => "",
            Self::E5rt => ":e5rt",
            Self::InMemory => ":in-memory",
            Self::Client => ":client",
        }
    }

    /// Whether MIL programs go through e5rt.
    pub(crate) fn is_e5rt(self) -> bool {
        matches!(self, Self::Default | Self::E5rt)
    }
}

/// Where compiled programs are kept between processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CachePlace {
    /// `ANEFORGE_CACHE_DIR`, else the user's cache folder.
    #[default]
    User,
    /// A folder of the caller's.
    Folder(PathBuf),
}

/// Options for the device of that name; `None` where the name is none of the engine's.
pub(crate) fn named(name: &str) -> Result<Option<AneOptions>, DeviceError> {
    let (device, route) = match name.split_once(':') {
        None => (name, Some(AneRoute::Default)),
        Some((device, route)) => (device, AneRoute::named(route)),
    };
    let Some(route) = route else { return Ok(None) };
    let source = match device {
        "ane" => Source::System,
        "fake" => match std::env::var_os(FAKE) {
            Some(path) if !path.is_empty() => Source::Library(path.into()),
            _ => {
                let reason = format!("{FAKE} names no library that stands in for Apple's frameworks; the tests build one");
                return Err(DeviceError::NotHere { name: name.to_string(), reason });
            }
        },
        _ => return Ok(None),
    };
    Ok(Some(AneOptions { source, route, ..AneOptions::default() }))
}

/// Options of the engine. Limits are shared by everything in a process that uses the same library: the smallest holds.
#[derive(Clone, Debug)]
pub struct AneOptions {
    /// The frameworks of this system, or one library in their place.
    pub source: Source,
    /// How programs reach the engine.
    pub route: AneRoute,
    /// Quality of service of requests: 9 background, 17 utility, 21 default, 25 user initiated, 33 user interactive. No effect on
    /// latency was seen (ane-infer on M5).
    pub quality_of_service: u32,
    /// Execution priority of e5rt streams, where given: 2 first to 7 last; 0 and 1 are the system's (ANE guide, arXiv 2606.22283,
    /// chapter 30).
    pub priority: Option<u64>,
    /// Where compiled programs are kept.
    pub cache: CachePlace,
    /// Compile even what the cache holds.
    pub force_recompilation: bool,
    /// Most loaded programs of the process; the engine takes about 128.
    pub loaded_programs: usize,
    /// Most compilations of the process on the in-memory route; more than about 119 fail without a word.
    pub compilations: usize,
    /// How long a program whose compilation failed waits.
    pub back_off: Duration,
    /// How long a compilation or a load may take: the call is given up then, see [`AneError::Silent`](super::AneError::Silent). Minutes
    /// are reported of compilations (ANE guide, arXiv 2606.22283, chapter 12). A command that never ends cannot be told from a long one
    /// and has no limit: it holds the engine until the process ends.
    pub patience: Duration,
    /// Most bytes of weights in one program. A generic program with more is cut when it is loaded; one that was compiled for this engine
    /// is an error.
    pub weight_bytes: u64,
    /// Most operations in one program, where there is a limit: longer generic programs are cut when they are loaded.
    pub operations: Option<usize>,
}

impl Default for AneOptions {
    fn default() -> Self {
        Self {
            source: Source::System,
            route: AneRoute::Default,
            quality_of_service: 21,
            priority: None,
            cache: CachePlace::User,
            force_recompilation: false,
            loaded_programs: 120,
            compilations: 110,
            back_off: Duration::from_secs(15),
            patience: Duration::from_secs(600),
            weight_bytes: 2 << 30,
            operations: None,
        }
    }
}
