//! What every device is: it loads a program once and gives something that executes it any number of times.

use crate::element::byte_length;
use crate::{Bound, DeviceError, Program, Report, States};
use aneforge_core::{Chip, Target};
use aneforge_mil::{Body, TensorType};
use std::sync::Arc;
use std::time::Duration;

/// A place that executes programs. Opened by name with [`crate::open`].
pub trait Device: Send + Sync + std::fmt::Debug {
    /// The name it is opened by, for example `cpu` or `emulator:m1`.
    fn name(&self) -> &str;

    /// The chip whose engine it is or stands for; `None` where it is no engine.
    fn chip(&self) -> Option<&'static Chip> {
        None
    }

    /// What programs for it are compiled for: its chip, by the route that it takes; [`Target::Generic`] where it is no engine.
    fn target(&self) -> Target {
        self.chip().map_or(Target::Generic, Target::e5rt)
    }

    /// Build of the operating system that its frameworks belong to; `None` where it uses none.
    fn os_build(&self) -> Option<&str> {
        None
    }

    /// One sentence: what it is and how exact its results are.
    fn describe(&self) -> String;

    /// Prepares a program: everything that does not depend on the inputs' values happens here.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`], or what reading a constant reports.
    fn load(&self, program: &Arc<Program>) -> Result<Arc<dyn Executable>, DeviceError>;
}

/// A loaded program. Safe to share; calls from several threads are executed one after the other where the device has one engine.
pub trait Executable: Send + Sync {
    /// Inputs in call order.
    fn inputs(&self) -> &[Port];

    /// Outputs in order.
    fn outputs(&self) -> &[Port];

    /// Executes once. A call that fails leaves the states as they were. Buffers hold little-endian elements in row-major order, bools as bytes 0 and 1, of exactly
    /// [`Port::byte_length`] bytes each; they need no alignment.
    ///
    /// # Errors
    /// [`DeviceError::PortCount`] and [`DeviceError::PortLength`] before anything is computed.
    fn execute(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) -> Result<(), DeviceError>;

    /// Executes once and gives the time that each step of [`Executable::report`] took; the first one includes taking the inputs in.
    /// Empty where the device does not work in steps.
    ///
    /// # Errors
    /// As [`Executable::execute`].
    fn profile(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) -> Result<Vec<Duration>, DeviceError> {
        self.execute(inputs, outputs).map(|()| Vec::new())
    }

    /// The buffers that live across its calls; zero when it is loaded, changed by calls that succeed.
    fn states(&self) -> &States {
        States::none()
    }

    /// A binding with the device's own memory; `None` where buffers of the host serve as well.
    #[doc(hidden)]
    fn bind_own(&self) -> Option<Result<Box<dyn Bound>, DeviceError>> {
        None
    }

    /// Where it runs, what it is made of and how much memory that takes.
    fn report(&self) -> Report;
}

/// A named, typed input or output of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Name.
    pub name: String,
    /// Element type and shape.
    pub ty: TensorType,
    bytes: usize,
}

impl Port {
    /// A port of a function, if its type has a buffer form.
    pub(crate) fn of(function: &str, name: &str, ty: &TensorType) -> Result<Self, DeviceError> {
        let bytes = byte_length(ty).filter(|_| ty.dtype.bits() >= 8).ok_or_else(|| DeviceError::Program {
            program: function.to_string(),
            problem: format!("port {name:?} of type {ty} has no buffer form; use a type of whole bytes that fits memory"),
        })?;
        Ok(Self { name: name.to_string(), ty: ty.clone(), bytes })
    }

    /// Bytes of its buffer.
    pub fn byte_length(&self) -> usize {
        self.bytes
    }
}

/// The ports of a program, checked against buffers in one place for all devices.
#[derive(Clone, Debug)]
pub(crate) struct Ports {
    pub(crate) inputs: Vec<Port>,
    pub(crate) outputs: Vec<Port>,
}

impl Ports {
    pub(crate) fn of(body: &Body) -> Result<Self, DeviceError> {
        let port = |name: &str, ty: &TensorType| Port::of(&body.name, name, ty);
        Ok(Self {
            inputs: body.inputs.iter().map(|&id| port(&body.value(id).name, body.ty(id))).collect::<Result<_, DeviceError>>()?,
            outputs: body.outputs.iter().map(|o| port(&o.name, body.ty(o.value))).collect::<Result<_, DeviceError>>()?,
        })
    }

    pub(crate) fn check(&self, inputs: &[&[u8]], outputs: &[&mut [u8]]) -> Result<(), DeviceError> {
        check_count("inputs", &self.inputs, inputs.len())?;
        check_count("outputs", &self.outputs, outputs.len())?;
        let given = inputs.iter().map(|buffer| buffer.len()).chain(outputs.iter().map(|buffer| buffer.len()));
        for (port, got) in self.inputs.iter().chain(&self.outputs).zip(given) {
            if port.bytes != got {
                return Err(DeviceError::PortLength { port: port.name.clone(), expected: port.ty.clone(), bytes: port.bytes, got });
            }
        }
        Ok(())
    }
}

pub(crate) fn check_count(kind: &'static str, ports: &[Port], got: usize) -> Result<(), DeviceError> {
    if ports.len() == got {
        return Ok(());
    }
    Err(DeviceError::PortCount { kind, expected: ports.len(), names: names(ports), got })
}

pub(crate) fn names(ports: &[Port]) -> String {
    ports.iter().map(|port| port.name.as_str()).collect::<Vec<_>>().join(", ")
}
