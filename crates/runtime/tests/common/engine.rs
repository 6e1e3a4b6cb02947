//! The engine's device on the fake of Apple's frameworks.
#![allow(dead_code, clippy::unwrap_used)]

use aneforge_compile::{CompileOptions, compile_body};
use aneforge_core::HostArray;
use aneforge_mil::Body;
use aneforge_runtime::ane::{Ane, AneOptions, AneRoute, CachePlace, Source};
use aneforge_runtime::{Device, Executable, Program, open};
use aneforge_testkit::fake;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tempfile::TempDir;

/// The ways to the engine.
pub const ROUTES: [AneRoute; 3] = [AneRoute::E5rt, AneRoute::InMemory, AneRoute::Client];

/// The engine with a cache of its own. Tests of one process take turns: the fake's settings are the process's.
pub struct Engine {
    pub device: Ane,
    pub cache: TempDir,
    _turn: MutexGuard<'static, ()>,
}

/// The fake as it is after a start, then with these settings, opened with these options.
pub fn engine_with(settings: Value, options: AneOptions) -> Engine {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    fake::control(&json!({ "reset": true }));
    fake::set(settings);
    let cache = tempfile::tempdir().unwrap();
    let options =
        AneOptions { source: Source::Library(fake::library()), cache: CachePlace::Folder(cache.path().to_path_buf()), ..options };
    let device = Ane::open(options).unwrap_or_else(|error| panic!("{error}"));
    Engine { device, cache, _turn: turn }
}

/// The same on a route, with no wait after failures.
pub fn engine(route: AneRoute, settings: Value) -> Engine {
    engine_with(settings, AneOptions { route, back_off: Duration::ZERO, ..AneOptions::default() })
}

impl Engine {
    /// A body compiled for this engine, through a bundle on disk; an error where the chip cannot have it.
    pub fn program(&self, body: Body) -> Result<Arc<Program>, String> {
        let options = CompileOptions { target: self.device.target(), ..CompileOptions::default() };
        let compiled = compile_body(body, &options).map_err(|error| error.to_string())?;
        let folder = self.cache.path().join(format!("bundle-{:x}", rand()));
        compiled.write(&folder).map_err(|error| error.to_string())?;
        Ok(Arc::new(Program::open(&folder).map_err(|error| error.to_string())?))
    }

    /// The emulator of this engine's chip.
    pub fn emulator(&self) -> Arc<dyn Device> {
        open(&format!("emulator:{}", self.device.chip().unwrap().name)).unwrap()
    }

    pub fn load(&self, program: &Arc<Program>) -> Arc<dyn Executable> {
        self.device.load(program).unwrap_or_else(|error| panic!("{}: {error}", self.device.name()))
    }
}

fn rand() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

/// Runs once and gives the outputs' bytes.
pub fn outputs(executable: &Arc<dyn Executable>, inputs: &[HostArray]) -> Vec<Vec<u8>> {
    let results = executable.run(&inputs.iter().collect::<Vec<_>>()).unwrap_or_else(|error| panic!("{error}"));
    results.iter().map(|array| array.bytes().to_vec()).collect()
}

/// Holds that nothing lives, is loaded or was used wrongly, but for the dictionary without entries that an open device keeps.
pub fn assert_clean() {
    let counters = fake::counters();
    assert_eq!(counters["violations"], json!([]), "used wrongly");
    let kept = json!({ "NSDictionary": 1 });
    assert!(counters["live"] == json!({}) || counters["live"] == kept, "still alive: {}", counters["live"]);
    assert_eq!(counters["loaded_programs"], 0, "still loaded");
    assert_eq!(counters["surface_locks"], counters["surface_unlocks"], "locks of surfaces");
}
