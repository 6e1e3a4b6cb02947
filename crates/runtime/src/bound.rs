//! An executable with buffers bound to its ports: no bytes are handed over per call.

use crate::{Buffer, DeviceError, Executable, Port};
use std::sync::Arc;

/// An executable and one buffer for each of its ports.
///
/// Binding the buffer of an output to an input, of the same program or of another one on the same device, makes a value stay where it
/// is between calls: an input that shares its buffer with an output reads what the call before it wrote.
pub trait Bound: Send {
    /// The executable's inputs, in call order.
    fn inputs(&self) -> &[Port];

    /// The executable's outputs, in order.
    fn outputs(&self) -> &[Port];

    /// The buffer of an input. It is zero when the executable is bound.
    ///
    /// # Errors
    /// [`DeviceError::PortIndex`].
    fn input(&self, index: usize) -> Result<&Buffer, DeviceError>;

    /// The buffer of an output.
    ///
    /// # Errors
    /// [`DeviceError::PortIndex`].
    fn output(&self, index: usize) -> Result<&Buffer, DeviceError>;

    /// Puts another buffer in an input's place: of the same device, at least as long as the port.
    ///
    /// # Errors
    /// [`DeviceError::PortIndex`], [`DeviceError::PortLength`], [`DeviceError::Binding`]; the port then keeps its buffer.
    fn set_input(&mut self, index: usize, buffer: Buffer) -> Result<(), DeviceError>;

    /// Puts another buffer in an output's place. Two outputs cannot share one.
    ///
    /// # Errors
    /// As [`Self::set_input`].
    fn set_output(&mut self, index: usize, buffer: Buffer) -> Result<(), DeviceError>;

    /// Executes once on the buffers. The inputs are read before the outputs are written.
    ///
    /// # Errors
    /// What the device reports; the outputs then hold what they held or what the device left there.
    fn execute(&mut self) -> Result<(), DeviceError>;
}

impl dyn Executable {
    /// Binds zeroed buffers to the ports. Each binding has its own; states belong to the executable and are shared by its bindings.
    ///
    /// # Errors
    /// [`DeviceError::Memory`], and what the device reports.
    pub fn bind(self: &Arc<Self>) -> Result<Box<dyn Bound>, DeviceError> {
        match self.bind_own() {
            Some(bound) => bound,
            None => Ok(Box::new(HostBound::new(self.clone())?)),
        }
    }
}

/// The buffers of a port list, and the checks that hold for every device.
#[derive(Debug)]
pub(crate) struct Places {
    kind: &'static str,
    buffers: Vec<Buffer>,
}

impl Places {
    pub(crate) fn new(kind: &'static str, buffers: Vec<Buffer>) -> Self {
        Self { kind, buffers }
    }

    pub(crate) fn get(&self, index: usize) -> Result<&Buffer, DeviceError> {
        let count = self.buffers.len();
        self.buffers.get(index).ok_or(DeviceError::PortIndex { kind: self.kind, index, count })
    }

    /// Whether `buffer` may stand at a port.
    pub(crate) fn check(&self, ports: &[Port], index: usize, buffer: &Buffer) -> Result<(), DeviceError> {
        self.get(index)?;
        let port = &ports[index];
        if buffer.len() < port.byte_length() {
            let (expected, bytes, got) = (port.ty.clone(), port.byte_length(), buffer.len());
            return Err(DeviceError::PortLength { port: port.name.clone(), expected, bytes, got });
        }
        if self.kind == "outputs" {
            let mut others = self.buffers.iter().zip(ports).enumerate().filter(|(other, _)| *other != index);
            if let Some((_, (_, other))) = others.find(|(_, (own, _))| own.is_same(buffer)) {
                let problem = format!("output {:?} is written to the same buffer; give each output its own", other.name);
                return Err(DeviceError::Binding { port: port.name.clone(), problem });
            }
        }
        Ok(())
    }

    pub(crate) fn set(&mut self, index: usize, buffer: Buffer) {
        if let Some(place) = self.buffers.get_mut(index) {
            *place = buffer;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Buffer> {
        self.buffers.iter()
    }
}

/// The binding of any executable: buffers of the host, whose contents are handed over at each call.
struct HostBound {
    executable: Arc<dyn Executable>,
    inputs: Places,
    outputs: Places,
    /// Copies for the length of a call: with them, buffers may be shared in any way.
    taken: Vec<Vec<u8>>,
    given: Vec<Vec<u8>>,
}

impl HostBound {
    fn new(executable: Arc<dyn Executable>) -> Result<Self, DeviceError> {
        let buffers = |ports: &[Port]| ports.iter().map(|port| Buffer::host(port.byte_length())).collect::<Result<Vec<_>, _>>();
        let copies = |ports: &[Port]| ports.iter().map(|port| vec![0; port.byte_length()]).collect::<Vec<Vec<u8>>>();
        let (inputs, outputs) = (buffers(executable.inputs())?, buffers(executable.outputs())?);
        let (taken, given) = (copies(executable.inputs()), copies(executable.outputs()));
        let (inputs, outputs) = (Places::new("inputs", inputs), Places::new("outputs", outputs));
        Ok(Self { executable, inputs, outputs, taken, given })
    }
}

impl Bound for HostBound {
    fn inputs(&self) -> &[Port] {
        self.executable.inputs()
    }

    fn outputs(&self) -> &[Port] {
        self.executable.outputs()
    }

    fn input(&self, index: usize) -> Result<&Buffer, DeviceError> {
        self.inputs.get(index)
    }

    fn output(&self, index: usize) -> Result<&Buffer, DeviceError> {
        self.outputs.get(index)
    }

    fn set_input(&mut self, index: usize, buffer: Buffer) -> Result<(), DeviceError> {
        self.inputs.check(self.executable.inputs(), index, &buffer)?;
        self.inputs.set(index, buffer);
        Ok(())
    }

    fn set_output(&mut self, index: usize, buffer: Buffer) -> Result<(), DeviceError> {
        self.outputs.check(self.executable.outputs(), index, &buffer)?;
        self.outputs.set(index, buffer);
        Ok(())
    }

    fn execute(&mut self) -> Result<(), DeviceError> {
        for (buffer, copy) in self.inputs.iter().zip(&mut self.taken) {
            buffer.read(0, copy)?;
        }
        let inputs: Vec<&[u8]> = self.taken.iter().map(Vec::as_slice).collect();
        let mut outputs: Vec<&mut [u8]> = self.given.iter_mut().map(Vec::as_mut_slice).collect();
        self.executable.execute(&inputs, &mut outputs)?;
        for (buffer, copy) in self.outputs.iter().zip(&self.given) {
            buffer.write(0, copy)?;
        }
        Ok(())
    }
}
