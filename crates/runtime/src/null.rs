//! The device that runs nothing: for drivers' tests and for measuring what a call costs.

use crate::device::Ports;
use crate::{Device, DeviceError, Executable, Port, Program, Report, States, segment};
use std::sync::Arc;

/// Loads any program, checks its ports, fills the outputs with zero bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Null;

struct Loaded {
    ports: Ports,
    states: States,
}

impl Device for Null {
    fn name(&self) -> &str {
        "null"
    }

    fn describe(&self) -> String {
        "checks ports and runs nothing; outputs are zero, states stay".to_string()
    }

    fn load(&self, program: &Arc<Program>) -> Result<Arc<dyn Executable>, DeviceError> {
        if let Some(loaded) = segment::load(program, &|part| self.load(part)) {
            return loaded;
        }
        Ok(Arc::new(Loaded { ports: Ports::of(program.body())?, states: States::of(program.body())? }))
    }
}

impl Executable for Loaded {
    fn inputs(&self) -> &[Port] {
        &self.ports.inputs
    }

    fn outputs(&self) -> &[Port] {
        &self.ports.outputs
    }

    fn execute(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) -> Result<(), DeviceError> {
        self.ports.check(inputs, outputs)?;
        outputs.iter_mut().for_each(|buffer| buffer.fill(0));
        Ok(())
    }

    fn states(&self) -> &States {
        &self.states
    }

    fn report(&self) -> Report {
        Report { device: "null".to_string(), ..Report::default() }
    }
}
