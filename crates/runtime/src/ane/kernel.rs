//! A program of one segment on one of the routes.

use super::fault::Fault;
use super::layout::Strided;
use super::options::AneOptions;
use super::policy::ResidentError;
use super::shared::Shared;
use super::stats::Counts;
use super::{e5rt, memory};
use crate::Buffer;
use std::sync::Arc;

/// What a segment's program needs beside its files.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) shared: Arc<Shared>,
    pub(crate) options: Arc<AneOptions>,
    pub(crate) counts: Arc<Counts>,
    /// Identifies the program among all of the process.
    pub(crate) key: String,
}

/// Which ports of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Input = 0,
    Output = 1,
}

/// A program on a route.
pub(crate) enum Kernel {
    E5rt(e5rt::Program),
    Memory(memory::Program),
}

/// A program on the engine with its buffers.
pub(crate) enum Loaded {
    E5rt(e5rt::Loaded),
    Memory(memory::Loaded),
}

impl Kernel {
    pub(crate) fn route(&self) -> &'static str {
        match self {
            Self::E5rt(_) => "e5rt",
            Self::Memory(program) => program.route(),
        }
    }

    pub(crate) fn is_e5rt(&self) -> bool {
        matches!(self, Self::E5rt(_))
    }

    /// Compiles the program. A model that is only described once it is loaded takes a place among the loaded ones for that time.
    pub(crate) fn compile(&self, shared: &Shared) -> Result<(), ResidentError<Fault>> {
        match self {
            Self::E5rt(program) => program.compile().map(drop).map_err(ResidentError::Failed),
            Self::Memory(program) => shared.residents.add().with(|| program.open().map(Loaded::Memory), |_| Ok(())),
        }
    }

    /// The in-memory program, where it is one.
    pub(crate) fn memory(&self) -> Option<&memory::Program> {
        match self {
            Self::E5rt(_) => None,
            Self::Memory(program) => Some(program),
        }
    }

    /// Memory for a port.
    pub(crate) fn allocate(&self, side: Side, bytes: usize) -> Result<Buffer, Fault> {
        match self {
            Self::E5rt(program) => program.allocate(bytes),
            Self::Memory(program) => program.allocate(side),
        }
    }

    /// Whether a buffer can stand at a port as it is.
    pub(crate) fn takes(&self, side: Side, buffer: &Buffer) -> bool {
        match self {
            Self::E5rt(program) => program.takes(buffer),
            Self::Memory(program) => program.takes(side, buffer),
        }
    }

    /// The layout of a port whose elements do not simply follow each other.
    pub(crate) fn strided(&self, side: Side, port: usize) -> Option<&Strided> {
        self.memory().and_then(|program| program.strided(side, port))
    }

    pub(crate) fn load(&self, inputs: &[Buffer], outputs: &[Buffer]) -> Result<Loaded, Fault> {
        match self {
            Self::E5rt(program) => program.load(inputs, outputs).map(Loaded::E5rt),
            Self::Memory(program) => program.load(inputs, outputs).map(Loaded::Memory),
        }
    }

    /// Forgets what was compiled, where the engine lost it.
    pub(crate) fn forget(&self) {
        match self {
            Self::E5rt(program) => program.forget(),
            Self::Memory(program) => program.forget(),
        }
    }
}

impl Loaded {
    pub(crate) fn execute(&mut self) -> Result<(), Fault> {
        match self {
            Self::E5rt(loaded) => loaded.execute(),
            Self::Memory(loaded) => loaded.execute(),
        }
    }
}
