//! e5rt as a caller sees it: functions looked up by name in the fake's library, called in the order that is known to work.
#![allow(dead_code, missing_docs, clippy::unwrap_used)]

use libloading::Library;
use serde_json::{Value, json};
use std::ffi::{CString, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::OnceLock;

pub type Handle = *mut c_void;

pub fn fake() -> &'static Library {
    static FAKE: OnceLock<Library> = OnceLock::new();
    // SAFETY: the library is the fake, whose loading reads one variable of the environment.
    FAKE.get_or_init(|| unsafe { Library::new(aneforge_fake_client::library().unwrap()) }.unwrap())
}

/// A function of the fake with its arguments.
pub trait Call<A> {
    fn call(self, arguments: A) -> i64;
}

macro_rules! calls {
    ($($name:ident $ty:ident),*) => {
        impl<$($ty),*> Call<($($ty,)*)> for unsafe extern "C" fn($($ty),*) -> i64 {
            fn call(self, ($($name,)*): ($($ty,)*)) -> i64 {
                // SAFETY: the types are those that the function has; the tests pass live handles or such as it must refuse.
                unsafe { self($($name),*) }
            }
        }
    };
}

calls!(a A);
calls!(a A, b B);
calls!(a A, b B, c C);
calls!(a A, b B, c C, d D);

/// Calls a function of the fake: `call!(name(value => type, ..))`.
#[macro_export]
macro_rules! call {
    ($name:ident($($value:expr => $ty:ty),* $(,)?)) => {{
        // SAFETY: the types are those that the function has; the tests pass live handles or such as it must refuse.
        let function = unsafe {
            $crate::through_e5rt::fake().get::<unsafe extern "C" fn($($ty),*) -> i64>(stringify!($name).as_bytes())
        };
        let function = function.unwrap();
        $crate::through_e5rt::Call::call(*function, ($($value,)*))
    }};
}

pub fn control(request: &Value) -> Value {
    aneforge_fake_client::control(&aneforge_fake_client::library().unwrap(), request).unwrap()
}

pub fn set(settings: Value) {
    control(&json!({ "set": settings }));
}

pub fn counters() -> Value {
    control(&json!({ "get": "counters" }))
}

pub fn diagnostics() -> String {
    control(&json!({ "get": "diagnostics" })).to_string()
}

pub fn violations() -> Vec<String> {
    let found = counters()["violations"].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_string()).collect();
    control(&json!({ "get": "diagnostics" }));
    found
}

pub fn assert_clean() {
    let counters = counters();
    assert_eq!(counters["violations"], json!([]));
    assert_eq!(counters["live"], json!({}));
    assert_eq!(counters["loaded_programs"], 0);
}

/// What an `out first` function without further arguments makes.
#[macro_export]
macro_rules! create {
    ($name:ident($($value:expr => $ty:ty),*)) => {{
        let mut out: $crate::through_e5rt::Handle = std::ptr::null_mut();
        let place: *mut $crate::through_e5rt::Handle = &mut out;
        match $crate::call!($name(place => *mut $crate::through_e5rt::Handle $(, $value => $ty)*)) {
            0 => Ok(out),
            code => Err(code),
        }
    }};
}

#[macro_export]
macro_rules! release {
    ($name:ident, $handle:expr) => {{
        let mut handle: $crate::through_e5rt::Handle = $handle;
        let place: *mut $crate::through_e5rt::Handle = &mut handle;
        assert_eq!($crate::call!($name(place => *mut $crate::through_e5rt::Handle)), 0);
        assert!(handle.is_null());
    }};
}

/// A folder with a program.
pub struct Source {
    pub folder: PathBuf,
}

impl Source {
    pub fn new(text: &str) -> Self {
        static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("fake-apple-e5rt-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("model.mil"), text).unwrap();
        Self { folder }
    }

    /// One function of the usual dialect; `body` is `inputs) { statements } -> (outputs`.
    pub fn main(body: &str) -> Self {
        Self::new(&format!("program(1.3)\n{{\nfunc main<ios18>({body});\n}}\n"))
    }

    pub fn path(&self) -> PathBuf {
        self.folder.join("model.mil")
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub fn c(text: impl AsRef<Path>) -> CString {
    CString::new(text.as_ref().to_str().unwrap()).unwrap()
}

/// How to compile.
#[derive(Default)]
pub struct How<'a> {
    pub cached: bool,
    pub custom: Option<&'a str>,
}

/// Compiles a file; the library or the code.
pub fn compile(file: &Path, cache: &Path, how: &How<'_>) -> Result<Handle, i64> {
    let config = create!(e5rt_e5_compiler_config_options_create())?;
    let text = c(cache);
    assert_eq!(call!(e5rt_e5_compiler_config_options_set_cache_bundle_location(config => Handle, text.as_ptr() => *const i8)), 0);
    let compiler = create!(e5rt_e5_compiler_create_with_config(config => Handle))?;
    let options = create!(e5rt_e5_compiler_options_create())?;
    assert_eq!(call!(e5rt_e5_compiler_options_set_compute_device_types_mask(options => Handle, 4 => u64)), 0);
    assert_eq!(call!(e5rt_e5_compiler_options_set_force_recompilation(options => Handle, c_int::from(!how.cached) => c_int)), 0);
    assert_eq!(call!(e5rt_e5_compiler_options_set_segmenter(options => Handle, c"graph".as_ptr() => *const i8)), 0);
    if let Some(custom) = how.custom {
        let custom = c(custom);
        assert_eq!(
            call!(e5rt_e5_compiler_options_set_custom_ane_compiler_options(options => Handle, custom.as_ptr() => *const i8)),
            0
        );
    }
    let (mut library, file) = (null_mut(), c(file));
    let place: *mut Handle = &mut library;
    let code =
        call!(e5rt_e5_compiler_compile(compiler => Handle, file.as_ptr() => *const i8, options => Handle, place => *mut Handle));
    release!(e5rt_e5_compiler_options_release, options);
    release!(e5rt_e5_compiler_release, compiler);
    release!(e5rt_e5_compiler_config_options_release, config);
    if code == 0 { Ok(library) } else { Err(code) }
}

/// A function of a library, made into an operation.
pub struct Operation {
    pub function: Handle,
    pub options: Handle,
    pub operation: Handle,
}

impl Operation {
    pub fn new(library: Handle, name: &str) -> Result<Self, i64> {
        let (mut function, name) = (null_mut(), c(name));
        let place: *mut Handle = &mut function;
        let retained = call!(e5rt_program_library_retain_program_function(library => Handle, name.as_ptr() => *const i8, place => *mut Handle));
        assert_eq!(retained, 0);
        let options = create!(e5rt_precompiled_compute_op_create_options_create_with_program_function(function => Handle)).unwrap();
        let named = call!(
            e5rt_precompiled_compute_op_create_options_set_operation_name(options => Handle, name.as_ptr() => *const i8)
        );
        let allocates = call!(
            e5rt_precompiled_compute_op_create_options_set_allocate_intermediate_buffers(options => Handle, 1 => c_int)
        );
        assert_eq!((named, allocates), (0, 0));
        match create!(e5rt_execution_stream_operation_create_precompiled_compute_operation_with_options(options => Handle)) {
            Ok(operation) => Ok(Self { function, options, operation }),
            Err(code) => {
                release!(e5rt_precompiled_compute_op_create_options_release, options);
                release!(e5rt_program_function_release, function);
                Err(code)
            }
        }
    }

    pub fn port(&self, output: bool, name: &str) -> Handle {
        let (mut port, name) = (null_mut(), c(name));
        let place: *mut Handle = &mut port;
        let code = match output {
            false => call!(
                e5rt_execution_stream_operation_retain_input_port(self.operation => Handle, name.as_ptr() => *const i8, place => *mut Handle)
            ),
            true => call!(
                e5rt_execution_stream_operation_retain_output_port(self.operation => Handle, name.as_ptr() => *const i8, place => *mut Handle)
            ),
        };
        assert_eq!(code, 0, "{}", diagnostics());
        port
    }

    /// Binds a port to a buffer and lets the port go.
    pub fn bind(&self, output: bool, name: &str, buffer: &Buffer) {
        let port = self.port(output, name);
        assert_eq!(call!(e5rt_io_port_bind_buffer_object(port => Handle, buffer.handle => Handle)), 0);
        release!(e5rt_io_port_release, port);
    }

    pub fn release(self) {
        release!(e5rt_execution_stream_operation_release, self.operation);
        release!(e5rt_precompiled_compute_op_create_options_release, self.options);
        release!(e5rt_program_function_release, self.function);
    }
}

/// A buffer of fp16 elements.
pub struct Buffer {
    pub handle: Handle,
    data: *mut u16,
    size: usize,
}

impl Buffer {
    pub fn new(bytes: u64) -> Self {
        let handle = create!(e5rt_buffer_object_alloc(bytes => u64, 0 => u32)).unwrap();
        let mut data: Handle = null_mut();
        let place: *mut Handle = &mut data;
        assert_eq!(call!(e5rt_buffer_object_get_data_ptr(handle => Handle, place => *mut Handle)), 0);
        Self { handle, data: data.cast(), size: usize::try_from(bytes).unwrap() }
    }

    pub fn write(&self, values: &[f32]) {
        assert!(values.len() * 2 <= self.size);
        for (index, &value) in values.iter().enumerate() {
            // SAFETY: inside the buffer, as asserted; no execution is under way.
            unsafe { self.data.add(index).write_unaligned(half::f16::from_f32(value).to_bits()) };
        }
    }

    pub fn read(&self, count: usize) -> Vec<f32> {
        assert!(count * 2 <= self.size);
        // SAFETY: inside the buffer, as asserted; no execution is under way.
        (0..count).map(|index| half::f16::from_bits(unsafe { self.data.add(index).read_unaligned() }).to_f32()).collect()
    }

    /// Writes a byte at an offset, which may lie behind the end.
    pub fn scribble(&self, offset: usize) {
        // SAFETY: the fake keeps a guard behind every buffer.
        unsafe { self.data.cast::<u8>().add(offset).write(1) };
    }

    pub fn release(self) {
        release!(e5rt_buffer_object_release, self.handle);
    }
}

/// A stream.
pub struct Stream(pub Handle);

impl Stream {
    pub fn of(operations: &[&Operation]) -> Self {
        let stream = create!(e5rt_execution_stream_create()).unwrap();
        for one in operations {
            let code = call!(e5rt_execution_stream_encode_operation(stream => Handle, one.operation => Handle));
            assert_eq!(code, 0, "{}", diagnostics());
        }
        Self(stream)
    }

    pub fn execute(&self) -> i64 {
        call!(e5rt_execution_stream_execute_sync(self.0 => Handle))
    }

    pub fn release(self) {
        release!(e5rt_execution_stream_release, self.0);
    }
}

/// A program with inputs and outputs of four fp16 elements each, bound and encoded.
pub struct Ready {
    pub source: Source,
    pub library: Handle,
    pub operation: Operation,
    pub inputs: Vec<Buffer>,
    pub outputs: Vec<Buffer>,
    pub stream: Stream,
}

/// `y = x + x`.
pub const DOUBLE: &str = "tensor<fp16, [1, 4]> x) { tensor<fp16, [1, 4]> y = add(x = x, y = x)[name = string(\"y\")]; } -> (y";

impl Ready {
    pub fn double() -> Self {
        let source = Source::main(DOUBLE);
        let library = compile(&source.path(), &source.folder.join("cache"), &How::default()).unwrap();
        let operation = Operation::new(library, "main").unwrap();
        let [x, y] = [(); 2].map(|()| Buffer::new(64));
        operation.bind(false, "x", &x);
        operation.bind(true, "y", &y);
        x.write(&[1.0, 2.0, 3.0, 4.0]);
        y.write(&[0.0; 4]);
        let stream = Stream::of(&[&operation]);
        Self { source, library, operation, inputs: vec![x], outputs: vec![y], stream }
    }

    /// Whether it computes.
    pub fn computes(&self) -> bool {
        self.stream.execute() == 0 && self.outputs[0].read(4) == [2.0, 4.0, 6.0, 8.0]
    }

    pub fn release(self) {
        self.stream.release();
        self.inputs.into_iter().chain(self.outputs).for_each(Buffer::release);
        self.operation.release();
        release!(e5rt_program_library_release, self.library);
    }
}
