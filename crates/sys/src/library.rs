//! Libraries opened at run time, and tables of their functions.

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::{Missing, SysError};

/// An opened library. It is never closed: Objective-C classes can't be unloaded, and handles may outlive every owner that we
/// could name.
#[derive(Clone)]
pub(crate) struct Library {
    inner: Arc<std::mem::ManuallyDrop<libloading::Library>>,
}

impl Library {
    pub(crate) fn open(path: &Path) -> Result<Self, SysError> {
        // SAFETY: the libraries are the system's own frameworks, or the one that the caller names to stand in for them; their
        // initialisers are as trustworthy as the caller holds them to be.
        let inner = unsafe { libloading::Library::new(path) }.map_err(|error| {
            // The loader's own words stand in the cause.
            let reason = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            SysError::Open { path: path.display().to_string(), reason }
        })?;
        Ok(Self { inner: Arc::new(std::mem::ManuallyDrop::new(inner)) })
    }

    /// The address of a symbol. Names are tried as C writes them and, second, with the underscore that older systems show.
    pub(crate) fn address(&self, name: &str) -> Option<NonNull<c_void>> {
        [format!("{name}\0"), format!("_{name}\0")].iter().find_map(|name| {
            // SAFETY: only the address is taken; nothing is called or read through this type.
            let symbol = unsafe { self.inner.get::<*mut c_void>(name.as_bytes()) }.ok()?;
            NonNull::new(*symbol)
        })
    }

    /// A function by name.
    ///
    /// # Safety
    /// `F` must be a function pointer of the type that the symbol has.
    pub(crate) unsafe fn function<F: Copy>(&self, name: &str) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        // SAFETY: the caller says that `F` is the symbol's function pointer type; the size is checked above.
        self.address(name).map(|address| unsafe { std::mem::transmute_copy(&address) })
    }
}

/// One thing that was looked up, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookup {
    /// What.
    pub item: Missing,
    /// Whether its part of the system is of no use without it.
    pub required: bool,
    /// Whether it is there.
    pub found: bool,
    /// For a method whose types are not those that we know: the known ones and the reported ones.
    pub types: Option<(String, String)>,
}

/// The libraries of one part of the system, searched in order; it keeps a list of everything that was asked for.
pub(crate) struct Search<'a> {
    libraries: &'a [Library],
    pub(crate) os_build: String,
    pub(crate) lookups: Vec<Lookup>,
}

impl<'a> Search<'a> {
    pub(crate) fn new(libraries: &'a [Library], os_build: &str) -> Self {
        Self { libraries, os_build: os_build.to_string(), lookups: Vec::new() }
    }

    /// Everything that is required and not there, sorted.
    pub(crate) fn missing(&self) -> Vec<Missing> {
        let mut missing: Vec<Missing> =
            self.lookups.iter().filter(|lookup| lookup.required && !lookup.found).map(|lookup| lookup.item.clone()).collect();
        missing.sort();
        missing.dedup();
        missing
    }

    /// Loads something without which the part is still of use.
    pub(crate) fn lenient<T>(&mut self, load: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let before = self.lookups.len();
        let loaded = load(self);
        self.lookups[before..].iter_mut().for_each(|lookup| lookup.required = false);
        loaded
    }

    /// The address of a data symbol that must be there.
    pub(crate) fn data(&mut self, name: &str) -> Option<NonNull<c_void>> {
        let found = self.libraries.iter().find_map(|library| library.address(name));
        self.note(Missing::Symbol(name.to_string()), true, found.is_some());
        found
    }

    /// A function that must be there.
    ///
    /// # Safety
    /// As [`Library::function`].
    pub(crate) unsafe fn required<F: Copy>(&mut self, name: &str) -> Option<F> {
        // SAFETY: the caller's promise.
        unsafe { self.function(name, true) }
    }

    /// A function that may be absent.
    ///
    /// # Safety
    /// As [`Library::function`].
    pub(crate) unsafe fn optional<F: Copy>(&mut self, name: &str) -> Option<F> {
        // SAFETY: the caller's promise.
        unsafe { self.function(name, false) }
    }

    /// # Safety
    /// As [`Library::function`].
    unsafe fn function<F: Copy>(&mut self, name: &str, required: bool) -> Option<F> {
        // SAFETY: the caller's promise.
        let found = self.libraries.iter().find_map(|library| unsafe { library.function(name) });
        self.note(Missing::Symbol(name.to_string()), required, found.is_some());
        found
    }

    pub(crate) fn note_class(&mut self, name: &str, required: bool, found: bool) {
        self.note(Missing::Class(name.to_string()), required, found);
    }

    pub(crate) fn note_method(&mut self, name: &str, required: bool, found: bool, types: Option<(String, String)>) {
        self.lookups.push(Lookup { item: Missing::Method(name.to_string()), required, found, types });
    }

    fn note(&mut self, item: Missing, required: bool, found: bool) {
        self.lookups.push(Lookup { item, required, found, types: None });
    }
}

/// Where the parts of the system come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The frameworks of this Mac.
    System,
    /// One library that has the symbols of all of them.
    Library(PathBuf),
}

impl Source {
    /// Opens the libraries of a part: on a Mac those of `paths`, else the one that stands for all.
    pub(crate) fn open(&self, paths: &[&str]) -> Result<Vec<Library>, SysError> {
        match self {
            Self::System => paths.iter().map(|path| Library::open(Path::new(path))).collect(),
            Self::Library(path) => Ok(vec![Library::open(path)?]),
        }
    }
}

/// A C function and what it is called, for errors.
#[derive(Clone, Copy)]
pub(crate) struct Function<F> {
    /// The function.
    pub(crate) call: F,
    /// Its symbol.
    pub(crate) name: &'static str,
}

/// Declares a table of C functions with their exact types; `load` looks all of them up and notes every one that is missing.
macro_rules! functions {
    ($(#[$meta:meta])* $visibility:vis struct $table:ident {
        $($field:ident: $symbol:literal ($($name:ident: $argument:ty),*) $(-> $result:ty)?;)*
        $(@optional { $($optional:ident: $soft:literal ($($optional_name:ident: $optional_argument:ty),*) $(-> $optional_result:ty)?;)* })?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy)]
        $visibility struct $table {
            $(pub(crate) $field: $crate::library::Function<unsafe extern "C" fn($($name: $argument),*) $(-> $result)?>,)*
            $($(pub(crate) $optional: Option<$crate::library::Function<unsafe extern "C" fn($($optional_name: $optional_argument),*) $(-> $optional_result)?>>,)*)?
        }

        impl $table {
            /// The table, or nothing where a required function is missing; `search` has noted which.
            pub(crate) fn load(search: &mut $crate::library::Search<'_>) -> Option<Self> {
                // SAFETY: the types in this table are those of the C functions.
                $(let $field = unsafe { search.required($symbol) };)*
                Some(Self {
                    $($field: $crate::library::Function { call: $field?, name: $symbol },)*
                    // SAFETY: as above.
                    $($($optional: unsafe { search.optional($soft) }.map(|call| $crate::library::Function { call, name: $soft }),)*)?
                })
            }
        }
    };
}
pub(crate) use functions;
