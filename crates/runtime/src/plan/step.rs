//! One step of a plan.

use super::memory::Memory;
use crate::DeviceError;
use crate::kernel::types::Context;

/// Work on places that were decided when the program was loaded.
pub(crate) trait Step: Send + Sync {
    /// Does it.
    fn run(&self, context: Context<'static>, memory: &mut Memory<'_>) -> Result<(), DeviceError>;
}
