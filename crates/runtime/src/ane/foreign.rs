//! Whether a text compiles for the engine of another machine.

use super::device::Ane;
use super::e5rt;
use super::error::{AneError, Refusal, Step};
use super::fault::{Fault, Kind};
use super::options::named;
use super::patience::within;
use crate::DeviceError;
use aneforge_staging::Staging;
use std::path::Path;

impl Ane {
    /// Asks the compiler of this system for a program text, weights beside it, for an architecture such as `h13`. The result is dropped:
    /// a program of another architecture cannot be loaded (PyPI package aneforge 0.4.0, which checks programs this way; the option is
    /// the ANE guide's, arXiv 2606.22283, chapter 8). A name that the compiler does not know is reported to count as this machine's.
    ///
    /// # Errors
    /// [`AneError::Refused`] where it does not compile, [`AneError::Silent`] where the call does not return,
    /// [`AneError::System`] where the frameworks lack the option.
    pub fn compile_for(&self, text: &Path, architecture: &str) -> Result<(), DeviceError> {
        let system = |error: aneforge_sys::SysError| DeviceError::from(AneError::System(error.to_string()));
        let runtime = self.frameworks().e5rt().map_err(system)?;
        let fail = |error: std::io::Error| {
            let path = self.cache().root().display().to_string();
            DeviceError::from(AneError::Cache { path, problem: error.to_string() })
        };
        // Nothing of it is kept, and nothing that is kept is found.
        let bundles = Staging::beside(&self.cache().root().join("foreign")).map_err(fail)?;
        let (place, option) = (bundles.path().to_path_buf(), format!("TargetArchitecture={architecture}"));
        let (program, path) = (text.display().to_string(), text.to_path_buf());
        let call = move || e5rt::compile(&runtime, &path, &place, true, Some(&option)).map(drop);
        let done = within(self.options().patience, Step::Compile, call);
        let done = done.and_then(|result| result.map_err(|error| Fault::of(Step::Compile, &error)));
        done.map_err(|fault| {
            let device = crate::Device::name(self).to_string();
            match fault.kind {
                Kind::Silent(waited) => AneError::Silent { device, program, step: Step::Compile, waited },
                _ => {
                    let refusal = Refusal::of(Step::Compile, fault.text, fault.code);
                    AneError::Refused(Box::new(Refusal { device, program, ..refusal }))
                }
            }
            .into()
        })
    }
}

/// [`Ane::compile_for`] on a device by name; `None` where the name is no engine's.
///
/// # Errors
/// As [`Ane::open`] and [`Ane::compile_for`].
pub fn compile_for(device: &str, text: &Path, architecture: &str) -> Result<Option<()>, DeviceError> {
    named(device)?.map(|options| Ane::open(options)?.compile_for(text, architecture)).transpose()
}
