//! Executes a program segment by segment on one device.

use super::Segments;
use super::layout::Layout;
use crate::device::Ports;
use crate::report::SegmentReport;
use crate::{DeviceError, Executable, Port, Program, Report};
use aneforge_compile::Link;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// Where the bytes of a port come from.
#[derive(Debug)]
struct Source {
    /// Segment, or the program's inputs.
    segment: Option<usize>,
    /// Which of its outputs or of the inputs.
    index: usize,
    layout: Layout,
}

struct Step {
    executable: Arc<dyn Executable>,
    inputs: Vec<Source>,
}

struct Loaded {
    ports: Ports,
    steps: Vec<Step>,
    outputs: Vec<Source>,
    report: Report,
}

/// How a device loads one segment.
pub(crate) type Load<'a> = dyn Fn(&Arc<Program>) -> Result<Arc<dyn Executable>, DeviceError> + 'a;

/// Loads each segment with `load`; `None` where the program is whole.
pub(crate) fn load(program: &Program, load: &Load<'_>) -> Option<Result<Arc<dyn Executable>, DeviceError>> {
    program.segments().map(|segments| Loaded::new(program, segments, load).map(|loaded| Arc::new(loaded) as Arc<dyn Executable>))
}

impl Loaded {
    fn new(program: &Program, segments: &Segments, load: &Load<'_>) -> Result<Self, DeviceError> {
        let ports = Ports::of(program.body())?;
        let mut steps: Vec<Step> = Vec::with_capacity(segments.parts.len());
        let mut report = Report::default();
        for part in &segments.parts {
            let executable = load(&part.program)?;
            let own = executable.report();
            report.segments.push(SegmentReport::new(part.kind, &own.device, own.steps.len(), part.program.body().operations.len()));
            report.device = own.device;
            report.arena_bytes += own.arena_bytes;
            report.constant_bytes += own.constant_bytes;
            report.steps.extend(own.steps);
            let inputs = part.inputs.iter().map(|link| source(&ports, &steps, link)).collect::<Result<_, DeviceError>>()?;
            steps.push(Step { executable, inputs });
        }
        let outputs = segments.outputs.iter().map(|link| source(&ports, &steps, link)).collect::<Result<_, DeviceError>>()?;
        Ok(Self { ports, steps, outputs, report })
    }

    /// Runs all segments; `run` executes one of them.
    fn run(
        &self,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
        mut run: impl FnMut(&dyn Executable, &[&[u8]], &mut [&mut [u8]]) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        self.ports.check(inputs, outputs)?;
        let mut made: Vec<Vec<Vec<u8>>> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let taken: Vec<Cow<'_, [u8]>> = step.inputs.iter().map(|source| fetch(source, inputs, &made)).collect();
            let taken: Vec<&[u8]> = taken.iter().map(AsRef::as_ref).collect();
            let mut results: Vec<Vec<u8>> = step.executable.outputs().iter().map(|port| vec![0; port.byte_length()]).collect();
            let mut places: Vec<&mut [u8]> = results.iter_mut().map(Vec::as_mut_slice).collect();
            run(&*step.executable, &taken, &mut places)?;
            made.push(results);
        }
        for (source, place) in self.outputs.iter().zip(outputs) {
            place.copy_from_slice(&fetch(source, inputs, &made));
        }
        Ok(())
    }
}

fn source(ports: &Ports, steps: &[Step], link: &Link) -> Result<Source, DeviceError> {
    let candidates = match link.segment {
        None => &ports.inputs[..],
        Some(segment) => steps.get(segment).map_or(&[][..], |step| step.executable.outputs()),
    };
    let index = candidates.iter().position(|port| port.name == link.value);
    let index = index.ok_or_else(|| DeviceError::internal("segments", format!("no value {:?} for {:?}", link.value, link.port)))?;
    let ty = &candidates[index].ty;
    let layout = Layout::new(&ty.shape, ty.dtype.bits() / 8, &link.layout);
    Ok(Source { segment: link.segment, index, layout })
}

fn fetch<'a>(source: &Source, inputs: &[&'a [u8]], made: &'a [Vec<Vec<u8>>]) -> Cow<'a, [u8]> {
    let bytes: &'a [u8] = match source.segment {
        None => inputs[source.index],
        Some(segment) => &made[segment][source.index],
    };
    source.layout.apply(bytes).map_or(Cow::Borrowed(bytes), Cow::Owned)
}

impl Executable for Loaded {
    fn inputs(&self) -> &[Port] {
        &self.ports.inputs
    }

    fn outputs(&self) -> &[Port] {
        &self.ports.outputs
    }

    fn execute(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) -> Result<(), DeviceError> {
        self.run(inputs, outputs, |part, inputs, outputs| part.execute(inputs, outputs))
    }

    fn profile(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) -> Result<Vec<Duration>, DeviceError> {
        let mut times = Vec::with_capacity(self.report.steps.len());
        self.run(inputs, outputs, |part, inputs, outputs| {
            times.extend(part.profile(inputs, outputs)?);
            Ok(())
        })?;
        Ok(times)
    }

    fn report(&self) -> Report {
        self.report.clone()
    }
}
