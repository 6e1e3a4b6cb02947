//! What the model knows of a chip before anything was measured on it.

use crate::latency::{HostClass, Traits};
use aneforge_core::{Chip, Family};

impl Traits {
    /// The generation and the memory of a chip.
    pub fn of(chip: &Chip, host: HostClass) -> Self {
        let generation = match chip.family {
            Family::A13 => 1.0,
            Family::A14 => 2.0,
            Family::A15 => 3.0,
            Family::A16 => 4.0,
            Family::A17 => 5.0,
            Family::A18 => 6.0,
        };
        Self { generation, memory: f64::from(chip.memory_bandwidth), host }
    }
}
