//! Layers that the compiler knows and nobody can write, with the reason.

/// A type of layer without a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// Type name.
    pub name: &'static str,
    /// Why there is no record.
    pub reason: &'static str,
}

/// What holds for most of them.
const NO_PARAMETERS: &str = "its parameters are not published (unit types of arXiv 2606.22283, appendix C)";
const DECOMPOSITION: &str =
    "its results are not published, and the Python package aneforge 0.4.0, which can write it, does not call it";
const RASTERIZER: &str = "it compiles only where it changes nothing (the Python package aneforge 0.4.0)";

const fn row(name: &'static str, reason: &'static str) -> Unusable {
    Unusable { name, reason }
}

static ROWS: &[Unusable] = &[
    row("MatrixDecomposition", DECOMPOSITION),
    row("KernelRasterizer", RASTERIZER),
    row("NeuronCustom", NO_PARAMETERS),
    row("ConstMatrixMatrixMult", NO_PARAMETERS),
    row("Unflatten", "its lowering fails on M1, and its parameters are not published (arXiv 2606.22283, chapter 22)"),
    row("Shape", NO_PARAMETERS),
    row("InstanceNormalization", NO_PARAMETERS),
    row("L2Normalization", NO_PARAMETERS),
    row("LayerNormalization", NO_PARAMETERS),
    row("AffineTransform", NO_PARAMETERS),
    row("Resize", NO_PARAMETERS),
    row("ResizeAs", NO_PARAMETERS),
    row("Resample", NO_PARAMETERS),
    row("Padding", NO_PARAMETERS),
    row("Tile", NO_PARAMETERS),
    row("CropResize", NO_PARAMETERS),
    row("PlaneReader", NO_PARAMETERS),
    row("PlaneWriter", NO_PARAMETERS),
    row("NMS", "it runs on other units than the engine (arXiv 2606.22283, chapter 26)"),
    row("RandomGenerator", NO_PARAMETERS),
    row("Alias", NO_PARAMETERS),
    row("Quant", NO_PARAMETERS),
    row("DeQuant", NO_PARAMETERS),
    row("Linear", NO_PARAMETERS),
    row("RingBufferWriter", NO_PARAMETERS),
    row("RingBufferReader", NO_PARAMETERS),
    row("BatchNorm", NO_PARAMETERS),
    row("Phi", NO_PARAMETERS),
    row("Condition", NO_PARAMETERS),
    row("WaitForEvent", NO_PARAMETERS),
    row("SignalEvent", NO_PARAMETERS),
    row("NEConv", NO_PARAMETERS),
    row("NEMatMul", NO_PARAMETERS),
    row("NEPool", NO_PARAMETERS),
    row("NEBypass", NO_PARAMETERS),
    row("PEPool", NO_PARAMETERS),
    row("PEElementWise", NO_PARAMETERS),
    row("PEGOC", NO_PARAMETERS),
    row("AllSlice", NO_PARAMETERS),
    row("AllGather", NO_PARAMETERS),
    row("AllReduce", NO_PARAMETERS),
    row("FunctionCall", NO_PARAMETERS),
];

/// Every type of layer that the compiler's parser lists and [`layers`](super::layers) does not.
pub fn unusable() -> &'static [Unusable] {
    ROWS
}
