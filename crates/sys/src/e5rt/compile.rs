//! From a file to a function: configuration, compiler, options, library.

use std::ffi::{CStr, c_char, c_int};
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Object, Runtime, check, path_text, text};
use crate::SysError;

/// What a compiler is made with.
pub struct Config(Object);

impl Config {
    /// A configuration whose compiled bundles go to the folder `cache`.
    ///
    /// # Errors
    /// [`SysError::Code`] with the runtime's code; [`SysError::Text`] for a path that is no UTF-8.
    pub fn new(runtime: &Arc<Runtime>, cache: &Path) -> Result<Self, SysError> {
        let functions = &runtime.functions;
        let create = functions.config_create;
        // SAFETY: writes one object through the pointer.
        let object = Object::create(runtime, create.name, functions.config_release.call, |out| unsafe { (create.call)(out) })?;
        let path = path_text("the path of the bundle cache", cache)?;
        let set = functions.config_set_cache;
        // SAFETY: the object lives, the path ends in zero and is copied by the callee.
        check(set.name, unsafe { (set.call)(object.raw(), path.as_ptr()) })?;
        Ok(Self(object))
    }
}

/// How one program is compiled.
pub struct Options(Object);

impl Options {
    /// The engine alone: compute devices are bits, 1 the CPU, 2 the GPU, 4 the engine.
    pub const ENGINE: u64 = 4;

    /// Options as the runtime sets them by itself.
    ///
    /// # Errors
    /// [`SysError::Code`] with the runtime's code.
    pub fn new(runtime: &Arc<Runtime>) -> Result<Self, SysError> {
        let create = runtime.functions.options_create;
        // SAFETY: writes one object through the pointer.
        let object =
            Object::create(runtime, create.name, runtime.functions.options_release.call, |out| unsafe { (create.call)(out) })?;
        Ok(Self(object))
    }

    /// Which units may run the program, as bits; [`Options::ENGINE`] for the engine alone.
    ///
    /// # Errors
    /// [`SysError::Code`] with the runtime's code.
    pub fn set_devices(&mut self, mask: u64) -> Result<(), SysError> {
        let set = self.0.functions().options_set_devices;
        // SAFETY: the object lives and `&mut self` keeps other setters out.
        check(set.name, unsafe { (set.call)(self.0.raw(), mask) })
    }

    /// Which units may run the program.
    ///
    /// # Errors
    /// [`SysError::Code`]; [`SysError::Lacking`] where this system lacks the question.
    pub fn devices(&self) -> Result<u64, SysError> {
        let get = self
            .0
            .runtime
            .need(self.0.functions().options_get_devices, "e5rt_e5_compiler_options_get_compute_device_types_mask")?;
        let mut mask = 0;
        // SAFETY: the object lives; one number is written through the pointer.
        check(get.name, unsafe { (get.call)(self.0.raw(), &raw mut mask) })?;
        Ok(mask)
    }

    /// Whether the program is compiled even where the cache holds it.
    ///
    /// # Errors
    /// [`SysError::Code`] with the runtime's code.
    pub fn set_force_recompilation(&mut self, force: bool) -> Result<(), SysError> {
        let set = self.0.functions().options_set_force;
        // SAFETY: as in `set_devices`.
        check(set.name, unsafe { (set.call)(self.0.raw(), c_int::from(force)) })
    }

    /// How a program is cut into segments; `graph` is the one known to keep a program whole.
    ///
    /// # Errors
    /// [`SysError::Code`]; [`SysError::Text`] for a name with a zero byte.
    pub fn set_segmenter(&mut self, name: &str) -> Result<(), SysError> {
        let name = text("the segmenter's name", name)?;
        let set = self.0.functions().options_set_segmenter;
        // SAFETY: as in `set_devices`; the text ends in zero and is copied by the callee.
        check(set.name, unsafe { (set.call)(self.0.raw(), name.as_ptr()) })
    }

    /// Options for the engine's own compiler, such as `TargetArchitecture=h13`.
    ///
    /// # Errors
    /// [`SysError::Code`]; [`SysError::Lacking`] where this system has no such option.
    pub fn set_custom_engine_options(&mut self, value: &str) -> Result<(), SysError> {
        let value = text("the engine compiler's options", value)?;
        let set = self
            .0
            .runtime
            .need(self.0.functions().options_set_custom, "e5rt_e5_compiler_options_set_custom_ane_compiler_options")?;
        // SAFETY: as in `set_segmenter`.
        check(set.name, unsafe { (set.call)(self.0.raw(), value.as_ptr()) })
    }

    /// Whether the program reports its times to the system's signposts.
    ///
    /// # Errors
    /// [`SysError::Code`]; [`SysError::Lacking`] where this system has no such option.
    pub fn set_profiling(&mut self, profile: bool) -> Result<(), SysError> {
        let set = self.0.runtime.need(self.0.functions().options_set_profiling, "e5rt_e5_compiler_options_set_enable_profiling")?;
        // SAFETY: as in `set_devices`.
        check(set.name, unsafe { (set.call)(self.0.raw(), c_int::from(profile)) })
    }
}

/// The compiler. The work happens in a process of the system's.
pub struct Compiler(Object);

impl Compiler {
    /// A compiler of this configuration.
    ///
    /// # Errors
    /// [`SysError::Code`] with the runtime's code.
    pub fn new(config: &Config) -> Result<Self, SysError> {
        let runtime = &config.0.runtime;
        let create = runtime.functions.compiler_create;
        // SAFETY: the configuration lives; one object is written through the pointer.
        let object = Object::create(runtime, create.name, runtime.functions.compiler_release.call, |out| unsafe {
            (create.call)(out, config.0.raw())
        })?;
        Ok(Self(object))
    }

    /// Compiles the program at `path`, a `model.mil` with its weights beside it.
    ///
    /// # Errors
    /// [`SysError::Code`] where the program does not compile.
    pub fn compile(&mut self, path: &Path, options: &Options) -> Result<Library, SysError> {
        let path = path_text("the path of the program", path)?;
        let compile = self.0.functions().compiler_compile;
        let release = self.0.functions().library_release.call;
        // SAFETY: compiler and options live, the path ends in zero, one object is written through the last pointer; `&mut self`
        // keeps a second compilation off this compiler.
        let object = Object::create(&self.0.runtime, compile.name, release, |out| unsafe {
            (compile.call)(self.0.raw(), path.as_ptr(), options.0.raw(), out)
        })?;
        Ok(Library { object: Arc::new(object), lock: Arc::default() })
    }
}

/// A compiled program: one or more functions.
pub struct Library {
    object: Arc<Object>,
    /// Retaining functions counts inside of the library; whether that may race is not published.
    lock: Arc<Mutex<()>>,
}

impl Library {
    /// Opens a compiled bundle. Only the process that compiled it can, as the system keeps programs per process.
    ///
    /// # Errors
    /// [`SysError::Code`] where the bundle must be compiled again; [`SysError::Lacking`] where this system lacks the function.
    pub fn open(runtime: &Arc<Runtime>, bundle: &Path) -> Result<Self, SysError> {
        let path = path_text("the path of the bundle", bundle)?;
        let create = runtime.need(runtime.functions.library_create, "e5rt_program_library_create")?;
        // SAFETY: the path ends in zero; one object is written through the first pointer.
        let object = Object::create(runtime, create.name, runtime.functions.library_release.call, |out| unsafe {
            (create.call)(out, path.as_ptr())
        })?;
        Ok(Self { object: Arc::new(object), lock: Arc::default() })
    }

    /// The names of the functions.
    ///
    /// # Errors
    /// [`SysError::Code`]; [`SysError::Lacking`] where this system lacks the question.
    pub fn function_names(&self) -> Result<Vec<String>, SysError> {
        let functions = self.object.functions();
        let (count, names) = (
            self.object.runtime.need(functions.library_count, "e5rt_program_library_get_num_functions")?,
            self.object.runtime.need(functions.library_names, "e5rt_program_library_get_function_names")?,
        );
        let _lock = self.lock.lock();
        let mut number = 0u64;
        // SAFETY: the library lives; one number is written.
        check(count.name, unsafe { (count.call)(self.object.raw(), &raw mut number) })?;
        let room = usize::try_from(number).ok().filter(|room| *room <= 1 << 20).ok_or_else(|| SysError::Value {
            what: "the number of functions of a program",
            expected: "at most 2^20",
            found: number.to_string(),
        })?;
        let mut pointers: Vec<*const c_char> = vec![std::ptr::null(); room];
        // SAFETY: there is room for `number` pointers, each to a text that the library owns.
        check(names.name, unsafe { (names.call)(self.object.raw(), number, pointers.as_mut_ptr()) })?;
        // SAFETY: the pointers are the library's own texts, which live as long as it does.
        pointers.into_iter().map(|pointer| unsafe { owned_text("a function's name", names.name, pointer) }).collect()
    }

    /// A function by name; a program of one function calls it `main`.
    ///
    /// # Errors
    /// [`SysError::Code`] where there is none of this name.
    pub fn function(&self, name: &str) -> Result<Function, SysError> {
        let name = text("the function's name", name)?;
        let functions = self.object.functions();
        let retain = functions.library_function;
        let _lock = self.lock.lock();
        // SAFETY: the library lives, the name ends in zero, one object is written through the last pointer.
        let object = Object::create(&self.object.runtime, retain.name, functions.function_release.call, |out| unsafe {
            (retain.call)(self.object.raw(), name.as_ptr(), out)
        })?;
        Ok(Function { object, _library: self.object.clone() })
    }
}

/// A function of a compiled program.
pub struct Function {
    /// Before the library, so released before it.
    pub(super) object: Object,
    _library: Arc<Object>,
}

impl Function {
    /// The function's name.
    ///
    /// # Errors
    /// [`SysError::Code`]; [`SysError::Lacking`] where this system lacks the question.
    pub fn name(&self) -> Result<String, SysError> {
        let get = self.object.runtime.need(self.object.functions().function_name, "e5rt_program_function_get_name")?;
        let mut name = std::ptr::null();
        // SAFETY: the function lives; one pointer to a text of its own is written.
        check(get.name, unsafe { (get.call)(self.object.raw(), &raw mut name) })?;
        // SAFETY: the text is the function's own and lives as long as it does.
        unsafe { owned_text("a function's name", get.name, name) }
    }

    /// Loads the function ahead of its first use. Making an [`Operation`](super::Operation) loads it too.
    ///
    /// # Errors
    /// [`SysError::Code`]; [`SysError::Lacking`] where this system lacks the function.
    pub fn load(&mut self) -> Result<(), SysError> {
        let load = self.object.runtime.need(self.object.functions().function_load, "e5rt_program_function_load_for_execution")?;
        // SAFETY: the function lives and `&mut self` keeps other calls on it out.
        check(load.name, self.object.runtime.pooled(|| unsafe { (load.call)(self.object.raw()) }))
    }
}

/// Copies a C text.
///
/// # Safety
/// `pointer` is null or the address of a text that ends in zero.
unsafe fn owned_text(what: &'static str, call: &'static str, pointer: *const c_char) -> Result<String, SysError> {
    if pointer.is_null() {
        return Err(SysError::Nothing { call });
    }
    // SAFETY: the caller's promise, and the pointer is not null.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map(ToString::to_string).map_err(|_| SysError::Text { what })
}
