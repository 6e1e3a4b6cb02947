//! A program loaded onto an engine.

use super::binding::Binding;
use super::core::Core;
use crate::report::SegmentReport;
use crate::{Bound, DeviceError, Executable, Port, Report, States};
use std::sync::{Arc, Mutex, PoisonError};

/// The executable; calls go through a binding of its own, one after the other.
pub(crate) struct AneExecutable {
    core: Arc<Core>,
    own: Mutex<Binding>,
}

impl AneExecutable {
    /// Loads what is compiled.
    pub(crate) fn new(core: Arc<Core>) -> Result<Self, DeviceError> {
        let own = Binding::new(&core)?;
        own.load()?;
        Ok(Self { core, own: Mutex::new(own) })
    }
}

impl Executable for AneExecutable {
    fn inputs(&self) -> &[Port] {
        &self.core.ports.inputs
    }

    fn outputs(&self) -> &[Port] {
        &self.core.ports.outputs
    }

    fn execute(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) -> Result<(), DeviceError> {
        // A call that failed half way leaves nothing behind that a later one reads.
        self.own.lock().unwrap_or_else(PoisonError::into_inner).call(inputs, outputs)
    }

    fn states(&self) -> &States {
        &self.core.states
    }

    fn bind_own(&self) -> Option<Result<Box<dyn Bound>, DeviceError>> {
        Some(Binding::new(&self.core).map(|bound| Box::new(bound) as Box<dyn Bound>))
    }

    fn report(&self) -> Report {
        let core = &self.core;
        let segments = core.segments.iter().map(|segment| SegmentReport {
            kind: segment.kind,
            device: core.device.clone(),
            steps: 0,
            operations: segment.operations,
        });
        let weights: u64 = core.segments.iter().map(|segment| segment.weight_bytes).sum();
        Report {
            device: core.device.clone(),
            arena_bytes: self.own.lock().unwrap_or_else(PoisonError::into_inner).bytes(),
            constant_bytes: usize::try_from(weights).unwrap_or(usize::MAX),
            steps: Vec::new(),
            segments: if core.segments.len() > 1 { segments.collect() } else { Vec::new() },
            engine: Some(core.engine_report()),
        }
    }
}
