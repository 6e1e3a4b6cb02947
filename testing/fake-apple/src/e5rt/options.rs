//! Objects that only hold what was set.

use super::compiler::Compiler;
use super::library::ProgramFunction;
use super::object::{check_place, get, put, release};
use super::{NULL, Outcome, VALUE, answer, misuse, text};
use std::ffi::{c_char, c_int, c_void};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where compiled bundles go.
#[derive(Debug, Default)]
pub(super) struct Config {
    pub(super) cache: Mutex<Option<PathBuf>>,
}

/// How to compile.
#[derive(Debug, Default)]
pub(super) struct CompileOptions {
    values: Mutex<CompileValues>,
}

/// Values of [`CompileOptions`].
#[derive(Clone, Debug)]
pub(super) struct CompileValues {
    pub(super) mask: u64,
    pub(super) force: bool,
    pub(super) custom: Option<String>,
}

impl Default for CompileValues {
    fn default() -> Self {
        Self { mask: 0x7, force: false, custom: None }
    }
}

impl CompileOptions {
    pub(super) fn values(&self) -> MutexGuard<'_, CompileValues> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How to make an operation.
#[derive(Debug)]
pub(super) struct OperationOptions {
    pub(super) function: Arc<ProgramFunction>,
}

/// # Safety
/// As [`put`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_e5_compiler_config_options_create(out: *mut *mut c_void) -> i64 {
    // SAFETY: the caller's promise.
    answer("e5rt_e5_compiler_config_options_create", unsafe { put(out, || Ok(Config::default())) })
}

/// # Safety
/// As [`release`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_e5_compiler_config_options_release(object: *mut *mut c_void) -> i64 {
    // SAFETY: the caller's promise.
    answer("e5rt_e5_compiler_config_options_release", unsafe { release::<Config>(object) })
}

/// # Safety
/// `path` is null or a string that ends in zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_e5_compiler_config_options_set_cache_bundle_location(
    config: *mut c_void,
    path: *const c_char,
) -> i64 {
    let set = || -> Outcome {
        let config = get::<Config>(config)?;
        // SAFETY: the caller's promise.
        let path = unsafe { text(path, "the path") }?;
        *config.cache.lock().unwrap_or_else(PoisonError::into_inner) = Some(PathBuf::from(path));
        Ok(())
    };
    answer("e5rt_e5_compiler_config_options_set_cache_bundle_location", set())
}

/// Takes the value and does nothing with it.
#[unsafe(no_mangle)]
pub extern "C" fn e5rt_e5_compiler_config_options_set_bundle_cache_apfs_purgeable(config: *mut c_void, _value: c_int) -> i64 {
    answer("e5rt_e5_compiler_config_options_set_bundle_cache_apfs_purgeable", get::<Config>(config).map(drop))
}

/// # Safety
/// As [`put`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_e5_compiler_create(out: *mut *mut c_void) -> i64 {
    // SAFETY: the caller's promise.
    answer("e5rt_e5_compiler_create", unsafe { put(out, || Ok(Compiler { config: Arc::default() })) })
}

/// # Safety
/// As [`put`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_e5_compiler_create_with_config(out: *mut *mut c_void, config: *mut c_void) -> i64 {
    // SAFETY: the caller's promise.
    answer("e5rt_e5_compiler_create_with_config", unsafe { put(out, || Ok(Compiler { config: get(config)? })) })
}

/// # Safety
/// As [`release`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_e5_compiler_release(object: *mut *mut c_void) -> i64 {
    // SAFETY: the caller's promise.
    answer("e5rt_e5_compiler_release", unsafe { release::<Compiler>(object) })
}

/// # Safety
/// As [`put`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_e5_compiler_options_create(out: *mut *mut c_void) -> i64 {
    // SAFETY: the caller's promise.
    answer("e5rt_e5_compiler_options_create", unsafe { put(out, || Ok(CompileOptions::default())) })
}

/// # Safety
/// As [`release`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_e5_compiler_options_release(object: *mut *mut c_void) -> i64 {
    // SAFETY: the caller's promise.
    answer("e5rt_e5_compiler_options_release", unsafe { release::<CompileOptions>(object) })
}

/// Bits: 1 CPU, 2 GPU, 4 engine.
#[unsafe(no_mangle)]
pub extern "C" fn e5rt_e5_compiler_options_set_compute_device_types_mask(options: *mut c_void, mask: u64) -> i64 {
    let set = || -> Outcome {
        let options = get::<CompileOptions>(options)?;
        if mask == 0 || mask > 7 {
            return Err(misuse(VALUE, format!("device mask 0x{mask:x}; 0x1, 0x2 and 0x4 are the devices")));
        }
        options.values().mask = mask;
        Ok(())
    };
    answer("e5rt_e5_compiler_options_set_compute_device_types_mask", set())
}

/// # Safety
/// `out` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_e5_compiler_options_get_compute_device_types_mask(options: *mut c_void, out: *mut u64) -> i64 {
    let get = || -> Outcome {
        let options = get::<CompileOptions>(options)?;
        check_place(out.cast())?;
        // SAFETY: the caller's promise, checked as far as possible.
        unsafe { *out = options.values().mask };
        Ok(())
    };
    answer("e5rt_e5_compiler_options_get_compute_device_types_mask", get())
}

/// # Safety
/// `value` is null or a string that ends in zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_e5_compiler_options_set_custom_ane_compiler_options(
    options: *mut c_void,
    value: *const c_char,
) -> i64 {
    let set = || -> Outcome {
        let options = get::<CompileOptions>(options)?;
        // SAFETY: the caller's promise.
        options.values().custom = Some(unsafe { text(value, "the value") }?);
        Ok(())
    };
    answer("e5rt_e5_compiler_options_set_custom_ane_compiler_options", set())
}

/// Whether to compile what was compiled before.
#[unsafe(no_mangle)]
pub extern "C" fn e5rt_e5_compiler_options_set_force_recompilation(options: *mut c_void, value: c_int) -> i64 {
    let set = || -> Outcome {
        get::<CompileOptions>(options)?.values().force = value != 0;
        Ok(())
    };
    answer("e5rt_e5_compiler_options_set_force_recompilation", set())
}

/// Takes the value and does nothing with it.
#[unsafe(no_mangle)]
pub extern "C" fn e5rt_e5_compiler_options_set_force_bnns_graph(options: *mut c_void, _value: c_int) -> i64 {
    answer("e5rt_e5_compiler_options_set_force_bnns_graph", get::<CompileOptions>(options).map(drop))
}

/// # Safety
/// `value` is null or a string that ends in zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_e5_compiler_options_set_segmenter(options: *mut c_void, value: *const c_char) -> i64 {
    let set = || -> Outcome {
        get::<CompileOptions>(options)?;
        // SAFETY: the caller's promise.
        match unsafe { text(value, "the segmenter") }?.as_str() {
            "graph" => Ok(()),
            other => Err(misuse(VALUE, format!("segmenter {other:?}; \"graph\" is the one that is known to work"))),
        }
    };
    answer("e5rt_e5_compiler_options_set_segmenter", set())
}

/// Takes the value and does nothing with it.
#[unsafe(no_mangle)]
pub extern "C" fn e5rt_e5_compiler_options_set_enable_profiling(options: *mut c_void, _value: c_int) -> i64 {
    answer("e5rt_e5_compiler_options_set_enable_profiling", get::<CompileOptions>(options).map(drop))
}

/// # Safety
/// As [`put`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_precompiled_compute_op_create_options_create_with_program_function(
    out: *mut *mut c_void,
    function: *mut c_void,
) -> i64 {
    let make = || match function.is_null() {
        true => Err(misuse(NULL, "Cannot provide program function as nullptr")),
        false => Ok(OperationOptions { function: get(function)? }),
    };
    // SAFETY: the caller's promise.
    answer("e5rt_precompiled_compute_op_create_options_create_with_program_function", unsafe { put(out, make) })
}

/// # Safety
/// As [`release`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_precompiled_compute_op_create_options_release(object: *mut *mut c_void) -> i64 {
    // SAFETY: the caller's promise.
    answer("e5rt_precompiled_compute_op_create_options_release", unsafe { release::<OperationOptions>(object) })
}

/// Takes the name and does nothing with it.
///
/// # Safety
/// `name` is null or a string that ends in zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn e5rt_precompiled_compute_op_create_options_set_operation_name(
    options: *mut c_void,
    name: *const c_char,
) -> i64 {
    let set = || -> Outcome {
        get::<OperationOptions>(options)?;
        // SAFETY: the caller's promise.
        unsafe { text(name, "the operation's name") }.map(drop)
    };
    answer("e5rt_precompiled_compute_op_create_options_set_operation_name", set())
}

/// Takes the value and does nothing with it.
#[unsafe(no_mangle)]
pub extern "C" fn e5rt_precompiled_compute_op_create_options_set_allocate_intermediate_buffers(
    options: *mut c_void,
    _value: c_int,
) -> i64 {
    answer(
        "e5rt_precompiled_compute_op_create_options_set_allocate_intermediate_buffers",
        get::<OperationOptions>(options).map(drop),
    )
}
