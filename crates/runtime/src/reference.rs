//! The oracle: every operator by its definition, in f64, one after the other.
//!
//! Inputs are taken as they are, intermediate values are never rounded, outputs and states are rounded to their element type.

use crate::device::Ports;
use crate::report::{SegmentReport, StepReport};
use crate::segment::Part;
use crate::{Device, DeviceError, Executable, Port, Program, Report, States, element};
use aneforge_mil::op::{Argument, Arguments};
use aneforge_mil::{Array, Body, Operand, Operation, ValueId};
use std::sync::Arc;

/// The f64 device.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference;

struct Loaded {
    program: Arc<Program>,
    ports: Ports,
    states: States,
    last_use: Vec<usize>,
}

impl Device for Reference {
    fn name(&self) -> &str {
        "reference"
    }

    fn describe(&self) -> String {
        "f64 by definition, slow; outputs and states rounded once to their type".to_string()
    }

    fn load(&self, program: &Arc<Program>) -> Result<Arc<dyn Executable>, DeviceError> {
        let body = program.body();
        let mut last_use = vec![0; body.values.len()];
        for (index, operation) in body.operations.iter().enumerate() {
            for id in operation.arguments.iter().flat_map(Operand::values) {
                last_use[id.index()] = index;
            }
        }
        for root in body.roots() {
            last_use[root.index()] = usize::MAX;
        }
        let (ports, states) = (Ports::of(body)?, States::of(body)?);
        Ok(Arc::new(Loaded { program: program.clone(), ports, states, last_use }))
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
        let body = self.program.body();
        let mut values: Vec<Option<Array>> = vec![None; body.values.len()];
        for (&id, bytes) in body.inputs.iter().zip(inputs) {
            values[id.index()] = element::read(body.ty(id), bytes);
        }
        // Held to the end: calls on one set of states come one after the other.
        let mut held = self.states.hold();
        for (state, bytes) in body.states.iter().zip(held.contents()) {
            values[state.input.index()] = element::read(body.ty(state.input), bytes);
        }
        for (index, operation) in body.operations.iter().enumerate() {
            let ports = argument_ports(body, operation, &|id| values[id.index()].clone());
            let results = (operation.op.meaning)(&Arguments { op: operation.op, ports: &ports })?;
            for (&id, result) in operation.outputs.iter().zip(results) {
                values[id.index()] = Some(result);
            }
            for id in operation.arguments.iter().flat_map(Operand::values) {
                if self.last_use[id.index()] <= index {
                    values[id.index()] = None;
                }
            }
        }
        let store = |id: ValueId, name: &str, bytes: &mut [u8]| {
            let ty = body.ty(id);
            let known = || body.constant(id).and_then(|constant| constant.to_array(ty));
            let array = values[id.index()].clone().or_else(known);
            let array = array.ok_or_else(|| DeviceError::internal("reference", format!("{name} was never made")))?;
            element::write(ty.dtype, &array.data, bytes)
                .ok_or_else(|| DeviceError::internal("reference", format!("{name} is not {ty}")))
        };
        let mut next = held.blank();
        for (state, bytes) in body.states.iter().zip(&mut next) {
            store(state.result, &state.name, bytes)?;
        }
        for (output, bytes) in body.outputs.iter().zip(outputs) {
            store(output.value, &output.name, bytes)?;
        }
        held.keep(next);
        Ok(())
    }

    fn states(&self) -> &States {
        &self.states
    }

    fn report(&self) -> Report {
        let body = self.program.body();
        let step = |operation: &Operation| StepReport {
            name: operation.outputs.first().map(|&id| body.value(id).name.clone()).unwrap_or_default(),
            ops: vec![operation.op.name],
            kernel: "meaning".to_string(),
            rule: None,
        };
        // Segments are put together before they run: nothing is rounded between them.
        let parts = self.program.segments().map_or(&[][..], |segments| &segments.parts);
        let segment = |part: &Part| SegmentReport::new(part.kind, "reference", 0, part.program.body().operations.len());
        Report {
            device: "reference".to_string(),
            steps: body.operations.iter().map(step).collect(),
            segments: parts.iter().map(segment).collect(),
            ..Report::default()
        }
    }
}

/// The arguments of an operation with their values: constants from the body, everything else through `value`.
pub(crate) fn argument_ports(body: &Body, operation: &Operation, value: &dyn Fn(ValueId) -> Option<Array>) -> Vec<Vec<Argument>> {
    let argument = |&id: &ValueId| match body.constant(id) {
        Some(constant) => match constant.to_array(body.ty(id)) {
            Some(array) => Argument::valued(array),
            None => body.argument(id),
        },
        None => match value(id) {
            Some(array) => Argument { constant: false, ..Argument::valued(array) },
            None => Argument::typed(body.ty(id).clone()),
        },
    };
    operation.arguments.iter().map(|operand| operand.values().iter().map(argument).collect()).collect()
}
