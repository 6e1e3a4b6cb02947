//! A MIL program as data: what the text says, statement by statement, before names are resolved.

use crate::{DType, Type};

/// A whole program: header, attributes, functions.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// `program(major.minor)`.
    pub version: (u32, u32),
    /// Program attributes in text order; `buildInfo` is the usual one.
    pub attributes: Vec<Attribute>,
    /// Functions in text order.
    pub functions: Vec<Function>,
}

/// A `name = literal` pair in an attribute list.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// Attribute name.
    pub name: String,
    /// Its value.
    pub value: Literal,
}

/// One function with its op-set.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Function name, `main` for the only one.
    pub name: String,
    /// Op-set keyword, for example `ios18`.
    pub opset: String,
    /// Inputs in call order.
    pub inputs: Vec<Port>,
    /// Attribute list after the signature, usually empty.
    pub attributes: Vec<Attribute>,
    /// Statements in order.
    pub body: Vec<Statement>,
    /// Names of the results.
    pub outputs: Vec<String>,
}

/// A named, typed input or result.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// SSA name.
    pub name: String,
    /// Declared type.
    pub ty: Type,
}

/// `TYPE a, TYPE b = op(arguments)[attributes];`, or the operator alone where it gives nothing.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Results; none where the statement only has an effect.
    pub outputs: Vec<Port>,
    /// Operator keyword.
    pub op: String,
    /// Named arguments in text order.
    pub arguments: Vec<(String, Argument)>,
    /// Attributes in text order; constants and `constexpr_*` carry their data here.
    pub attributes: Vec<Attribute>,
    /// Where the statement stands in its source text; ignored by `==`.
    pub location: Location,
}

impl PartialEq for Statement {
    fn eq(&self, other: &Self) -> bool {
        self.outputs == other.outputs
            && self.op == other.op
            && self.arguments == other.arguments
            && self.attributes == other.attributes
    }
}

/// A place in source text, both counted from 1; zero means that there is no source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// Line.
    pub line: u32,
    /// Column in characters.
    pub column: u32,
}

/// The value of an argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// An SSA name.
    Name(String),
    /// An inline literal.
    Literal(Literal),
    /// `(a, b, c)`, for variadic ports.
    Tuple(Vec<Argument>),
}

/// A typed literal such as `fp16(0x1p-1)` or `tensor<int32, [2]>([1, 1])`.
#[derive(Clone, Debug, PartialEq)]
pub struct Literal {
    /// Its written type.
    pub ty: Type,
    /// Its value.
    pub value: LiteralValue,
}

/// The value of a literal.
#[derive(Clone, Debug)]
pub enum LiteralValue {
    /// `true` or `false`.
    Bool(bool),
    /// Any integer type.
    Int(i128),
    /// Any float type; the number is exactly the value after rounding to the written type.
    Float(f64),
    /// A string.
    Text(String),
    /// Elements of a tensor, row major and flat, or of a list or tuple.
    Elements(Vec<LiteralValue>),
    /// `{{key, value}, ...}` of a dict.
    Pairs(Vec<(Literal, Literal)>),
    /// `BLOBFILE(path = ..., offset = ...)`: data of the declared type in a weight file.
    Blob {
        /// Path as written, `@model_path/weights.bin` for the file beside the program.
        path: String,
        /// Byte offset of the blob's descriptor.
        offset: u64,
    },
}

impl PartialEq for LiteralValue {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            // Bits, so that NaN equals itself and the zeros differ: the text keeps both.
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Elements(a), Self::Elements(b)) => a == b,
            (Self::Pairs(a), Self::Pairs(b)) => a == b,
            (Self::Blob { path: a, offset: i }, Self::Blob { path: b, offset: j }) => a == b && i == j,
            _ => false,
        }
    }
}

impl Literal {
    /// A `string("...")` literal.
    pub fn text(text: impl Into<String>) -> Self {
        Self { ty: Type::Scalar(DType::String), value: LiteralValue::Text(text.into()) }
    }

    /// A scalar bool.
    pub fn flag(value: bool) -> Self {
        Self { ty: Type::Scalar(DType::Bool), value: LiteralValue::Bool(value) }
    }

    /// A scalar integer of the given type.
    pub fn int(dtype: DType, value: i128) -> Self {
        Self { ty: Type::Scalar(dtype), value: LiteralValue::Int(value) }
    }

    /// A scalar float of the given type; the caller has rounded it.
    pub fn float(dtype: DType, value: f64) -> Self {
        Self { ty: Type::Scalar(dtype), value: LiteralValue::Float(value) }
    }
}
