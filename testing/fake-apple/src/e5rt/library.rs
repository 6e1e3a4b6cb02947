//! Compiled programs and their functions.

use super::cache;
use super::object::{check_place, get, put, release};
use super::{NAME, NULL, Outcome, Refusal, answer, misuse, text};
use crate::engine::{Compiled, cached_file, failure};
use crate::interface::{Options, Route};
use std::ffi::{CString, c_char, c_void};
use std::path::Path;
use std::sync::Arc;

/// A compiled program.
pub(super) struct Library {
    pub(super) compiled: Arc<Compiled>,
    /// Whether the daemon has it for this process.
    pub(super) own: bool,
    names: Vec<CString>,
}

impl Library {
    pub(super) fn new(compiled: Arc<Compiled>, own: bool) -> Self {
        let names = compiled.functions.iter().map(|function| CString::new(function.name.as_str()).unwrap_or_default()).collect();
        Self { compiled, own, names }
    }
}

/// A function of one.
#[derive(Clone)]
pub(super) struct ProgramFunction {
    pub(super) library: Arc<Library>,
    pub(super) index: usize,
}

impl std::fmt::Debug for ProgramFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProgramFunction").field("index", &self.index).finish_non_exhaustive()
    }
}

/// # Safety
/// `path` is null, a handle (the arguments were exchanged) or a string that ends in zero; `out` as for every function that makes
/// something.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_program_library_create(out: *mut *mut c_void, path: *const c_char) -> i64 {
    let make = || -> Result<Library, Refusal> {
        // SAFETY: the caller's promise.
        let path = unsafe { text(path, "the path") }?;
        let invalid = || failure::load(Route::E5rt, 6, "Invalid E5 path specified. @ GetE5PathFromCompositeBundle");
        let (file, own) = cache::open(Path::new(&path)).ok_or_else(|| Refusal::Fault(invalid()))?;
        let compiled = cached_file(&file, Route::E5rt, &Options::default()).map_err(Refusal::Fault)?;
        Ok(Library::new(compiled, own))
    };
    // SAFETY: the caller's promise.
    answer("e5rt_program_library_create", unsafe { put(out, make) })
}

/// # Safety
/// As [`release`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_program_library_release(object: *mut *mut c_void) -> i64 {
    // SAFETY: the caller's promise.
    answer("e5rt_program_library_release", unsafe { release::<Library>(object) })
}

/// # Safety
/// `out` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_program_library_get_num_functions(library: *mut c_void, out: *mut u64) -> i64 {
    let get = || -> Outcome {
        let library = get::<Library>(library)?;
        check_place(out.cast())?;
        // SAFETY: the caller's promise, checked as far as possible.
        unsafe { *out = library.names.len() as u64 };
        Ok(())
    };
    answer("e5rt_program_library_get_num_functions", get())
}

/// The texts live as long as the library.
///
/// # Safety
/// `names` is null or has room for `count` pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_program_library_get_function_names(
    library: *mut c_void,
    count: u64,
    names: *mut *const c_char,
) -> i64 {
    let get = || -> Outcome {
        let library = get::<Library>(library)?;
        check_place(names.cast())?;
        for (index, name) in library.names.iter().enumerate().take(usize::try_from(count).unwrap_or(usize::MAX)) {
            // SAFETY: the caller's promise: `index` is below `count`.
            unsafe { *names.add(index) = name.as_ptr() };
        }
        Ok(())
    };
    answer("e5rt_program_library_get_function_names", get())
}

/// # Safety
/// `name` is null or a string that ends in zero; `out` as for every function that makes something.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_program_library_retain_program_function(
    library: *mut c_void,
    name: *const c_char,
    out: *mut *mut c_void,
) -> i64 {
    let find = || -> Result<ProgramFunction, Refusal> {
        let library = get::<Library>(library)?;
        // SAFETY: the caller's promise.
        let name = unsafe { text(name, "the function's name") }?;
        let index = library.compiled.functions.iter().position(|function| function.name == name);
        let index = index.ok_or_else(|| misuse(NAME, format!("the program has no function {name:?}")))?;
        Ok(ProgramFunction { library, index })
    };
    // SAFETY: the caller's promise.
    answer("e5rt_program_library_retain_program_function", unsafe { put(out, find) })
}

/// # Safety
/// As [`release`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_program_function_release(object: *mut *mut c_void) -> i64 {
    // SAFETY: the caller's promise.
    answer("e5rt_program_function_release", unsafe { release::<ProgramFunction>(object) })
}

/// The text lives as long as the function.
///
/// # Safety
/// `out` is null or a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_program_function_get_name(function: *mut c_void, out: *mut *const c_char) -> i64 {
    let get = || -> Outcome {
        let function = get::<ProgramFunction>(function)?;
        check_place(out.cast())?;
        let name = function.library.names.get(function.index).ok_or_else(|| misuse(NULL, "the function has no name"))?;
        // SAFETY: the caller's promise, checked as far as possible.
        unsafe { *out = name.as_ptr() };
        Ok(())
    };
    answer("e5rt_program_function_get_name", get())
}

/// Nothing is left to do: creating an operation loads.
#[unsafe(no_mangle)]
pub extern "C" fn e5rt_program_function_load_for_execution(function: *mut c_void) -> i64 {
    answer("e5rt_program_function_load_for_execution", get::<ProgramFunction>(function).map(drop))
}
