//! Espresso's C runtime: compile a MIL program from a file, load it, bind buffers to its ports, execute.
//!
//! The order of calls, as the PyPI package aneforge 0.4.0 and the ANE guide (arXiv 2606.22283) give it:
//! [`Config`] → [`Compiler`] + [`Options`] → [`Library`] → [`Function`] → [`OperationOptions`] → [`Operation`] → [`Port`]s bound to
//! [`Buffer`]s → [`Stream::encode`] → [`Stream::execute`]. No entitlement is needed for these.
//!
//! Every object keeps what it was made from alive, and is released before it. Codes other than zero are
//! [`SysError::Code`]; the numbers' meanings are not published, the framework prints its reasons to the
//! system log.

mod buffer;
mod compile;
mod event;
mod functions;
mod operation;
mod stream;

use std::ffi::CString;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::SysError;
use crate::block::Blocks;
use crate::library::Search;
use crate::pool::Pool;
use functions::{Code, Functions, Raw, Release};

pub use buffer::{Buffer, BufferKind};
pub use compile::{Compiler, Config, Function, Library, Options};
pub use event::Event;
pub use operation::{Operation, OperationOptions, Port};
pub use stream::Stream;

/// The runtime's functions. All objects share it.
pub struct Runtime {
    functions: Functions,
    pool: Pool,
    blocks: Option<Blocks>,
    os_build: String,
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("e5rt")
    }
}

impl Runtime {
    pub(crate) fn load(search: &mut Search<'_>) -> Option<Self> {
        let (functions, pool) = (Functions::load(search), Pool::load(search));
        // Blocks serve the asynchronous submission alone.
        let blocks = search.lenient(Blocks::load);
        Some(Self { functions: functions?, pool: pool?, blocks, os_build: search.os_build.clone() })
    }

    /// A function that may be absent, or the error that says so.
    fn need<F>(&self, function: Option<F>, name: &'static str) -> Result<F, SysError> {
        function.ok_or_else(|| SysError::Lacking {
            part: "the Espresso runtime (e5rt)",
            os_build: self.os_build.clone(),
            missing: vec![crate::Missing::Symbol(name.to_string())],
        })
    }

    /// Runs `work` with an autorelease pool: the runtime is Objective-C inside and leaves temporary objects behind.
    fn pooled<T>(&self, work: impl FnOnce() -> T) -> T {
        self.pool.with(work)
    }
}

/// Turns a return value into a result.
fn check(function: &'static str, code: Code) -> Result<(), SysError> {
    if code == 0 { Ok(()) } else { Err(SysError::Code { function, code }) }
}

fn text(what: &'static str, value: &str) -> Result<CString, SysError> {
    CString::new(value).map_err(|_| SysError::Text { what })
}

fn path_text(what: &'static str, path: &Path) -> Result<CString, SysError> {
    text(what, path.to_str().ok_or(SysError::Text { what })?)
}

/// One counted object of the runtime, given back once.
struct Object {
    raw: NonNull<std::ffi::c_void>,
    release: Release,
    runtime: Arc<Runtime>,
}

// SAFETY: the runtime's objects are reference-counted C++ objects that belong to no thread: public users of these functions make
// them on one thread and use them on others. What must not race takes `&mut self` or a lock in the types above this one.
unsafe impl Send for Object {}
// SAFETY: as above; shared use is reads of what never changes, and calls under a lock.
unsafe impl Sync for Object {}

impl Object {
    /// Takes what `create` writes through its pointer.
    fn create(
        runtime: &Arc<Runtime>,
        function: &'static str,
        release: Release,
        create: impl FnOnce(&mut Raw) -> Code,
    ) -> Result<Self, SysError> {
        let mut raw: Raw = std::ptr::null_mut();
        check(function, runtime.pooled(|| create(&mut raw)))?;
        let raw = NonNull::new(raw).ok_or(SysError::Nothing { call: function })?;
        Ok(Self { raw, release, runtime: runtime.clone() })
    }

    fn raw(&self) -> Raw {
        self.raw.as_ptr()
    }

    fn functions(&self) -> &Functions {
        &self.runtime.functions
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        let mut raw = self.raw();
        // SAFETY: the reference that the creating call gave is given back once. A failed release can't be told to anybody here;
        // the object is then the runtime's again.
        self.runtime.pooled(|| unsafe { (self.release)(&raw mut raw) });
    }
}
