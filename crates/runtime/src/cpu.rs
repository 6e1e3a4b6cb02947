//! The fast device: fp16 storage, f32 accumulation, a plan made once.

use crate::plan::{Options, Plan, Policy};
use crate::{Device, DeviceError, Executable, Program, segment};
use std::sync::Arc;

/// Executes programs on this machine's processor.
#[derive(Clone, Copy, Debug)]
pub struct Cpu {
    fuse: bool,
}

impl Default for Cpu {
    fn default() -> Self {
        Self { fuse: true }
    }
}

impl Cpu {
    /// The same with every operation as a step of its own: results differ by the roundings between operations.
    pub fn unfused() -> Self {
        Self { fuse: false }
    }
}

impl Device for Cpu {
    fn name(&self) -> &str {
        "cpu"
    }

    fn describe(&self) -> String {
        "this machine's processor: fp16 storage, f32 accumulation".to_string()
    }

    fn load(&self, program: &Arc<Program>) -> Result<Arc<dyn Executable>, DeviceError> {
        if let Some(loaded) = segment::load(program, &|part| self.load(part)) {
            return loaded;
        }
        Ok(Arc::new(Plan::new("cpu", program, &Options { policy: Policy::Fast, fuse: self.fuse })?))
    }
}
