//! What a workload asks of the engine, and what the host compared the answer with.
//!
//! A [`Computation`] is a seeded workload: it draws its inputs as the published script does, rounds
//! them to fp16, and yields [`Case`]s. It knows nothing of devices and nothing of published values.

mod attention;
mod convolution;
mod encoder;
mod matrix;
mod row;
mod solver;
mod vision;

use std::sync::Arc;

use half::f16;

use crate::reference::Host;

pub use row::{RowOperation, Sizes};

/// An fp16 tensor, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct HalfTensor {
    /// Dimensions, outermost first.
    pub shape: Vec<usize>,
    /// As many values as the product of the dimensions.
    pub values: Vec<f16>,
}

impl HalfTensor {
    /// A tensor of `values` in the shape given.
    pub fn new(shape: impl Into<Vec<usize>>, values: Vec<f16>) -> Self {
        Self { shape: shape.into(), values }
    }

    /// The same shape filled with zeros.
    pub fn zeros(shape: impl Into<Vec<usize>>) -> Self {
        let shape = shape.into();
        let count = shape.iter().product();
        Self { shape, values: vec![f16::ZERO; count] }
    }
}

/// `x @ weights.T + bias`.
#[derive(Clone, Debug, PartialEq)]
pub struct Projection {
    /// `[out, in]`.
    pub weights: HalfTensor,
    /// `[out]`.
    pub bias: HalfTensor,
}

/// Gain and bias of a norm, one value each per column or channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Affine {
    /// Factors.
    pub gain: HalfTensor,
    /// Offsets.
    pub bias: HalfTensor,
}

/// A pre-norm transformer block: attention and a two-layer perceptron with gelu, each added to its input.
#[derive(Clone, Debug, PartialEq)]
pub struct EncoderBlock {
    /// Query, key, value and output projection; 12 heads share the width.
    pub projections: Vec<Projection>,
    /// The perceptron's layers.
    pub mlp: [Projection; 2],
    /// The norms before attention and perceptron.
    pub norms: [Affine; 2],
}

/// The engine program of a case, with its fp16 weights.
#[derive(Clone, Debug, PartialEq)]
pub enum Program {
    /// `x @ weights.T`, weights `[out, in]`.
    Linear {
        /// The weights.
        weights: HalfTensor,
    },
    /// 3x3 convolutions, stride 1, padding 1, in a chain; a ReLU after each where asked.
    Convolutions {
        /// Kernels `[out, in, 3, 3]`, first layer first.
        layers: Vec<Arc<HalfTensor>>,
        /// Whether each layer ends in `max(y, 0)`.
        relu: bool,
    },
    /// `x <- (b - x @ weights.T) * d`, repeated; inputs x, b, d.
    Jacobi {
        /// The off-diagonal part of the matrix.
        weights: HalfTensor,
        /// How often the step is repeated.
        iterations: usize,
    },
    /// One operator over the last axis (or element by element).
    Row {
        /// The operator.
        operation: RowOperation,
        /// Scale per column, where the operator has one.
        gain: Option<HalfTensor>,
        /// Offset per column, where the operator has one.
        bias: Option<HalfTensor>,
    },
    /// Multi-head self-attention with biased projections.
    Attention {
        /// Query, key, value and output projection.
        projections: Vec<Projection>,
        /// How many heads share the width.
        heads: usize,
    },
    /// A transformer block.
    Encoder(Box<EncoderBlock>),
    /// 3x3 convolutions with ReLU, the mean of each map, then `y @ weights.T`.
    Classifier {
        /// Kernels `[out, in, 3, 3]`, first layer first.
        layers: Vec<Arc<HalfTensor>>,
        /// `[classes, channels]`.
        weights: HalfTensor,
    },
    /// Group norm over the channels.
    GroupNorm {
        /// How many groups.
        groups: usize,
        /// Per channel.
        affine: Affine,
    },
}

/// One call of the engine and the reference for its output.
#[derive(Clone, Debug)]
pub struct Case {
    /// Cases with equal parts add up to one relative error; a figure is the mean over its parts.
    pub part: usize,
    /// What the engine runs. Cases that share it share one compiled program.
    pub program: Arc<Program>,
    /// Its inputs, in the order the program names.
    pub inputs: Vec<HalfTensor>,
    /// The reference, for the whole output.
    pub reference: Vec<f64>,
}

/// A seeded workload. The seeds and shapes are those of the benchmark scripts published with
/// ANEForge 0.4.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Computation {
    /// `x[N,N] @ W[N,N].T`, both N(0,1) over the f32 square root of N; the error is taken over the
    /// first 256 rows.
    SquareProduct {
        /// N.
        size: usize,
    },
    /// `x[rows,depth] @ W[columns,depth].T`, both N(0,1) over the square root of the depth.
    Product {
        /// Rows of x.
        rows: usize,
        /// The summed dimension.
        depth: usize,
        /// Rows of W.
        columns: usize,
    },
    /// The product of `[batch,128,1024]` with one `[1024,1024]`; smaller batches are drawn first.
    BatchedProduct {
        /// 1, 4, 16, 64 or 256.
        batch: usize,
    },
    /// One convolution over `[batch, channels, 64, 64]`; the error is taken over the first image.
    ConvolutionSweep {
        /// Input and output channels.
        channels: usize,
        /// Images drawn.
        batch: usize,
    },
    /// Convolutions with ReLU on one 32x32 image.
    ConvolutionStack {
        /// Channels of the image.
        input_channels: usize,
        /// Channels of every layer's output.
        channels: usize,
        /// Layers.
        depth: usize,
    },
    /// The real and the imaginary part of a discrete Fourier transform, two programs.
    FourierTransform {
        /// Points.
        size: usize,
    },
    /// Explicit heat-equation steps with a five-point stencil on a square grid.
    Stencil {
        /// Grid points along an edge.
        size: usize,
        /// Steps, one convolution each.
        steps: usize,
    },
    /// Jacobi iterations on a diagonally dominant system.
    Jacobi {
        /// Unknowns.
        size: usize,
        /// Iterations.
        iterations: usize,
    },
    /// One operator over `[rows, 4096]`, in a sweep that draws all its sizes from one generator.
    Streaming {
        /// The operator.
        operation: RowOperation,
        /// Which list of sizes is drawn.
        sizes: Sizes,
        /// The rows of the size that the figure is about.
        rows: usize,
    },
    /// A normalisation over `[197, 768]`.
    Normalisation {
        /// The operator.
        operation: RowOperation,
    },
    /// Self-attention of width 768 with 12 heads.
    Attention {
        /// Sequence length.
        sequence: usize,
    },
    /// The attention block alone as served: sequences of 128.
    ServingAttention {
        /// 1, 4, 16, 64 or 256; smaller batches are drawn first.
        batch: usize,
    },
    /// The transformer block as served.
    ServingEncoder {
        /// As above.
        batch: usize,
    },
    /// The convolutional classifier as served.
    ServingVision {
        /// As above.
        batch: usize,
    },
    /// Group norm of `[1,256,64,64]` in 32 groups.
    GroupNorm,
}

impl Computation {
    /// Draws the workload and hands its cases to `visit`, one after another, so that only one is
    /// held in memory.
    ///
    /// # Errors
    /// Whatever `visit` returns.
    pub fn cases<E>(self, host: Host, visit: &mut dyn FnMut(Case) -> Result<(), E>) -> Result<(), E> {
        match self {
            Self::SquareProduct { size } => visit(matrix::square_product(size)),
            Self::Product { rows, depth, columns } => visit(matrix::product(host, rows, depth, columns)),
            Self::BatchedProduct { batch } => visit(matrix::batched_product(host, batch)),
            Self::ConvolutionSweep { channels, batch } => visit(convolution::sweep(host, channels, batch)),
            Self::ConvolutionStack { input_channels, channels, depth } => {
                visit(convolution::stack(host, input_channels, channels, depth))
            }
            Self::FourierTransform { size } => matrix::fourier_transform(size).into_iter().try_for_each(visit),
            Self::Stencil { size, steps } => visit(convolution::stencil(size, steps)),
            Self::Jacobi { size, iterations } => visit(solver::jacobi(size, iterations)),
            Self::Streaming { operation, sizes, rows } => row::streaming(operation, sizes, rows, visit),
            Self::Normalisation { operation } => visit(row::normalisation(operation)),
            Self::Attention { sequence } => visit(attention::attention(host, sequence)),
            Self::ServingAttention { batch } => visit(attention::serving(host, batch)),
            Self::ServingEncoder { batch } => visit(encoder::serving(host, batch)),
            Self::ServingVision { batch } => visit(vision::serving(host, batch)),
            Self::GroupNorm => visit(vision::group_norm(256, 64, 32)),
        }
    }

    /// MIL operators that the engine computes it with, apart from those that only move elements.
    pub fn operators(self) -> &'static [&'static str] {
        match self {
            Self::SquareProduct { .. } | Self::Product { .. } | Self::BatchedProduct { .. } | Self::FourierTransform { .. } => {
                &["matmul"]
            }
            Self::ConvolutionSweep { .. } | Self::Stencil { .. } => &["conv"],
            Self::ConvolutionStack { .. } => &["conv", "relu"],
            Self::Jacobi { .. } => &["matmul", "mul", "sub"],
            Self::Streaming { operation, .. } | Self::Normalisation { operation } => operation.operators(),
            Self::Attention { .. } | Self::ServingAttention { .. } => &["add", "matmul", "softmax"],
            Self::ServingEncoder { .. } => &["add", "gelu", "layer_norm", "matmul", "softmax"],
            Self::ServingVision { .. } => &["conv", "matmul", "reduce_mean", "relu"],
            Self::GroupNorm => &["add", "mul", "reduce_mean", "rsqrt", "sub"],
        }
    }

    /// What the engine's answer depends on besides the inputs.
    pub fn variation(self) -> Variation {
        match self {
            Self::SquareProduct { .. }
            | Self::Product { .. }
            | Self::BatchedProduct { .. }
            | Self::FourierTransform { .. }
            | Self::Jacobi { .. }
            | Self::Streaming { operation: RowOperation::Relu, .. } => Variation::None,
            Self::ConvolutionSweep { .. } | Self::ConvolutionStack { .. } | Self::Stencil { .. } => Variation::ConvolutionForm,
            Self::Streaming { .. }
            | Self::Normalisation { .. }
            | Self::Attention { .. }
            | Self::ServingAttention { .. }
            | Self::ServingEncoder { .. }
            | Self::ServingVision { .. }
            | Self::GroupNorm => Variation::Generation,
        }
    }
}

/// How a computation's result differs between chips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variation {
    /// Not at all: every chip with a published value has the same one.
    None,
    /// By the form in which the chip runs convolutions.
    ConvolutionForm,
    /// By the engine's generation: the stand-ins for reductions differ before and from A15 on.
    Generation,
}
