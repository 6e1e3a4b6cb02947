//! `manifest.json`: what a bundle holds, for people and for whoever loads it.

use crate::{Link, SegmentKind};
use aneforge_mil::{Body, Port, Program, TensorType, Type};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

/// Version of the manifest's layout.
pub const SCHEMA: u32 = 1;

/// The contents of `manifest.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Layout version, [`SCHEMA`].
    pub schema: u32,
    /// Version of ANEForge that wrote the bundle.
    pub version: String,
    /// Target, `generic` or a chip's name.
    pub target: String,
    /// Dialect of the program text, `program(1.3)/ios18` or the older one.
    pub dialect: String,
    /// Inputs in call order.
    pub inputs: Vec<PortEntry>,
    /// Outputs in order.
    pub outputs: Vec<PortEntry>,
    /// State buffers; empty where the program keeps none.
    pub state: Vec<PortEntry>,
    /// Operators that expand weights, separated by commas; `none` where all are dense.
    pub compression: String,
    /// Segments in the order in which they run; empty where the program is whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<SegmentEntry>,
    /// Where the outputs come from, where the program is in segments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<Link>,
    /// Functions where there are several; inputs, outputs and states above are those of the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<String>,
    /// Files of the bundle with size and hash.
    pub files: Vec<FileEntry>,
}

/// A segment of a program: a MIL program or a network of native layers in a folder of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentEntry {
    /// What it is made of.
    pub kind: SegmentKind,
    /// Where each of its inputs comes from.
    pub inputs: Vec<Link>,
}

/// A named port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortEntry {
    /// Port name.
    pub name: String,
    /// Element type keyword.
    pub dtype: String,
    /// Extents.
    pub shape: Vec<usize>,
}

/// A file of the bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Name within the bundle.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// [`FileHash`] of the contents in hex. It tells damage, not forgery.
    pub xxh3: String,
}

/// The 128-bit XXH3 hash of a file, fed in pieces. Weights are hashed while they are written, at the speed of memory.
#[derive(Clone, Default)]
pub struct FileHash(Xxh3);

impl FileHash {
    /// The hash of nothing yet.
    pub fn new() -> Self {
        Self(Xxh3::new())
    }

    /// Takes the file's next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The hash in hex.
    pub fn to_hex(&self) -> String {
        format!("{:032x}", self.0.digest128())
    }
}

impl std::fmt::Debug for FileHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FileHash({})", self.to_hex())
    }
}

impl PortEntry {
    fn new(name: &str, ty: &TensorType) -> Self {
        Self { name: name.to_string(), dtype: ty.dtype.keyword().to_string(), shape: ty.shape.clone() }
    }
}

/// The ports of a program's first function as its text names them.
#[derive(Clone, Debug, Default)]
pub struct Ports {
    /// Inputs in call order, states left out.
    pub inputs: Vec<PortEntry>,
    /// Outputs in order.
    pub outputs: Vec<PortEntry>,
    /// States.
    pub states: Vec<PortEntry>,
}

/// Reads the ports off a program.
pub fn ports(program: &Program) -> Ports {
    let Some(function) = program.functions.first() else { return Ports::default() };
    let entry = |port: &Port| port.ty.as_tensor().map(|ty| PortEntry::new(&port.name, &ty));
    let results: Vec<&Port> = function.inputs.iter().chain(function.body.iter().flat_map(|s| &s.outputs)).collect();
    let (states, inputs): (Vec<_>, Vec<_>) = function.inputs.iter().partition(|port| matches!(port.ty, Type::State(_)));
    let named = |name: &String| results.iter().copied().find(|port| port.name == *name);
    let outputs = function.outputs.iter().filter_map(named).filter_map(entry).collect();
    let list = |ports: Vec<&Port>| ports.into_iter().filter_map(entry).collect();
    Ports { inputs: list(inputs), outputs, states: list(states) }
}

/// The ports of a body under their names: inputs, then outputs.
pub fn body_ports(body: &Body) -> (Vec<PortEntry>, Vec<PortEntry>) {
    let inputs = body.inputs.iter().map(|&id| PortEntry::new(&body.value(id).name, body.ty(id))).collect();
    (inputs, body.outputs.iter().map(|output| PortEntry::new(&output.name, body.ty(output.value))).collect())
}
