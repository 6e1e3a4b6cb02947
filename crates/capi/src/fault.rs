//! How calls fail: a code, a text kept per thread, and no panic beyond this library.

use aneforge_compile::CompileError;
use aneforge_runtime::DeviceError;
use aneforge_runtime::ane::AneError;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a call of the C interface answers; the header names the codes `ANEFORGE_OK` and so on.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// An argument is null, no live handle, out of range or of the wrong size.
    BadArgument = 1,
    /// No device has that name, or this machine cannot provide it.
    NoDevice = 2,
    /// A file could not be read or written, or is no program.
    BadProgram = 3,
    /// The device or target cannot execute the program.
    Unsupported = 4,
    /// The system refused memory.
    NoMemory = 5,
    /// The device failed.
    Failed = 6,
    /// A defect of this library.
    Internal = 7,
}

/// A failure with its text.
#[derive(Debug)]
pub struct Fault {
    pub status: Status,
    pub text: String,
}

impl Fault {
    pub fn argument(text: impl Into<String>) -> Self {
        Self { status: Status::BadArgument, text: text.into() }
    }

    pub fn program(text: impl Into<String>) -> Self {
        Self { status: Status::BadProgram, text: text.into() }
    }
}

impl From<DeviceError> for Fault {
    fn from(error: DeviceError) -> Self {
        let status = match &error {
            DeviceError::UnknownDevice { .. } | DeviceError::NotHere { .. } | DeviceError::Dump { .. } => Status::NoDevice,
            DeviceError::Program { .. } | DeviceError::Weight(_) => Status::BadProgram,
            DeviceError::Unsupported { .. } | DeviceError::Op(_) => Status::Unsupported,
            DeviceError::Ane(AneError::Legalise { .. } | AneError::Foreign { .. } | AneError::Weights { .. }) => {
                Status::Unsupported
            }
            DeviceError::Memory { .. } => Status::NoMemory,
            DeviceError::PortCount { .. }
            | DeviceError::PortName { .. }
            | DeviceError::PortLength { .. }
            | DeviceError::PortIndex { .. }
            | DeviceError::BufferRange { .. }
            | DeviceError::Binding { .. } => Status::BadArgument,
            DeviceError::Internal { .. } => Status::Internal,
            _ => Status::Failed,
        };
        Self { status, text: error.to_string() }
    }
}

impl From<CompileError> for Fault {
    fn from(error: CompileError) -> Self {
        let status = match &error {
            CompileError::Limit { .. } | CompileError::Output { .. } => Status::Unsupported,
            CompileError::Internal(_) | CompileError::Pass { .. } | CompileError::Passes(_) => Status::Internal,
            _ => Status::BadProgram,
        };
        Self { status, text: error.to_string() }
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// Keeps the text of a failure for this thread.
fn remember(text: &str) {
    let text: Vec<u8> = text.bytes().filter(|&byte| byte != 0).collect();
    LAST.with(|last| *last.borrow_mut() = CString::new(text).unwrap_or_default());
}

/// The text of this thread's last failure.
pub fn last() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}

/// The same for code of this crate.
pub fn last_text() -> String {
    LAST.with(|last| CStr::to_string_lossy(&last.borrow()).into_owned())
}

/// Runs the work of one call: a failure or a panic becomes `None`, a code and a text.
pub fn caught<T>(work: impl FnOnce() -> Result<T, Fault>) -> (Status, Option<T>) {
    // What a panic may have left half changed is behind mutexes that take it as it is: bytes of buffers.
    let fault = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => return (Status::Ok, Some(value)),
        Ok(Err(fault)) => fault,
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(ToString::to_string).or_else(|| panic.downcast_ref::<String>().cloned());
            let text = format!("internal fault: {}; please report it", text.unwrap_or_else(|| "a panic".to_string()));
            Fault { status: Status::Internal, text }
        }
    };
    remember(&fault.text);
    (fault.status, None)
}

/// The same for calls that answer a code alone.
pub fn status(work: impl FnOnce() -> Result<(), Fault>) -> Status {
    caught(work).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_code_and_a_text_of_its_own_thread() {
        assert_eq!(status(|| panic!("seven {}", "dwarfs")), Status::Internal);
        assert!(last_text().contains("seven dwarfs"));
        let other = std::thread::spawn(last_text).join().unwrap();
        assert_eq!(other, "");
        assert_eq!(status(|| Err(Fault::argument("with a \0 inside"))), Status::BadArgument);
        assert_eq!(last_text(), "with a  inside");
        assert_eq!(status(|| Ok(())), Status::Ok);
    }
}
