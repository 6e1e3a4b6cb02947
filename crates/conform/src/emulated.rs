//! The engine of the report: a program is built as a graph, compiled to a bundle for the chip, and
//! what the bundle says is executed by the chip's emulator.

mod graph;

use std::sync::Arc;

use aneforge_compile::{CompileError, CompileOptions, bundle, compile};
use aneforge_core::{Chip, HostArray, HostError, Target, WeightError};
use aneforge_mil::{BlobFolder, ParseError, ResolveError, op::builtin, parse, resolve};
use aneforge_runtime::{Device, DeviceError, Executable};
use half::f16;

use crate::case::{HalfTensor, Program};
use crate::fingerprint::{Engine, EngineError};

/// Why a program could not be compiled for, or executed by, an emulator.
#[derive(Debug, thiserror::Error)]
enum EmulatedError {
    #[error(transparent)]
    Weight(#[from] WeightError),
    #[error(transparent)]
    Compile(#[from] CompileError),
    #[error("the bundle cannot be read back: {0}")]
    Read(#[from] std::io::Error),
    #[error("the emitted program does not parse: {0}")]
    Parse(#[from] ParseError),
    #[error("the emitted program does not resolve: {0}")]
    Resolve(#[from] ResolveError),
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    Array(#[from] HostError),
    #[error("the program gave no output")]
    NoOutput,
}

/// An emulator, and the program it holds at the moment.
pub struct Emulated {
    chip: &'static Chip,
    device: Arc<dyn Device>,
    loaded: Option<(Arc<Program>, Arc<dyn Executable>)>,
}

impl Emulated {
    /// The emulator of a chip.
    ///
    /// # Errors
    /// The device's own.
    pub fn open(chip: &'static Chip) -> Result<Self, EngineError> {
        let device = aneforge_runtime::open(&format!("emulator:{}", chip.name))?;
        Ok(Self { chip, device, loaded: None })
    }

    /// Compiles the program into a bundle, reads that back and loads it.
    fn load(&self, program: &Program, inputs: &[HalfTensor]) -> Result<Arc<dyn Executable>, EmulatedError> {
        let output = graph::build(program, inputs)?;
        let options = CompileOptions { target: Target::e5rt(self.chip), ..CompileOptions::default() };
        let folder = tempfile::tempdir()?;
        let bundle_folder = folder.path().join("fingerprint");
        compile(&[("y", &output)], &options)?.write(&bundle_folder)?;
        let text = std::fs::read_to_string(bundle_folder.join(bundle::TEXT))?;
        let body = resolve(&parse(&text)?, "main", builtin(), &BlobFolder::new(&bundle_folder))?;
        let program = Arc::new(aneforge_runtime::Program::from_body("fingerprint", body));
        Ok(self.device.load(&program)?)
    }

    fn execute(&mut self, program: &Arc<Program>, inputs: &[HalfTensor]) -> Result<Vec<f16>, EmulatedError> {
        let executable = match &self.loaded {
            Some((held, executable)) if Arc::ptr_eq(held, program) => Arc::clone(executable),
            _ => {
                self.loaded = None;
                self.loaded.insert((Arc::clone(program), self.load(program, inputs)?)).1.clone()
            }
        };
        let arrays: Vec<HostArray> =
            inputs.iter().map(|input| HostArray::from_fp16(input.shape.clone(), &input.values)).collect::<Result<_, _>>()?;
        let outputs = executable.run(&arrays.iter().collect::<Vec<_>>())?;
        Ok(outputs.first().ok_or(EmulatedError::NoOutput)?.fp16()?.into_owned())
    }
}

impl Engine for Emulated {
    fn run(&mut self, program: &Arc<Program>, inputs: &[HalfTensor]) -> Result<Vec<f16>, EngineError> {
        Ok(self.execute(program, inputs)?)
    }
}
