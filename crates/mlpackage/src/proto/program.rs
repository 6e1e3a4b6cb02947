//! `MIL.proto`: the program. Maps are ordered so that equal programs give equal bytes.

use prost::{Message, Oneof};
use std::collections::BTreeMap;

/// `MILSpec.Program`.
#[derive(Clone, PartialEq, Message)]
pub struct Program {
    #[prost(int64, tag = "1")]
    pub version: i64,
    #[prost(btree_map = "string, message", tag = "2")]
    pub functions: BTreeMap<String, Function>,
    #[prost(btree_map = "string, message", tag = "4")]
    pub attributes: BTreeMap<String, Value>,
}

/// `MILSpec.Function`: inputs, and a block per op-set of which `opset` names the one in use.
#[derive(Clone, PartialEq, Message)]
pub struct Function {
    #[prost(message, repeated, tag = "1")]
    pub inputs: Vec<NamedValueType>,
    #[prost(string, tag = "2")]
    pub opset: String,
    #[prost(btree_map = "string, message", tag = "3")]
    pub blocks: BTreeMap<String, Block>,
}

/// `MILSpec.Block`.
#[derive(Clone, PartialEq, Message)]
pub struct Block {
    #[prost(message, repeated, tag = "1")]
    pub inputs: Vec<NamedValueType>,
    #[prost(string, repeated, tag = "2")]
    pub outputs: Vec<String>,
    #[prost(message, repeated, tag = "3")]
    pub operations: Vec<Operation>,
}

/// `MILSpec.Operation`.
#[derive(Clone, PartialEq, Message)]
pub struct Operation {
    #[prost(string, tag = "1")]
    pub op: String,
    #[prost(btree_map = "string, message", tag = "2")]
    pub inputs: BTreeMap<String, Argument>,
    #[prost(message, repeated, tag = "3")]
    pub outputs: Vec<NamedValueType>,
    #[prost(message, repeated, tag = "4")]
    pub blocks: Vec<Block>,
    #[prost(btree_map = "string, message", tag = "5")]
    pub attributes: BTreeMap<String, Value>,
}

/// `MILSpec.Argument`: what stands at one port.
#[derive(Clone, PartialEq, Message)]
pub struct Argument {
    #[prost(message, repeated, tag = "1")]
    pub arguments: Vec<Binding>,
}

/// `MILSpec.Argument.Binding`.
#[derive(Clone, PartialEq, Message)]
pub struct Binding {
    #[prost(oneof = "Bound", tags = "1, 2")]
    pub bound: Option<Bound>,
}

/// A name or a literal.
#[derive(Clone, PartialEq, Oneof)]
pub enum Bound {
    #[prost(string, tag = "1")]
    Name(String),
    #[prost(message, tag = "2")]
    Value(Value),
}

/// `MILSpec.NamedValueType`.
#[derive(Clone, PartialEq, Message)]
pub struct NamedValueType {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    pub ty: Option<ValueType>,
}

/// `MILSpec.ValueType`.
#[derive(Clone, PartialEq, Message)]
pub struct ValueType {
    #[prost(oneof = "TypeKind", tags = "1, 2, 3, 4, 5")]
    pub kind: Option<TypeKind>,
}

/// Which type it is.
#[derive(Clone, PartialEq, Oneof)]
pub enum TypeKind {
    #[prost(message, tag = "1")]
    Tensor(TensorType),
    #[prost(message, boxed, tag = "2")]
    List(Box<ListType>),
    #[prost(message, tag = "3")]
    Tuple(TupleType),
    #[prost(message, boxed, tag = "4")]
    Dictionary(Box<DictionaryType>),
    #[prost(message, boxed, tag = "5")]
    State(Box<StateType>),
}

/// `MILSpec.TensorType`.
#[derive(Clone, PartialEq, Message)]
pub struct TensorType {
    #[prost(int32, tag = "1")]
    pub data_type: i32,
    #[prost(int64, tag = "2")]
    pub rank: i64,
    #[prost(message, repeated, tag = "3")]
    pub dimensions: Vec<Dimension>,
}

/// `MILSpec.ListType`.
#[derive(Clone, PartialEq, Message)]
pub struct ListType {
    #[prost(message, optional, boxed, tag = "1")]
    pub element: Option<Box<ValueType>>,
    #[prost(message, optional, tag = "2")]
    pub length: Option<Dimension>,
}

/// `MILSpec.TupleType`.
#[derive(Clone, PartialEq, Message)]
pub struct TupleType {
    #[prost(message, repeated, tag = "1")]
    pub types: Vec<ValueType>,
}

/// `MILSpec.DictionaryType`.
#[derive(Clone, PartialEq, Message)]
pub struct DictionaryType {
    #[prost(message, optional, boxed, tag = "1")]
    pub key: Option<Box<ValueType>>,
    #[prost(message, optional, boxed, tag = "2")]
    pub value: Option<Box<ValueType>>,
}

/// `MILSpec.StateType`.
#[derive(Clone, PartialEq, Message)]
pub struct StateType {
    #[prost(message, optional, boxed, tag = "1")]
    pub wrapped: Option<Box<ValueType>>,
}

/// `MILSpec.Dimension`.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Dimension {
    #[prost(oneof = "DimensionKind", tags = "1, 2")]
    pub kind: Option<DimensionKind>,
}

/// A known extent, or one that is bound when the model runs.
#[derive(Clone, Copy, PartialEq, Oneof)]
pub enum DimensionKind {
    #[prost(message, tag = "1")]
    Constant(ConstantDimension),
    #[prost(message, tag = "2")]
    Unknown(UnknownDimension),
}

/// `Dimension.ConstantDimension`.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct ConstantDimension {
    #[prost(uint64, tag = "1")]
    pub size: u64,
}

/// `Dimension.UnknownDimension`; a variadic one stands for any number of axes.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct UnknownDimension {
    #[prost(bool, tag = "1")]
    pub variadic: bool,
}

/// `MILSpec.Value`.
#[derive(Clone, PartialEq, Message)]
pub struct Value {
    #[prost(message, optional, tag = "2")]
    pub ty: Option<ValueType>,
    #[prost(oneof = "ValueData", tags = "3, 5")]
    pub data: Option<ValueData>,
}

/// Where the data of a value are.
#[derive(Clone, PartialEq, Oneof)]
pub enum ValueData {
    #[prost(message, tag = "3")]
    Immediate(ImmediateValue),
    #[prost(message, tag = "5")]
    Blob(BlobFileValue),
}

/// `Value.BlobFileValue`.
#[derive(Clone, PartialEq, Message)]
pub struct BlobFileValue {
    #[prost(string, tag = "1")]
    pub file_name: String,
    #[prost(uint64, tag = "2")]
    pub offset: u64,
}

/// `Value.ImmediateValue`.
#[derive(Clone, PartialEq, Message)]
pub struct ImmediateValue {
    #[prost(oneof = "ImmediateKind", tags = "1, 2, 3, 4")]
    pub kind: Option<ImmediateKind>,
}

/// What an immediate value is; nothing here computes with tuples, lists and dictionaries.
#[derive(Clone, PartialEq, Oneof)]
pub enum ImmediateKind {
    #[prost(message, tag = "1")]
    Tensor(TensorValue),
    #[prost(message, tag = "2")]
    Tuple(super::Skipped),
    #[prost(message, tag = "3")]
    List(super::Skipped),
    #[prost(message, tag = "4")]
    Dictionary(super::Skipped),
}

/// `MILSpec.TensorValue`.
#[derive(Clone, PartialEq, Message)]
pub struct TensorValue {
    #[prost(oneof = "Elements", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub elements: Option<Elements>,
}

/// Elements row major; element types without a list of their own are packed little-endian into `Bytes`.
#[derive(Clone, PartialEq, Oneof)]
pub enum Elements {
    #[prost(message, tag = "1")]
    Floats(RepeatedFloats),
    #[prost(message, tag = "2")]
    Ints(RepeatedInts),
    #[prost(message, tag = "3")]
    Bools(RepeatedBools),
    #[prost(message, tag = "4")]
    Strings(RepeatedStrings),
    #[prost(message, tag = "5")]
    LongInts(RepeatedLongInts),
    #[prost(message, tag = "6")]
    Doubles(RepeatedDoubles),
    #[prost(message, tag = "7")]
    Bytes(RepeatedBytes),
}

/// `TensorValue.RepeatedFloats`.
#[derive(Clone, PartialEq, Message)]
pub struct RepeatedFloats {
    #[prost(float, repeated, tag = "1")]
    pub values: Vec<f32>,
}

/// `TensorValue.RepeatedInts`.
#[derive(Clone, PartialEq, Message)]
pub struct RepeatedInts {
    #[prost(int32, repeated, tag = "1")]
    pub values: Vec<i32>,
}

/// `TensorValue.RepeatedBools`.
#[derive(Clone, PartialEq, Message)]
pub struct RepeatedBools {
    #[prost(bool, repeated, tag = "1")]
    pub values: Vec<bool>,
}

/// `TensorValue.RepeatedStrings`.
#[derive(Clone, PartialEq, Message)]
pub struct RepeatedStrings {
    #[prost(string, repeated, tag = "1")]
    pub values: Vec<String>,
}

/// `TensorValue.RepeatedLongInts`.
#[derive(Clone, PartialEq, Message)]
pub struct RepeatedLongInts {
    #[prost(int64, repeated, tag = "1")]
    pub values: Vec<i64>,
}

/// `TensorValue.RepeatedDoubles`.
#[derive(Clone, PartialEq, Message)]
pub struct RepeatedDoubles {
    #[prost(double, repeated, tag = "1")]
    pub values: Vec<f64>,
}

/// `TensorValue.RepeatedBytes`.
#[derive(Clone, PartialEq, Message)]
pub struct RepeatedBytes {
    #[prost(bytes = "vec", tag = "1")]
    pub values: Vec<u8>,
}
