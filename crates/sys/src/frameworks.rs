//! The system's parts, each opened when it is first asked for.

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::{Arc, OnceLock};

use crate::library::{Library, Search, Source, functions};
use crate::{Missing, SysError};

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
    e5rt: OnceLock<Result<Arc<crate::e5rt::Runtime>, SysError>>,
}

impl std::fmt::Debug for Frameworks {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Frameworks").field("source", &self.source).finish_non_exhaustive()
    }
}

const LIB_SYSTEM: &str = "/usr/lib/libSystem.B.dylib";
const LIB_OBJC: &str = "/usr/lib/libobjc.A.dylib";
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
        let mut search = Search::new(&libraries);
        let system =
            SystemFunctions::load(&mut search).ok_or_else(|| lacking("the kernel interface", "unknown", search.missing))?;
        Ok(Arc::new(Self { source: source.clone(), system, e5rt: OnceLock::new() }))
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

    /// The runtime of Espresso, which compiles and dispatches MIL programs.
    ///
    /// # Errors
    /// [`SysError::Lacking`] with everything that is missing.
    pub fn e5rt(&self) -> Result<Arc<crate::e5rt::Runtime>, SysError> {
        self.part(&self.e5rt, "the Espresso runtime (e5rt)", &[ESPRESSO, LIB_OBJC, LIB_SYSTEM], |search| {
            crate::e5rt::Runtime::load(search)
        })
    }

    /// Opens a part once. What is missing stays missing for the life of the process, so the error is kept too.
    fn part<T>(
        &self,
        slot: &OnceLock<Result<Arc<T>, SysError>>,
        name: &'static str,
        paths: &[&str],
        load: impl FnOnce(&mut Search<'_>) -> Option<T>,
    ) -> Result<Arc<T>, SysError> {
        let open = || {
            let os_build = self.os_build().unwrap_or_else(|_| "unknown".to_string());
            let libraries: Vec<Library> = self.source.open(paths).map_err(|error| match error {
                SysError::Open { path, reason } => lacking(name, &os_build, vec![Missing::Library(format!("{path} ({reason})"))]),
                other => other,
            })?;
            let mut search = Search::new(&libraries);
            let loaded = load(&mut search);
            loaded.map(Arc::new).ok_or_else(|| lacking(name, &os_build, search.missing))
        };
        slot.get_or_init(open).clone()
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

fn lacking(part: &'static str, os_build: &str, mut missing: Vec<Missing>) -> SysError {
    missing.sort();
    missing.dedup();
    SysError::Lacking { part, os_build: os_build.to_string(), missing }
}
