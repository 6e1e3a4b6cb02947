//! Buffers at all ports of a program's segments, and the segments loaded with them.
//!
//! Where the layouts agree, the buffer of a segment's output is that of the next one's input: nothing goes through the host.

use super::core::{Core, Source};
use super::error::AneError;
use super::kernel::{Loaded, Side};
use super::layout::Strided;
use super::policy::{Resident, ResidentError};
use super::stats::Counts;
use crate::bound::Places;
use crate::segment::Layout;
use crate::{Bound, Buffer, DeviceError, Port};
use std::sync::Arc;

/// An executable's buffers.
pub(crate) struct Binding {
    core: Arc<Core>,
    inputs: Places,
    outputs: Places,
    units: Vec<Unit>,
    /// What the host copies behind the last segment.
    last: Vec<Copy>,
}

/// A segment with its buffers.
struct Unit {
    resident: Resident<Loaded>,
    inputs: Vec<Buffer>,
    outputs: Vec<Buffer>,
    /// What the host copies before it runs.
    before: Vec<Copy>,
    /// What it copies then.
    after: Vec<Copy>,
}

/// A copy that the host makes, because buffers or layouts differ.
struct Copy {
    from: Buffer,
    to: Buffer,
    layout: Layout,
    /// Where elements lie in `from` and in `to`, where they do not follow each other.
    gather: Option<Strided>,
    scatter: Option<Strided>,
    bytes: Vec<u8>,
}

impl Copy {
    fn new(from: &Buffer, to: &Buffer, layout: &Layout, port: &Port) -> Self {
        let bytes = vec![0; port.byte_length()];
        Self { from: from.clone(), to: to.clone(), layout: layout.clone(), gather: None, scatter: None, bytes }
    }

    fn run(&mut self, counts: &Counts) -> Result<(), DeviceError> {
        match &self.gather {
            Some(strided) => self.from.with(|memory| strided.gather(memory, &mut self.bytes))?,
            None => self.from.read(0, &mut self.bytes)?,
        }
        let moved = self.layout.apply(&self.bytes);
        let bytes = moved.as_ref().unwrap_or(&self.bytes);
        match &self.scatter {
            Some(strided) => self.to.with_mut(|memory| strided.scatter(bytes, memory))?,
            None => self.to.write(0, bytes)?,
        }
        Counts::add(&counts.copied_between, self.bytes.len());
        Ok(())
    }
}

impl Binding {
    /// Zeroed buffers for all ports.
    pub(crate) fn new(core: &Arc<Core>) -> Result<Self, DeviceError> {
        let inputs = (0..core.ports.inputs.len()).map(|index| input_buffer(core, index)).collect::<Result<Vec<_>, _>>()?;
        let mut outputs = Vec::with_capacity(core.ports.outputs.len());
        for index in 0..core.ports.outputs.len() {
            outputs.push(match direct(core, index) {
                Some((segment, bytes)) => allocate(core, segment, Side::Output, bytes)?,
                None => Buffer::host(core.ports.outputs[index].byte_length())?,
            });
        }
        let mut binding = Self {
            core: core.clone(),
            inputs: Places::new("inputs", inputs),
            outputs: Places::new("outputs", outputs),
            units: Vec::new(),
            last: Vec::new(),
        };
        binding.wire()?;
        Ok(binding)
    }

    /// Gives every segment its buffers; what is loaded leaves, because its ports are bound to others.
    fn wire(&mut self) -> Result<(), DeviceError> {
        let core = self.core.clone();
        let (mut units, mut made): (Vec<Unit>, Vec<Vec<Buffer>>) = Default::default();
        for (number, segment) in core.segments.iter().enumerate() {
            let (mut outputs, mut results, mut after) = (Vec::new(), Vec::new(), Vec::new());
            for (index, port) in segment.ports.outputs.iter().enumerate() {
                let replaced = self.replaced(number, index)?;
                let strided = segment.kernel.strided(Side::Output, index);
                match replaced {
                    Some(buffer) if strided.is_none() && segment.kernel.takes(Side::Output, &buffer) => {
                        results.push(buffer.clone());
                        outputs.push(buffer);
                    }
                    replaced => {
                        let own = allocate(&core, number, Side::Output, port.byte_length())?;
                        let result = match (replaced, strided) {
                            (Some(buffer), _) => buffer,
                            (None, Some(_)) => Buffer::host(port.byte_length())?,
                            (None, None) => own.clone(),
                        };
                        if !result.is_same(&own) {
                            let copy = Copy::new(&own, &result, &Layout::default(), port);
                            after.push(Copy { gather: strided.cloned(), ..copy });
                        }
                        results.push(result);
                        outputs.push(own);
                    }
                }
            }
            let (mut inputs, mut before) = (Vec::with_capacity(segment.inputs.len()), Vec::new());
            for (index, (source, port)) in segment.inputs.iter().zip(&segment.ports.inputs).enumerate() {
                let from = self.value(source, &made)?;
                let strided = segment.kernel.strided(Side::Input, index);
                if source.layout.is_identity() && strided.is_none() && segment.kernel.takes(Side::Input, &from) {
                    inputs.push(from);
                    continue;
                }
                let own = allocate(&core, number, Side::Input, port.byte_length())?;
                before.push(Copy { scatter: strided.cloned(), ..Copy::new(&from, &own, &source.layout, port) });
                inputs.push(own);
            }
            made.push(results);
            units.push(Unit { resident: core.shared.residents.add(), inputs, outputs, before, after });
        }
        let mut last = Vec::new();
        for (index, port) in core.ports.outputs.iter().enumerate() {
            let source = &core.outputs[index];
            let (from, to) = (self.value(source, &made)?, self.outputs.get(index)?);
            if !(from.is_same(to) && source.layout.is_identity()) {
                last.push(Copy::new(&from, to, &source.layout, port));
            }
        }
        (self.units, self.last) = (units, last);
        Ok(())
    }

    /// The buffer that stands at a segment's output for the program's sake: a state's or an output's.
    fn replaced(&self, segment: usize, index: usize) -> Result<Option<Buffer>, DeviceError> {
        let core = &self.core;
        for (resident, buffer) in core.residents.iter().zip(&core.state_buffers) {
            let source = resident.output.and_then(|output| core.outputs.get(output));
            if source.is_some_and(|source| source.segment == Some(segment) && source.index == index) {
                return Ok(Some(buffer.clone()));
            }
        }
        for output in 0..core.ports.outputs.len() {
            let source = &core.outputs[output];
            if source.segment == Some(segment) && source.index == index && direct(core, output).is_some() {
                return self.outputs.get(output).cloned().map(Some);
            }
        }
        Ok(None)
    }

    fn value(&self, source: &Source, made: &[Vec<Buffer>]) -> Result<Buffer, DeviceError> {
        let missing = || DeviceError::internal("binding", format!("no value for {source:?}"));
        match source.segment {
            Some(segment) => made.get(segment).and_then(|outputs| outputs.get(source.index)).cloned().ok_or_else(missing),
            None if source.index < self.core.ports.inputs.len() => self.inputs.get(source.index).cloned(),
            None => self.core.state_buffers.get(source.index - self.core.ports.inputs.len()).cloned().ok_or_else(missing),
        }
    }

    /// Runs all segments.
    pub(crate) fn run(&mut self) -> Result<(), DeviceError> {
        let core = &self.core;
        for (number, unit) in self.units.iter_mut().enumerate() {
            unit.before.iter_mut().try_for_each(|copy| copy.run(&core.counts))?;
            unit.run(core, number)?;
            unit.after.iter_mut().try_for_each(|copy| copy.run(&core.counts))?;
        }
        self.last.iter_mut().try_for_each(|copy| copy.run(&core.counts))
    }

    /// Loads all segments ahead of the first run.
    pub(crate) fn load(&self) -> Result<(), DeviceError> {
        self.units.iter().enumerate().try_for_each(|(number, unit)| unit.with(&self.core, number, |_| Ok(())))
    }

    /// Copies the inputs in, runs, copies the outputs out.
    pub(crate) fn call(&mut self, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) -> Result<(), DeviceError> {
        self.core.ports.check(inputs, outputs)?;
        for (buffer, bytes) in self.inputs.iter().zip(inputs) {
            buffer.write(0, bytes)?;
            Counts::add(&self.core.counts.copied_in, bytes.len());
        }
        self.run()?;
        for (buffer, bytes) in self.outputs.iter().zip(outputs) {
            buffer.read(0, bytes)?;
            Counts::add(&self.core.counts.copied_out, bytes.len());
        }
        Ok(())
    }

    /// Bytes of all buffers, shared ones once.
    pub(crate) fn bytes(&self) -> usize {
        let mut seen: Vec<&Buffer> = Vec::new();
        let all = self.units.iter().flat_map(|unit| unit.inputs.iter().chain(&unit.outputs));
        for buffer in all.chain(self.inputs.iter()).chain(self.outputs.iter()) {
            if !seen.iter().any(|other| other.is_same(buffer)) {
                seen.push(buffer);
            }
        }
        seen.iter().map(|buffer| buffer.len()).sum()
    }

    /// Whether a buffer is memory that the segments at a port take as it is.
    fn check_memory(
        &self,
        port: &Port,
        side: Side,
        buffer: &Buffer,
        mut segments: impl Iterator<Item = usize>,
    ) -> Result<(), DeviceError> {
        if segments.all(|segment| self.core.segments[segment].kernel.takes(side, buffer)) {
            return Ok(());
        }
        let problem = format!(
            "it is not memory of {} or has another size; bind buffers that programs on this device and route gave",
            self.core.device
        );
        Err(DeviceError::Binding { port: port.name.clone(), problem })
    }
}

impl Unit {
    fn with<R>(
        &self,
        core: &Core,
        number: usize,
        work: impl FnOnce(&mut Loaded) -> Result<R, super::fault::Fault>,
    ) -> Result<R, DeviceError> {
        let kernel = &core.segments[number].kernel;
        self.resident.with(|| kernel.load(&self.inputs, &self.outputs), work).map_err(|error| match error {
            ResidentError::Busy { capacity } => AneError::AllBusy { capacity }.into(),
            ResidentError::Failed(fault) => core.refused(Some(number), fault),
        })
    }

    fn run(&self, core: &Core, number: usize) -> Result<(), DeviceError> {
        let kernel = &core.segments[number].kernel;
        let command = |loaded: &mut Loaded| {
            let _flight = core.shared.flight();
            loaded.execute()
        };
        Counts::add(&core.counts.commands, 1);
        let fault = match self.resident.with(|| kernel.load(&self.inputs, &self.outputs), command) {
            Ok(()) => return Ok(()),
            Err(ResidentError::Busy { capacity }) => return Err(AneError::AllBusy { capacity }.into()),
            Err(ResidentError::Failed(fault)) => fault,
        };
        if fault.step == super::error::Step::Execute && fault.may_be_lost(kernel.is_e5rt()) {
            self.resident.unload();
            kernel.forget();
            // A command that was lost may have replaced states: doing it again could do it twice.
            if core.state_buffers.is_empty() {
                Counts::add(&core.counts.reloads, 1);
                return self.with(core, number, command);
            }
        }
        Err(core.refused(Some(number), fault))
    }
}

/// The segment that makes an output of the program right into its buffer, and the bytes of the port there.
fn direct(core: &Core, output: usize) -> Option<(usize, usize)> {
    let source = &core.outputs[output];
    let segment = source.segment.filter(|_| source.layout.is_identity())?;
    let same = |other: &Source| other.segment == source.segment && other.index == source.index;
    let state = core.residents.iter().filter_map(|resident| resident.output).any(|state| same(&core.outputs[state]));
    // The first of several outputs with one value has the buffer, the others get copies.
    let first = !core.outputs[..output].iter().any(|other| same(other) && other.layout.is_identity());
    let bytes = core.segments[segment].ports.outputs.get(source.index)?.byte_length();
    (first && !state).then_some((segment, bytes))
}

/// Memory for an input of the program: of the first segment that reads it as it is.
fn input_buffer(core: &Core, index: usize) -> Result<Buffer, DeviceError> {
    let bytes = core.ports.inputs[index].byte_length();
    match readers(core, index).next() {
        Some(segment) => allocate(core, segment, Side::Input, bytes),
        None => Buffer::host(bytes),
    }
}

/// The segments that read an input of the program as it is.
fn readers(core: &Core, index: usize) -> impl Iterator<Item = usize> {
    let reads = move |source: &Source| source.segment.is_none() && source.index == index && source.layout.is_identity();
    core.segments.iter().enumerate().filter(move |(_, segment)| segment.inputs.iter().any(reads)).map(|(number, _)| number)
}

pub(crate) fn allocate(core: &Core, segment: usize, side: Side, bytes: usize) -> Result<Buffer, DeviceError> {
    core.segments[segment].kernel.allocate(side, bytes).map_err(|fault| core.refused(Some(segment), fault))
}

impl Bound for Binding {
    fn inputs(&self) -> &[Port] {
        &self.core.ports.inputs
    }

    fn outputs(&self) -> &[Port] {
        &self.core.ports.outputs
    }

    fn input(&self, index: usize) -> Result<&Buffer, DeviceError> {
        self.inputs.get(index)
    }

    fn output(&self, index: usize) -> Result<&Buffer, DeviceError> {
        self.outputs.get(index)
    }

    fn set_input(&mut self, index: usize, buffer: Buffer) -> Result<(), DeviceError> {
        self.inputs.check(&self.core.ports.inputs, index, &buffer)?;
        self.check_memory(&self.core.ports.inputs[index], Side::Input, &buffer, readers(&self.core, index).take(1))?;
        self.inputs.set(index, buffer);
        self.wire()
    }

    fn set_output(&mut self, index: usize, buffer: Buffer) -> Result<(), DeviceError> {
        self.outputs.check(&self.core.ports.outputs, index, &buffer)?;
        let makers = direct(&self.core, index).map(|(segment, _)| segment);
        self.check_memory(&self.core.ports.outputs[index], Side::Output, &buffer, makers.into_iter())?;
        self.outputs.set(index, buffer);
        self.wire()
    }

    fn execute(&mut self) -> Result<(), DeviceError> {
        self.run()
    }
}
