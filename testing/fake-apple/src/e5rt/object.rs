//! Handles: numbers that stand for objects, each released once and by the function of its kind.

use super::buffer::Buffer;
use super::compiler::Compiler;
use super::event::Event;
use super::library::{Library, ProgramFunction};
use super::operation::{Operation, Port};
use super::options::{CompileOptions, Config, OperationOptions};
use super::stream::Stream;
use super::{HANDLE, NULL, Outcome, Refusal, misuse};
use crate::counters::live;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// A kind of object.
pub(super) trait Kind: Sized + Send + Sync + 'static {
    /// What it is counted as.
    const NAME: &'static str;
    /// Tells kinds apart in handles.
    const TAG: u64;
    /// The object of a handle, where it is of this kind.
    fn of(object: &Object) -> Option<&Arc<Self>>;
    /// The object of a handle.
    fn wrap(this: Arc<Self>) -> Object;
}

macro_rules! kinds {
    ($($variant:ident = $tag:literal, $name:literal;)*) => {
        /// What a handle stands for.
        pub(super) enum Object {
            $($variant(Arc<$variant>),)*
        }

        $(impl Kind for $variant {
            const NAME: &'static str = $name;
            const TAG: u64 = $tag;

            fn of(object: &Object) -> Option<&Arc<Self>> {
                match object {
                    Object::$variant(this) => Some(this),
                    _ => None,
                }
            }

            fn wrap(this: Arc<Self>) -> Object {
                Object::$variant(this)
            }
        })*

        fn kind_name(handle: u64) -> &'static str {
            match handle >> 4 & 0xF {
                $($tag => $name,)*
                _ => "nothing",
            }
        }
    };
}

kinds! {
    Config = 1, "e5rt_compiler_config";
    Compiler = 2, "e5rt_compiler";
    CompileOptions = 3, "e5rt_compiler_options";
    Library = 4, "e5rt_program_library";
    ProgramFunction = 5, "e5rt_program_function";
    OperationOptions = 6, "e5rt_operation_options";
    Operation = 7, "e5rt_operation";
    Port = 8, "e5rt_io_port";
    Buffer = 9, "e5rt_buffer_object";
    Stream = 10, "e5rt_execution_stream";
    Event = 11, "e5rt_async_event";
}

/// No address of any process has these bits, so that following a handle ends the process at once.
const BASE: u64 = 0x5E50_0000_0000_0000;

static NEXT: AtomicU64 = AtomicU64::new(1);

fn objects() -> MutexGuard<'static, HashMap<u64, Object>> {
    static OBJECTS: OnceLock<Mutex<HashMap<u64, Object>>> = OnceLock::new();
    OBJECTS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the number is, or was, a handle.
fn is_handle(number: u64) -> bool {
    let serial = (number & !BASE) >> 8;
    number & BASE == BASE && number & 0xF == 0 && serial > 0 && serial < NEXT.load(Relaxed)
}

/// Why a number is no handle of the kind.
fn wrong<T: Kind>(number: u64) -> Refusal {
    if number == 0 {
        return misuse(NULL, format!("{} is NULL", T::NAME));
    }
    let problem = match (is_handle(number), number >> 4 & 0xF == T::TAG) {
        (true, true) => "was released before".to_string(),
        (true, false) => format!("is of kind {}", kind_name(number)),
        (false, _) => "is no handle".to_string(),
    };
    misuse(HANDLE, format!("a handle of kind {} is wanted, this one {problem}", T::NAME))
}

/// The object behind a handle.
pub(super) fn get<T: Kind>(handle: *mut c_void) -> Result<Arc<T>, Refusal> {
    let number = handle as u64;
    let objects = objects();
    objects.get(&number).and_then(T::of).cloned().ok_or_else(|| wrong::<T>(number))
}

/// Gives an object a handle, in the place that the caller wants it in.
///
/// # Safety
/// `out` is null, a handle (the arguments were exchanged) or a place to write to.
pub(super) unsafe fn put<T: Kind>(out: *mut *mut c_void, make: impl FnOnce() -> Result<T, Refusal>) -> Outcome {
    check_place(out.cast())?;
    let number = BASE | NEXT.fetch_add(1, Relaxed) << 8 | T::TAG << 4;
    let object = T::wrap(Arc::new(make()?));
    objects().insert(number, object);
    live(T::NAME, 1);
    // SAFETY: neither null nor a handle, so the caller's place.
    unsafe { *out = number as *mut c_void };
    Ok(())
}

/// Refuses a place that nothing can be written to.
pub(super) fn check_place(out: *mut c_void) -> Outcome {
    if out.is_null() {
        return Err(misuse(NULL, "the place for the result is NULL"));
    }
    if is_handle(out as u64) {
        let problem =
            format!("the place for the result is a handle of kind {}: the arguments are exchanged", kind_name(out as u64));
        return Err(misuse(HANDLE, problem));
    }
    Ok(())
}

/// Releases a handle and forgets it.
///
/// # Safety
/// `place` is null, a handle (not a pointer to one) or points to a handle.
pub(super) unsafe fn release<T: Kind>(place: *mut *mut c_void) -> Outcome {
    if is_handle(place as u64) {
        return Err(misuse(HANDLE, "a release takes the address of the handle, not the handle"));
    }
    check_place(place.cast())?;
    // SAFETY: neither null nor a handle, so the caller's place.
    let number = unsafe { *place } as u64;
    let mut objects = objects();
    if objects.get(&number).and_then(T::of).is_none() {
        return Err(wrong::<T>(number));
    }
    let object = objects.remove(&number);
    drop(objects);
    // Last: it may unload a program.
    drop(object);
    live(T::NAME, -1);
    // SAFETY: as above.
    unsafe { *place = std::ptr::null_mut() };
    Ok(())
}
