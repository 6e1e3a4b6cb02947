//! Turns a program into steps on places of one buffer, once, when it is loaded.
//!
//! In data order: [`fold`] evaluates constants, [`graph`] finds uses, [`node`] groups operations, [`builder`] gives places,
//! [`memory`] packs them, [`step`] runs.

mod builder;
mod chain;
mod compare;
mod conv;
mod epilogue;
mod fold;
mod function;
mod generic;
mod graph;
mod lower;
mod matmul;
mod memory;
mod movement;
mod node;
mod norm;
mod parallel;
mod policy;
mod pool;
mod pool_gradient;
mod product;
mod reduce;
mod scattered;
mod step;
mod strided;
mod walk;
mod weight_gradient;
mod window;

pub(crate) use policy::Policy;
pub(crate) use reduce::Reduction;

use crate::device::Ports;
use crate::kernel::types::Context;
use crate::{DeviceError, Executable, Port, Program, Report, States};
use aneforge_mil::DType;
use builder::Builder;
use graph::Graph;
use half::f16;
use memory::{Buffer, Memory, Slot, Spot};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use step::Step;

/// Choices of a plan.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Whose arithmetic.
    pub(crate) policy: Policy,
    /// Whether groups of operations may become one step.
    pub(crate) fuse: bool,
}

/// A program as steps.
pub(crate) struct Plan {
    ports: Ports,
    steps: Vec<Box<dyn Step>>,
    inputs: Vec<Slot>,
    outputs: Vec<Spot>,
    states: States,
    /// Where a call puts what the states hold, and where it finds what they hold next.
    state_places: Vec<(Slot, Spot)>,
    ranges: Vec<Range<usize>>,
    constants: Vec<Buffer>,
    arena: Mutex<Buffer>,
    report: Report,
    policy: Policy,
}

impl Plan {
    pub(crate) fn new(device: &str, program: &Program, options: &Options) -> Result<Self, DeviceError> {
        let ports = Ports::of(program.body())?;
        let body = fold::fold(program.body(), &|values| options.policy.store(values))?;
        let graph = Graph::new(body);
        let mut builder = Builder::new(&graph, &options.policy);
        let states = States::of(program.body())?;
        let contents = graph.body.states.iter().map(|state| state.input);
        let mut taken = Vec::with_capacity(graph.body.inputs.len() + graph.body.states.len());
        for id in graph.body.inputs.iter().copied().chain(contents) {
            let slot = builder.make(id, builder::Layout::Dense)?;
            builder.touch(slot.into(), 0);
            taken.push(slot);
        }
        let kept = taken.split_off(graph.body.inputs.len());
        for node in node::group(&graph, options) {
            lower::lower(&mut builder, &node)?;
        }
        let mut outputs = Vec::with_capacity(graph.body.outputs.len());
        for output in &graph.body.outputs {
            outputs.push(builder.read(output.value)?);
        }
        let mut state_places = Vec::with_capacity(kept.len());
        for (state, slot) in graph.body.states.iter().zip(kept) {
            state_places.push((slot, builder.read(state.result)?));
        }
        let end = builder.steps.len();
        state_places.iter().for_each(|place| builder.touch(place.1, end));
        outputs.iter().for_each(|&spot| builder.touch(spot, end));

        let (ranges, size) = memory::pack(&builder.lifetimes);
        let constant_bytes = builder.constants.iter().map(Buffer::len).sum::<usize>() + builder.packed_bytes;
        Ok(Self {
            ports,
            inputs: taken,
            outputs,
            states,
            state_places,
            ranges,
            arena: Mutex::new(Buffer::zeroed(size)?),
            report: Report {
                device: device.to_string(),
                arena_bytes: size,
                constant_bytes,
                steps: builder.reports,
                segments: Vec::new(),
                engine: None,
            },
            policy: options.policy.clone(),
            steps: builder.steps,
            constants: builder.constants,
        })
    }

    /// Runs all steps on the arena; `after` is called behind each.
    fn run(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]], mut after: impl FnMut()) -> Result<(), DeviceError> {
        self.ports.check(inputs, outputs)?;
        // A call that failed half way leaves nothing behind that a later call reads.
        let mut arena = self.arena.lock().unwrap_or_else(PoisonError::into_inner);
        let mut memory = Memory { arena: arena.bytes_mut(), ranges: &self.ranges, constants: &self.constants };
        let mut held = self.states.hold();
        let given = self.inputs.iter().zip(inputs.iter().copied()).zip(&self.ports.inputs);
        let contents = self.state_places.iter().map(|(slot, _)| slot).zip(held.contents()).zip(self.states.ports());
        for ((&slot, bytes), port) in given.chain(contents) {
            let place = memory.write(slot);
            place.copy_from_slice(bytes);
            if port.ty.dtype == DType::Fp16 && matches!(self.policy, Policy::Engine(_)) {
                let values: &mut [f16] = bytemuck::cast_slice_mut(place);
                values.iter_mut().filter(|value| value.is_nan()).for_each(|value| *value = self.policy.input(*value));
            }
        }
        let context = Context::global();
        for step in &self.steps {
            step.run(context, &mut memory)?;
            after();
        }
        for (&spot, bytes) in self.outputs.iter().zip(outputs) {
            bytes.copy_from_slice(memory.read(spot));
        }
        // Nothing can fail from here on.
        for (state, (_, spot)) in held.contents_mut().zip(&self.state_places) {
            state.copy_from_slice(memory.read(*spot));
        }
        Ok(())
    }
}

impl Executable for Plan {
    fn inputs(&self) -> &[Port] {
        &self.ports.inputs
    }

    fn outputs(&self) -> &[Port] {
        &self.ports.outputs
    }

    fn execute(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) -> Result<(), DeviceError> {
        self.run(inputs, outputs, || ())
    }

    fn profile(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) -> Result<Vec<Duration>, DeviceError> {
        let mut times = Vec::with_capacity(self.steps.len());
        let mut begin = Instant::now();
        self.run(inputs, outputs, || {
            times.push(begin.elapsed());
            begin = Instant::now();
        })?;
        Ok(times)
    }

    fn states(&self) -> &States {
        &self.states
    }

    fn report(&self) -> Report {
        self.report.clone()
    }
}
