//! The closed set of predicates that rules are made of.

use super::body;
use super::subject::Subject;
use aneforge_mil::{Argument, DType, Program, Type};
use serde::Deserialize;

/// What a rule is about. Ports and operators are called what MIL or net.plist calls them; fields are what the sentences speak of.
#[allow(missing_docs)]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub enum What {
    /// A literal stands at one of the ports instead of the name of a constant.
    InlineLiteral { ports: Vec<String> },
    /// A scalar type without `tensor<>` under a header below this version.
    ShorthandBelow { version: (u32, u32) },
    /// An op-set above this one under a header below this version.
    OpsetAbove { opset: String, below: (u32, u32) },
    /// A state among the inputs.
    State {},
    /// One of the operators.
    Operator { ops: Vec<String> },
    /// Something stands at the port.
    PortGiven { op: String, port: String },
    /// Nothing stands at the port.
    PortMissing { op: String, port: String },
    /// The value at the port has at least this rank.
    PortRank { op: String, port: String, at_least: usize },
    /// An extent of the value at the port is above this number; the axis counts from the end where it is negative.
    PortExtent { op: String, port: String, axis: i64, above: usize },
    /// The number at the port is one of these.
    PortNumber { op: String, port: String, is: Vec<i64> },
    /// The extent along the axis that the operator works on is above this number.
    ReducedExtent { op: String, above: usize },
    /// The extent along the axis that the operator works on is no power of two.
    NotPowerOfTwo { op: String },
    /// The weight at the port is not known when the program is compiled: with more than one group, or with a batch of at least this.
    RuntimeWeight {
        op: String,
        port: String,
        #[serde(default)]
        grouped: bool,
        #[serde(default)]
        batch: Option<usize>,
    },
    /// The value at one of the ports is made by an operator whose name begins so.
    MadeBy { ops: Vec<String>, ports: Vec<String>, by: String },
    /// The value at the port is an input of the function.
    TakesInput { op: String, port: String },
    /// A conversion between element types; every type where one is left out.
    Conversion {
        #[serde(default)]
        from: Option<String>,
        #[serde(default)]
        to: Option<String>,
    },
    /// An extent of any value is above this number, the channel axis of four axes alone or left out.
    Extent { above: usize, channels: bool },
    /// A port of the function has one of the element types.
    PortType { types: Vec<String> },
    /// An output that is an input.
    UnmadeOutput {},
    /// An output made by the operator, in a function with more than one output.
    OneOfOutputs { op: String },
    /// A normalisation over one of these extents, or over at least one of this size.
    NormExtent { op: String, is: Vec<usize>, at_least: usize },
    /// A normalisation with gain or offset, of at least this rank, over at least this extent.
    NormAffine { op: String, rank: usize, at_least: usize },
    /// The product of a reduction's result with zero.
    ZeroProduct {},
    /// `square` whose width leaves more than this remainder, read by a table function.
    SquareWidth { modulus: usize, above: usize },
    /// A convolution whose kernel and stride are alike and longer than one.
    PatchConvolution {},
    /// Constants of more than this many bytes.
    ConstantBytes { above: u64 },
    /// A matrix product of values alone whose inner extent is no multiple of this.
    InnerExtent { multiple: usize },
    /// A surface smaller than the setting's limit.
    SmallSurface {},
    /// Inputs, or outputs, of several sizes.
    UnequalSurfaces { outputs: bool },
    /// Inputs that do not ascend, or outputs that do not descend, in size.
    UnorderedSurfaces { outputs: bool },
}

impl What {
    /// What was found, where the subject is of the kind that the predicate looks at and it meets it.
    pub fn meets(&self, subject: &Subject<'_>) -> Option<String> {
        match subject {
            Subject::Text(program) => self.in_text(program),
            Subject::Body(function) => body::meets(self, function),
            Subject::Surfaces { inputs, outputs, least } => self.in_surfaces(inputs, outputs, *least),
        }
    }

    fn in_text(&self, program: &Program) -> Option<String> {
        match self {
            Self::InlineLiteral { ports } => inline(program, ports),
            Self::ShorthandBelow { version } if program.version < *version => shorthand(program),
            Self::OpsetAbove { opset, below } if program.version < *below => {
                let above = program.functions.iter().find(|function| opset_number(&function.opset) > opset_number(opset))?;
                Some(format!("op-set {} under program({}.{})", above.opset, program.version.0, program.version.1))
            }
            Self::State {} => {
                let mut ports = program.functions.iter().flat_map(|function| &function.inputs);
                ports.find(|port| matches!(port.ty, Type::State(_))).map(|port| format!("input {:?} is a state", port.name))
            }
            _ => None,
        }
    }

    fn in_surfaces(&self, inputs: &[usize], outputs: &[usize], least: usize) -> Option<String> {
        let sides = [("inputs", inputs), ("outputs", outputs)];
        match self {
            Self::SmallSurface {} => {
                let small = inputs.iter().chain(outputs).find(|&&bytes| bytes < least)?;
                Some(format!("a surface of {small} bytes, {least} are the least"))
            }
            Self::UnequalSurfaces { outputs } => {
                let (side, sizes) = sides[usize::from(*outputs)];
                sizes.iter().any(|bytes| Some(bytes) != sizes.first()).then(|| format!("{side} of {sizes:?} bytes"))
            }
            Self::UnorderedSurfaces { outputs } => {
                let (side, sizes) = sides[usize::from(*outputs)];
                let ordered = |pair: &[usize]| if *outputs { pair[0] > pair[1] } else { pair[0] < pair[1] };
                (!sizes.windows(2).all(ordered)).then(|| format!("{side} of {sizes:?} bytes in this order"))
            }
            _ => None,
        }
    }
}

/// `ios18` is 18.
fn opset_number(name: &str) -> u32 {
    name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0)
}

fn inline(program: &Program, ports: &[String]) -> Option<String> {
    let statements = program.functions.iter().flat_map(|function| &function.body);
    for statement in statements.filter(|statement| statement.op != "const" && !statement.op.starts_with("constexpr_")) {
        let literal =
            statement.arguments.iter().find(|(port, argument)| matches!(argument, Argument::Literal(_)) && ports.contains(port));
        if let Some((port, _)) = literal {
            return Some(format!("{} has a literal at {port}", statement.op));
        }
    }
    None
}

fn shorthand(program: &Program) -> Option<String> {
    let scalar = |ty: &Type| matches!(ty, Type::Scalar(_));
    let statements = program.functions.iter().flat_map(|function| &function.body);
    for statement in statements {
        let typed = statement.outputs.iter().any(|port| scalar(&port.ty));
        let literal = statement.attributes.iter().any(|attribute| scalar(&attribute.value.ty));
        let argument =
            statement.arguments.iter().any(|(_, argument)| matches!(argument, Argument::Literal(literal) if scalar(&literal.ty)));
        if typed || literal || argument {
            let (major, minor) = program.version;
            return Some(format!("{} uses the scalar shorthand under program({major}.{minor})", statement.op));
        }
    }
    None
}

/// The element type that a rule names.
pub fn dtype(name: &str) -> Option<DType> {
    DType::from_keyword(name)
}
