//! The device `emulator:<chip>`.

use super::{EmulatorOptions, Engine};
use crate::plan::{Options, Plan, Policy};
use crate::{Device, DeviceError, Executable, Program, segment};
use aneforge_core::Chip;
use std::sync::Arc;

/// Executes programs with the arithmetic of one chip's engine.
#[derive(Clone, Debug)]
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

    /// The same with every operation as a step of its own; results are equal bit for bit.
    pub fn unfused(mut self) -> Self {
        self.fuse = false;
        self
    }
}

impl Device for Emulator {
    fn name(&self) -> &str {
        &self.name
    }

    fn describe(&self) -> String {
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
