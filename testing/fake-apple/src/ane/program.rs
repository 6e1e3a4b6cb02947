//! A program between its classes and the daemon: a folder, what was compiled from it, what is loaded.

use super::attributes::{self, Tables};
use super::{FRAMEWORK, files};
use crate::counters::violation;
use crate::engine::{self, Compiled, Loaded};
use crate::interface::{Fault, Options, ProgramKind, Route};
use crate::objc::Strong;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

/// A program that classes share.
pub struct Program {
    /// The folder of its files.
    pub folder: String,
    /// The name that the daemon knows it by.
    pub key: String,
    route: Route,
    compiled: Mutex<Option<(Arc<Compiled>, ProgramKind)>>,
    loaded: RwLock<Option<(Loaded, Tables)>>,
    attributes: Mutex<Option<Strong>>,
    handle: AtomicU64,
}

/// The state of a model that is loaded (thebasedcapital/ane-infer).
const LOADED: usize = 3;

impl Program {
    /// A program that is neither compiled nor loaded.
    pub fn new(folder: String, key: String, route: Route) -> Arc<Self> {
        Arc::new(Self {
            folder,
            key,
            route,
            compiled: Mutex::new(None),
            loaded: RwLock::new(None),
            attributes: Mutex::new(None),
            handle: AtomicU64::new(0),
        })
    }

    /// A file of the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        Path::new(&self.folder).join(name)
    }

    /// Compiles the folder's program.
    pub fn compile(&self, kind: ProgramKind) -> Result<(), Fault> {
        let compiled = engine::compile(Path::new(&self.folder), kind, self.route, &Options::default())?;
        *self.compiled.lock().unwrap_or_else(PoisonError::into_inner) = Some((compiled, kind));
        Ok(())
    }

    /// Takes what the daemon has kept of an earlier compile.
    pub fn recall(&self, kind: ProgramKind) -> Result<(), Fault> {
        let compiled = engine::cached(Path::new(&self.folder), kind, self.route, &Options::default())?;
        *self.compiled.lock().unwrap_or_else(PoisonError::into_inner) = Some((compiled, kind));
        Ok(())
    }

    /// Whether it is compiled.
    pub fn is_compiled(&self) -> bool {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Forgets what was compiled.
    pub fn purge(&self) {
        *self.compiled.lock().unwrap_or_else(PoisonError::into_inner) = None;
        files::remove(&self.file("data"));
    }

    /// Loads what was compiled.
    pub fn load(&self) -> Result<(), Fault> {
        let compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (compiled, kind) =
            compiled.ok_or_else(|| Fault::new(FRAMEWORK, 6, format!("Program load failure: {} is not compiled", self.key)))?;
        // A place is given back before the next one is taken, as after a restart of the daemon.
        let old = self.loaded.write().unwrap_or_else(PoisonError::into_inner).take();
        drop(old);
        let loaded = engine::load(&compiled)?;
        let tables = attributes::tables(&compiled.functions);
        let described = attributes::describe(&compiled.functions, &tables, kind);
        *self.attributes.lock().unwrap_or_else(PoisonError::into_inner) = Some(described);
        *self.loaded.write().unwrap_or_else(PoisonError::into_inner) = Some((loaded, tables));
        static NEXT: AtomicU64 = AtomicU64::new(0x1000);
        self.handle.store(NEXT.fetch_add(1, Relaxed), Relaxed);
        Ok(())
    }

    /// Unloads it; says whether it was loaded.
    pub fn unload(&self) -> bool {
        let old = self.loaded.write().unwrap_or_else(PoisonError::into_inner).take();
        self.handle.store(0, Relaxed);
        old.is_some()
    }

    /// Whether it is loaded.
    pub fn is_loaded(&self) -> bool {
        self.loaded().is_some()
    }

    /// What is loaded, kept while it is looked at.
    pub fn loaded(&self) -> RwLockReadGuard<'_, Option<(Loaded, Tables)>> {
        self.loaded.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The daemon's number of it, 0 if it is not loaded.
    pub fn handle(&self) -> u64 {
        self.handle.load(Relaxed)
    }

    /// `modelAttributes`: nothing before the first load.
    pub fn attributes(&self) -> Option<Strong> {
        self.attributes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// `state`.
    pub fn state(&self) -> usize {
        if self.is_loaded() { LOADED } else { usize::from(self.is_compiled()) }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.loaded.get_mut().unwrap_or_else(PoisonError::into_inner).is_some() {
            violation(format!("model {} was freed while it was loaded: the daemon keeps it until the process ends", self.key));
        }
    }
}
