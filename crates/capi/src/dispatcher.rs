//! The nine symbols that the PyPI package aneforge 0.4.0 binds of its native dispatcher, with its signatures and answers, on any
//! device: `ANEFORGE_DEVICE` names it, `auto` where it is not set. `include/ane_e5rt.h` declares them.
//!
//! What the package's documentation states and this keeps: buffers of at least 64 bytes in steps of 64, zero at first; input data
//! that is longer than the buffer is refused, output data that is longer is cut; buffers can be shared until the first execution;
//! 0 or -1 as answers, with the reason on stderr. What differs: paths may be longer than 1023 bytes, an unknown
//! `TargetArchitecture` is refused (the original compiles for the host), and every input must be named when a program is compiled.
#![allow(clippy::missing_safety_doc)] // every pointer argument follows the header's one rule, stated in `raw`

use crate::fault::{Fault, caught, last_text};
use crate::handles::Table;
use crate::loaded::{Loaded, Side, mil};
use crate::raw::{give, path, slice, slice_mut, string};
use aneforge_compile::{CompileOptions, compile_body};
use aneforge_core::{Chip, Target, chips};
use aneforge_runtime::{Buffer, Device};
use std::ffi::{c_char, c_int, c_void};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A program's handle.
#[repr(C)]
pub struct Program(c_void);

struct Dispatched {
    loaded: Loaded,
    /// Set by the first execution; from then on buffers stay where they are.
    executed: AtomicBool,
}

static PROGRAMS: Table<Dispatched> = Table::new("program", 12);

const DONE: c_int = 0;
const FAILED: c_int = -1;

/// Compute units that a mask can name: CPU, GPU, engine.
const ENGINE: u64 = 4;
const ALL_UNITS: u64 = 7;

/// Compiles a MIL text beside its weights; NULL where that fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ane_e5rt_program_compile(
    mil_path: *const c_char,
    cache_dir: *const c_char,
    device_mask: u64,
    input_names: *const *const c_char,
    input_sizes: *const usize,
    input_count: usize,
    output_names: *const *const c_char,
    output_sizes: *const usize,
    output_count: usize,
) -> *mut Program {
    let compiled = answered("ane_e5rt_program_compile", || {
        // SAFETY: the header's rule.
        let (text, _) = unsafe { (path(mil_path, "mil_path")?, string(cache_dir, "cache_dir")?) };
        let loaded = Loaded::new(&*device(device_mask)?, &mil(&text)?)?;
        // SAFETY: the header's rule.
        let inputs = unsafe { listed(input_names, input_sizes, input_count, "input", loaded.ports(Side::Input).len())? };
        // SAFETY: the header's rule.
        let outputs = unsafe { listed(output_names, output_sizes, output_count, "output", loaded.ports(Side::Output).len())? };
        for (side, ports) in [(Side::Input, &inputs), (Side::Output, &outputs)] {
            for &(name, size) in ports {
                prepare(&loaded, side, name, size)?;
            }
        }
        if let Some(port) = loaded.ports(Side::Input).iter().find(|port| inputs.iter().all(|(name, _)| *name != port.name)) {
            return Err(Fault::argument(format!("input {:?} of the program is not in the list of inputs", port.name)));
        }
        Ok(PROGRAMS.insert(Dispatched { loaded, executed: AtomicBool::new(false) }))
    });
    std::ptr::without_provenance_mut(compiled.unwrap_or(0))
}

/// Copies fp16 numbers into an input.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ane_e5rt_program_set_input_fp16(
    program: *mut Program,
    port: *const c_char,
    data: *const u16,
    count: usize,
) -> c_int {
    code("ane_e5rt_program_set_input_fp16", || {
        // SAFETY: the header's rule.
        let (_, buffer) = unsafe { buffer(program, Side::Input, port)? };
        let bytes = count.checked_mul(2).filter(|&bytes| bytes <= buffer.len());
        let bytes = bytes
            .ok_or_else(|| Fault::argument(format!("{count} numbers are more than the {} bytes of the port", buffer.len())))?;
        // SAFETY: the header's rule; any alignment will do for bytes.
        Ok(buffer.write(0, unsafe { slice(data.cast::<u8>(), bytes, "data")? })?)
    })
}

/// Copies fp16 numbers out of an output, as many as there are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ane_e5rt_program_get_output_fp16(
    program: *mut Program,
    port: *const c_char,
    data: *mut u16,
    count: usize,
) -> c_int {
    code("ane_e5rt_program_get_output_fp16", || {
        // SAFETY: the header's rule.
        let (_, buffer) = unsafe { buffer(program, Side::Output, port)? };
        let bytes = count.saturating_mul(2).min(buffer.len());
        // SAFETY: the header's rule; any alignment will do for bytes.
        Ok(buffer.read(0, unsafe { slice_mut(data.cast::<u8>(), bytes, "data")? })?)
    })
}

/// Where an input's bytes are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ane_e5rt_program_input_buffer(
    program: *mut Program,
    port: *const c_char,
    data: *mut *mut c_void,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: the header's rule.
    code("ane_e5rt_program_input_buffer", || unsafe { view(program, Side::Input, port, data, bytes) })
}

/// Where an output's bytes are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ane_e5rt_program_output_buffer(
    program: *mut Program,
    port: *const c_char,
    data: *mut *mut c_void,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: the header's rule.
    code("ane_e5rt_program_output_buffer", || unsafe { view(program, Side::Output, port, data, bytes) })
}

/// Executes once.
#[unsafe(no_mangle)]
pub extern "C" fn ane_e5rt_program_execute(program: *mut Program) -> c_int {
    code("ane_e5rt_program_execute", || {
        let program = PROGRAMS.get(program.addr())?;
        program.loaded.with(|bound| {
            program.executed.store(true, Ordering::Release);
            Ok(bound.execute()?)
        })
    })
}

/// Makes an input use an output's buffer; before the first execution alone. A program has one operation, number 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ane_e5rt_program_share_buffer(
    program: *mut Program,
    source_op: usize,
    source_port: *const c_char,
    target_op: usize,
    target_port: *const c_char,
) -> c_int {
    code("ane_e5rt_program_share_buffer", || {
        if source_op != 0 || target_op != 0 {
            return Err(Fault::argument(format!("a program has one operation, number 0; got {source_op} and {target_op}")));
        }
        // SAFETY: the header's rule.
        let (held, shared) = unsafe { buffer(program, Side::Output, source_port)? };
        // SAFETY: the header's rule.
        let target = unsafe { string(target_port, "target_port")? };
        let index = index(&held.loaded, Side::Input, target)?;
        held.loaded.with(|bound| {
            if held.executed.load(Ordering::Acquire) {
                return Err(Fault::argument("buffers can be shared before the first execution alone"));
            }
            Ok(bound.set_input(index, shared)?)
        })
    })
}

/// Releases a program; NULL is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn ane_e5rt_program_release(program: *mut Program) {
    let _ = caught(|| {
        PROGRAMS.remove(program.addr());
        Ok(())
    });
}

/// Whether a MIL text compiles, for the device or for the architecture that the options name; 0 if it does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ane_e5rt_compile_check(
    mil_path: *const c_char,
    cache_dir: *const c_char,
    device_mask: u64,
    custom_options: *const c_char,
) -> c_int {
    code("ane_e5rt_compile_check", || {
        // SAFETY: the header's rule.
        let (text, _) = unsafe { (path(mil_path, "mil_path")?, string(cache_dir, "cache_dir")?) };
        let program = mil(&text)?;
        let device = device(device_mask)?;
        if custom_options.is_null() {
            return Loaded::new(&*device, &program).map(|_| ());
        }
        // SAFETY: the header's rule.
        let chip = architecture(unsafe { string(custom_options, "custom_options")? })?;
        // An engine's own compiler knows best.
        if let Some(done) = aneforge_runtime::ane::compile_for(device.name(), &text, chip.compiler_target)? {
            return Ok(done);
        }
        let options = CompileOptions { target: Target::e5rt(chip), ..CompileOptions::default() };
        compile_body(program.body().clone(), &options)?;
        Ok(())
    })
}

/// The chip that `TargetArchitecture=h13` and the like name: by its own name, else any of its generation.
fn architecture(options: &str) -> Result<&'static Chip, Fault> {
    let unknown = |problem: String| {
        let known: Vec<_> = chips().iter().map(|chip| chip.compiler_target).collect();
        Fault::argument(format!("{problem}; TargetArchitecture is one of {}", known.join(", ")))
    };
    let name = options.trim().strip_prefix("TargetArchitecture=").ok_or_else(|| unknown(format!("unknown option {options:?}")))?;
    let generation = name.strip_suffix(|last: char| last.is_ascii_lowercase()).unwrap_or(name);
    let exact = chips().iter().find(|chip| chip.compiler_target == name);
    let found = exact.or_else(|| chips().iter().find(|chip| chip.compiler_target == generation));
    found.ok_or_else(|| unknown(format!("no chip is called {name:?}")))
}

/// The device that the environment names. A mask without the engine asks for the processor, where nothing else is named.
fn device(mask: u64) -> Result<Arc<dyn Device>, Fault> {
    if mask & ALL_UNITS == 0 {
        return Err(Fault::argument(format!("the device mask {mask:#x} names no unit: 1 is the CPU, 2 the GPU, 4 the engine")));
    }
    let named = std::env::var("ANEFORGE_DEVICE").ok().filter(|name| !name.is_empty());
    let name = named.unwrap_or_else(|| if mask & ENGINE == 0 { "cpu" } else { "auto" }.to_string());
    Ok(aneforge_runtime::open(&name)?)
}

/// Gives a port a buffer of the original's size: at least 64 bytes, in steps of 64.
fn prepare(loaded: &Loaded, side: Side, name: &str, size: usize) -> Result<(), Fault> {
    let index = index(loaded, side, name)?;
    let needed = loaded.ports(side)[index].byte_length();
    if size < needed {
        return Err(Fault::argument(format!("port {name:?} takes {needed} bytes, its size is given as {size}")));
    }
    let rounded = size.checked_next_multiple_of(64).map_or(usize::MAX, |size| size.max(64));
    crate::loaded::checked_length(rounded)?;
    if loaded.buffer(side, index)?.len() >= rounded {
        return Ok(());
    }
    let buffer = Buffer::host(rounded)?;
    loaded.with(|bound| {
        // A device with memory of its own keeps that, whatever its size is.
        let _kept = match side {
            Side::Input => bound.set_input(index, buffer),
            Side::Output => bound.set_output(index, buffer),
        };
        Ok(())
    })
}

fn index(loaded: &Loaded, side: Side, name: &str) -> Result<usize, Fault> {
    let ports = loaded.ports(side);
    ports.iter().position(|port| port.name == name).ok_or_else(|| {
        let known: Vec<_> = ports.iter().map(|port| port.name.as_str()).collect();
        let kind = if side == Side::Input { "input" } else { "output" };
        Fault::argument(format!("no {kind} is called {name:?}; there are {}", known.join(", ")))
    })
}

/// Names and sizes of ports, of which there are `most`: a longer list is not looked at.
///
/// # Safety
/// As [`slice`] and [`string`].
unsafe fn listed<'a>(
    names: *const *const c_char,
    sizes: *const usize,
    count: usize,
    kind: &str,
    most: usize,
) -> Result<Vec<(&'a str, usize)>, Fault> {
    if count > most {
        return Err(Fault::argument(format!("{count} {kind}s are listed, the program has {most}")));
    }
    // SAFETY: the caller vouches for it.
    let (names, sizes) =
        unsafe { (slice(names, count, &format!("{kind}_names"))?, slice(sizes, count, &format!("{kind}_sizes"))?) };
    // SAFETY: the caller vouches for it.
    names.iter().zip(sizes).map(|(&name, &size)| Ok((unsafe { string(name, &format!("an {kind}'s name"))? }, size))).collect()
}

/// # Safety
/// As [`string`].
unsafe fn buffer(program: *mut Program, side: Side, port: *const c_char) -> Result<(Arc<Dispatched>, Buffer), Fault> {
    let held = PROGRAMS.get(program.addr())?;
    // SAFETY: the caller vouches for it.
    let index = index(&held.loaded, side, unsafe { string(port, "port")? })?;
    let buffer = held.loaded.buffer(side, index)?;
    Ok((held, buffer))
}

/// # Safety
/// As [`string`] and [`give`].
unsafe fn view(
    program: *mut Program,
    side: Side,
    port: *const c_char,
    data: *mut *mut c_void,
    bytes: *mut usize,
) -> Result<(), Fault> {
    // SAFETY: the caller vouches for it.
    unsafe {
        let (_, buffer) = buffer(program, side, port)?;
        give(data, buffer.as_ptr().cast(), "data")?;
        give(bytes, buffer.len(), "bytes")
    }
}

/// Runs the work of one call and says on stderr why it failed, as the original does.
fn answered<T>(call: &str, work: impl FnOnce() -> Result<T, Fault>) -> Option<T> {
    let (status, value) = caught(work);
    if value.is_none() {
        let text = format!("{call}: {} (code {})\n", last_text(), status as i32);
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
    value
}

fn code(call: &str, work: impl FnOnce() -> Result<(), Fault>) -> c_int {
    answered(call, work).map_or(FAILED, |()| DONE)
}
