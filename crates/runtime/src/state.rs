//! Buffers that live across the calls of an executable.

use crate::device::names;
use crate::{Buffer, DeviceError, Port};
use aneforge_mil::Body;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The states of a loaded program: named buffers, zero at first, that calls read and replace.
#[derive(Debug)]
pub struct States {
    ports: Vec<Port>,
    buffers: Mutex<Vec<Vec<u8>>>,
    /// Memory of a device in place of the buffers; whoever executes on it keeps others out.
    own: Vec<Buffer>,
}

impl States {
    /// No states.
    pub fn none() -> &'static Self {
        static NONE: States = States { ports: Vec::new(), buffers: Mutex::new(Vec::new()), own: Vec::new() };
        &NONE
    }

    /// The states of a program's function, all zero.
    ///
    /// # Errors
    /// [`DeviceError::Program`] where a state's type has no buffer form, [`DeviceError::Memory`] where the system refuses.
    pub fn of(body: &Body) -> Result<Self, DeviceError> {
        let port = |state: &aneforge_mil::State| Port::of(&body.name, &state.name, body.ty(state.input));
        let ports = body.states.iter().map(port).collect::<Result<Vec<_>, _>>()?;
        let buffers = ports.iter().map(zeros).collect::<Result<_, _>>()?;
        Ok(Self { ports, buffers: Mutex::new(buffers), own: Vec::new() })
    }

    /// States in a device's memory, one buffer for each port.
    pub(crate) fn on(ports: Vec<Port>, own: Vec<Buffer>) -> Self {
        Self { ports, buffers: Mutex::default(), own }
    }

    /// Names and types, in order.
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// The state of that name.
    ///
    /// # Errors
    /// [`DeviceError::StateName`].
    pub fn port(&self, name: &str) -> Result<&Port, DeviceError> {
        self.index(name).map(|index| &self.ports[index])
    }

    /// What a state holds, as little-endian elements in row-major order.
    ///
    /// # Errors
    /// [`DeviceError::StateName`].
    pub fn read(&self, name: &str) -> Result<Vec<u8>, DeviceError> {
        let index = self.index(name)?;
        if let Some(buffer) = self.own.get(index) {
            let mut bytes = vec![0; self.ports[index].byte_length()];
            buffer.read(0, &mut bytes)?;
            return Ok(bytes);
        }
        Ok(self.lock()[index].clone())
    }

    /// Replaces what a state holds; a call that is under way finishes first.
    ///
    /// # Errors
    /// [`DeviceError::StateName`], [`DeviceError::PortLength`]; the state is then as it was.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), DeviceError> {
        let index = self.index(name)?;
        let port = &self.ports[index];
        if bytes.len() != port.byte_length() {
            let (expected, got) = (port.ty.clone(), bytes.len());
            return Err(DeviceError::PortLength { port: name.to_string(), expected, bytes: port.byte_length(), got });
        }
        if let Some(buffer) = self.own.get(index) {
            return buffer.write(0, bytes);
        }
        self.lock()[index].copy_from_slice(bytes);
        Ok(())
    }

    /// Makes all states zero again.
    pub fn reset(&self) {
        self.lock().iter_mut().for_each(|buffer| buffer.fill(0));
        // Memory that is handed out is always given; a surface that the system refuses to lock keeps what it holds.
        self.own.iter().for_each(|buffer| drop(buffer.clear()));
    }

    /// The buffers for the length of one call; calls of a program without states do not wait for each other.
    pub(crate) fn hold(&self) -> Held<'_> {
        Held((!self.ports.is_empty()).then(|| self.lock()))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        // Contents change in one go at the end of a call: a panic leaves none half written.
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn index(&self, name: &str) -> Result<usize, DeviceError> {
        let found = self.ports.iter().position(|port| port.name == name);
        found.ok_or_else(|| DeviceError::StateName { name: name.to_string(), known: names(&self.ports) })
    }
}

/// The buffers while a call runs.
pub(crate) struct Held<'a>(Option<MutexGuard<'a, Vec<Vec<u8>>>>);

impl Held<'_> {
    /// What the states hold.
    pub(crate) fn contents(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().flat_map(|buffers| buffers.iter()).map(Vec::as_slice)
    }

    /// The same, to be overwritten.
    pub(crate) fn contents_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.0.iter_mut().flat_map(|buffers| buffers.iter_mut()).map(Vec::as_mut_slice)
    }

    /// Buffers of the same lengths for what comes next.
    pub(crate) fn blank(&self) -> Vec<Vec<u8>> {
        self.contents().map(|bytes| vec![0; bytes.len()]).collect()
    }

    /// Takes new contents.
    pub(crate) fn keep(&mut self, next: Vec<Vec<u8>>) {
        if let Some(buffers) = &mut self.0 {
            **buffers = next;
        }
    }
}

fn zeros(port: &Port) -> Result<Vec<u8>, DeviceError> {
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(port.byte_length()).map_err(|_| DeviceError::Memory { bytes: port.byte_length() })?;
    buffer.resize(port.byte_length(), 0);
    Ok(buffer)
}
