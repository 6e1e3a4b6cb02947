//! The device `emulator:<chip>`.

use super::known;
use super::{EmulatorOptions, Engine};
use crate::numerics::{Dump, DumpError};
use crate::plan::{Options, Plan, Policy};
use crate::{Device, DeviceError, Executable, Program, segment};
use aneforge_core::Chip;
use std::fmt;
use std::sync::Arc;

/// Executes programs with the arithmetic of one chip's engine.
#[derive(Clone)]
pub struct Emulator {
    name: String,
    engine: Arc<Engine>,
    fuse: bool,
}

impl Emulator {
    /// The emulator of a chip.
    pub fn new(chip: &'static Chip, options: EmulatorOptions) -> Self {
        Self { name: format!("emulator:{}", chip.name), engine: Arc::new(Engine::new(chip, options)), fuse: true }
    }

    /// The emulator of the chip that a dump is about, exact in what the dump holds. `file` is what it is called by.
    ///
    /// # Errors
    /// [`DumpError`].
    pub fn from_dump(file: &str, dump: &Dump, options: EmulatorOptions) -> Result<Self, DumpError> {
        Ok(Self { name: format!("emulator:{file}"), engine: Arc::new(known::engine(dump, options)?), fuse: true })
    }

    /// The switches: those it was made with, as far as a dump did not decide them.
    pub fn options(&self) -> EmulatorOptions {
        self.engine.options
    }

    /// The same with every operation as a step of its own; results are equal bit for bit.
    pub fn unfused(mut self) -> Self {
        self.fuse = false;
        self
    }
}

impl fmt::Debug for Emulator {
    // Tables would fill pages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emulator").field("name", &self.name).field("options", &self.engine.options).finish_non_exhaustive()
    }
}

impl Device for Emulator {
    fn name(&self) -> &str {
        &self.name
    }

    fn chip(&self) -> Option<&'static Chip> {
        Some(self.engine.chip)
    }

    fn describe(&self) -> String {
        if let Some(source) = self.engine.dump_source() {
            let product = self.engine.chip.product;
            return format!("arithmetic of the {product} engine: functions looked up in the {source}, products and sums by rule");
        }
        format!(
            "arithmetic of the {} engine: products, sums and simple element-wise operators exact, tables and reductions modelled",
            self.engine.chip.product
        )
    }

    fn load(&self, program: &Arc<Program>) -> Result<Arc<dyn Executable>, DeviceError> {
        if let Some(loaded) = segment::load(program, &|part| self.load(part)) {
            return loaded;
        }
        let options = Options { policy: Policy::Engine(self.engine.clone()), fuse: self.fuse };
        Ok(Arc::new(Plan::new(&self.name, program, &options)?))
    }
}
