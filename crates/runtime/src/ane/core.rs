//! A program on an engine: its segments, how values go between them, and where its states are.

use super::error::{AneError, Refusal};
use super::fault::{Fault, Kind};
use super::kernel::{Kernel, Side};
use super::policy::ResidentError;
use super::resident_state::Resident;
use super::shared::Shared;
use super::stats::{Counts, EngineReport};
use crate::device::Ports;
use crate::segment::Layout;
use crate::{Buffer, DeviceError, States};
use std::sync::Arc;

/// What all bindings of an executable share.
pub(crate) struct Core {
    pub(crate) device: String,
    pub(crate) program: String,
    pub(crate) shared: Arc<Shared>,
    pub(crate) counts: Arc<Counts>,
    pub(crate) ports: Ports,
    pub(crate) segments: Vec<Segment>,
    /// Where the program's outputs come from, those that replace states behind them.
    pub(crate) outputs: Vec<Source>,
    pub(crate) residents: Vec<Resident>,
    pub(crate) states: States,
    /// The buffers of the states, which every binding puts at the ports.
    pub(crate) state_buffers: Vec<Buffer>,
    /// What does not change.
    pub(crate) report: EngineReport,
}

/// A segment of the program.
pub(crate) struct Segment {
    pub(crate) kernel: Kernel,
    pub(crate) kind: &'static str,
    pub(crate) operations: usize,
    pub(crate) ops: Vec<&'static str>,
    pub(crate) weight_bytes: u64,
    pub(crate) ports: Ports,
    /// One for each input.
    pub(crate) inputs: Vec<Source>,
}

/// Where the value at a port comes from.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The segment that makes it; an input of the program, states counted behind them, where there is none.
    pub(crate) segment: Option<usize>,
    /// Which of its outputs or of the inputs.
    pub(crate) index: usize,
    pub(crate) layout: Layout,
}

impl Core {
    /// Compiles all segments and fixes the sizes of their surfaces.
    pub(crate) fn compile(&self) -> Result<(), DeviceError> {
        for (index, segment) in self.segments.iter().enumerate() {
            segment.kernel.compile(&self.shared).map_err(|error| match error {
                ResidentError::Busy { capacity } => AneError::AllBusy { capacity }.into(),
                ResidentError::Failed(fault) => self.refused(Some(index), fault),
            })?;
        }
        self.size();
        Ok(())
    }

    /// Surfaces that several segments share have one size: the largest that any of them needs.
    fn size(&self) {
        let node = |segment: usize, side: Side| 2 * segment + side as usize;
        let mut parents: Vec<usize> = (0..2 * self.segments.len()).collect();
        fn root(parents: &[usize], mut node: usize) -> usize {
            while parents[node] != node {
                node = parents[node];
            }
            node
        }
        let mut join = |one: usize, other: usize| {
            let (one, other) = (root(&parents, one), root(&parents, other));
            parents[one] = other;
        };
        let mut readers: Vec<Option<usize>> = vec![None; self.ports.inputs.len() + self.residents.len()];
        for (number, segment) in self.segments.iter().enumerate() {
            for source in segment.inputs.iter().filter(|source| source.layout.is_identity()) {
                match source.segment {
                    Some(maker) => join(node(maker, Side::Output), node(number, Side::Input)),
                    None => match readers.get_mut(source.index) {
                        Some(Some(reader)) => join(*reader, node(number, Side::Input)),
                        Some(empty) => *empty = Some(node(number, Side::Input)),
                        None => {}
                    },
                }
            }
        }
        for resident in &self.residents {
            if let Some(source) = resident.output.and_then(|output| self.outputs.get(output))
                && let (Some(maker), Some(Some(reader))) = (source.segment, readers.get(resident.input))
            {
                join(node(maker, Side::Output), *reader);
            }
        }
        let mut sizes = vec![0usize; parents.len()];
        for (number, segment) in self.segments.iter().enumerate() {
            for side in [Side::Input, Side::Output] {
                let place = root(&parents, node(number, side));
                let needed = segment.kernel.memory().map_or(0, |program| program.needed(side));
                sizes[place] = sizes[place].max(needed);
            }
        }
        for (number, segment) in self.segments.iter().enumerate() {
            let size = |side| sizes[root(&parents, node(number, side))];
            if let Some(program) = segment.kernel.memory() {
                program.set_sizes([size(Side::Input), size(Side::Output)]);
            }
        }
    }

    /// The error of a framework's refusal.
    pub(crate) fn refused(&self, segment: Option<usize>, fault: Fault) -> DeviceError {
        let (device, program) = (self.device.clone(), self.program.clone());
        let error = match fault.kind {
            Kind::BackOff(remaining) => AneError::BackOff { device, program, reason: fault.text, remaining },
            Kind::Silent(waited) => AneError::Silent { device, program, step: fault.step, waited },
            Kind::Spent(limit) => AneError::CompilationsSpent { limit },
            Kind::Symbols { kind, port } => AneError::Symbols { program, kind, port, known: fault.text },
            Kind::Refused => {
                let ops = segment.and_then(|index| self.segments.get(index)).map(|part| part.ops.clone()).unwrap_or_default();
                let segment = segment.filter(|_| self.segments.len() > 1);
                let refusal = Refusal::of(fault.step, fault.text, fault.code);
                AneError::Refused(Box::new(Refusal { device, program, segment, ops, ..refusal }))
            }
        };
        error.into()
    }

    pub(crate) fn engine_report(&self) -> EngineReport {
        EngineReport { stats: self.counts.read(), ..self.report.clone() }
    }
}
