//! What the daemon answers when it refuses: code, domain and text, as those who saw them report.

use crate::diagnostics::diagnostic;
use crate::faults::Entry;
use crate::interface::{Fault, Route};
use std::fmt;

/// Error domain of a failed compilation (maderix/ANE).
pub const COMPILER: &str = "com.apple.appleneuralengine.compiler";
/// Error domain of what else the framework reports (maderix/ANE).
pub const FRAMEWORK: &str = "com.apple.appleneuralengine";
/// Domain of faults that reach a caller as a number of e5rt alone.
pub const E5RT: &str = "e5rt";

/// e5rt's code of a failed compilation (PyPI package aneforge 0.4.0). The codes below it are invented: none is published.
pub const E5RT_COMPILE: i64 = 11;
/// e5rt, a failed load. Invented.
pub const E5RT_LOAD: i64 = 9101;
/// e5rt, a failed execution. Invented.
pub const E5RT_EXECUTE: i64 = 9102;

/// A failed compilation. `reason` is what was wrong, in our words: it goes to the diagnostics, as Apple's compiler writes to the log.
pub fn compile(route: Route, code: i64, text: &str, reason: impl fmt::Display) -> Fault {
    diagnostic(format!("{text}: {reason}"));
    match route {
        Route::E5rt => Fault::new(E5RT, E5RT_COMPILE, text),
        Route::InMemory | Route::Client => Fault::new(COMPILER, code, text),
    }
}

/// The text of a failed compilation; `error` stands in its parentheses (maderix/ANE, Orion).
pub fn compiler_text(error: &str) -> String {
    format!("ANECCompile() FAILED: err=({error})")
}

/// A failed load.
pub fn load(route: Route, code: i64, text: &str) -> Fault {
    diagnostic(text.to_string());
    match route {
        Route::E5rt => Fault::new(E5RT, E5RT_LOAD, text),
        Route::InMemory | Route::Client => Fault::new(FRAMEWORK, code, text),
    }
}

/// A command that was not carried out.
pub fn command(route: Route, code: i64, text: &str) -> Fault {
    diagnostic(text.to_string());
    match route {
        Route::E5rt => Fault::new(E5RT, E5RT_EXECUTE, text),
        Route::InMemory | Route::Client => Fault::new(FRAMEWORK, code, text),
    }
}

/// A command that the engine began and did not finish: the driver's status, the framework's code 8 (Orion, arXiv 2603.06728).
pub fn inference(route: Route, status: u32, reason: impl fmt::Display) -> Fault {
    diagnostic(format!("status 0x{status:x}: {reason}"));
    command(route, 8, &inference_text(status))
}

/// The text of such a command.
pub fn inference_text(status: u32) -> String {
    format!("ANEProgramProcessRequestDirect() Failed with status=0x{status:x} : statusType=0x9: Program Inference error")
}

/// A fault that a test asked for, with the fields that it gave.
pub fn injected(usual: Fault, entry: &Entry) -> Fault {
    Fault {
        code: entry.code.unwrap_or(usual.code),
        domain: entry.domain.clone().unwrap_or(usual.domain),
        text: entry.text.clone().unwrap_or(usual.text),
    }
}
