//! The system's parts, each opened when it is first asked for.

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::{Arc, OnceLock};

use crate::ane::AppleNeuralEngine;
use crate::energy::Energy;
use crate::library::{Lookup, Search, Source, functions};
use crate::objc::ObjectiveC;
use crate::surface::Surfaces;
use crate::{Missing, SysError, e5rt};

functions! {
    /// Questions to the kernel.
    struct SystemFunctions {
        sysctl_by_name: "sysctlbyname" (name: *const c_char, old: *mut c_void, old_length: *mut usize, new: *mut c_void, new_length: usize) -> c_int;
    }
}

/// Everything of Apple's that this crate calls. A part that is absent gives its own error and takes no other part away.
pub struct Frameworks {
    source: Source,
    system: SystemFunctions,
    e5rt: Part<e5rt::Runtime>,
    objective_c: Part<ObjectiveC>,
    surfaces: Part<Surfaces>,
    engine: Part<AppleNeuralEngine>,
    energy: Part<Energy>,
}

/// A part of the system, opened when it is first asked for. What is missing stays missing for the life of the process, so the
/// error is kept too.
struct Part<T> {
    name: &'static str,
    /// Its libraries on a Mac.
    paths: &'static [&'static str],
    opened: OnceLock<Opened<T>>,
}

struct Opened<T> {
    value: Result<Arc<T>, SysError>,
    lookups: Vec<Lookup>,
}

impl<T> Part<T> {
    fn new(name: &'static str, paths: &'static [&'static str]) -> Self {
        Self { name, paths, opened: OnceLock::new() }
    }

    fn lookups(&self) -> (&'static str, Vec<Lookup>) {
        (self.name, self.opened.get().map(|opened| opened.lookups.clone()).unwrap_or_default())
    }
}

impl std::fmt::Debug for Frameworks {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Frameworks").field("source", &self.source).finish_non_exhaustive()
    }
}

const LIB_SYSTEM: &str = "/usr/lib/libSystem.B.dylib";
const LIB_OBJC: &str = "/usr/lib/libobjc.A.dylib";
const LIB_IO_REPORT: &str = "/usr/lib/libIOReport.dylib";
const CORE_FOUNDATION: &str = "/System/Library/Frameworks/CoreFoundation.framework/CoreFoundation";
const FOUNDATION: &str = "/System/Library/Frameworks/Foundation.framework/Foundation";
const IO_SURFACE: &str = "/System/Library/Frameworks/IOSurface.framework/IOSurface";
const NEURAL_ENGINE: &str = "/System/Library/PrivateFrameworks/AppleNeuralEngine.framework/AppleNeuralEngine";
const ESPRESSO: &str = "/System/Library/PrivateFrameworks/Espresso.framework/Espresso";

impl Frameworks {
    /// Opens what every part needs. The parts themselves are opened by the methods that return them.
    ///
    /// # Errors
    /// [`SysError::NotHere`] for the system's frameworks on something that is no Mac, [`SysError::Open`] where the library is
    /// missing, [`SysError::Lacking`] where it has no `sysctlbyname`.
    pub fn open(source: &Source) -> Result<Arc<Self>, SysError> {
        if *source == Source::System && !cfg!(target_os = "macos") {
            return Err(SysError::NotHere { what: "the Neural Engine's frameworks" });
        }
        let libraries = source.open(&[LIB_SYSTEM])?;
        let mut search = Search::new(&libraries, "unknown");
        let system = SystemFunctions::load(&mut search).ok_or_else(|| lacking("the kernel interface", &search))?;
        Ok(Arc::new(Self {
            source: source.clone(),
            system,
            e5rt: Part::new("the Espresso runtime (e5rt)", &[ESPRESSO, LIB_OBJC, LIB_SYSTEM]),
            objective_c: Part::new("Objective-C and Foundation", &[LIB_OBJC, FOUNDATION, LIB_SYSTEM]),
            surfaces: Part::new("IOSurface", &[IO_SURFACE, CORE_FOUNDATION]),
            engine: Part::new("AppleNeuralEngine", &[NEURAL_ENGINE]),
            energy: Part::new("IOReport", &[LIB_IO_REPORT, CORE_FOUNDATION]),
        }))
    }

    /// Where the parts come from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The build of the operating system, such as `25E246`: `sysctl kern.osversion`.
    ///
    /// # Errors
    /// [`SysError::Code`] where the kernel refuses, [`SysError::Text`] where it gives no text.
    pub fn os_build(&self) -> Result<String, SysError> {
        self.system_text("kern.osversion")
    }

    /// The chip's name, such as `Apple M1`: `sysctl machdep.cpu.brand_string`.
    ///
    /// # Errors
    /// As [`Frameworks::os_build`].
    pub fn chip_name(&self) -> Result<String, SysError> {
        self.system_text("machdep.cpu.brand_string")
    }

    /// The engine's kind, such as `h13g`; nothing where the system knows no engine.
    ///
    /// # Errors
    /// As [`Frameworks::in_memory`]; [`SysError::Lacking`] where this system lacks the question.
    pub fn engine_subtype(&self) -> Result<Option<String>, SysError> {
        self.in_memory()?.engine_subtype()
    }

    /// The runtime of Espresso, which compiles and dispatches MIL programs from files.
    ///
    /// # Errors
    /// [`SysError::Lacking`] with everything that is missing.
    pub fn e5rt(&self) -> Result<Arc<e5rt::Runtime>, SysError> {
        self.part(&self.e5rt, |search| Ok(e5rt::Runtime::load(search)))
    }

    /// The Objective-C runtime and Foundation.
    ///
    /// # Errors
    /// As [`Frameworks::e5rt`].
    pub fn objective_c(&self) -> Result<Arc<ObjectiveC>, SysError> {
        self.part(&self.objective_c, |search| Ok(ObjectiveC::load(search)))
    }

    /// IOSurface.
    ///
    /// # Errors
    /// As [`Frameworks::e5rt`].
    pub fn surfaces(&self) -> Result<Arc<Surfaces>, SysError> {
        let runtime = self.objective_c()?;
        self.part(&self.surfaces, |search| Ok(Surfaces::load(&runtime, search)))
    }

    /// AppleNeuralEngine's classes, which compile and run programs given in memory.
    ///
    /// # Errors
    /// As [`Frameworks::e5rt`].
    pub fn in_memory(&self) -> Result<Arc<AppleNeuralEngine>, SysError> {
        let (runtime, surfaces) = (self.objective_c()?, self.surfaces()?);
        self.part(&self.engine, |search| AppleNeuralEngine::load(&runtime, &surfaces, search))
    }

    /// IOReport, which counts energy and traffic.
    ///
    /// # Errors
    /// As [`Frameworks::e5rt`].
    pub fn energy(&self) -> Result<Arc<Energy>, SysError> {
        let runtime = self.objective_c()?;
        self.part(&self.energy, |search| Ok(Energy::load(&runtime, search)))
    }

    /// Opens all parts and lists everything that was looked up, found or not. Calls nothing of the engine.
    pub fn inventory(&self) -> Vec<(&'static str, Vec<Lookup>)> {
        // Errors are in the lists as what was not found.
        let _ = (self.e5rt().err(), self.in_memory().err(), self.energy().err());
        vec![self.e5rt.lookups(), self.objective_c.lookups(), self.surfaces.lookups(), self.engine.lookups(), self.energy.lookups()]
    }

    fn part<T>(
        &self,
        part: &Part<T>,
        load: impl FnOnce(&mut Search<'_>) -> Result<Option<T>, SysError>,
    ) -> Result<Arc<T>, SysError> {
        let open = || {
            let os_build = self.os_build().unwrap_or_else(|_| "unknown".to_string());
            let libraries = match self.source.open(part.paths) {
                Ok(libraries) => libraries,
                Err(SysError::Open { path, reason }) => {
                    let item = Missing::Library(format!("{path} ({reason})"));
                    let lookup = Lookup { item: item.clone(), required: true, found: false, types: None };
                    let error = SysError::Lacking { part: part.name, os_build, missing: vec![item] };
                    return Opened { value: Err(error), lookups: vec![lookup] };
                }
                Err(other) => return Opened { value: Err(other), lookups: Vec::new() },
            };
            let mut search = Search::new(&libraries, &os_build);
            let loaded = load(&mut search);
            let value = loaded.and_then(|loaded| loaded.map(Arc::new).ok_or_else(|| lacking(part.name, &search)));
            Opened { value, lookups: search.lookups }
        };
        part.opened.get_or_init(open).value.clone()
    }

    fn system_text(&self, name: &'static str) -> Result<String, SysError> {
        let key = CString::new(name).map_err(|_| SysError::Text { what: name })?;
        let ask = |target: *mut c_void, length: &mut usize| {
            // SAFETY: `key` ends in zero, `target` is null or good for `length` bytes, and no new value is set.
            let code = unsafe { (self.system.sysctl_by_name.call)(key.as_ptr(), target, length, std::ptr::null_mut(), 0) };
            if code == 0 {
                Ok(())
            } else {
                Err(SysError::Code { function: self.system.sysctl_by_name.name, code: i64::from(code) })
            }
        };
        let mut length = 0usize;
        ask(std::ptr::null_mut(), &mut length)?;
        let mut bytes = vec![0u8; length];
        ask(bytes.as_mut_ptr().cast(), &mut length)?;
        bytes.truncate(length);
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8(text.to_vec()).map_err(|_| SysError::Text { what: name })
    }
}

fn lacking(part: &'static str, search: &Search<'_>) -> SysError {
    SysError::Lacking { part, os_build: search.os_build.clone(), missing: search.missing() }
}
