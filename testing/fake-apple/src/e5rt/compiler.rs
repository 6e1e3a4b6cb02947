//! Compiling a file.

use super::cache::{Bundle, READS};
use super::library::Library;
use super::object::{get, put};
use super::options::{CompileOptions, Config};
use super::{Outcome, Refusal, VALUE, answer, misuse, text};
use crate::engine::{cached_file, compile_file, failure};
use crate::interface::{Options, Route};
use std::ffi::{c_char, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

/// A compiler.
#[derive(Debug)]
pub(super) struct Compiler {
    pub(super) config: Arc<Config>,
}

/// Mask bit of the engine.
const ENGINE: u64 = 0x4;

/// # Safety
/// `path` is null or a string that ends in zero; `out` as for every function that makes something.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_e5_compiler_compile(
    compiler: *mut c_void,
    path: *const c_char,
    options: *mut c_void,
    out: *mut *mut c_void,
) -> i64 {
    let compile = || -> Outcome {
        let compiler = get::<Compiler>(compiler)?;
        let options = get::<CompileOptions>(options)?.values().clone();
        // SAFETY: the caller's promise.
        let path = PathBuf::from(unsafe { text(path, "the path") }?);
        if options.mask & ENGINE == 0 {
            return Err(misuse(VALUE, format!("device mask 0x{:x}: only the engine, 0x4, is faked", options.mask)));
        }
        let file = if path.is_dir() { path.join("model.mil") } else { path };
        let location = compiler.config.cache.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // SAFETY: the caller's promise.
        unsafe { put(out, || make(&file, location.as_deref(), options.force, options.custom.as_deref())) }
    };
    answer("e5rt_e5_compiler_compile", compile())
}

/// The value of `TargetArchitecture=` in the compiler's own options.
fn architecture(custom: Option<&str>) -> Option<String> {
    custom?.split([' ', ';', ',']).find_map(|word| word.strip_prefix("TargetArchitecture=")).map(str::to_string)
}

fn make(file: &Path, location: Option<&Path>, force: bool, custom: Option<&str>) -> Result<Library, Refusal> {
    let options = Options { target_architecture: architecture(custom) };
    if READS && !file.is_file() {
        let problem = format!("{} is no file", file.display());
        return Err(Refusal::Fault(failure::compile(Route::E5rt, 1, "Invalid E5 path specified.", problem)));
    }
    let bundle = location.filter(|_| READS).map(|location| Bundle::of(location, file, custom)).transpose()?;
    let found = bundle.as_ref().is_some_and(|bundle| !force && bundle.exists());
    let compiled = if found { cached_file(file, Route::E5rt, &options) } else { compile_file(file, Route::E5rt, &options) };
    let compiled = compiled.map_err(Refusal::Fault)?;
    if let Some(bundle) = &bundle {
        if !found {
            bundle.write(file).map_err(|error| {
                let problem = format!("{}: {error}", bundle.folder.display());
                Refusal::Fault(failure::compile(Route::E5rt, 1, "the bundle cannot be written", problem))
            })?;
        }
        bundle.own();
    }
    Ok(Library::new(compiled, true))
}
