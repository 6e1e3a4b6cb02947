//! Running an executable on arrays, by position or by name.

use crate::device::{check_count, names};
use crate::{DeviceError, Executable, Port};
use aneforge_core::HostArray;

impl dyn Executable {
    /// Runs once on arrays in the order of the inputs and gives the outputs in theirs.
    ///
    /// # Errors
    /// [`DeviceError::PortCount`], [`DeviceError::PortDType`] or [`DeviceError::PortShape`] naming the port, before anything is
    /// computed; else what [`Executable::execute`] reports.
    pub fn run(&self, inputs: &[&HostArray]) -> Result<Vec<HostArray>, DeviceError> {
        check_count("inputs", self.inputs(), inputs.len())?;
        for (port, array) in self.inputs().iter().zip(inputs) {
            check(port, array)?;
        }
        let given: Vec<&[u8]> = inputs.iter().map(|array| array.bytes()).collect();
        let mut results: Vec<HostArray> =
            self.outputs().iter().map(|port| HostArray::zeros(port.ty.dtype, port.ty.shape.clone())).collect();
        let mut taken: Vec<&mut [u8]> = results.iter_mut().map(HostArray::bytes_mut).collect();
        self.execute(&given, &mut taken)?;
        Ok(results)
    }

    /// Runs once on named arrays, in any order.
    ///
    /// # Errors
    /// [`DeviceError::PortName`] for an unknown, missing or repeated name, else as [`Self::run`].
    pub fn run_named(&self, inputs: &[(&str, &HostArray)]) -> Result<Vec<(String, HostArray)>, DeviceError> {
        let fault = |port: &str, problem| DeviceError::PortName { port: port.to_string(), problem, known: names(self.inputs()) };
        for (index, (name, _)) in inputs.iter().enumerate() {
            if !self.inputs().iter().any(|port| port.name == *name) {
                return Err(fault(name, "does not exist"));
            }
            if inputs[..index].iter().any(|(earlier, _)| earlier == name) {
                return Err(fault(name, "was given twice"));
            }
        }
        let mut ordered = Vec::with_capacity(inputs.len());
        for port in self.inputs() {
            let found = inputs.iter().find(|(name, _)| *name == port.name);
            ordered.push(found.ok_or_else(|| fault(&port.name, "was not given"))?.1);
        }
        let results = self.run(&ordered)?;
        Ok(self.outputs().iter().map(|port| port.name.clone()).zip(results).collect())
    }
}

impl dyn Executable {
    /// What a state holds, as an array.
    ///
    /// # Errors
    /// [`DeviceError::StateName`].
    pub fn read_state(&self, name: &str) -> Result<HostArray, DeviceError> {
        let port = self.states().port(name)?;
        let mut array = HostArray::zeros(port.ty.dtype, port.ty.shape.clone());
        array.bytes_mut().copy_from_slice(&self.states().read(name)?);
        Ok(array)
    }

    /// Replaces what a state holds.
    ///
    /// # Errors
    /// [`DeviceError::StateName`], [`DeviceError::PortDType`], [`DeviceError::PortShape`]; the state is then as it was.
    pub fn write_state(&self, name: &str, array: &HostArray) -> Result<(), DeviceError> {
        check(self.states().port(name)?, array)?;
        self.states().write(name, array.bytes())
    }

    /// Makes all states zero again.
    pub fn reset(&self) {
        self.states().reset();
    }
}

fn check(port: &Port, array: &HostArray) -> Result<(), DeviceError> {
    if array.dtype() != port.ty.dtype {
        return Err(DeviceError::PortDType { port: port.name.clone(), expected: port.ty.dtype, got: array.dtype() });
    }
    if array.shape() != port.ty.shape {
        let (expected, got) = (port.ty.shape.clone(), array.shape().to_vec());
        return Err(DeviceError::PortShape { port: port.name.clone(), expected, got });
    }
    Ok(())
}
