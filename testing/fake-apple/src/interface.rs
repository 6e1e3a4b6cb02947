//! What the two front ends, e5rt and the Objective-C classes, and the daemon behind them say to each other.

use std::ptr::NonNull;

/// Form of a program in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramKind {
    /// `model.mil` and the weights it names.
    Mil,
    /// `net.plist` and the weights it names.
    Network,
}

/// The way a program reached the daemon; some refusals hold for one way only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The e5rt functions.
    E5rt,
    /// `_ANEInMemoryModel`.
    InMemory,
    /// `_ANEModel` and `_ANEClient`.
    Client,
}

/// Options of a compile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Compiler's name of a chip other than this machine's, for example `h16`.
    pub target_architecture: Option<String>,
}

/// A failure as the frameworks report one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Number.
    pub code: i64,
    /// Domain of the error object.
    pub domain: String,
    /// What it says.
    pub text: String,
}

impl Fault {
    /// A failure.
    pub fn new(domain: &str, code: i64, text: impl Into<String>) -> Self {
        Self { code, domain: domain.to_string(), text: text.into() }
    }
}

/// Element type of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Element {
    F16,
    F32,
    I8,
    I16,
    I32,
    U8,
    U16,
    Bool,
}

impl Element {
    /// Bytes of one.
    pub fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 | Self::Bool => 1,
            Self::F16 | Self::I16 | Self::U16 => 2,
            Self::F32 | Self::I32 => 4,
        }
    }

    /// Name in the live lists of a network.
    pub fn name(self) -> &'static str {
        match self {
            Self::F16 => "Float16",
            Self::F32 => "Float32",
            Self::I8 => "Int8",
            Self::I16 => "Int16",
            Self::I32 => "Int32",
            Self::U8 => "UInt8",
            Self::U16 => "UInt16",
            Self::Bool => "Bool",
        }
    }
}

/// An input or output of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Name.
    pub name: String,
    /// Element type.
    pub element: Element,
    /// Shape of the program: any rank for MIL, batch, channel, depth, height, width for a network.
    pub shape: Vec<usize>,
    /// Bytes from one element to the next, per axis of `shape`.
    pub strides: Vec<usize>,
    /// Bytes that the port's memory needs.
    pub bytes: usize,
}

/// A function of a program; a network has one, `main`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Name.
    pub name: String,
    /// Inputs as declared.
    pub inputs: Vec<Port>,
    /// Outputs as declared.
    pub outputs: Vec<Port>,
}

/// Memory that an execution reads. Plain addresses, because an output may be bound to the memory of an input: an execution
/// reads all its inputs before it writes anything.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// First byte.
    pub start: NonNull<u8>,
    /// Bytes.
    pub bytes: usize,
}

/// Memory that an execution writes.
#[derive(Clone, Copy, Debug)]
pub struct ViewMut {
    /// First byte.
    pub start: NonNull<u8>,
    /// Bytes.
    pub bytes: usize,
}
