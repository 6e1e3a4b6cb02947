//! Exact convolution, in the direct form or in the one-dimensional Winograd form.

use half::f16;

use super::super::conv::{ConvShape, Layout, ShapeError};
use super::super::simd::Level;
use super::super::types::{Bases, Context, Epilogue, Output, Shared};
use super::entry::{Entered, WidenPairs, enter, entered_len};
use super::gemm::{Left, product};
use super::weights::{ExactWeights, Pieces};
use super::winograd::Winograd;
use super::{MacRules, Subnormals};

/// How a convolution is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// One product per tap (the M1, M2 and M4 parts).
    Direct,
    /// F(2, 3) along the width for 3x3, stride 1, padding 1 (the M5 and M6 parts).
    Winograd,
}

enum Plan {
    Direct { bases: Vec<u32>, groups: Vec<(ExactWeights, Pieces)> },
    Winograd(Box<Winograd>),
}

/// A planned convolution in the engine's arithmetic.
pub struct ExactConv2d {
    shape: ConvShape,
    output: [usize; 2],
    rules: MacRules,
    plan: Plan,
}

impl std::fmt::Debug for ExactConv2d {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExactConv2d").field("shape", &self.shape).field("form", &self.form()).finish_non_exhaustive()
    }
}

impl ExactConv2d {
    /// Plans a convolution with a weight in `[out, in / groups, height, width]` order.
    ///
    /// # Errors
    /// If the geometry is impossible, the weight has the wrong length, or the Winograd form does
    /// not apply.
    pub fn new(level: Level, shape: ConvShape, weight: &[f16], rules: MacRules, form: Form) -> Result<Self, ShapeError> {
        let output = shape.output()?;
        shape.check_weight(weight.len())?;
        let plan = match form {
            Form::Winograd => Plan::Winograd(Box::new(Winograd::new(level, &shape, weight, rules)?)),
            Form::Direct => {
                let columns = shape.channels_out / shape.groups;
                let depth = shape.channels_in / shape.groups * shape.kernel[0] * shape.kernel[1];
                let pack = |group| {
                    let element = |column, depth| weight[shape.weight_index(group, column, depth)];
                    let weights = ExactWeights::from_fn(level, columns, depth, rules, element);
                    (weights, Pieces::new(&shape.runs(group)))
                };
                Plan::Direct { bases: shape.bases(output), groups: (0..shape.groups).map(pack).collect() }
            }
        };
        Ok(Self { shape, output, rules, plan })
    }

    /// Whether the Winograd form exists for a geometry.
    pub fn winograd_applies(shape: &ConvShape) -> bool {
        shape.kernel == [3, 3]
            && shape.stride == [1, 1]
            && shape.dilation == [1, 1]
            && shape.pads == [1, 1, 1, 1]
            && shape.groups == 1
    }

    /// The form it was planned with.
    pub fn form(&self) -> Form {
        match self.plan {
            Plan::Direct { .. } => Form::Direct,
            Plan::Winograd(_) => Form::Winograd,
        }
    }

    /// Height and width of the output.
    pub fn output(&self) -> [usize; 2] {
        self.output
    }

    /// The geometry.
    pub fn shape(&self) -> &ConvShape {
        &self.shape
    }

    /// f32 values of scratch that [`ExactConv2d::run`] needs.
    pub fn scratch_len(&self) -> usize {
        match &self.plan {
            Plan::Direct { .. } => entered_len(self.padded_len()),
            Plan::Winograd(winograd) => entered_len(winograd.values(&self.shape)),
        }
    }

    /// Bytes of packed weights.
    pub fn bytes(&self) -> usize {
        match &self.plan {
            Plan::Direct { groups, .. } => groups.iter().map(|(weights, _)| weights.bytes()).sum(),
            Plan::Winograd(winograd) => winograd.bytes(),
        }
    }

    fn padded_len(&self) -> usize {
        let [height, width] = self.shape.padded();
        self.shape.batch * height * width * self.shape.channels_in
    }

    /// Convolves. Rows of the output are pixels, columns channels. The input of the Winograd form
    /// must be [`Layout::Nhwc`].
    ///
    /// # Panics
    /// If a slice is too short for the geometry, or the layout does not fit the form.
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
        match &self.plan {
            Plan::Winograd(winograd) => {
                assert_eq!(layout, Layout::Nhwc, "the Winograd form takes channels-last input");
                winograd.run(context, &self.shape, input, epilogue, scratch, output);
            }
            Plan::Direct { bases, groups } => {
                let drop_subnormals = self.rules.subnormal_inputs == Subnormals::Zero;
                let entered = enter_padded(context, &self.shape, input, layout, scratch, drop_subnormals);
                let columns = self.shape.channels_out / self.shape.groups;
                for (group, (weights, pieces)) in groups.iter().enumerate() {
                    let first = group * columns;
                    let mut own = *epilogue;
                    own.bias = own.bias.map(|bias| &bias[first..first + columns]);
                    own.residual = own.residual.map(|mut residual| {
                        residual.offset += first;
                        residual
                    });
                    let left = Left { entered, bases: Bases::List(bases), pieces };
                    let output = Output { data: &mut *output.data, offset: output.offset + first, stride: output.stride };
                    product(context, &left, weights, &own, output);
                }
            }
        }
    }
}

/// The zero-padded NHWC input as pairs.
fn enter_padded<'a>(
    context: Context<'_>,
    shape: &ConvShape,
    input: &[f16],
    layout: Layout,
    scratch: &'a mut [f32],
    drop_subnormals: bool,
) -> Entered<'a> {
    let [height, width] = shape.input;
    let channels = shape.channels_in;
    let [padded_height, padded_width] = shape.padded();
    assert!(input.len() >= shape.batch * height * width * channels, "input: shorter than the shape");
    let row = padded_width * channels;
    let rows = shape.batch * padded_height;
    let block = (16_384 / row.max(1)).max(1);
    enter(context, scratch, rows * row, |pairs: Shared<f32>| {
        context.pool.run(rows.div_ceil(block), &|job, _| {
            for index in job * block..rows.min((job + 1) * block) {
                let (image, y) = (index / padded_height, index % padded_height);
                // SAFETY: jobs have disjoint rows.
                let to = unsafe { pairs.slice(2 * index * row, 2 * row) };
                if y < shape.pads[0] || y >= shape.pads[0] + height {
                    to.fill(0.0);
                    continue;
                }
                let left = shape.pads[2] * channels;
                let inner = width * channels;
                to[..2 * left].fill(0.0);
                to[2 * (left + inner)..].fill(0.0);
                let y = y - shape.pads[0];
                let to = &mut to[2 * left..2 * (left + inner)];
                match layout {
                    Layout::Nhwc => {
                        let from = (image * height + y) * inner;
                        let from = &input[from..from + inner];
                        context.level.dispatch(WidenPairs { from, to, drop_subnormals });
                    }
                    Layout::Nchw => gather(context, shape, input, image, y, to, drop_subnormals),
                }
            }
        });
    })
}

/// One row of a channels-first image, a few pixels at a time.
fn gather(context: Context<'_>, shape: &ConvShape, input: &[f16], image: usize, y: usize, to: &mut [f32], drop_subnormals: bool) {
    let [height, width] = shape.input;
    let channels = shape.channels_in;
    let mut values = [f16::ZERO; 256];
    for (index, to) in to.chunks_mut(2 * values.len()).enumerate() {
        let count = to.len() / 2;
        for (at, value) in values[..count].iter_mut().enumerate() {
            let at = index * 256 + at;
            let (x, channel) = (at / channels, at % channels);
            *value = input[((image * channels + channel) * height + y) * width + x];
        }
        context.level.dispatch(WidenPairs { from: &values[..count], to, drop_subnormals });
    }
}
