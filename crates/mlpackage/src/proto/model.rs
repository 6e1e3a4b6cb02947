//! `Model.proto` and `FeatureTypes.proto`: the container and what it says about inputs and outputs.

use super::Program;
use prost::{Message, Oneof};

/// `CoreML.Specification.Model`.
#[derive(Clone, PartialEq, Message)]
pub struct Model {
    #[prost(int32, tag = "1")]
    pub specification_version: i32,
    #[prost(message, optional, tag = "2")]
    pub description: Option<ModelDescription>,
    #[prost(oneof = "ModelKind", tags = "200, 201, 202, 303, 403, 500, 502")]
    pub kind: Option<ModelKind>,
}

/// The kinds of model that are common enough to be named in an error, and the one that is read.
#[derive(Clone, PartialEq, Oneof)]
pub enum ModelKind {
    #[prost(message, tag = "200")]
    PipelineClassifier(Skipped),
    #[prost(message, tag = "201")]
    PipelineRegressor(Skipped),
    #[prost(message, tag = "202")]
    Pipeline(Skipped),
    #[prost(message, tag = "303")]
    NeuralNetworkRegressor(Skipped),
    #[prost(message, tag = "403")]
    NeuralNetworkClassifier(Skipped),
    #[prost(message, tag = "500")]
    NeuralNetwork(Skipped),
    #[prost(message, tag = "502")]
    MlProgram(Program),
}

/// A message whose fields do not matter here.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Skipped {}

/// `CoreML.Specification.ModelDescription`.
#[derive(Clone, PartialEq, Message)]
pub struct ModelDescription {
    #[prost(message, repeated, tag = "20")]
    pub functions: Vec<FunctionDescription>,
    #[prost(string, tag = "21")]
    pub default_function: String,
    #[prost(message, optional, tag = "100")]
    pub metadata: Option<Metadata>,
    #[prost(message, repeated, tag = "1")]
    pub inputs: Vec<FeatureDescription>,
    #[prost(message, repeated, tag = "10")]
    pub outputs: Vec<FeatureDescription>,
    #[prost(message, repeated, tag = "13")]
    pub states: Vec<FeatureDescription>,
}

/// `CoreML.Specification.FunctionDescription`, of packages with several functions.
#[derive(Clone, PartialEq, Message)]
pub struct FunctionDescription {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, repeated, tag = "2")]
    pub inputs: Vec<FeatureDescription>,
    #[prost(message, repeated, tag = "3")]
    pub outputs: Vec<FeatureDescription>,
    #[prost(message, repeated, tag = "6")]
    pub states: Vec<FeatureDescription>,
}

/// `CoreML.Specification.Metadata`.
#[derive(Clone, PartialEq, Message)]
pub struct Metadata {
    #[prost(string, tag = "1")]
    pub short_description: String,
    #[prost(string, tag = "2")]
    pub version: String,
    #[prost(string, tag = "3")]
    pub author: String,
    #[prost(string, tag = "4")]
    pub license: String,
}

/// `CoreML.Specification.FeatureDescription`: a named input or output.
#[derive(Clone, PartialEq, Message)]
pub struct FeatureDescription {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub short_description: String,
    #[prost(message, optional, tag = "3")]
    pub ty: Option<FeatureType>,
}

/// `CoreML.Specification.FeatureType`.
#[derive(Clone, PartialEq, Message)]
pub struct FeatureType {
    #[prost(oneof = "FeatureKind", tags = "4, 5, 8")]
    pub kind: Option<FeatureKind>,
    #[prost(bool, tag = "1000")]
    pub is_optional: bool,
}

/// What a feature is.
#[derive(Clone, PartialEq, Oneof)]
pub enum FeatureKind {
    #[prost(message, tag = "4")]
    Image(ImageType),
    #[prost(message, tag = "5")]
    Array(ArrayType),
    #[prost(message, tag = "8")]
    State(StateFeature),
}

/// `CoreML.Specification.ImageFeatureType`; the colour space is not kept because pixels are not converted here.
#[derive(Clone, PartialEq, Message)]
pub struct ImageType {
    #[prost(int64, tag = "1")]
    pub width: i64,
    #[prost(int64, tag = "2")]
    pub height: i64,
}

/// `CoreML.Specification.StateFeatureType`.
#[derive(Clone, PartialEq, Message)]
pub struct StateFeature {
    #[prost(message, optional, tag = "1")]
    pub array: Option<ArrayType>,
}

/// `CoreML.Specification.ArrayFeatureType`: a multi-array.
#[derive(Clone, PartialEq, Message)]
pub struct ArrayType {
    #[prost(int64, repeated, tag = "1")]
    pub shape: Vec<i64>,
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    #[prost(oneof = "Flexibility", tags = "21, 31")]
    pub flexibility: Option<Flexibility>,
}

/// Shapes that a multi-array may have beside its default.
#[derive(Clone, PartialEq, Oneof)]
pub enum Flexibility {
    #[prost(message, tag = "21")]
    Enumerated(EnumeratedShapes),
    #[prost(message, tag = "31")]
    Range(ShapeRange),
}

/// `ArrayFeatureType.EnumeratedShapes`.
#[derive(Clone, PartialEq, Message)]
pub struct EnumeratedShapes {
    #[prost(message, repeated, tag = "1")]
    pub shapes: Vec<Shape>,
}

/// `ArrayFeatureType.Shape`.
#[derive(Clone, PartialEq, Message)]
pub struct Shape {
    #[prost(int64, repeated, tag = "1")]
    pub shape: Vec<i64>,
}

/// `ArrayFeatureType.ShapeRange`: one range per axis.
#[derive(Clone, PartialEq, Message)]
pub struct ShapeRange {
    #[prost(message, repeated, tag = "1")]
    pub ranges: Vec<SizeRange>,
}

/// `CoreML.Specification.SizeRange`; a negative upper bound is none.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct SizeRange {
    #[prost(uint64, tag = "1")]
    pub lower: u64,
    #[prost(int64, tag = "2")]
    pub upper: i64,
}
