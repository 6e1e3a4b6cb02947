//! 2-D convolution over NHWC as an implicit matrix product.
//!
//! The layer entry widens the input into a zero-padded f32 scratch, so that no border test is
//! left: an output pixel is a row of the product, and for a fixed kernel row its taps are one
//! contiguous run of the scratch (with dilation or groups: one run per tap).

use half::f16;
use thiserror::Error;

use super::convert::Widen;
use super::depthwise::{DepthwiseWeights, depthwise};
use super::gemm::gemm;
use super::pack::PackedWeights;
use super::simd::Level;
use super::types::{Bases, Context, Epilogue, Output, Rows, Run, Shared};

/// Why a convolution or pooling cannot be planned.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ShapeError {
    /// An extent, stride or dilation is zero.
    #[error("{0} must be at least 1")]
    Zero(&'static str),
    /// Groups do not divide the channels.
    #[error("groups ({groups}) must divide the input channels ({channels_in}) and the output channels ({channels_out})")]
    Groups {
        /// Number of groups.
        groups: usize,
        /// Input channels.
        channels_in: usize,
        /// Output channels.
        channels_out: usize,
    },
    /// The kernel is larger than the padded input.
    #[error("the kernel spans {kernel} but the padded input has only {input} along axis {axis}")]
    Kernel {
        /// Extent of the dilated kernel.
        kernel: usize,
        /// Extent of the padded input.
        input: usize,
        /// `height` or `width`.
        axis: &'static str,
    },
    /// The weight slice has the wrong length.
    #[error("the weight has {found} values, [{out}, {per_group}, {height}, {width}] needs {expected}")]
    Weight {
        /// Values given.
        found: usize,
        /// Values needed.
        expected: usize,
        /// Output channels.
        out: usize,
        /// Input channels per group.
        per_group: usize,
        /// Kernel height.
        height: usize,
        /// Kernel width.
        width: usize,
    },
    /// Winograd needs a 3x3 kernel with stride 1, dilation 1, padding 1, one group.
    #[error("the Winograd form needs a 3x3 kernel, stride 1, dilation 1, padding 1 and one group")]
    Winograd,
}

/// Geometry of a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvShape {
    /// Images.
    pub batch: usize,
    /// Height and width of the input.
    pub input: [usize; 2],
    /// Channels of the input.
    pub channels_in: usize,
    /// Channels of the output.
    pub channels_out: usize,
    /// Height and width of the kernel.
    pub kernel: [usize; 2],
    /// Steps along height and width.
    pub stride: [usize; 2],
    /// Distance of taps along height and width.
    pub dilation: [usize; 2],
    /// Zero padding: top, bottom, left, right.
    pub pads: [usize; 4],
    /// Channel groups.
    pub groups: usize,
}

impl ConvShape {
    /// Height and width of the output.
    ///
    /// # Errors
    /// If the geometry is impossible.
    pub fn output(&self) -> Result<[usize; 2], ShapeError> {
        let ConvShape { groups, channels_in, channels_out, .. } = *self;
        for (value, name) in
            [(self.batch, "batch"), (channels_in, "input channels"), (channels_out, "output channels"), (groups, "groups")]
        {
            if value == 0 {
                return Err(ShapeError::Zero(name));
            }
        }
        if channels_in % groups != 0 || channels_out % groups != 0 {
            return Err(ShapeError::Groups { groups, channels_in, channels_out });
        }
        window_output(self.input, self.kernel, self.stride, self.dilation, self.pads)
    }

    /// Height and width of the zero-padded scratch.
    pub(crate) fn padded(&self) -> [usize; 2] {
        [self.input[0] + self.pads[0] + self.pads[1], self.input[1] + self.pads[2] + self.pads[3]]
    }

    /// Checks a weight slice in `[out, in / groups, height, width]` order.
    pub(crate) fn check_weight(&self, found: usize) -> Result<(), ShapeError> {
        let per_group = self.channels_in / self.groups;
        let [height, width] = self.kernel;
        let expected = self.channels_out * per_group * height * width;
        if found == expected {
            Ok(())
        } else {
            Err(ShapeError::Weight { found, expected, out: self.channels_out, per_group, height, width })
        }
    }

    /// Taps and channels of one group in the order in which the runs walk them.
    pub(crate) fn runs(&self, group: usize) -> Vec<Run> {
        let per_group = self.channels_in / self.groups;
        let row = self.padded()[1] * self.channels_in;
        let [height, width] = self.kernel;
        if self.groups == 1 && self.dilation[1] == 1 {
            return (0..height).map(|ky| Run { offset: ky * self.dilation[0] * row, length: width * self.channels_in }).collect();
        }
        (0..height * width)
            .map(|tap| Run {
                offset: tap / width * self.dilation[0] * row
                    + tap % width * self.dilation[1] * self.channels_in
                    + group * per_group,
                length: per_group,
            })
            .collect()
    }

    /// Index into an OIHW weight of entry (`column` of `group`, `depth` along the runs).
    pub(crate) fn weight_index(&self, group: usize, column: usize, depth: usize) -> usize {
        let per_group = self.channels_in / self.groups;
        let out = group * (self.channels_out / self.groups) + column;
        let (tap, channel) = (depth / per_group, depth % per_group);
        (out * per_group + channel) * self.kernel[0] * self.kernel[1] + tap
    }

    /// Begin of every output pixel in the scratch.
    pub(crate) fn bases(&self, output: [usize; 2]) -> Vec<u32> {
        let [height, width] = self.padded();
        let mut bases = Vec::with_capacity(self.batch * output[0] * output[1]);
        for image in 0..self.batch {
            for y in 0..output[0] {
                for x in 0..output[1] {
                    let pixel = (image * height + y * self.stride[0]) * width + x * self.stride[1];
                    bases.push((pixel * self.channels_in) as u32);
                }
            }
        }
        bases
    }
}

/// Output extent of a sliding window, shared by convolution and pooling.
pub(crate) fn window_output(
    input: [usize; 2],
    kernel: [usize; 2],
    stride: [usize; 2],
    dilation: [usize; 2],
    pads: [usize; 4],
) -> Result<[usize; 2], ShapeError> {
    let mut output = [0; 2];
    for axis in 0..2 {
        for (value, name) in
            [(input[axis], "input extent"), (kernel[axis], "kernel extent"), (stride[axis], "stride"), (dilation[axis], "dilation")]
        {
            if value == 0 {
                return Err(ShapeError::Zero(name));
            }
        }
        let span = (kernel[axis] - 1) * dilation[axis] + 1;
        let padded = input[axis] + pads[2 * axis] + pads[2 * axis + 1];
        if span > padded {
            return Err(ShapeError::Kernel { kernel: span, input: padded, axis: ["height", "width"][axis] });
        }
        output[axis] = (padded - span) / stride[axis] + 1;
    }
    Ok(output)
}

/// Order of the values of an input image batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Channels last, the order between layers.
    Nhwc,
    /// Channels first, the order of the model's own inputs.
    Nchw,
}

enum Weights {
    Groups(Vec<(PackedWeights, Vec<Run>)>),
    Depthwise(DepthwiseWeights),
}

/// A planned convolution: packed weights, row addresses and runs.
pub struct Conv2d {
    shape: ConvShape,
    output: [usize; 2],
    bases: Vec<u32>,
    weights: Weights,
}

impl std::fmt::Debug for Conv2d {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conv2d").field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl Conv2d {
    /// Plans a convolution with a weight in `[out, in / groups, height, width]` order.
    ///
    /// # Errors
    /// If the geometry is impossible or the weight has the wrong length.
    pub fn new(level: Level, shape: ConvShape, weight: &[f16]) -> Result<Self, ShapeError> {
        let output = shape.output()?;
        shape.check_weight(weight.len())?;
        let per_group = shape.channels_in / shape.groups;
        let columns = shape.channels_out / shape.groups;
        let weights = if per_group == 1 && columns == 1 {
            Weights::Depthwise(DepthwiseWeights::new(shape.channels_in, shape.kernel, weight))
        } else {
            let depth = per_group * shape.kernel[0] * shape.kernel[1];
            let pack = |group| {
                let element = |column, depth| weight[shape.weight_index(group, column, depth)];
                (PackedWeights::from_fn(level, columns, depth, element), shape.runs(group))
            };
            Weights::Groups((0..shape.groups).map(pack).collect())
        };
        Ok(Self { shape, output, bases: shape.bases(output), weights })
    }

    /// Height and width of the output.
    pub fn output(&self) -> [usize; 2] {
        self.output
    }

    /// The geometry.
    pub fn shape(&self) -> &ConvShape {
        &self.shape
    }

    /// f32 values of scratch that [`Conv2d::run`] needs.
    pub fn scratch_len(&self) -> usize {
        let [height, width] = self.shape.padded();
        self.shape.batch * height * width * self.shape.channels_in
    }

    /// Bytes of packed weights.
    pub fn bytes(&self) -> usize {
        match &self.weights {
            Weights::Groups(groups) => groups.iter().map(|(weights, _)| weights.bytes()).sum(),
            Weights::Depthwise(weights) => weights.bytes(),
        }
    }

    /// Convolves. Rows of the output are pixels (images one after the other), columns channels.
    ///
    /// # Panics
    /// If a slice is too short for the geometry.
    pub fn run(
        &self,
        context: Context<'_>,
        input: &[f16],
        layout: Layout,
        epilogue: &Epilogue<'_>,
        scratch: &mut [f32],
        output: Output<'_, f16>,
    ) {
        let scratch = &mut scratch[..self.scratch_len()];
        enter(context, &self.shape, input, layout, scratch);
        match &self.weights {
            Weights::Depthwise(weights) => {
                depthwise(context, &self.shape, self.output, &self.bases, weights, scratch, epilogue, output);
            }
            Weights::Groups(groups) => {
                let columns = self.shape.channels_out / self.shape.groups;
                for (group, (weights, runs)) in groups.iter().enumerate() {
                    let rows = Rows { bases: Bases::List(&self.bases), runs };
                    let first = group * columns;
                    let mut own = *epilogue;
                    own.bias = own.bias.map(|bias| &bias[first..first + columns]);
                    own.residual = own.residual.map(|mut residual| {
                        residual.offset += first;
                        residual
                    });
                    let output = Output { data: &mut *output.data, offset: output.offset + first, stride: output.stride };
                    gemm(context, scratch, rows, weights, &own, output);
                }
            }
        }
    }
}

/// Widens the input into the zero-padded scratch, NHWC.
///
/// # Panics
/// If the input or the scratch is shorter than the geometry.
pub(crate) fn enter(context: Context<'_>, shape: &ConvShape, input: &[f16], layout: Layout, scratch: &mut [f32]) {
    let [height, width] = shape.input;
    let channels = shape.channels_in;
    let [padded_height, padded_width] = shape.padded();
    assert!(input.len() >= shape.batch * height * width * channels, "input: shorter than the shape");
    let row = padded_width * channels;
    assert!(scratch.len() >= shape.batch * padded_height * row, "scratch: too short");
    let out = Shared::new(scratch);
    let rows = shape.batch * padded_height;
    // About 16k values per job.
    let block = (16_384 / row.max(1)).max(1);
    context.pool.run(rows.div_ceil(block), &|job, _| {
        for index in job * block..rows.min((job + 1) * block) {
            let (image, y) = (index / padded_height, index % padded_height);
            // SAFETY: jobs have disjoint rows.
            let to = unsafe { out.slice(index * row, row) };
            if y < shape.pads[0] || y >= shape.pads[0] + height {
                to.fill(0.0);
                continue;
            }
            let left = shape.pads[2] * channels;
            let inner = width * channels;
            to[..left].fill(0.0);
            to[left + inner..].fill(0.0);
            let y = y - shape.pads[0];
            match layout {
                Layout::Nhwc => {
                    let from = (image * height + y) * inner;
                    context.level.dispatch(Widen { from: &input[from..from + inner], to: &mut to[left..left + inner] });
                }
                Layout::Nchw => {
                    for channel in 0..channels {
                        let from = ((image * channels + channel) * height + y) * width;
                        for (x, value) in input[from..from + width].iter().enumerate() {
                            to[left + x * channels + channel] = value.to_f32();
                        }
                    }
                }
            }
        }
    });
}
