//! The library's own C interface. `include/aneforge.h` has the same in C and says it for C programmers; a test compares the two.
#![allow(clippy::missing_safety_doc)] // every pointer argument follows the header's one rule, stated in `raw`

use crate::fault::{Fault, Status, caught, last, status};
use crate::handles::Table;
use crate::loaded::{Loaded, Side, graph, read, target_of};
use crate::raw::{give, overlap, path, slice, slice_mut, string};
use aneforge_core::{DType, Target};
use aneforge_runtime::{Device, Port};
use std::ffi::{CString, c_char, c_void};
use std::sync::Arc;

/// A device's handle.
#[repr(C)]
pub struct DeviceHandle(c_void);
/// A loaded program's handle.
#[repr(C)]
pub struct ProgramHandle(c_void);

/// What a port is. Pointers live as long as the program.
#[repr(C)]
#[derive(Debug)]
pub struct PortInfo {
    /// Name.
    pub name: *const c_char,
    /// MIL's keyword for the element type.
    pub dtype: *const c_char,
    /// Extents, outermost first.
    pub shape: *const usize,
    /// Number of axes.
    pub rank: usize,
    /// Bytes of all elements.
    pub bytes: usize,
}

struct Described {
    name: CString,
    dtype: CString,
    shape: Vec<usize>,
    bytes: usize,
}

struct Held {
    loaded: Loaded,
    inputs: Vec<Described>,
    outputs: Vec<Described>,
}

static DEVICES: Table<Arc<dyn Device>> = Table::new("device", 4);
static PROGRAMS: Table<Held> = Table::new("program", 8);

/// Version of the library.
#[unsafe(no_mangle)]
pub extern "C" fn aneforge_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Text of this thread's last failure.
#[unsafe(no_mangle)]
pub extern "C" fn aneforge_last_error() -> *const c_char {
    last()
}

/// Opens a device by name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aneforge_open(name: *const c_char, device: *mut *mut DeviceHandle) -> Status {
    status(|| {
        // SAFETY: the header's rule.
        unsafe { give(device, std::ptr::null_mut(), "device")? };
        // SAFETY: the header's rule.
        let opened = aneforge_runtime::open(unsafe { string(name, "name")? })?;
        // SAFETY: the header's rule.
        unsafe { give(device, std::ptr::without_provenance_mut(DEVICES.insert(opened)), "device") }
    })
}

/// Closes a device; programs loaded on it stay.
#[unsafe(no_mangle)]
pub extern "C" fn aneforge_close(device: *mut DeviceHandle) {
    let _ = caught(|| {
        DEVICES.remove(device.addr());
        Ok(())
    });
}

/// Compiles a graph text into a bundle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aneforge_compile(source: *const c_char, target: *const c_char, bundle: *const c_char) -> Status {
    status(|| {
        // SAFETY: the header's rule.
        let (source, bundle) = unsafe { (path(source, "source")?, path(bundle, "bundle")?) };
        // SAFETY: the header's rule.
        let target: Target = match unsafe { string(target, "target")? }.parse() {
            Ok(target) => target,
            Err(error) => return Err(Fault::argument(format!("{error}"))),
        };
        graph(&source, target)?.write(&bundle)?;
        Ok(())
    })
}

/// Loads a bundle, a MIL text or a graph text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aneforge_load(
    device: *mut DeviceHandle,
    source: *const c_char,
    program: *mut *mut ProgramHandle,
) -> Status {
    status(|| {
        // SAFETY: the header's rule.
        unsafe { give(program, std::ptr::null_mut(), "program")? };
        let device = DEVICES.get(device.addr())?;
        // SAFETY: the header's rule.
        let source = unsafe { path(source, "source")? };
        let loaded = Loaded::new(&**device, &read(&source, target_of(&**device))?)?;
        let described = |side| loaded.ports(side).iter().map(describe).collect::<Result<Vec<_>, Fault>>();
        let held = Held { inputs: described(Side::Input)?, outputs: described(Side::Output)?, loaded };
        // SAFETY: the header's rule.
        unsafe { give(program, std::ptr::without_provenance_mut(PROGRAMS.insert(held)), "program") }
    })
}

/// Releases a program.
#[unsafe(no_mangle)]
pub extern "C" fn aneforge_release(program: *mut ProgramHandle) {
    let _ = caught(|| {
        PROGRAMS.remove(program.addr());
        Ok(())
    });
}

/// Number of ports on a side.
#[unsafe(no_mangle)]
pub extern "C" fn aneforge_port_count(program: *mut ProgramHandle, side: i32) -> usize {
    caught(|| Ok(PROGRAMS.get(program.addr())?.ports(wanted(side)?).len())).1.unwrap_or(0)
}

/// Describes a port.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aneforge_port(program: *mut ProgramHandle, side: i32, index: usize, info: *mut PortInfo) -> Status {
    status(|| {
        let program = PROGRAMS.get(program.addr())?;
        let ports = program.ports(wanted(side)?);
        let port = ports
            .get(index)
            .ok_or_else(|| Fault::argument(format!("the program has {} such ports, none of number {index}", ports.len())))?;
        let told = PortInfo {
            name: port.name.as_ptr(),
            dtype: port.dtype.as_ptr(),
            shape: port.shape.as_ptr(),
            rank: port.shape.len(),
            bytes: port.bytes,
        };
        // SAFETY: the header's rule.
        unsafe { give(info, told, "info") }
    })
}

/// Executes once on buffers of the caller.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aneforge_run(
    program: *mut ProgramHandle,
    inputs: *const *const c_void,
    input_count: usize,
    outputs: *const *mut c_void,
    output_count: usize,
) -> Status {
    status(|| {
        let program = PROGRAMS.get(program.addr())?;
        counted("inputs", input_count, &program.inputs)?;
        counted("outputs", output_count, &program.outputs)?;
        // SAFETY: the header's rule.
        let (given, taken) = unsafe { (slice(inputs, input_count, "inputs")?, slice(outputs, output_count, "outputs")?) };
        let (into, from) = (places(given, &program.inputs), places(taken, &program.outputs));
        apart(&into, &from, &program)?;
        let mut read: Vec<&[u8]> = Vec::with_capacity(input_count);
        for (&data, port) in given.iter().zip(&program.inputs) {
            // SAFETY: the header's rule, and no output lies in it.
            read.push(unsafe { slice(data.cast::<u8>(), port.bytes, &port.name.to_string_lossy())? });
        }
        let mut written: Vec<&mut [u8]> = Vec::with_capacity(output_count);
        for (&data, port) in taken.iter().zip(&program.outputs) {
            // SAFETY: the header's rule, and nothing else given lies in it.
            written.push(unsafe { slice_mut(data.cast::<u8>(), port.bytes, &port.name.to_string_lossy())? });
        }
        Ok(program.loaded.executable.execute(&read, &mut written)?)
    })
}

/// Where the program keeps a port's elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aneforge_view(
    program: *mut ProgramHandle,
    side: i32,
    index: usize,
    data: *mut *mut c_void,
    bytes: *mut usize,
) -> Status {
    status(|| {
        let program = PROGRAMS.get(program.addr())?;
        let buffer = program.loaded.buffer(wanted(side)?, index)?;
        // SAFETY: the header's rule.
        unsafe {
            give(data, buffer.as_ptr().cast(), "data")?;
            give(bytes, buffer.len(), "bytes")
        }
    })
}

/// Executes once on the views.
#[unsafe(no_mangle)]
pub extern "C" fn aneforge_execute(program: *mut ProgramHandle) -> Status {
    status(|| PROGRAMS.get(program.addr())?.loaded.with(|bound| Ok(bound.execute()?)))
}

/// Makes an input read where an output is written.
#[unsafe(no_mangle)]
pub extern "C" fn aneforge_share(source: *mut ProgramHandle, output: usize, target: *mut ProgramHandle, input: usize) -> Status {
    status(|| {
        let (source, target) = (PROGRAMS.get(source.addr())?, PROGRAMS.get(target.addr())?);
        let buffer = source.loaded.buffer(Side::Output, output)?;
        target.loaded.with(|bound| Ok(bound.set_input(input, buffer)?))
    })
}

impl Held {
    fn ports(&self, side: Side) -> &[Described] {
        match side {
            Side::Input => &self.inputs,
            Side::Output => &self.outputs,
        }
    }
}

fn describe(port: &Port) -> Result<Described, Fault> {
    let text = |text: &str| CString::new(text).map_err(|_| Fault::program(format!("{text:?} has a zero byte")));
    let dtype: DType = port.ty.dtype;
    Ok(Described {
        name: text(&port.name)?,
        dtype: text(dtype.keyword())?,
        shape: port.ty.shape.clone(),
        bytes: port.byte_length(),
    })
}

fn wanted(side: i32) -> Result<Side, Fault> {
    match side {
        0 => Ok(Side::Input),
        1 => Ok(Side::Output),
        _ => Err(Fault::argument(format!("side is {side}; it is ANEFORGE_INPUT, 0, or ANEFORGE_OUTPUT, 1"))),
    }
}

fn counted(kind: &str, got: usize, ports: &[Described]) -> Result<(), Fault> {
    if got == ports.len() {
        return Ok(());
    }
    let names: Vec<_> = ports.iter().map(|port| port.name.to_string_lossy()).collect();
    Err(Fault::argument(format!("the program has {} {kind} ({}) but {got} were given", ports.len(), names.join(", "))))
}

/// First byte and length of what is given for each port.
fn places<T: Address>(given: &[T], ports: &[Described]) -> Vec<(usize, usize)> {
    given.iter().zip(ports).map(|(data, port)| (data.address(), port.bytes)).collect()
}

trait Address {
    fn address(&self) -> usize;
}

impl Address for *const c_void {
    fn address(&self) -> usize {
        self.addr()
    }
}

impl Address for *mut c_void {
    fn address(&self) -> usize {
        self.addr()
    }
}

/// Checks that no output lies in anything else that is given.
fn apart(inputs: &[(usize, usize)], outputs: &[(usize, usize)], program: &Held) -> Result<(), Fault> {
    for (index, &output) in outputs.iter().enumerate() {
        let name = program.outputs[index].name.to_string_lossy();
        if inputs.iter().any(|&input| overlap(input, output)) {
            return Err(Fault::argument(format!(
                "the buffer of output {name} overlaps an input's; use aneforge_share to keep a value"
            )));
        }
        if outputs[..index].iter().any(|&other| overlap(other, output)) {
            return Err(Fault::argument(format!("the buffer of output {name} overlaps another output's")));
        }
    }
    Ok(())
}
