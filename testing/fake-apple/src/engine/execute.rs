//! Loading and executing: the emulator of the chip on the caller's memory.

use super::compile::Compiled;
use super::daemon::{Command, Place};
use super::failure;
use super::ports::{gather, is_packed, packed_bytes, scatter};
use crate::interface::{Fault, Function, Port, View, ViewMut};
use crate::{rules, settings};
use aneforge_runtime::emulator::{Emulator, EmulatorOptions};
use aneforge_runtime::{Device, Executable};
use std::sync::Arc;
use std::time::Duration;

/// A loaded program; dropping it unloads it.
pub struct Loaded {
    compiled: Arc<Compiled>,
    /// One per function that was loaded.
    executables: Vec<Option<Arc<dyn Executable>>>,
    place: Place,
}

/// Loads all functions of a compiled program.
///
/// # Errors
/// What the daemon reports.
pub fn load(compiled: &Arc<Compiled>) -> Result<Loaded, Fault> {
    load_those(compiled, |_| true)
}

/// Loads one function, by its index.
///
/// # Errors
/// What the daemon reports.
pub fn load_function(compiled: &Arc<Compiled>, function: usize) -> Result<Loaded, Fault> {
    load_those(compiled, |index| index == function)
}

fn load_those(compiled: &Arc<Compiled>, wanted: impl Fn(usize) -> bool) -> Result<Loaded, Fault> {
    if compiled.foreign {
        // Reported as a failure of the operation's creation; code and text are not.
        return Err(failure::load(compiled.route, 6, "the program was compiled for another architecture"));
    }
    let place = Place::take(compiled.route)?;
    let device = Emulator::new(compiled.chip, EmulatorOptions::default());
    let mut executables = Vec::with_capacity(compiled.programs.len());
    for (index, program) in compiled.programs.iter().enumerate() {
        let executable = wanted(index).then(|| device.load(program)).transpose();
        executables.push(executable.map_err(|error| failure::load(compiled.route, 6, &error.to_string()))?);
    }
    Ok(Loaded { compiled: compiled.clone(), executables, place })
}

impl Loaded {
    /// The program.
    pub fn compiled(&self) -> &Arc<Compiled> {
        &self.compiled
    }

    /// Executes a function, by its index, on memory in the order of its ports as declared. All inputs are read before anything is
    /// written, so that an output may stand where an input stood.
    ///
    /// # Errors
    /// What the engine reports.
    ///
    /// # Safety
    /// The views are readable and writable memory through the call.
    pub unsafe fn execute(&self, function: usize, inputs: &[View], outputs: &[ViewMut]) -> Result<(), Fault> {
        let command = Command::begin(self.compiled.route, &self.place)?;
        let settings = settings::current();
        if settings.noop {
            return Ok(());
        }
        let route = self.compiled.route;
        // A function that the program does not have: maderix/ANE's successors saw status 0x2 for a wrong procedure.
        let known = self.compiled.functions.get(function).zip(self.executables.get(function).and_then(Option::as_ref));
        let (ports, executable) = known.ok_or_else(|| failure::inference(route, 0x2, format!("no function {function}")))?;
        self.check(ports, inputs, outputs)?;
        if settings.delay_ms > 0 {
            std::thread::sleep(Duration::from_millis(settings.delay_ms));
        }
        // SAFETY: the caller's promise, and `check` compared the lengths.
        let ran = unsafe { run(ports, &**executable, inputs, outputs) };
        drop(command);
        ran.map_err(|problem| failure::inference(route, 0x1d, problem))
    }

    fn check(&self, ports: &Function, inputs: &[View], outputs: &[ViewMut]) -> Result<(), Fault> {
        let route = self.compiled.route;
        if inputs.len() != ports.inputs.len() || outputs.len() != ports.outputs.len() {
            let counts = format!("{} inputs and {} outputs were given", inputs.len(), outputs.len());
            return Err(failure::inference(route, 0x2, counts));
        }
        let given = inputs.iter().map(|view| view.bytes).chain(outputs.iter().map(|view| view.bytes));
        for (port, bytes) in ports.inputs.iter().chain(&ports.outputs).zip(given) {
            if bytes < port.bytes {
                let problem = format!("port {:?} needs {} bytes, its memory has {bytes}", port.name, port.bytes);
                return Err(failure::inference(route, 0x1d, problem));
            }
        }
        let inputs: Vec<usize> = inputs.iter().map(|view| view.bytes).collect();
        let outputs: Vec<usize> = outputs.iter().map(|view| view.bytes).collect();
        rules::check_surfaces(&self.compiled.setting(), &inputs, &outputs)
    }
}

/// # Safety
/// The views are readable and writable, and as long as their ports say.
unsafe fn run(ports: &Function, executable: &dyn Executable, inputs: &[View], outputs: &[ViewMut]) -> Result<(), String> {
    let mut kept: Vec<Vec<u8>> = vec![Vec::new(); inputs.len()];
    for ((port, view), kept) in ports.inputs.iter().zip(inputs).zip(&mut kept) {
        if is_direct(port) && !outputs.iter().any(|output| overlap(view, output)) {
            continue;
        }
        // SAFETY: the caller's promise; nothing is written yet.
        let memory = unsafe { std::slice::from_raw_parts(view.start.as_ptr(), port.bytes) };
        gather(port, memory, kept);
    }
    let mut taken: Vec<&[u8]> = Vec::with_capacity(inputs.len());
    for ((port, view), kept) in ports.inputs.iter().zip(inputs).zip(&kept) {
        if kept.is_empty() && port.bytes > 0 {
            // SAFETY: the caller's promise; no output stands in this memory.
            taken.push(unsafe { std::slice::from_raw_parts(view.start.as_ptr(), port.bytes) });
        } else {
            taken.push(kept);
        }
    }
    // Results are made aside: outputs may overlap one another or, padded, hold bytes that are not theirs.
    let mut made: Vec<Vec<u8>> = ports.outputs.iter().map(|port| vec![0; packed_bytes(port)]).collect();
    let mut places: Vec<&mut [u8]> = made.iter_mut().map(Vec::as_mut_slice).collect();
    executable.execute(&taken, &mut places).map_err(|error| error.to_string())?;
    for ((port, view), made) in ports.outputs.iter().zip(outputs).zip(&made) {
        // SAFETY: the caller's promise; the inputs are no longer read.
        let memory = unsafe { std::slice::from_raw_parts_mut(view.start.as_ptr(), port.bytes) };
        scatter(port, made, memory);
    }
    Ok(())
}

/// Whether the emulator can read the port's memory as it is.
fn is_direct(port: &Port) -> bool {
    is_packed(port) && port.bytes == packed_bytes(port)
}

fn overlap(input: &View, output: &ViewMut) -> bool {
    let (a, b) = (input.start.as_ptr() as usize, output.start.as_ptr() as usize);
    a < b + output.bytes && b < a + input.bytes
}
