//! A weight in a compressed form: the operators that expand it, their data, and what they expand to.

use super::Format;
use crate::CompileError;
use aneforge_mil::{Builder, DType, TensorType, ValueId, Weight};
use half::f16;

/// A compressed weight.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// Its format.
    pub format: Format,
    /// What the data expands to, row major: the values that every device computes with.
    pub dense: Vec<f16>,
    pub(super) steps: Vec<Step>,
}

/// One operator of an expansion.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub op: &'static str,
    pub ports: Vec<(&'static str, Part)>,
}

/// What stands at a port.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Data(Weight),
    Number(DType, f64),
    /// Result of the step before.
    Before(usize),
}

impl Part {
    pub fn fp16(shape: Vec<usize>, values: &[f16]) -> Result<Self, aneforge_mil::WeightError> {
        Weight::from_fp16(shape, values).map(Self::Data)
    }

    pub fn codes(dtype: DType, shape: &[usize], codes: &[u8]) -> Result<Self, aneforge_mil::WeightError> {
        let packed = super::blocks::pack(dtype.bits(), codes);
        Weight::from_bytes(TensorType::new(dtype, shape), packed).map(Self::Data)
    }
}

impl Encoded {
    /// Bytes of all data, without the alignment that a weight file adds (at most 127 bytes a tensor).
    pub fn bytes(&self) -> usize {
        let part = |part: &Part| match part {
            Part::Data(weight) => weight.ty().dtype.packed_bytes(weight.ty().count()),
            Part::Number(..) | Part::Before(_) => 0,
        };
        self.steps.iter().flat_map(|step| &step.ports).map(|(_, at)| part(at)).sum()
    }

    /// Relative error of the weight: norm of the difference over the norm.
    pub fn relative_error(&self, original: &[f16]) -> f64 {
        let (mut lost, mut whole) = (0.0, 0.0);
        for (new, old) in self.dense.iter().zip(original) {
            let (new, old) = (new.to_f64(), old.to_f64());
            lost += (new - old) * (new - old);
            whole += old * old;
        }
        if whole > 0.0 { (lost / whole).sqrt() } else { 0.0 }
    }

    /// Writes the operators that expand the weight; the result is named `name`.
    ///
    /// # Errors
    /// The operators' own rules, which an encoding keeps.
    pub fn write(&self, builder: &mut Builder, name: &str) -> Result<ValueId, CompileError> {
        let mut before: Vec<ValueId> = Vec::new();
        for (number, step) in self.steps.iter().enumerate() {
            let mut given = Vec::with_capacity(step.ports.len());
            for (port, part) in &step.ports {
                let value = match part {
                    Part::Data(weight) => builder.weight(&format!("{name}_{port}"), weight.clone()),
                    Part::Number(dtype, value) => builder.scalar(*dtype, *value),
                    Part::Before(output) => before[*output],
                };
                given.push((*port, value.into()));
            }
            let last = number + 1 == self.steps.len();
            let result = if last { name.to_string() } else { format!("{name}_packed") };
            before = builder.op_many(step.op, &given, &result)?;
        }
        before.first().copied().ok_or_else(|| CompileError::internal(format!("weight {name:?} was encoded without an operator")))
    }
}
