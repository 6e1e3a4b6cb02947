//! A program on a device with buffers at its ports: what both interfaces stand on. Nothing here is unsafe.

use crate::fault::{Fault, Status};
use aneforge_compile::{CompileOptions, Compiled};
use aneforge_core::{Graph, Target};
use aneforge_mil::BlobFolder;
use aneforge_runtime::{Bound, Buffer, Device, Executable, Port, Program};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Which ports of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Input,
    Output,
}

/// A loaded program; its buffers are made when they are first asked for.
pub struct Loaded {
    pub executable: Arc<dyn Executable>,
    bound: Mutex<Option<Box<dyn Bound>>>,
}

impl Loaded {
    /// Loads a program.
    pub fn new(device: &dyn Device, program: &Arc<Program>) -> Result<Self, Fault> {
        Ok(Self { executable: device.load(program)?, bound: Mutex::new(None) })
    }

    pub fn ports(&self, side: Side) -> &[Port] {
        match side {
            Side::Input => self.executable.inputs(),
            Side::Output => self.executable.outputs(),
        }
    }

    /// Works on the buffers; one caller at a time.
    pub fn with<R>(&self, work: impl FnOnce(&mut dyn Bound) -> Result<R, Fault>) -> Result<R, Fault> {
        let mut place: MutexGuard<'_, Option<Box<dyn Bound>>> = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        let bound = match place.take() {
            Some(bound) => bound,
            None => self.executable.bind()?,
        };
        work(place.insert(bound).as_mut())
    }

    pub fn buffer(&self, side: Side, index: usize) -> Result<Buffer, Fault> {
        self.with(|bound| {
            Ok(match side {
                Side::Input => bound.input(index)?.clone(),
                Side::Output => bound.output(index)?.clone(),
            })
        })
    }
}

/// Reads a program: a bundle, a MIL text beside its weights, or a graph text, which is compiled for `target`.
pub fn read(path: &Path, target: Target) -> Result<Arc<Program>, Fault> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("graph") => in_between(&graph(path, target)?),
        Some("mil") => mil(path),
        _ => Ok(Arc::new(Program::open(path)?)),
    }
}

/// Writes a compiled graph into a temporary folder and reads it back: what runs is the text and the weight file.
fn in_between(compiled: &Compiled) -> Result<Arc<Program>, Fault> {
    let folder = tempfile::Builder::new().prefix("aneforge-").tempdir();
    let folder = folder.map_err(|error| Fault::program(format!("cannot make a temporary folder: {error}")))?;
    let bundle = folder.path().join("bundle");
    compiled.write(&bundle)?;
    Ok(Arc::new(Program::open(&bundle)?))
}

/// Compiles a graph text.
pub fn graph(path: &Path, target: Target) -> Result<Compiled, Fault> {
    let graph = Graph::parse(&text(path)?).map_err(|error| Fault::program(format!("{}: {error}", path.display())))?;
    let outputs: Vec<_> = graph.outputs.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    Ok(aneforge_compile::compile(&outputs, &CompileOptions { target, ..CompileOptions::default() })?)
}

/// Reads a MIL text of any name; its weights are found from its folder.
pub fn mil(path: &Path) -> Result<Arc<Program>, Fault> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(Arc::new(Program::from_text(&path.display().to_string(), &text(path)?, &BlobFolder::new(folder))?))
}

fn text(path: &Path) -> Result<String, Fault> {
    std::fs::read_to_string(path).map_err(|error| Fault::program(format!("cannot read {}: {error}", path.display())))
}

/// What programs for a device are compiled for: an emulator's chip, else plain MIL.
pub fn target_of(device: &dyn Device) -> Target {
    device.name().strip_prefix("emulator:").and_then(|chip| chip.parse().ok()).unwrap_or_default()
}

/// Refuses a count that no process can hold.
pub fn checked_length(bytes: usize) -> Result<usize, Fault> {
    let refused = || Fault { status: Status::NoMemory, text: format!("{bytes} bytes are more than a process can hold") };
    isize::try_from(bytes).map(|_| bytes).map_err(|_| refused())
}
