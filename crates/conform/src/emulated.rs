//! The engine of the report: a program is built as a graph, compiled to a bundle for the chip, and
//! what the bundle says is executed by the chip's emulator.

mod graph;

use std::sync::Arc;

use aneforge_compile::{CompileOptions, compile};
use aneforge_core::{Chip, HostArray, Target};
use aneforge_runtime::{Device, Executable};
use half::f16;

use crate::case::{HalfTensor, Program};
use crate::fingerprint::{Engine, EngineError};

/// A program without a result, which none of the workloads' is.
#[derive(Debug, thiserror::Error)]
#[error("the program gave no output")]
struct NoOutput;

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
    fn load(&self, program: &Program, inputs: &[HalfTensor]) -> Result<Arc<dyn Executable>, EngineError> {
        let output = graph::build(program, inputs)?;
        let options = CompileOptions { target: Target::e5rt(self.chip), ..CompileOptions::default() };
        let folder = tempfile::tempdir()?;
        let bundle_folder = folder.path().join("fingerprint");
        compile(&[("y", &output)], &options)?.write(&bundle_folder)?;
        let program = Arc::new(aneforge_runtime::Program::open(&bundle_folder)?);
        Ok(self.device.load(&program)?)
    }

    fn execute(&mut self, program: &Arc<Program>, inputs: &[HalfTensor]) -> Result<Vec<f16>, EngineError> {
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
        Ok(outputs.first().ok_or(NoOutput)?.fp16()?.into_owned())
    }
}

impl Engine for Emulated {
    fn run(&mut self, program: &Arc<Program>, inputs: &[HalfTensor]) -> Result<Vec<f16>, EngineError> {
        self.execute(program, inputs)
    }
}
