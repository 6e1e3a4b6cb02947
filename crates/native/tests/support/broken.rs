//! One use for each rule of each layer that breaks it and no earlier one.

use aneforge_mil::DType::{Fp16, Fp32, UInt16};
use aneforge_mil::op::{Given, flag, given, int, ints, number, sample, text, values};

/// Arguments that replace those of a layer's first case; `None` leaves one out.
pub type Changes = &'static [(&'static str, Option<Given>)];

/// A tensor of which only the shape matters.
const fn t(shape: &'static [usize]) -> Option<Given> {
    Some(sample(shape, 7))
}

const fn i(value: &'static [f64; 1]) -> Option<Given> {
    Some(int(value))
}

const fn w(word: &'static str) -> Option<Given> {
    Some(text(word))
}

const fn real(value: &'static [f64; 1]) -> Option<Given> {
    Some(number(Fp32, value))
}

const fn half(value: &'static [f64; 1]) -> Option<Given> {
    Some(number(Fp16, value))
}

const LONG: Option<Given> = t(&[1, 1, 1, 2049]);
const NOTHING: Option<Given> = Some(ints(&[0], &[]));
const DEPTH: Option<Given> = Some(ints(&[1], &[1.0]));

/// Layer, label of the rule that is broken first, what is changed about the layer's first case.
pub const BROKEN: &[(&str, &str, Changes)] = &[
    ("SDPA", "C2", &[("value", t(&[1, 3, 1, 2]))]),
    ("SDPA", "C3", &[("query", t(&[1, 1, 2, 2]))]),
    ("SDPA", "C4", &[("scale", t(&[1, 2, 1, 1]))]),
    ("SDPA", "C5", &[("mask", t(&[1, 1, 1, 3]))]),
    ("SDPA", "C6", &[("query", t(&[1, 512, 1, 2])), ("key", t(&[1, 512, 1, 2])), ("value", t(&[1, 512, 1, 2]))]),
    ("SDPA", "C6", &[("key", t(&[1, 2049, 1, 2])), ("value", t(&[1, 2049, 1, 2]))]),
    ("GlobalArgMinMax", "C2", &[("Type", w("Sum"))]),
    ("GlobalArgMinMax", "C3", &[("Dimension", w("Batch"))]),
    ("GlobalArgMinMax", "C4", &[("x", LONG)]),
    ("ArgMinMax", "C2", &[("Mode", w("Spatial"))]),
    ("ArgMinMax", "C3", &[("KernelWidth", i(&[3.0]))]),
    ("ArgMinMax", "C4", &[("PadLeft", i(&[1.0]))]),
    ("ArgMinMax", "C5", &[("x", LONG), ("KernelWidth", i(&[2049.0]))]),
    ("TopK", "C2", &[("Type", w("Mean"))]),
    ("TopK", "C3", &[("K", i(&[5.0]))]),
    ("TopK", "C4", &[("K", i(&[3.0]))]),
    ("TopK", "C4", &[("K", i(&[4.0]))]),
    ("TopK", "C5", &[("SortDimension", w("Height"))]),
    ("TopK", "C6", &[("SortIndices", Some(ints(&[1], &[1.0])))]),
    ("TopK", "C7", &[("x", LONG), ("Indices", Some(flag(true)))]),
    ("Sort", "C2", &[("Direction", w("Up"))]),
    ("Sort", "C3", &[("VectorDimension", w("Height"))]),
    ("Sort", "C4", &[("SortIndices", Some(ints(&[2], &[0.0, 0.0])))]),
    ("Sort", "C5", &[("x", LONG), ("Indices", Some(flag(true)))]),
    ("CrossProduct", "C2", &[("z", t(&[1, 1, 1, 3]))]),
    ("CrossCorrelation", "C2", &[("x", t(&[1, 2, 2, 3]))]),
    ("CrossCorrelation", "C3", &[("template", t(&[1, 1, 1, 3]))]),
    ("CrossCorrelation", "C4", &[("x", t(&[1, 1, 2, 20])), ("template", t(&[1, 1, 1, 16])), ("TemplateWidth", i(&[16.0]))]),
    ("CrossCorrelation", "C5", &[("PadLeft", i(&[2.0]))]),
    ("CrossCorrelation", "C6", &[("x", t(&[1, 1, 2, 1]))]),
    ("CostVolume", "C2", &[("DisparityDirection", i(&[1.0]))]),
    ("CostVolume", "C3", &[("aux", t(&[1, 1, 2, 3]))]),
    ("CostVolume", "C4", &[("DisparityRange", i(&[2.0]))]),
    ("CostVolume", "C5", &[("ScaleFactorX", real(&[2.0]))]),
    ("FurthestPointSampling", "C2", &[("points", t(&[1, 2, 1, 4]))]),
    ("FurthestPointSampling", "C3", &[("points", t(&[1, 3, 1, 8193]))]),
    ("FurthestPointSampling", "C4", &[("CentroidCount", i(&[1.0]))]),
    ("FurthestPointSampling", "C5", &[("DistanceMetric", w("Cosine"))]),
    ("RadiusSearch", "C2", &[("points", t(&[1, 3, 2, 4]))]),
    ("RadiusSearch", "C3", &[("Radius", real(&[0.0]))]),
    ("MinMaxNormalization", "C2", &[("Dimension", w("Channel"))]),
    ("MinMaxNormalization", "C3", &[("Epsilon", half(&[-1.0]))]),
    ("LocalResponseNormalization", "C2", &[("KernelWidth", i(&[2.0]))]),
    ("LocalResponseNormalization", "C3", &[("KernelChannel", i(&[2.0]))]),
    ("LocalResponseNormalization", "C4", &[("x", t(&[1, 16, 1, 1])), ("KernelChannel", i(&[16.0]))]),
    ("LocalResponseNormalization", "C5", &[("K", real(&[0.0]))]),
    ("Softmax", "C2", &[("Dimension", w("Batch"))]),
    ("SpaceToChannel", "C2", &[("FactorZ", i(&[2.0]))]),
    ("SpaceToChannel", "C3", &[("x", t(&[2, 1, 2, 2]))]),
    ("SpaceToChannel", "C4", &[("FactorX", i(&[3.0]))]),
    ("ChannelToSpace", "C2", &[("FactorZ", i(&[2.0]))]),
    ("ChannelToSpace", "C3", &[("x", t(&[2, 8, 1, 1]))]),
    ("ChannelToSpace", "C4", &[("FactorX", i(&[3.0]))]),
    ("SpaceToBatch", "C2", &[("FactorZ", i(&[2.0]))]),
    ("SpaceToBatch", "C3", &[("FactorX", i(&[3.0]))]),
    ("SpaceToBatch", "C4", &[("x", t(&[1, 1, 2, 5])), ("FactorX", i(&[5.0]))]),
    ("BatchToSpace", "C2", &[("FactorZ", i(&[2.0]))]),
    ("BatchToSpace", "C3", &[("FactorX", i(&[3.0]))]),
    ("BatchToSpace", "C4", &[("x", t(&[5, 1, 2, 1])), ("FactorX", i(&[5.0]))]),
    ("PixelShuffle", "C2", &[("FactorZ", i(&[2.0]))]),
    ("PixelShuffle", "C3", &[("x", t(&[1, 10, 1, 1])), ("FactorX", i(&[5.0]))]),
    ("PixelShuffle", "C4", &[("FactorX", i(&[3.0]))]),
    ("PixelUnshuffle", "C2", &[("FactorZ", i(&[2.0]))]),
    ("PixelUnshuffle", "C3", &[("x", t(&[1, 1, 2, 5])), ("FactorX", i(&[5.0]))]),
    ("PixelUnshuffle", "C4", &[("FactorX", i(&[3.0]))]),
    ("Flatten", "C2", &[("Mode", w("NHWC"))]),
    ("Dropout", "C2", &[("DropoutRate", real(&[0.5]))]),
    ("Broadcast", "C2", &[("BroadcastInfo_Dimension", DEPTH)]),
    ("Broadcast", "C3", &[("BroadcastInfo_Dimension", Some(ints(&[1], &[3.0])))]),
    ("Transpose", "C2", &[("TransposeDimensions_TransposeDestinationDimension", Some(ints(&[3], &[3.0, 3.0, 2.0])))]),
    ("Concat", "C2", &[("values", t(&[1, 1, 1, 1]))]),
    ("Concat", "C3", &[("Dimension", w("Depth"))]),
    ("Concat", "C4", &[("Dimension", w("Height"))]),
    ("Reshape", "C2", &[("ReshapedWidth", i(&[3.0]))]),
    ("InputView", "C2", &[("Dimension", w("Depth"))]),
    ("InputView", "C3", &[("Offset", i(&[3.0]))]),
    ("InputView", "C4", &[("Step", i(&[2.0]))]),
    ("DynamicSlice", "C2", &[("DynamicSliceAxisOrder", Some(ints(&[1], &[3.0])))]),
    ("DynamicSlice", "C3", &[("DynamicSliceInfo_SliceSize", Some(ints(&[1], &[0.0])))]),
    ("DynamicSlice", "C4", &[("CoordinateMode", w("NormalizedReflect"))]),
    ("DynamicSlice", "C5", &[("index", Some(values(UInt16, &[1, 1, 1, 2], &[0.0, 1.0])))]),
    ("Gather", "C2", &[("GatherNDAxes", NOTHING)]),
    ("Gather", "C3", &[("index", Some(values(UInt16, &[1, 1, 2, 1], &[0.0, 1.0])))]),
    ("Gather", "C4", &[("index", Some(values(UInt16, &[1, 1, 1, 1], &[3.0])))]),
    ("ElementWise", "C2", &[("Type", w("Abs"))]),
    ("ElementWise", "C3", &[("z", t(&[1, 1, 1, 3]))]),
    ("ScaledElementWise", "C2", &[("Type", w("Sub"))]),
    ("ScaledElementWise", "C3", &[("z", t(&[1, 1, 1, 3]))]),
    ("ScaledElementWise", "C4", &[("Type", w("Mult"))]),
    ("DynamicGOC", "C2", &[("scale", None)]),
    ("DynamicGOC", "C3", &[("bias", t(&[1, 1, 1, 1]))]),
    ("DynamicGOC", "C4", &[("x", t(&[1, 5, 1, 2])), ("scale", t(&[1, 5, 1, 1])), ("bias", t(&[1, 5, 1, 1]))]),
    ("DynamicGOC", "C5", &[("Type", w("GOC"))]),
    ("Neuron", "C2", &[("Type", w("Softplus"))]),
    ("Neuron", "C3", &[("EluAlpha", half(&[1.0]))]),
    ("Neuron", "C4", &[("Type", w("LeakyReLU")), ("ReluSlope", half(&[0.5])), ("ReluOffset", half(&[1.0]))]),
    ("Neuron", "C5", &[("Type", w("ClampedReLU")), ("ReluMin", half(&[2.0])), ("ReluMax", half(&[1.0]))]),
    ("Pooling", "C2", &[("PaddingMode", w("Zero"))]),
    ("Pooling", "C3", &[("Step", Some(ints(&[3], &[2.0, 0.0, 1.0])))]),
    ("Pooling", "C4", &[("KernelDepth", i(&[2.0]))]),
    ("Pooling", "C5", &[("PadLeft", i(&[2.0]))]),
    ("Pooling", "C6", &[("AverageCountExcludePadding", Some(flag(true)))]),
    ("Reduction", "C2", &[("Type", w("Prod"))]),
    ("Reduction", "C3", &[("Dimension", NOTHING)]),
    ("Conv", "C2", &[("KernelMode", w("Unity"))]),
    ("Conv", "C3", &[("KernelHeight", i(&[2.0]))]),
    ("Conv", "C4", &[("Step", Some(ints(&[1], &[1.0])))]),
    ("Conv", "C5", &[("PadFront", i(&[1.0]))]),
    ("Conv", "C6", &[("PadLeft", i(&[-1.0]))]),
    ("MatrixMultiplication", "C2", &[("z", t(&[1, 2, 1, 1]))]),
    ("MatrixMultiplication", "C3", &[("x", t(&[2, 2, 1, 3])), ("z", Some(given(&[3, 3, 1, 1], &[0.0; 9])))]),
];
