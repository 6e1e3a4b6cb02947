//! The exported functions of e5rt, with the signatures that the PyPI package aneforge 0.4.0 (MIT) declares.
//!
//! Every object is a handle with a count of its own; a handle is no address, so that a wrong use of one is found and not followed.
//! Return values other than 0 and 11 (a failed compile) are invented: Apple's are not published.

mod buffer;
mod cache;
mod compiler;
mod event;
mod library;
mod object;
mod operation;
mod options;
mod stream;

use crate::counters::violation;
use crate::diagnostics::diagnostic;
use crate::interface::Fault;
use std::ffi::{CStr, c_char};

/// What a function returns where it fails.
type Outcome = Result<(), Refusal>;

/// Why a function of e5rt fails.
#[derive(Debug)]
enum Refusal {
    /// A use that no correct caller makes: counted as a violation.
    Misuse(i64, String),
    /// What the daemon refuses.
    Fault(Fault),
}

/// A null pointer where there must be none.
const NULL: i64 = 9001;
/// A handle of another kind, of no object, or of one that was released.
const HANDLE: i64 = 9002;
/// A name that the program does not have.
const NAME: i64 = 9003;
/// A call at a time when it is not possible.
const ORDER: i64 = 9004;
/// A value that is none of those possible.
const VALUE: i64 = 9005;
/// Memory that the system does not give.
const MEMORY: i64 = 9006;

fn misuse(code: i64, text: impl Into<String>) -> Refusal {
    Refusal::Misuse(code, text.into())
}

/// The number that a function returns.
fn answer(function: &str, outcome: Outcome) -> i64 {
    match outcome {
        Ok(()) => 0,
        Err(Refusal::Misuse(code, text)) => {
            diagnostic(format!("{function}: {text}"));
            violation(format!("{function}: {text}"));
            code
        }
        // An e5rt function says zero for success: a fault that a test gave the code zero fails all the same.
        Err(Refusal::Fault(fault)) => {
            if fault.code == 0 {
                -1
            } else {
                fault.code
            }
        }
    }
}

/// A text that a caller passes.
///
/// # Safety
/// `text` is null or a string that ends in zero.
unsafe fn text(text: *const c_char, what: &str) -> Result<String, Refusal> {
    if text.is_null() {
        return Err(misuse(NULL, format!("{what} is NULL")));
    }
    // SAFETY: not null, so the caller's string.
    let text = unsafe { CStr::from_ptr(text) }.to_str();
    text.map(str::to_string).map_err(|_| misuse(VALUE, format!("{what} is not UTF-8")))
}
