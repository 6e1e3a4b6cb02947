//! Any operator through its definition: slow, allocates, always there.

use super::memory::{Memory, Slot, Spot};
use super::policy::Policy;
use super::step::Step;
use crate::kernel::types::Context;
use crate::{DeviceError, element};
use aneforge_mil::op::{Argument, Arguments, MilOp};
use aneforge_mil::{DType, TensorType};

/// One argument of a generic step.
pub(crate) enum GenericArgument {
    /// Known when the program was loaded.
    Known(Argument),
    /// Read from its place at every call.
    Read(Spot, TensorType),
}

/// An operator without a kernel of its own.
pub(crate) struct Generic {
    pub(crate) op: &'static MilOp,
    pub(crate) arguments: Vec<Vec<GenericArgument>>,
    pub(crate) results: Vec<(Slot, TensorType)>,
    pub(crate) policy: Policy,
}

impl Step for Generic {
    fn run(&self, _: Context<'static>, memory: &mut Memory<'_>) -> Result<(), DeviceError> {
        let argument = |argument: &GenericArgument| match argument {
            GenericArgument::Known(known) => Ok(known.clone()),
            GenericArgument::Read(spot, ty) => {
                let array =
                    element::read(ty, memory.read(*spot)).ok_or_else(|| DeviceError::internal("generic", ty.to_string()))?;
                Ok(Argument { constant: false, ..Argument::valued(array) })
            }
        };
        let ports: Vec<Vec<Argument>> = self
            .arguments
            .iter()
            .map(|port| port.iter().map(argument).collect::<Result<_, DeviceError>>())
            .collect::<Result<_, _>>()?;
        let results = (self.op.meaning)(&Arguments { op: self.op, ports: &ports })?;
        for ((slot, ty), mut result) in self.results.iter().zip(results) {
            if ty.dtype == DType::Fp16 {
                self.policy.store(&mut result.data);
            }
            element::write(ty.dtype, &result.data, memory.write(*slot))
                .ok_or_else(|| DeviceError::internal("generic", format!("{} gave something else than {ty}", self.op.name)))?;
        }
        Ok(())
    }
}
