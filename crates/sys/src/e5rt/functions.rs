//! The C functions of the runtime, with their exact types. Names and types: the header of the PyPI package aneforge 0.4.0.

use std::ffi::{c_char, c_int, c_void};

use crate::library::functions;

/// An object of the runtime.
pub(crate) type Raw = *mut c_void;
/// Zero, or why a call failed; the numbers are not published.
pub(crate) type Code = i64;
/// Gives an object back and sets the pointer to null.
pub(crate) type Release = unsafe extern "C" fn(object: *mut Raw) -> Code;

functions! {
    /// Creators write their result through the first pointer, compile, retain and get calls through the last one.
    pub(crate) struct Functions {
        config_create: "e5rt_e5_compiler_config_options_create" (out: *mut Raw) -> Code;
        config_release: "e5rt_e5_compiler_config_options_release" (object: *mut Raw) -> Code;
        config_set_cache: "e5rt_e5_compiler_config_options_set_cache_bundle_location" (config: Raw, path: *const c_char) -> Code;
        compiler_create: "e5rt_e5_compiler_create_with_config" (out: *mut Raw, config: Raw) -> Code;
        compiler_release: "e5rt_e5_compiler_release" (object: *mut Raw) -> Code;
        compiler_compile: "e5rt_e5_compiler_compile" (compiler: Raw, path: *const c_char, options: Raw, library: *mut Raw) -> Code;
        options_create: "e5rt_e5_compiler_options_create" (out: *mut Raw) -> Code;
        options_release: "e5rt_e5_compiler_options_release" (object: *mut Raw) -> Code;
        options_set_devices: "e5rt_e5_compiler_options_set_compute_device_types_mask" (options: Raw, mask: u64) -> Code;
        options_set_force: "e5rt_e5_compiler_options_set_force_recompilation" (options: Raw, value: c_int) -> Code;
        options_set_segmenter: "e5rt_e5_compiler_options_set_segmenter" (options: Raw, value: *const c_char) -> Code;
        library_release: "e5rt_program_library_release" (object: *mut Raw) -> Code;
        library_function: "e5rt_program_library_retain_program_function" (library: Raw, name: *const c_char, out: *mut Raw) -> Code;
        function_release: "e5rt_program_function_release" (object: *mut Raw) -> Code;
        operation_options_create: "e5rt_precompiled_compute_op_create_options_create_with_program_function" (out: *mut Raw, function: Raw) -> Code;
        operation_options_release: "e5rt_precompiled_compute_op_create_options_release" (object: *mut Raw) -> Code;
        operation_options_set_name: "e5rt_precompiled_compute_op_create_options_set_operation_name" (options: Raw, name: *const c_char) -> Code;
        operation_options_set_allocate: "e5rt_precompiled_compute_op_create_options_set_allocate_intermediate_buffers" (options: Raw, value: c_int) -> Code;
        operation_create: "e5rt_execution_stream_operation_create_precompiled_compute_operation_with_options" (out: *mut Raw, options: Raw) -> Code;
        operation_release: "e5rt_execution_stream_operation_release" (object: *mut Raw) -> Code;
        operation_input_port: "e5rt_execution_stream_operation_retain_input_port" (operation: Raw, name: *const c_char, out: *mut Raw) -> Code;
        operation_output_port: "e5rt_execution_stream_operation_retain_output_port" (operation: Raw, name: *const c_char, out: *mut Raw) -> Code;
        operation_prepare: "e5rt_execution_stream_operation_prepare_op_for_encode" (operation: Raw) -> Code;
        port_release: "e5rt_io_port_release" (object: *mut Raw) -> Code;
        port_bind: "e5rt_io_port_bind_buffer_object" (port: Raw, buffer: Raw) -> Code;
        buffer_alloc: "e5rt_buffer_object_alloc" (out: *mut Raw, size: u64, kind: u32) -> Code;
        buffer_release: "e5rt_buffer_object_release" (object: *mut Raw) -> Code;
        buffer_data: "e5rt_buffer_object_get_data_ptr" (buffer: Raw, out: *mut *mut c_void) -> Code;
        stream_create: "e5rt_execution_stream_create" (out: *mut Raw) -> Code;
        stream_release: "e5rt_execution_stream_release" (object: *mut Raw) -> Code;
        stream_reset: "e5rt_execution_stream_reset" (stream: Raw) -> Code;
        stream_encode: "e5rt_execution_stream_encode_operation" (stream: Raw, operation: Raw) -> Code;
        stream_execute: "e5rt_execution_stream_execute_sync" (stream: Raw) -> Code;
        @optional {
            options_get_devices: "e5rt_e5_compiler_options_get_compute_device_types_mask" (options: Raw, out: *mut u64) -> Code;
            options_set_custom: "e5rt_e5_compiler_options_set_custom_ane_compiler_options" (options: Raw, value: *const c_char) -> Code;
            options_set_profiling: "e5rt_e5_compiler_options_set_enable_profiling" (options: Raw, value: c_int) -> Code;
            library_create: "e5rt_program_library_create" (out: *mut Raw, bundle: *const c_char) -> Code;
            library_count: "e5rt_program_library_get_num_functions" (library: Raw, out: *mut u64) -> Code;
            library_names: "e5rt_program_library_get_function_names" (library: Raw, count: u64, names: *mut *const c_char) -> Code;
            function_name: "e5rt_program_function_get_name" (function: Raw, out: *mut *const c_char) -> Code;
            function_load: "e5rt_program_function_load_for_execution" (function: Raw) -> Code;
            operation_bind_completion: "e5rt_execution_stream_operation_bind_completion_event" (operation: Raw, event: Raw) -> Code;
            operation_bind_dependent: "e5rt_execution_stream_operation_bind_dependent_events" (operation: Raw, events: *mut Raw, count: u64) -> Code;
            buffer_size: "e5rt_buffer_object_get_size" (buffer: Raw, out: *mut u64) -> Code;
            stream_submit: "e5rt_execution_stream_submit_async" (stream: Raw, block: *mut c_void) -> Code;
            stream_set_quality: "e5rt_execution_stream_set_quality_of_service" (stream: Raw, quality: u64) -> Code;
            stream_set_priority: "e5rt_execution_stream_set_ane_execution_priority" (stream: Raw, priority: u64) -> Code;
            event_create: "e5rt_async_event_create" (out: *mut Raw, name: *const c_char, initial: u32) -> Code;
            event_release: "e5rt_async_event_release" (object: *mut Raw) -> Code;
            event_signal: "e5rt_async_event_signal" (event: Raw) -> Code;
            event_wait: "e5rt_async_event_sync_wait" (event: Raw) -> Code;
            event_last: "e5rt_async_event_get_last_signaled_value" (event: Raw, out: *mut u64) -> Code;
            event_set_future: "e5rt_async_event_set_active_future_value" (event: Raw, value: u64) -> Code;
        }
    }
}
