//! Stands in for compiler and engine where only the calling convention is tested: every program copies its input.

use super::daemon::{Command, Place};
use crate::interface::{Element, Fault, Function, Options, Port, ProgramKind, Route, View, ViewMut};
use std::path::Path;
use std::sync::Arc;

/// A compiled program.
#[derive(Debug)]
pub struct Compiled {
    /// Its functions.
    pub functions: Vec<Function>,
    route: Route,
}

/// A loaded program; dropping it unloads it.
#[derive(Debug)]
pub struct Loaded {
    compiled: Arc<Compiled>,
    place: Place,
}

/// "Compiles" the program in `folder`.
///
/// # Errors
/// None.
pub fn compile(_folder: &Path, _kind: ProgramKind, route: Route, _options: &Options) -> Result<Arc<Compiled>, Fault> {
    let port = |name: &str| Port {
        name: name.to_string(),
        element: Element::F16,
        shape: vec![1, 768, 1, 32],
        strides: vec![49_152, 64, 64, 2],
        bytes: 49_152,
    };
    let main = Function { name: "main".to_string(), inputs: vec![port("x")], outputs: vec![port("y")] };
    crate::counters::count(&crate::counters::COUNTERS.compiles);
    Ok(Arc::new(Compiled { functions: vec![main], route }))
}

/// The same for a file of program text.
///
/// # Errors
/// None.
pub fn compile_file(file: &Path, route: Route, options: &Options) -> Result<Arc<Compiled>, Fault> {
    compile(file, ProgramKind::Mil, route, options)
}

/// The same out of a cache.
///
/// # Errors
/// None.
pub fn cached(folder: &Path, kind: ProgramKind, route: Route, options: &Options) -> Result<Arc<Compiled>, Fault> {
    compile(folder, kind, route, options)
}

/// The same out of a cache.
///
/// # Errors
/// None.
pub fn cached_file(file: &Path, route: Route, options: &Options) -> Result<Arc<Compiled>, Fault> {
    compile_file(file, route, options)
}

/// Loads a compiled program.
///
/// # Errors
/// What the daemon reports.
pub fn load(compiled: &Arc<Compiled>) -> Result<Loaded, Fault> {
    Ok(Loaded { place: Place::take(compiled.route)?, compiled: compiled.clone() })
}

/// Loads one function.
///
/// # Errors
/// What the daemon reports.
pub fn load_function(compiled: &Arc<Compiled>, _function: usize) -> Result<Loaded, Fault> {
    load(compiled)
}

impl Loaded {
    /// The program.
    pub fn compiled(&self) -> &Arc<Compiled> {
        &self.compiled
    }

    /// Copies inputs to outputs.
    ///
    /// # Errors
    /// What the engine reports.
    ///
    /// # Safety
    /// The views are readable and writable memory through the call.
    pub unsafe fn execute(&self, _function: usize, inputs: &[View], outputs: &[ViewMut]) -> Result<(), Fault> {
        let _command = Command::begin(self.compiled.route, &self.place)?;
        for (input, output) in inputs.iter().zip(outputs) {
            let bytes = input.bytes.min(output.bytes);
            // SAFETY: the caller's promise; the two may overlap, which `copy` allows.
            unsafe { std::ptr::copy(input.start.as_ptr(), output.start.as_ptr(), bytes) };
        }
        Ok(())
    }
}
