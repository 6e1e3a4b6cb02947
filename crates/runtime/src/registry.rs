//! Devices by name.

use crate::ane::{self, Ane};
use crate::emulator::{Emulator, EmulatorOptions};
use crate::numerics::Dump;
use crate::{Cpu, Device, DeviceError, Null, Reference};
use aneforge_core::{Chip, chips};
use std::path::Path;
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

/// Opens a device: `null`, `reference`, `cpu`, `emulator:<chip>`, `emulator:<file>` with a dump of a chip's answers, `ane` and `fake`
/// with or without a route, or `auto`, which is the best of this machine and says which by its [`Device::name`] and why by its line in [`devices`].
///
/// `fake` is `ane` on the library that `ANEFORGE_FAKE_APPLE` names, in place of Apple's frameworks.
///
/// # Errors
/// [`DeviceError::UnknownDevice`] for any other name, [`DeviceError::NotHere`] for a device that this machine cannot provide.
pub fn open(name: &str) -> Result<Arc<dyn Device>, DeviceError> {
    if let Some(which) = name.strip_prefix("emulator:") {
        let options = EmulatorOptions::default();
        return match Chip::find(which) {
            Some(chip) => Ok(Arc::new(Emulator::new(chip, options))),
            None if is_path(which) => {
                let fault = |problem| DeviceError::Dump { path: which.to_string(), problem };
                let dump = Dump::read(Path::new(which)).map_err(fault)?;
                Ok(Arc::new(Emulator::from_dump(which, &dump, options).map_err(fault)?))
            }
            None => Err(unknown(name)),
        };
    }
    match name {
        "null" => Ok(Arc::new(Null)),
        "reference" => Ok(Arc::new(Reference)),
        "cpu" => Ok(Arc::new(Cpu::default())),
        "auto" => Ok(engine("ane").unwrap_or_else(|_| Arc::new(Cpu::default()))),
        _ => engine(name),
    }
}

/// The engine by name.
fn engine(name: &str) -> Result<Arc<dyn Device>, DeviceError> {
    let options = ane::options(name)?.ok_or_else(|| unknown(name))?;
    Ok(Arc::new(Ane::open(options)?))
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
    let mut why = String::new();
    for name in ["ane", "ane:e5rt", "ane:in-memory", "ane:client", "fake", "fake:e5rt", "fake:in-memory", "fake:client"] {
        let (available, description) = match engine(name) {
            Ok(device) => (true, device.describe()),
            Err(error) => (false, error.to_string()),
        };
        if name == "ane" {
            why = if available { format!("ane: {description}") } else { format!("cpu, because {description}") };
        }
        all.push(DeviceInfo { name: name.to_string(), available, description });
    }
    all.push(DeviceInfo { name: "auto".to_string(), available: true, description: why });
    all
}

/// Whether a word after `emulator:` is meant as a file.
fn is_path(word: &str) -> bool {
    word.contains(['/', '.']) || Path::new(word).is_file()
}

fn unknown(name: &str) -> DeviceError {
    let chips = chips().iter().map(|chip| chip.name).collect::<Vec<_>>().join("|");
    DeviceError::UnknownDevice {
        name: name.to_string(),
        known: format!(
            "auto, null, reference, cpu, ane, fake (both also with :e5rt, :in-memory or :client), emulator:<chip> with chip one of {chips}, \
             emulator:<file> with a report of `aneforge doctor --report`"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_available_device_opens_under_its_name() {
        for info in devices() {
            match open(&info.name) {
                Ok(device) if info.name == "auto" => assert!(info.description.starts_with(device.name()), "{}", info.description),
                Ok(device) => assert_eq!(device.name(), info.name),
                Err(error) => assert!(error.is_not_here() && !info.available, "{error}"),
            }
        }
    }

    #[test]
    fn an_unknown_device_or_chip_is_an_error_that_lists_what_there_is() {
        for name in ["gpu", "emulator:m0", "emulator:", "CPU", "ane:", "ane:metal", "fake:"] {
            let error = open(name).unwrap_err();
            assert!(!error.is_not_here());
            assert!(error.to_string().contains("reference") && error.to_string().contains("m1"), "{error}");
        }
    }
}
