//! Small programs with inputs and the results that a device gave, to the bit.

use super::Halves;
use crate::emulator::Engine;
use crate::plan::{Options, Plan, Policy};
use crate::{DeviceError, Executable, Program};
use aneforge_mil::{DType, NoBlobs};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Most elements of all values of a probe's program together.
const MOST_ELEMENTS: usize = 1 << 26;

/// A question to a device with its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// What is asked, for example `matmul: partial sums beyond 2^15`.
    pub name: String,
    /// MIL keyword of the operator that it is about.
    pub op: String,
    /// The program's text, all constants written out; inputs and outputs are fp16.
    pub mil: String,
    /// Inputs in call order.
    pub inputs: Vec<ProbeInput>,
    /// Results in order.
    pub results: Vec<Halves>,
}

/// An input of a probe, or how it is made where it is large.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeInput {
    /// The numbers themselves.
    Halves(Halves),
    /// Standard normals of numpy's `default_rng(seed)`, taken to f32 and then to fp16, row by row.
    Normals {
        /// The seed.
        seed: u64,
    },
    /// A square: row `i` holds 1 at lane `i`, `magnitude` at the first other lane, `-magnitude` at the last other one, 0 elsewhere.
    Lanes {
        /// The magnitude.
        magnitude: f64,
    },
}

/// How many of a probe's results a rule gives, bit for bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) matched: usize,
    pub(crate) total: usize,
}

impl Probe {
    /// Whether text, inputs and results fit each other.
    pub(super) fn check(&self) -> Result<(), String> {
        let program = self.program().map_err(|error| error.to_string())?;
        let body = program.body();
        let elements = body.values.iter().try_fold(0_usize, |sum, value| {
            let count = value.ty.shape.iter().try_fold(1_usize, |count, &extent| count.checked_mul(extent))?;
            sum.checked_add(count)
        });
        if elements.is_none_or(|elements| elements > MOST_ELEMENTS) {
            return Err(format!("its values have more than {MOST_ELEMENTS} elements"));
        }
        let names = (body.inputs.len(), body.outputs.len());
        if names != (self.inputs.len(), self.results.len()) {
            let (inputs, results) = (self.inputs.len(), self.results.len());
            return Err(format!("{inputs} inputs and {results} results for a program with {} and {}", names.0, names.1));
        }
        let inputs = body.inputs.iter().copied().zip(self.inputs.iter().map(|input| match input {
            ProbeInput::Halves(halves) => Some(halves.0.len()),
            _ => None,
        }));
        let results = body.outputs.iter().map(|output| output.value).zip(self.results.iter().map(|result| Some(result.0.len())));
        for (id, given) in inputs.chain(results) {
            let value = body.value(id);
            if value.ty.dtype != DType::Fp16 {
                return Err(format!("port {:?} is {} and must be fp16", value.name, value.ty));
            }
            if let Some(given) = given.filter(|&given| given != value.ty.count()) {
                return Err(format!("{given} numbers for port {:?}, which is {}", value.name, value.ty));
            }
        }
        Ok(())
    }

    /// The program.
    ///
    /// # Errors
    /// [`DeviceError::Program`].
    pub fn program(&self) -> Result<Program, DeviceError> {
        Program::from_text(&self.name, &self.mil, &NoBlobs)
    }
}

/// Asks an engine of the emulator a probe; `None` where the inputs are not in the file.
pub(crate) fn answers(engine: &Arc<Engine>, probe: &Probe, program: &Program) -> Result<Option<Answer>, DeviceError> {
    let mut inputs = Vec::new();
    for input in &probe.inputs {
        match input {
            ProbeInput::Halves(halves) => inputs.push(halves.to_bytes()),
            _ => return Ok(None),
        }
    }
    let plan = Plan::new("emulator", program, &Options { policy: Policy::Engine(engine.clone()), fuse: true })?;
    let mut results: Vec<Vec<u8>> = plan.outputs().iter().map(|port| vec![0; port.byte_length()]).collect();
    let given: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let mut taken: Vec<&mut [u8]> = results.iter_mut().map(Vec::as_mut_slice).collect();
    plan.execute(&given, &mut taken)?;
    let mut answer = Answer::default();
    for (got, wanted) in results.iter().zip(&probe.results) {
        let got = Halves::from_bytes(got);
        answer.total += wanted.0.len();
        answer.matched += got.0.iter().zip(&wanted.0).filter(|(got, wanted)| got == wanted).count();
    }
    Ok(Some(answer))
}
