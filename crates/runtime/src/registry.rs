//! Devices by name.

use crate::emulator::{Emulator, EmulatorOptions};
use crate::{Cpu, Device, DeviceError, Null, Reference};
use aneforge_core::{Chip, chips};
use std::sync::Arc;

/// A device that can be asked for, and what asking gives here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Name for [`open`].
    pub name: String,
    /// Whether [`open`] gives it on this machine.
    pub available: bool,
    /// What it is, or why it is not to be had.
    pub description: String,
}

/// Why the engine itself cannot be opened by this version.
const NO_ENGINE: &str =
    "the engine needs a Mac with Apple silicon and a route to it, which this version does not have; use cpu or emulator:<chip>";

/// Opens a device: `null`, `reference`, `cpu`, `emulator:<chip>`, `ane`, or `auto`, which is the best of this machine and says which
/// by its [`Device::name`].
///
/// # Errors
/// [`DeviceError::UnknownDevice`] for any other name, [`DeviceError::NotHere`] for a device that this machine cannot provide.
pub fn open(name: &str) -> Result<Arc<dyn Device>, DeviceError> {
    if let Some(chip) = name.strip_prefix("emulator:") {
        let chip = Chip::find(chip).ok_or_else(|| unknown(name))?;
        return Ok(Arc::new(Emulator::new(chip, EmulatorOptions::default())));
    }
    match name {
        "null" => Ok(Arc::new(Null)),
        "reference" => Ok(Arc::new(Reference)),
        "cpu" | "auto" => Ok(Arc::new(Cpu::default())),
        "ane" => Err(DeviceError::NotHere { name: name.to_string(), reason: NO_ENGINE.to_string() }),
        _ => Err(unknown(name)),
    }
}

/// Every device there is, available or not.
pub fn devices() -> Vec<DeviceInfo> {
    let mut all: Vec<DeviceInfo> = Vec::new();
    let mut add = |device: &dyn Device| {
        all.push(DeviceInfo { name: device.name().to_string(), available: true, description: device.describe() });
    };
    add(&Null);
    add(&Reference);
    add(&Cpu::default());
    for chip in chips() {
        add(&Emulator::new(chip, EmulatorOptions::default()));
    }
    all.push(DeviceInfo { name: "ane".to_string(), available: false, description: NO_ENGINE.to_string() });
    all.push(DeviceInfo {
        name: "auto".to_string(),
        available: true,
        description: "cpu, because this version has no route to an engine".to_string(),
    });
    all
}

fn unknown(name: &str) -> DeviceError {
    let chips = chips().iter().map(|chip| chip.name).collect::<Vec<_>>().join("|");
    DeviceError::UnknownDevice {
        name: name.to_string(),
        known: format!("auto, null, reference, cpu, ane, emulator:<chip> with chip one of {chips}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_available_device_opens_under_its_name() {
        for info in devices() {
            match open(&info.name) {
                Ok(device) if info.name == "auto" => assert_eq!(device.name(), "cpu"),
                Ok(device) => assert_eq!(device.name(), info.name),
                Err(error) => assert!(error.is_not_here() && !info.available, "{error}"),
            }
        }
    }

    #[test]
    fn an_unknown_device_or_chip_is_an_error_that_lists_what_there_is() {
        for name in ["gpu", "emulator:m0", "emulator:", "CPU"] {
            let error = open(name).unwrap_err();
            assert!(!error.is_not_here());
            assert!(error.to_string().contains("reference") && error.to_string().contains("m1"), "{error}");
        }
    }
}
