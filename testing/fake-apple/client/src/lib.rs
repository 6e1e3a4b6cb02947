//! Control of a loaded fake of Apple's frameworks.
//!
//! The fake is a library that is opened at run time, as the frameworks are: its state lives in that library, so settings and counters
//! are reached through it and not through a linked copy. This crate stands apart from the fake because linking the fake itself into a
//! test on macOS would put its `sysctlbyname` and `objc_msgSend` in the place of the system's.

use libloading::{Library, Symbol};
use serde_json::{Value, json};
use std::ffi::{CStr, CString, c_char};
use std::path::{Path, PathBuf};

/// The file name of the library on this system.
pub const FILE: &str = if cfg!(target_os = "macos") { "libfake_apple.dylib" } else { "libfake_apple.so" };

/// The library that cargo built next to the running test.
///
/// # Errors
/// Text, where there is none: the package that asks has to depend on `aneforge-fake-apple`, or on the testkit, in its tests.
pub fn library() -> Result<PathBuf, String> {
    let test = std::env::current_exe().map_err(|error| format!("the running test has no path: {error}"))?;
    let folders = test.ancestors().skip(1).take(3);
    let found = folders.flat_map(|folder| [folder.join(FILE), folder.join("deps").join(FILE)]).find(|path| path.is_file());
    found.ok_or_else(|| format!("no {FILE} next to {}; build the package aneforge-fake-apple", test.display()))
}

/// Sends a request to the fake in `library` and gives its answer.
///
/// # Errors
/// Text, where the library is not to be opened, has no control symbols, or refuses the request.
pub fn control(library: &Path, request: &Value) -> Result<Value, String> {
    type Control = unsafe extern "C" fn(*const c_char) -> *mut c_char;
    type Free = unsafe extern "C" fn(*mut c_char);
    let at = |what: &str, error: libloading::Error| format!("{}: {what}: {error}", library.display());
    let text = CString::new(request.to_string()).map_err(|error| error.to_string())?;
    // SAFETY: the library is the fake; what it runs when it is loaded reads one variable of the environment.
    let opened = unsafe { Library::new(library) }.map_err(|error| at("opening it", error))?;
    // SAFETY: the symbol has this type in the fake, the only library that has it.
    let control: Symbol<'_, Control> =
        unsafe { opened.get(b"fake_apple_control\0") }.map_err(|error| at("fake_apple_control", error))?;
    // SAFETY: as above.
    let free: Symbol<'_, Free> = unsafe { opened.get(b"fake_apple_free\0") }.map_err(|error| at("fake_apple_free", error))?;
    // SAFETY: the request is a string that ends in zero and lives through the call.
    let answer = unsafe { control(text.as_ptr()) };
    if answer.is_null() {
        return Err("the fake gave no answer".to_string());
    }
    // SAFETY: an answer is a string that ends in zero and is ours until it is freed below.
    let answered = unsafe { CStr::from_ptr(answer) }.to_string_lossy().into_owned();
    // SAFETY: freed once, by the library that made it.
    unsafe { free(answer) };
    // The state of the fake lives as long as its library is loaded.
    std::mem::forget(opened);
    let value: Value = serde_json::from_str(&answered).map_err(|error| format!("the answer is no JSON: {error}"))?;
    match value.get("error") {
        Some(error) => Err(error.as_str().map_or_else(|| error.to_string(), str::to_string)),
        None => Ok(value),
    }
}

/// A copy of `library` in `folder` without the symbols `names`: looking one up there fails as on a system that does not have it.
/// The names are overwritten in the file's table of strings; nothing else changes.
///
/// # Errors
/// Text, where the file cannot be read or written or has no such symbol.
pub fn without_symbols(library: &Path, folder: &Path, names: &[&str]) -> Result<PathBuf, String> {
    let mut bytes = std::fs::read(library).map_err(|error| format!("{}: {error}", library.display()))?;
    for name in names {
        let wanted: Vec<u8> = [&[0], name.as_bytes(), &[0]].concat();
        let mut found = 0;
        let mut start = 0;
        while let Some(at) = bytes[start..].windows(wanted.len()).position(|window| window == wanted) {
            bytes[start + at + 1] = b'?';
            start += at + 1;
            found += 1;
        }
        if found == 0 {
            return Err(format!("{} has no symbol {name:?}", library.display()));
        }
    }
    let path = folder.join(format!("without-{}-{FILE}", names.len()));
    std::fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// The request that makes the fake act on settings.
pub fn set(settings: Value) -> Value {
    json!({ "set": settings })
}
